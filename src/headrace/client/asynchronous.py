"""The client for programs with an event loop."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import aiohttp

from headrace.client.replies import (
    Answered,
    Change,
    Late,
    Promised,
    Rejected,
    Reply,
    ServingError,
    Unanswered,
    failure,
    read_change,
    read_reply,
)

JSON, LINES = "application/json", "application/x-ndjson"
REPLIES = (200, 422)  # and 504, when there is no time left
AGAIN = (408, 429, 502, 503, 504)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
AT_ONCE = 500  # events of one request
HEARTBEAT_S = 20.0


class AsyncClient:
    """One for a deployment; keeps its connections."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 30.0, ca: str | Path | None = None) -> None:
        """`timeout`: seconds until a post must be answered, all its tries together. `ca`: certificates to trust, in PEM."""
        self.url, self.timeout = url.rstrip("/"), timeout
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._tls = ssl.create_default_context(cafile=str(ca)) if ca is not None else True
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    # ---- posting --------------------------------------------------------------------------------------------------

    async def post(self, stream: str, event: Mapping[str, Any], id: str | None = None) -> Answered | Late | Promised:
        """The reply to an event. One that does not fit, or is not answered in time, is an error with the reply in it."""
        body = as_json(event)
        status, text = await self._send(stream, body, JSON, id or uuid.uuid4().hex, time.monotonic() + self.timeout)
        reply = read_reply(text)
        match reply:
            case Rejected():
                raise ServingError(reply.reason, status, reply, "the event does not count")
            case Unanswered():
                raise ServingError(reply.message, status, reply, "the event counts; post it again with the same id")
        return reply

    async def post_many(self, stream: str, events: Iterable[Mapping[str, Any]], id: str | None = None) -> list[Reply]:
        """A reply for each event, in order. What was rejected, or is not answered yet, stands among them."""
        return [read_reply(text) for text in await self.post_lines(stream, [as_json(e) for e in events], id)]

    async def post_lines(self, stream: str, lines: Sequence[bytes], id: str | None = None) -> list[bytes]:
        """Events that are JSON already, and the texts of their replies."""
        whole, until, out = id or uuid.uuid4().hex, time.monotonic() + self.timeout, list[bytes]()
        for first in range(0, len(lines), AT_ONCE):
            out += await self._some(stream, lines[first : first + AT_ONCE], f"{whole}.{first}", until)
        return out

    async def _some(self, stream: str, lines: Sequence[bytes], id: str, until: float) -> list[bytes]:
        """Again, until all are answered: each finds its first answer."""
        replies: list[bytes] = []
        while True:
            try:
                _, text = await self._send(stream, b"\n".join(lines) + b"\n", LINES, id, until)
            except ServingError:
                if replies:
                    return replies  # they were accepted, which is more than is known of this try
                raise
            replies = text.splitlines()
            if len(replies) != len(lines):
                raise ServingError(f"{len(lines)} events were sent, and {len(replies)} replies came", hint="look at the address")
            waiting = any(isinstance(read_reply(r), Unanswered) for r in replies)
            if not waiting or time.monotonic() >= until:
                return replies

    async def _send(self, stream: str, body: bytes, kind: str, id: str, until: float) -> tuple[int, bytes]:
        """One request, as often as it takes. The last thing that went wrong is raised when there is no time left."""
        pause, url = FIRST_PAUSE_S, f"{self.url}/streams/{quote(stream, safe='')}/events"
        last: tuple[int, bytes] | None = None
        headers = {**self._headers, "Content-Type": kind, "Idempotency-Key": id}
        while True:
            wait, error = pause * random.uniform(0.5, 1.0), None
            try:
                status, text, after = await self._once(url, body, headers, until)
                if status in REPLIES:
                    return status, text
                if status not in AGAIN:
                    raise failure(status, text)
                wait, last = max(wait, after), (status, text) if last is None or not _accepted(last) else last
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as found:
                error = found
            if time.monotonic() + wait >= until:
                return _given_up(last, error)
            await asyncio.sleep(wait)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    async def _once(self, url: str, body: bytes, headers: Mapping[str, str], until: float) -> tuple[int, bytes, float]:
        left = aiohttp.ClientTimeout(total=max(0.001, until - time.monotonic()))
        async with self._open().post(url, data=body, headers=headers, timeout=left, ssl=self._tls) as got:
            return got.status, await got.read(), _seconds(got.headers.get("Retry-After"))

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    # ---- listening ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def subscribe(self, *queries: str) -> AsyncIterator[AsyncIterator[Change]]:
        """All changes of these queries from now on. When it ends, changes may have been missed: that is an error."""
        try:
            socket = await self._open().ws_connect(
                f"{self.url}/ws", headers=self._headers, heartbeat=HEARTBEAT_S, ssl=self._tls, max_msg_size=0
            )
        except aiohttp.WSServerHandshakeError as error:
            raise ServingError(f"HTTP status {error.status}", error.status) from None
        except aiohttp.ClientError as error:
            raise ServingError(str(error), hint="is the front end there?") from error
        async with socket:
            await socket.send_str(json.dumps({"subscribe": queries}))
            first = await socket.receive()
            found = json.loads(first.data) if first.type is aiohttp.WSMsgType.TEXT else {}
            if "subscribed" not in found:
                raise failure(int(found.get("status", 0)), json.dumps(found.get("reply")).encode())
            yield _changes(socket)


async def _changes(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[Change]:
    while True:
        message = await socket.receive()
        if message.type is not aiohttp.WSMsgType.TEXT:
            why = f": {message.extra}" if message.extra else ""
            raise ServingError(f"the subscription has ended{why}", hint="subscribe anew; changes meanwhile are not heard")
        yield read_change(json.loads(message.data)["change"])


def as_json(event: Mapping[str, Any]) -> bytes:
    """Times as ISO 8601, DECIMALs as their text."""
    return json.dumps(event, default=_plain, ensure_ascii=False).encode()


def _plain(value: Any) -> str:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} is nothing that JSON can hold")


def _seconds(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def _accepted(last: tuple[int, bytes]) -> bool:
    """Whether a front end has said that an event counts, and is only not answered yet."""
    return last[0] == 504 and b'"accepted"' in last[1]


def _given_up(last: tuple[int, bytes] | None, error: Exception | None) -> tuple[int, bytes]:
    """There is no time left: an event that was accepted has a reply all the same."""
    if last is not None:
        if _accepted(last):
            return last
        raise failure(*last)
    hint = "it is not known whether it counts: post it again with the same id"
    raise ServingError(f"no answer in time: {str(error) or 'timeout'}", hint=hint) from error
