"""The order of rows that are made at one place: the outputs of one row in sequence, the groups of one look by their values.

An order key is a tuple of integers: time, high, low, and for derived rows words, which are not negative. Written from decision
0025 alone; the engine has its own way to the same words.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from headrace.oracle.rows import Row, to_micros

HALF = 2**63


def whole(key: tuple[int, ...]) -> tuple[int, ...]:
    """A key as words: what a row adds that is made with this one, and stands somewhere else."""
    return (*(part + HALF for part in key[:3]), *key[3:])


def choice_key(*keys: tuple[int, ...]) -> tuple[int, ...]:
    """Pairs of one row: in the order of the others. Sequences with one last event: of their first events, then of the second."""
    *others, last = keys
    return (*last, *(word for key in others for word in whole(key)))


def group_words(types: Sequence[str], row: Row) -> tuple[int, ...]:
    """Groups of one look: in the order of their keys as Spark sorts them, NULL first, NaN last, 0.0 and -0.0 the same."""
    data = b"".join(_value(v, kind) for v, kind in zip(row, types, strict=True)) + b"\1"
    data += bytes(-len(data) % 8)
    return struct.unpack(f">{len(data) // 8}Q", data)


def _value(value: Any, kind: str = "") -> bytes:
    match value:
        case None:
            return b"\1"
        case list() | tuple():
            return b"\2\2" + b"".join(map(_value, value)) + b"\0" if kind else b"\2" + b"".join(map(_value, value)) + b"\0"
        case dict():
            return (b"\2\2" if kind else b"\2") + b"".join(map(_value, value.values()))
        case str():
            return _text(value.encode())
        case bytes():
            return _text(value)
        case float():
            return b"\2" + _double(value)
        case Decimal():
            digits = int(kind.split(",")[1].rstrip(") ")) if "," in kind else -int(value.as_tuple().exponent)
            return b"\2" + (int(value.scaleb(digits)) + 2**127).to_bytes(16, "big")
        case dt.datetime():
            return _number(to_micros(value))
        case dt.date():
            return _number(value.toordinal() - dt.date(1970, 1, 1).toordinal() if kind else value.toordinal())
        case dt.timedelta():
            return _number(value // dt.timedelta(microseconds=1))
    return _number(int(value))


def _number(value: int) -> bytes:
    return b"\2" + (value + HALF).to_bytes(8, "big")


def _text(value: bytes) -> bytes:
    return b"\2" + value.replace(b"\0", b"\0\xff") + b"\0\1"


def _double(value: float) -> bytes:
    if math.isnan(value):
        return b"\xff\xf8" + bytes(6)
    bits = int.from_bytes(struct.pack(">d", value + 0.0), "big")
    return (bits ^ (2**64 - 1) if bits >= HALF else bits + HALF).to_bytes(8, "big")
