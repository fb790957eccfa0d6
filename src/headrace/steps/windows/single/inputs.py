"""The inputs of an event, from Python values to words."""

from __future__ import annotations

import struct
from decimal import Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headrace.kernels.single import record as r
from headrace.plan.arrow import arrow_type
from headrace.plan.types import decimal_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDE = Context(prec=80)  # no decimal of 38 digits is rounded in it
LOW = (1 << 64) - 1
_FORMATS = {r.WORD: "qqq", r.FLOAT: "qdq", r.PAIR: "qQq", r.TEXT_BYTES: "qqq"}
_NULL = (0, 0, 0)


@lru_cache(maxsize=1024)
def how_it_lies(kind: str) -> int | None:
    """How values of a Spark SQL type lie in a record; None: not at all."""
    own = arrow_type(kind)
    if pa.types.is_floating(own):
        return r.FLOAT
    if pa.types.is_decimal(own):
        return r.PAIR
    if pa.types.is_string(own) or pa.types.is_binary(own):
        return r.TEXT_BYTES
    words = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_date32, pa.types.is_timestamp, pa.types.is_duration)
    return r.WORD if any(is_(own) for is_ in words) else None


class Inputs:
    """Puts some inputs of every event into a record, one after the other, and their texts into a buffer of their own."""

    def __init__(self, types: Sequence[str], wanted: Sequence[int]) -> None:
        """`wanted` are the numbers of the inputs; `types` those of all."""
        self.wanted = list(wanted)
        self.place = {i: r.INPUTS + r.INPUT * n for n, i in enumerate(wanted)}
        self.lies = {i: _lies(types[i]) for i in wanted}
        self._each = [(i, self.lies[i], decimal_parts(types[i])[1] if self.lies[i] == r.PAIR else 0) for i in wanted]
        self._format = struct.Struct("=7q" + "".join(_FORMATS[self.lies[i]] for i in wanted))
        self.text = np.zeros(256, np.uint8)

    def put(self, record: memoryview, head: tuple[int, ...], values: tuple[Any, ...]) -> bool:
        """Write the event; `head` is what stands before its inputs. Gives whether the buffer of texts is another one now."""
        words = list(head)
        texts: list[bytes] = []
        at = 0
        for i, lies, scale in self._each:
            value = values[i]
            if value is None:
                words += _NULL
            elif lies == r.TEXT_BYTES:
                text = value.encode() if isinstance(value, str) else value
                words += (1, at, len(text))
                texts.append(text)
                at += len(text)
            elif lies == r.PAIR:
                unscaled = _unscaled(value, scale)
                words += (1, unscaled & LOW, unscaled >> 64)
            else:
                words += (1, value, 0)
        self._format.pack_into(record, 8 * r.TS, *words)
        return self._put_text(b"".join(texts)) if at else False

    def _put_text(self, text: bytes) -> bool:
        longer = len(text) > len(self.text)
        if longer:
            self.text = np.zeros(2 * len(text), np.uint8)
        self.text.data[: len(text)] = text
        return longer


def _lies(kind: str) -> int:
    found = how_it_lies(kind)
    assert found is not None, f"values of type {kind} are not taken one by one"
    return found


def _unscaled(value: Decimal, scale: int) -> int:
    """The digits of a decimal as a whole number."""
    moved = value.scaleb(scale, WIDE)
    whole = int(moved)
    if whole != moved:
        raise ValueError(f"{value} has more than {scale} decimal places")
    return whole
