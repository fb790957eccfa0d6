"""What there is to ask for, who may ask, and what is answered to everything else.

A stranger gets the same 401 for every path, before anything of his request is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from headrace.serve.http import pages, texts
from headrace.serve.http.gateway import Gateway
from headrace.serve.http.hub import Hub
from headrace.serve.http.limits import Limiter
from headrace.serve.http.metrics import CONTENT_TYPE, Metrics
from headrace.serve.http.openapi import openapi
from headrace.serve.http.options import Options
from headrace.serve.http.replies import BUG, JSON, LINES, STRANGER, Refused, Reply, as_json, refusal, response, told
from headrace.serve.http.tokens import POST, READ, Doorkeeper, Token
from headrace.serve.http.websocket import Conversation

Handler = Callable[[web.BaseRequest, Token], Awaitable[web.StreamResponse]]
LINES_TOO = (LINES, "application/jsonl", "application/x-jsonlines")
HERE = ("localhost", "127.0.0.1", "::1")
HTML = "text/html"


@dataclass(frozen=True, slots=True)
class Route:
    """`scope`: what a token must have; None: any token will do."""

    method: str
    scope: str | None
    handler: Handler


class Site:
    """All of it. `ready` says what is still waited for; `say` is for whoever runs the front end."""

    def __init__(
        self, gateway: Gateway, hub: Hub, door: Doorkeeper, limiter: Limiter, metrics: Metrics, options: Options,
        ready: Callable[[], Sequence[str]], say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._gateway, self._hub, self._door, self._limiter, self._metrics = gateway, hub, door, limiter, metrics
        self._options, self._ready, self._say = options, ready, say
        self._deployment = gateway.front.deployment
        self.draining, self._talks = False, set[Conversation]()
        self._routes = {
            "/": Route("GET", READ, self._front_page),
            "/docs": Route("GET", READ, self._docs),
            "/openapi.json": Route("GET", READ, self._openapi),
            "/metrics": Route("GET", READ, self._metrics_text),
            "/health": Route("GET", None, self._health),
            "/ready": Route("GET", None, self._readiness),
            "/ws": Route("GET", None, self._websocket),  # what is said there needs scopes
        }

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """To anything at all."""
        try:
            found = await self._found(request)
        except Refused as refused:
            found = refusal(refused)
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:
            self._say(told(error))
            found = refusal(Refused(*BUG))
        self._metrics.answered(found.status)
        return found

    async def _found(self, request: web.BaseRequest) -> web.StreamResponse:
        token = self._door.who(request.headers.get("Authorization"))
        if token is None:
            raise Refused(*STRANGER)
        if self._door.open:
            _refuse_foreign_pages(request)
        path = request.path
        stream = _stream_of(path)
        route = Route("POST", POST, self._events) if stream is not None else self._routes.get(path)
        if route is None:
            raise Refused(404, "there is nothing here", hint="GET / says what there is")
        if route.scope is not None and not token.may(route.scope):
            raise Refused(403, f"this token lacks the scope {route.scope!r}")
        if request.method != route.method:
            raise Refused(405, f"this takes {route.method} only", allow=route.method)
        if self.draining and path not in ("/health", "/ready"):
            raise Refused(503, "this front end ends", retry_after=1)
        return await route.handler(request, token)

    # ---- events ---------------------------------------------------------------------------------------------------

    async def _events(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        stream = self._gateway.stream(_stream_of(request.path) or "")
        id = request.headers.get("Idempotency-Key")
        if id is None and request.query_string:
            id = request.query.get("id")
        kind = request.content_type
        if kind != JSON and kind not in LINES_TOO:
            raise Refused(415, f"events are sent as {JSON} or {LINES}", hint="curl --json '{..}', or set Content-Type")
        if "Content-Encoding" in request.headers:
            raise Refused(415, "events are sent as they are, not compressed")
        with self._limiter.body(min(request.content_length or self._options.limits.body, self._options.limits.body)):
            body = await self._body(request)
            if kind != JSON:
                replies = await self._gateway.several(token, stream, texts.lines(body), id)
                return response(Reply(200, b"".join(r.body + b"\n" for r in replies)), LINES)
            found = texts.events(body)
            if isinstance(found, list):
                replies = await self._gateway.several(token, stream, found, id)
                return response(Reply(200, b"[" + b",\n".join(r.body for r in replies) + b"]\n"))
            return response(await self._gateway.one(token, stream, found, id))

    async def _body(self, request: web.BaseRequest) -> bytes:
        most = self._options.limits.body
        too_large = Refused(413, f"a request has {most} bytes at most", hint="send several requests")
        if (request.content_length or 0) > most:
            raise too_large
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        try:
            async with asyncio.timeout(self._options.body_s):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise too_large from None
        except TimeoutError:
            raise Refused(408, f"the body was not there within {self._options.body_s:g} seconds") from None
        except web.RequestPayloadError:
            raise Refused(400, "the body is not what its headers say") from None

    async def _websocket(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise Refused(426, "this is for WebSockets")
        talk = Conversation(self._gateway, self._hub, self._door, self._limiter, token, self._say)
        self._talks.add(talk)
        try:
            return await talk.hold(request)
        finally:
            self._talks.discard(talk)

    async def hang_up(self) -> None:
        """End all conversations."""
        await asyncio.gather(*(talk.end() for talk in self._talks))

    # ---- about itself ---------------------------------------------------------------------------------------------

    async def _health(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        if self._gateway.broken:
            raise Refused(503, "this front end cannot go on")
        return response(Reply(200, b'{"healthy": true}'))

    async def _readiness(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        waits = ["this front end ends"] if self.draining else list(self._ready())
        return response(Reply(503 if waits else 200, as_json({"ready": not waits, "waits_for": waits})))

    async def _metrics_text(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        return response(Reply(200, self._metrics.text()), CONTENT_TYPE)

    async def _openapi(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        return response(Reply(200, as_json(openapi(self._deployment, self._options.limits))))

    async def _front_page(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        return _page(pages.front_page(self._deployment))

    async def _docs(self, request: web.BaseRequest, token: Token) -> web.StreamResponse:
        return _page(pages.docs_page(self._deployment, f"{request.scheme}://{request.host}"))


def _page(body: bytes) -> web.Response:
    return response(Reply(200, body), HTML, {"Content-Security-Policy": pages.POLICY})


def _stream_of(path: str) -> str | None:
    """The stream whose events a path means."""
    parts = path.split("/")
    return parts[2] if len(parts) == 4 and parts[1] == "streams" and parts[3] == "events" else None


def _refuse_foreign_pages(request: web.BaseRequest) -> None:
    """Where nobody needs a token, a page that somebody on this machine looks at must not speak for him."""
    host = request.headers.get("Host", "")
    if _name_of(f"//{host}") not in HERE:
        raise Refused(403, "without tokens, this answers to the name localhost only")
    origin = request.headers.get("Origin")
    if origin is not None and origin != f"{request.scheme}://{host}":
        raise Refused(403, "without tokens, this does not answer to pages of others")


def _name_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
