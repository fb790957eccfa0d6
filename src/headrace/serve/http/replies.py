"""What is sent back: bodies of JSON, and refusals in words."""

from __future__ import annotations

import math
import traceback
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

    def __init__(
        self, status: int, message: str, *, hint: str | None = None, retry_after: float | None = None, allow: str | None = None
    ) -> None:
        """Seconds to wait are whole ones on the wire."""
        super().__init__(message)
        self.status, self.message, self.hint, self._allow = status, message, hint, allow
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
        found |= {} if self._allow is None else {"Allow": self._allow}
        return found | {"WWW-Authenticate": "Bearer"} if self.status == 401 else found


STRANGER = (401, "unauthorized")


BUG = (500, "this is a bug, and has been noted")


def told(error: BaseException) -> str:
    """What went wrong and where, for the log of whoever runs this: in one line, whatever a sender has put into it."""
    places = (f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__))
    return f"{type(error).__name__}: {str(error)!a} at {' < '.join(reversed(list(places)))}"


def as_json(value: object) -> bytes:
    return _encode(value)


def response(reply: Reply, content_type: str = JSON, headers: dict[str, str] | None = None) -> web.Response:
    every = {"Server": _HIDDEN, "X-Content-Type-Options": "nosniff", **(headers or {})}
    return web.Response(body=reply.body, status=reply.status, content_type=content_type, headers=every)


def refusal(refused: Refused) -> web.Response:
    return response(refused.reply, headers=refused.headers)
