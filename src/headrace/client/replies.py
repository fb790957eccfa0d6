"""What comes back for an event."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import HeadraceError


@dataclass(frozen=True, slots=True)
class Change:
    """A row that came (`+`), or was taken back (`-`), and the place of the event it stands at."""

    query: str
    op: str
    place: str
    time: str
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answered:
    """`answers`, by query: the row of this event (None: it has none), or a list of those it made with others."""

    place: str
    answers: Mapping[str, Any]
    earlier: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Late:
    """The event was accepted, and came too late to count."""

    place: str
    time: str
    complete_before: str
    by_seconds: float
    message: str


@dataclass(frozen=True, slots=True)
class Promised:
    """The row was punctuation."""

    place: str
    promised: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The event does not fit its stream, and does not count."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The event was accepted, and its answer is not there yet."""

    place: str
    message: str


Reply = Answered | Late | Promised | Rejected | Unanswered


class ServingError(HeadraceError):
    """A post or a subscription has failed.

    `reply`: what came of the event, if that is known; `status`: that of HTTP, if any came.
    """

    title = "the front end did not answer"

    def __init__(self, message: str, status: int | None = None, reply: Reply | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status, self.reply = status, reply


def read_reply(text: bytes | str) -> Reply:
    """One reply, as a front end writes it."""
    found = json.loads(text)
    match found:
        case {"answers": answers}:
            return Answered(found["place"], answers, tuple(map(read_change, found["earlier"])))
        case {"late": late}:
            return Late(found["place"], late["time"], late["complete_before"], late["by_seconds"], late["message"])
        case {"promised": promised}:
            return Promised(found["place"], promised)
        case {"rejected": why}:
            return Rejected(why["reason"])
        case {"accepted": True}:
            return Unanswered(found["place"], found["error"])
    raise ServingError("the reply is none of a front end of Headrace", hint="look at the address")


def read_change(found: Mapping[str, Any]) -> Change:
    return Change(found["query"], found["op"], found["place"], found["time"], found["row"])


def failure(status: int, text: bytes) -> ServingError:
    """What a status other than that of a reply means."""
    try:
        found = json.loads(text)
        return ServingError(str(found["error"]), status, hint=found.get("hint"))
    except (ValueError, KeyError, TypeError):
        return ServingError(f"HTTP status {status}, without a word of Headrace", status, hint="look at the address")
