"""What is sent back: bodies of JSON, and refusals in words."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
from aiohttp import web

JSON = "application/json"
LINES = "application/x-ndjson"
_HIDDEN = "-"  # in the place of the server's name and version
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Reply:
    """To one event, or one request."""

    status: int
    body: bytes


class Refused(Exception):
    """A request goes no further; its sender is told why."""

    def __init__(self, status: int, message: str, *, hint: str | None = None, retry_after: float | None = None) -> None:
        """Seconds to wait are whole ones on the wire."""
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint
        self.retry_after = None if retry_after is None else max(1, math.ceil(retry_after))

    @property
    def reply(self) -> Reply:
        body: dict[str, object] = {"error": self.message}
        if self.hint is not None:
            body["hint"] = self.hint
        if self.retry_after is not None:
            body["retry_after"] = self.retry_after
        return Reply(self.status, _encode(body))

    @property
    def headers(self) -> dict[str, str]:
        """Those that go with this status."""
        found = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return found | {"WWW-Authenticate": "Bearer"} if self.status == 401 else found


STRANGER = (401, "unauthorized")


def as_json(value: object) -> bytes:
    return _encode(value)


def response(reply: Reply, content_type: str = JSON, headers: dict[str, str] | None = None) -> web.Response:
    every = {"Server": _HIDDEN, "X-Content-Type-Options": "nosniff", **(headers or {})}
    return web.Response(body=reply.body, status=reply.status, content_type=content_type, headers=every)


def refusal(refused: Refused) -> web.Response:
    return response(refused.reply, headers=refused.headers)
