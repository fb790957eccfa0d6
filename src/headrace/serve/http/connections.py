"""Connections: how many, and for how long one may stay that says nothing, or nothing that can be understood."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from headrace.serve.http.options import Options
from headrace.serve.http.replies import Refused, refusal

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
LINGER_S = 1.0  # for who is refused and still sends


class Understood(web.RequestHandler):
    """A connection that tells nobody what went wrong inside, nor who answers."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        found = refusal(Refused(status, "this is no request" if status == 400 else "this is a bug"))
        found.force_close()
        return found


class Connections(web.Server):
    """All that are open."""

    def __init__(self, handler: Handler, options: Options) -> None:
        super().__init__(
            self._handle, request_factory=self._request, access_log=None, keepalive_timeout=options.idle_s,
            lingering_time=LINGER_S, auto_decompress=False,
        )  # fmt: skip
        self._answer, self._options = handler, options
        self._fresh: dict[object, asyncio.TimerHandle] = {}

    def __call__(self) -> Any:
        return Understood(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: Any, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > self._options.limits.connections:
            transport.abort()
            return
        self._fresh[handler] = asyncio.get_running_loop().call_later(self._options.header_s, transport.abort)

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        self._seen(handler)
        super().connection_lost(handler, exc)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._seen(request.protocol)
        return await self._answer(request)

    def _seen(self, handler: object) -> None:
        """Its first request is there: from now on it is one that is idle, or not."""
        timer = self._fresh.pop(handler, None)
        if timer is not None:
            timer.cancel()

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        return web.BaseRequest(message, payload, protocol, writer, task, self._loop, client_max_size=self._options.limits.body)
