"""A conversation over a WebSocket: events are posted and answered in any order, and queries listened to.

{"post": stream, "event": {..}, "id": "..."}      ->  {"id": "...", "status": 200, "reply": {..}}
{"subscribe": [queries]}, {"unsubscribe": [..]}   ->  {"subscribed": [queries]}, and from then on {"change": {..}}
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from headrace.serve.http import texts
from headrace.serve.http.gateway import Gateway, checked_id
from headrace.serve.http.hub import Hub, Outbox
from headrace.serve.http.limits import Limiter
from headrace.serve.http.replies import BUG, Refused, Reply, as_json, told
from headrace.serve.http.tokens import POST, READ, Doorkeeper, Token

HEARTBEAT_S = 20.0
LOOK_S = 1.0  # whether the token still opens


class Conversation:
    """One connection, from its first message to its end."""

    def __init__(
        self, gateway: Gateway, hub: Hub, door: Doorkeeper, limiter: Limiter, token: Token, say: Callable[[str], None]
    ) -> None:
        self._gateway, self._hub, self._door, self._token = gateway, hub, door, token
        self._say, self._outbox, most = say, Outbox(limiter.limits.outbox), limiter.limits.body
        self._socket = web.WebSocketResponse(heartbeat=HEARTBEAT_S, compress=False, max_msg_size=most, timeout=LOOK_S)
        self._posts: set[asyncio.Task[None]] = set()

    async def hold(self, request: web.BaseRequest) -> web.WebSocketResponse:
        socket = self._socket
        try:
            await socket.prepare(request)
        except web.HTTPException:
            raise Refused(400, "this is not how a WebSocket begins") from None
        tasks = [asyncio.create_task(self._send(socket)), asyncio.create_task(self._watch(socket))]
        try:
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    await socket.close(code=WSCloseCode.UNSUPPORTED_DATA, message=b"messages are texts of JSON")
                    break
                self._take(message.data.encode())
        finally:
            self._hub.unsubscribe(self._outbox)
            self._outbox.close()
            for task in (*tasks, *self._posts):
                task.cancel()
        return socket

    async def end(self) -> None:
        """The front end does not go on."""
        await self._socket.close(code=WSCloseCode.GOING_AWAY, message=b"this front end ends")

    def _take(self, text: bytes) -> None:
        """A message. What is refused is so for this message only."""
        found: dict[str, Any] = {}
        try:
            found = texts.message(text)
            match found:
                case {"post": str(stream), "id": str(id), "event": bytes(event)}:
                    self._need(POST)
                    self._post(self._gateway.stream(stream), event, id)
                case {"subscribe": [*names]}:
                    self._need(READ)
                    self._hub.subscribe(self._outbox, map(str, names))
                    self._outbox.put(as_json({"subscribed": self._hub.of(self._outbox)}))
                case {"unsubscribe": [*names]}:
                    self._hub.unsubscribe(self._outbox, map(str, names))
                    self._outbox.put(as_json({"subscribed": self._hub.of(self._outbox)}))
                case _:
                    hint = '{"post": stream, "event": {..}, "id": ".."}, or {"subscribe": [queries]}'
                    raise Refused(400, "this message says nothing that is understood here", hint=hint)
        except Refused as refused:
            self._reply(found.get("id"), refused.reply)

    def _need(self, scope: str) -> None:
        if not self._token.may(scope):
            raise Refused(403, f"this token lacks the scope {scope!r}")

    def _post(self, stream: int, event: bytes, id: str) -> None:
        """Tasks begin in the order in which they are made: so events keep theirs."""
        checked_id(id)
        task = asyncio.create_task(self._answer(stream, event, id))
        self._posts.add(task)
        task.add_done_callback(self._posts.discard)

    async def _answer(self, stream: int, event: bytes, id: str) -> None:
        try:
            reply = await self._gateway.one(self._token, stream, event, id)
        except Refused as refused:
            reply = refused.reply
        except Exception as error:
            self._say(told(error))
            reply = Refused(*BUG).reply
        self._reply(id, reply)

    def _reply(self, id: Any, reply: Reply) -> None:
        self._outbox.put(b'{"id": %s, "status": %d, "reply": %s}' % (as_json(id), reply.status, reply.body))

    async def _send(self, socket: web.WebSocketResponse) -> None:
        while (message := await self._outbox.take()) is not None:
            await socket.send_str(message.decode())
        if self._outbox.overrun:
            text = b"you read too slowly, and changes were lost: connect anew"
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=text)

    async def _watch(self, socket: web.WebSocketResponse) -> None:
        """A token that is taken away closes what it has opened."""
        while self._door.knows(self._token):
            await asyncio.sleep(LOOK_S)
        await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"unauthorized")
