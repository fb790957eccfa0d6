"""Text to events, and rows to text: what a front end needs of JSON.

An event stays the text that it came as until it is read by what its stream declares: only that knows which digits matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.plan.schema import Schema
from headrace.serve.deployment import Deployment
from headrace.serve.events import Read, reader
from headrace.serve.http.replies import Refused
from headrace.serve.replies import writer
from headrace.serve.values import wire

Write = Callable[[Sequence[Any]], bytes]


@dataclass(frozen=True, slots=True)
class Texts:
    """How events are read, by stream; and how rows that come with replies are written, by query."""

    reads: tuple[Read, ...]
    writes: tuple[Write, ...]


def texts_of(deployment: Deployment) -> Texts:
    schemas = [f.query.node.schema for f in deployment.finishes()]
    return Texts(tuple(map(reader, deployment.streams)), tuple(map(_write, schemas)))


def _write(schema: Schema) -> Write:
    unpack, write = wire([f.type for f in schema.fields])[1], writer(schema)
    return lambda row: write(unpack(row)).encode()


_whole = msgspec.json.Decoder(msgspec.Raw).decode  # looks at all of it, and makes nothing of it
_parts = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode


def events(body: bytes) -> bytes | list[bytes]:
    """An event, or an array of them."""
    _checked(_sound, body)
    return [bytes(part) for part in _checked(_parts, body)] if body.lstrip()[:1] == b"[" else body


def lines(body: bytes) -> list[bytes]:
    """An event a line; empty lines are none."""
    found = []
    for number, line in enumerate(body.split(b"\n"), start=1):
        if line.strip():
            try:
                _checked(_sound, line)
            except Refused as refused:
                raise Refused(400, f"line {number}: {refused.message}", hint="nothing of this request was taken") from None
            found.append(line)
    return found


def message(text: bytes) -> dict[str, Any]:
    """An object, of which the field `event` stays as it is."""
    found = _checked(_fields, text)
    return {name: bytes(raw) if name == "event" else _checked(_value, bytes(raw)) for name, raw in found.items()}


def _sound(body: bytes) -> None:
    """All of it is JSON; texts in it are looked at by nobody but this, until they are read."""
    body.decode()
    _whole(body)


def _checked(decode: Callable[[bytes], Any], body: bytes) -> Any:
    try:
        return decode(body)
    except RecursionError:
        raise Refused(400, "the JSON is nested too deeply") from None
    except ValueError as error:
        raise Refused(400, f"this is not the JSON that is expected here: {error}") from None
