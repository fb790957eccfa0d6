"""Values of any type as words that compare as the values do in Spark: NULL first, NaN last, text by its bytes.

A column of a row is one byte, whether it is NULL, and then its value: a number as eight bytes (a DECIMAL as sixteen) in the order
of numbers, text as it is with an end that nothing else is smaller than. After all columns a last byte that is not 0, so that a
row always ends in a word that is not 0, and what stands behind it in a longer key never mixes with it.
"""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa

from headrace.kernels import signatures as s
from headrace.kernels.keys.hashing import as_words, bytes_of, is_valid
from headrace.kernels.keys.order import to_ordered

SIGN = np.uint64(1 << 63)
NULL, VALUE, END = 1, 2, 1  # bytes
ESCAPED, STOP = 255, 1  # what follows a 0 in text: one that is in it, or its end
_GRID = nb.types.Array(nb.types.uint8, 2, "C")


@nb.njit(s.nothing(_GRID, s.INTS, s.flags), cache=True)
def _put_tags(out: np.ndarray, at: np.ndarray, valid: np.ndarray) -> None:
    for i in range(len(at)):
        out[i, at[i]] = VALUE if valid[i] else NULL
        at[i] += 1


@nb.njit(s.nothing(_GRID, s.INTS, s.words, s.flags), cache=True)
def _put_words(out: np.ndarray, at: np.ndarray, words: np.ndarray, valid: np.ndarray) -> None:
    for i in range(len(at)):
        if valid[i]:
            for k in range(8):
                out[i, at[i] + k] = (words[i] >> np.uint64(56 - 8 * k)) & np.uint64(255)
            at[i] += 8


@nb.njit(s.nothing(_GRID, s.INTS, s.ints, s.codes, s.flags, s.boolean), cache=True)
def _put_bytes(out: np.ndarray, at: np.ndarray, offsets: np.ndarray, data: np.ndarray, valid: np.ndarray, raw: bool) -> None:
    for i in range(len(at)):
        if not valid[i]:
            continue
        k = at[i]
        for j in range(offsets[i], offsets[i + 1]):
            out[i, k] = data[j]
            k += 1
            if data[j] == 0 and not raw:
                out[i, k] = ESCAPED
                k += 1
        if not raw:
            out[i, k + 1] = STOP
            k += 2
        at[i] = k


@nb.njit(s.nothing(s.INTS, s.ints, s.codes, s.flags), cache=True)
def _add_lengths(lengths: np.ndarray, offsets: np.ndarray, data: np.ndarray, valid: np.ndarray) -> None:
    for i in range(len(lengths)):
        if valid[i]:
            lengths[i] += offsets[i + 1] - offsets[i] + 2
            for j in range(offsets[i], offsets[i + 1]):
                lengths[i] += data[j] == 0


def sortable_words(columns: list[pa.Array], rows: int) -> np.ndarray:
    """A line of words for each row: lines compare, word by word, as the rows do, and are equal exactly if those are."""
    parts = [_parts(column) for column in columns]
    lengths = np.full(rows, 1 + len(columns), np.int64)
    for valid, words, text in parts:
        lengths[valid] += 8 * len(words)
        if text is not None:
            _add_lengths(lengths, *text, valid)
    width = -(-int(lengths.max(initial=1)) // 8)
    out, at = np.zeros((rows, 8 * width), np.uint8), np.zeros(rows, np.int64)
    for column, (valid, words, text) in zip(columns, parts, strict=True):
        _put_tags(out, at, valid)
        for word in words:
            _put_words(out, at, word, valid)
        if text is not None:
            _put_bytes(out, at, *text, valid, pa.types.is_nested(column.type))
    out[np.arange(rows), at] = END
    return out.view(">u8").astype(np.uint64)


Text = tuple[np.ndarray, np.ndarray]  # offsets, bytes


def _parts(column: pa.Array) -> tuple[np.ndarray, list[np.ndarray], Text | None]:
    """Which values there are, and what they are: words, or bytes."""
    valid, kind = is_valid(column), column.type
    if pa.types.is_nested(kind):
        values = [None if v is None else _nested(v, kind) for v in column.to_pylist(maps_as_pydicts="strict")]
        return valid, [], bytes_of(pa.array(values, pa.large_binary()))
    words = as_words(column)
    if words is None:
        return valid, [], bytes_of(column)
    if pa.types.is_floating(kind):
        return valid, [to_ordered(words[0].view(np.float64)).view(np.uint64) ^ SIGN], None
    if pa.types.is_decimal(kind):
        return valid, [words[1] ^ SIGN, words[0]], None
    return valid, [words[0] ^ SIGN], None


def _nested(value: Any, kind: pa.DataType) -> bytes:
    """Arrays compare element by element, then the longer is greater; structs field by field. Keys of such types are rare."""
    if value is None:
        return bytes([NULL])
    if pa.types.is_struct(kind):
        return bytes([VALUE]) + b"".join(_nested(value[f.name], f.type) for f in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return bytes([VALUE]) + b"".join(_nested(v, kind.value_type) for v in value) + b"\0"
    if pa.types.is_map(kind):  # maps have no order in Spark; theirs is that of their text
        return bytes([VALUE]) + _text(repr(sorted(value.items(), key=repr)).encode())
    return bytes([VALUE]) + _scalar(value)


def _scalar(value: Any) -> bytes:
    match value:
        case str():
            return _text(value.encode())
        case bytes():
            return _text(value)
        case float():
            return struct.pack(">Q", int(to_ordered(np.array([value])).view(np.uint64)[0] ^ SIGN))
        case Decimal():
            return (int(value.scaleb(-int(value.as_tuple().exponent))) + (1 << 127)).to_bytes(16, "big")
        case dt.datetime():
            zone = value.tzinfo or dt.UTC
            return _number((value.replace(tzinfo=zone) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1))
        case dt.date():
            return _number(value.toordinal())
        case dt.timedelta():
            return _number(value // dt.timedelta(microseconds=1))
    return _number(int(value))


def _number(value: int) -> bytes:
    return (value + (1 << 63)).to_bytes(8, "big")


def _text(value: bytes) -> bytes:
    return value.replace(b"\0", bytes([0, ESCAPED])) + bytes([0, STOP])
