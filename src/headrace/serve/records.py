"""What lies in the log (decisions/0033): events as fronts have stamped them, what says how far a front is, and answers.

    journal   a partition for each front: every event it accepted, and `Mark`s of how far it was
    topics    a partition for each bucket: the same events, each with the inputs of the stages there; and `Beat`
    replies   a partition for each front: what became of its events

The place of an event is its offset in the journal. Whoever takes the name of a front sends on what is in the journal, and cannot
know what of it the one before had sent on: so an event may come to a bucket twice, and the second is known by its place.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """How far a front is with a stream: the largest time that counts, and what punctuation has promised."""

    highest: int
    promised: int


class Posted(msgspec.Struct, frozen=True, array_like=True, tag="posted"):
    """A row in the journal. `stamp` is that of its stream with this row in it; `id` is the client's own.

    `ts`: None of punctuation, which is no event. `epoch`: of who wrote it; it is void behind the mark of a later one.
    """

    epoch: int
    stream: int
    now: int
    ts: int | None
    behind: bool
    stamp: Stamp
    values: list[Any]
    id: str | None = None


class Mark(msgspec.Struct, frozen=True, array_like=True, tag="mark"):
    """How far a front is. Behind one of a higher epoch the journal is another's, and what one before writes is void.

    `sent`: every event before this offset was sent on to its topics.
    """

    epoch: int
    sent: int
    stamps: list[Stamp]


class Event(msgspec.Struct, frozen=True, array_like=True, tag="event"):
    """An event in a topic. `inputs`: for every stage that reads its stream there, in order, or None where it is not wanted."""

    stream: int
    front: int
    place: int
    now: int
    ts: int
    behind: bool
    stamp: Stamp
    inputs: list[list[Any] | None]


class Beat(msgspec.Struct, frozen=True, array_like=True, tag="beat"):
    """How far a front is with all streams, where it has no event to say it with."""

    front: int
    place: int
    now: int
    stamps: list[Stamp]


class Said(msgspec.Struct, frozen=True, array_like=True):
    """A change of a query: `-` takes back what was said with the same key, which begins with the time and the place of a row."""

    query: int
    sign: int
    key: list[int]
    row: list[Any]


NO_EVENT = -1


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """All that a record changed in one bucket. It comes again when a unit takes over, the same but for its epoch.

    `place`: of the event, or NO_EVENT, where a beat has released something that had waited.
    """

    topic: int
    partition: int
    offset: int
    epoch: int
    place: int
    said: list[Said]


_encoder = msgspec.msgpack.Encoder()
_journal = msgspec.msgpack.Decoder(Posted | Mark)
_topic = msgspec.msgpack.Decoder(Event | Beat)
_reply = msgspec.msgpack.Decoder(Reply)
encode = _encoder.encode
read_journal = _journal.decode
read_topic = _topic.decode
read_reply = _reply.decode
