"""Text to events, and rows to text: what a front end needs of JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.serve.http.replies import Refused


@dataclass(frozen=True, slots=True)
class Event:
    """A row of a stream."""

    ts: int
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Promise:
    """Punctuation."""

    upto: int
    values: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Rejection:
    """What came does not fit its stream. `column`, `expected` and `found` where it is about one."""

    message: str
    column: str | None = None
    expected: str | None = None
    found: str | None = None


Reads = Callable[[Mapping[str, Any], int], Event | Promise | Rejection]
Writes = Callable[[Sequence[Any]], bytes]


@dataclass(frozen=True, slots=True)
class Texts:
    """Of a deployment: how the events of every stream are read (from an object, and the time by the clock), and the rows of every
    query written.
    """

    reads: tuple[Reads, ...]
    writes: tuple[Writes, ...]


_decoder = msgspec.json.Decoder()


def document(body: bytes) -> Any:
    """One JSON text."""
    try:
        return _decoder.decode(body)
    except RecursionError:
        raise Refused(400, "the JSON is nested too deeply") from None
    except ValueError as error:
        raise Refused(400, f"this is no JSON: {error}") from None


def lines(body: bytes) -> list[Any]:
    """One JSON text a line; empty lines are none."""
    found = []
    for number, line in enumerate(body.split(b"\n"), start=1):
        if line.strip():
            try:
                found.append(document(line))
            except Refused as refused:
                raise Refused(400, f"line {number}: {refused.message}", hint="nothing of this request was taken") from None
    return found
