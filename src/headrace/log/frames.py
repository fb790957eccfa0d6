"""The bytes of a segment: frames, each with the records of one append.

A frame has a head (mark, bytes of the body, records, offset of the first, checksum of the body, checksum of the head) and a body
(the length of every value, then the values). It is whole or it is not there, so an append is, too. The head has a checksum of its
own, so that a length is believed only if it was written; its mark is what is looked for where something is broken. A head without
records is the seal of a segment, behind which nothing comes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from zlib import crc32

MARK = b"HrF1"
_HEAD = struct.Struct("<4sIIQI")
_CHECK = struct.Struct("<I")
_WHOLE_HEAD = struct.Struct("<4sIIQII")
HEAD_BYTES = _WHOLE_HEAD.size
MOST_BYTES = 2**30  # of a body


@dataclass(frozen=True, slots=True)
class Body:
    """The records of an append, before it is known which offset they get."""

    count: int
    data: bytes

    @staticmethod
    def of(values: Sequence[bytes]) -> Body:
        lengths = struct.pack(f"<{len(values)}I", *map(len, values))
        return Body(len(values), b"".join((lengths, *values)))


def framed(offset: int, body: Body) -> bytes:
    head = _HEAD.pack(MARK, len(body.data), body.count, offset, crc32(body.data))
    return b"".join((head, _CHECK.pack(crc32(head)), body.data))


def seal(offset: int) -> bytes:
    """The end of a segment; `offset` is where the next one begins."""
    return framed(offset, Body(0, b""))


class Rest(Enum):
    """What stands behind the last whole frame."""

    NOTHING = auto()
    SEAL = auto()
    SHORT = auto()  # the beginning of a frame: more has to be read, or it was never written
    BROKEN = auto()  # neither a frame nor the beginning of one


@dataclass(frozen=True, slots=True)
class Frames:
    """The whole frames at the beginning of some bytes, as the values of all of their records."""

    values: list[bytes]
    used: int  # bytes of these frames
    rest: Rest
    lacking: int = 0  # bytes that a frame has which begins behind them, if it is SHORT and has a head


def parse(data: bytes, offset: int, most: int | None = None) -> Frames:
    """Read frames until there are so many records. The first one has to have this offset."""
    values: list[bytes] = []
    view, place, size = memoryview(data), 0, len(data)
    begin = offset
    while place < size:
        body = place + HEAD_BYTES
        if body > size:
            return Frames(values, place, Rest.SHORT)
        mark, length, count, first, check, own = _WHOLE_HEAD.unpack_from(data, place)
        if mark != MARK or first != offset or crc32(view[place : body - _CHECK.size]) != own:
            return Frames(values, place, Rest.BROKEN)
        if not count:
            return Frames(values, place, Rest.SEAL)
        stop = body + length
        if stop > size:
            return Frames(values, place, Rest.SHORT, stop - place)
        if crc32(view[body:stop]) != check:
            return Frames(values, place, Rest.BROKEN)
        start = body + 4 * count
        if count == 1:
            values.append(data[start:stop])
        else:
            for value in struct.unpack_from(f"<{count}I", data, body):
                values.append(data[start : start + value])
                start += value
        offset, place = offset + count, stop
        if most is not None and offset - begin >= most:
            break
    return Frames(values, place, Rest.NOTHING)


def goes_on(data: bytes) -> bool:
    """Whether something whole stands behind what is broken at the beginning of these bytes.

    What a kill or the loss of a machine cuts off has nothing behind it. What is broken in the middle was damaged.
    """
    place = 1
    head = _head(data, 0)
    if head is not None:
        place = HEAD_BYTES + head
    while (place := data.find(MARK, place)) >= 0:
        if _head(data, place) is not None:
            return True
        place += 1
    return False


def _head(data: bytes, place: int) -> int | None:
    """The bytes of a body, if a whole head stands there."""
    if len(data) - place < HEAD_BYTES:
        return None
    mark, length, _, _, _, own = _WHOLE_HEAD.unpack_from(data, place)
    stop = place + HEAD_BYTES - _CHECK.size
    return int(length) if mark == MARK and crc32(data[place:stop]) == own else None
