"""Identity of keys: every row's key columns become 128 bits, computed without Python per row.

Two rows have one key exactly if their 128 bits are equal; decisions/0002 says why that is exact enough.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.kernels import signatures as s

_HIGH, _LOW = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_NULL = np.uint64(0xA0761D6478BD642F)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@nb.njit(inline="always")
def _mix(h: int) -> int:
    """Spread every input bit over the whole word (the finaliser of splitmix64)."""
    h ^= h >> np.uint64(30)
    h *= _MIX_1
    h ^= h >> np.uint64(27)
    h *= _MIX_2
    return h ^ (h >> np.uint64(31))


@nb.njit(s.nothing(s.WORDS, s.WORDS, s.words, s.flags), cache=True)
def _mix_words(high: np.ndarray, low: np.ndarray, words: np.ndarray, valid: np.ndarray) -> None:
    for i in range(len(words)):
        word = words[i] if valid[i] else _NULL
        high[i] = _mix((high[i] + word) * _HIGH + np.uint64(valid[i]))
        low[i] = _mix((low[i] + word) * _LOW + np.uint64(valid[i]))


@nb.njit(s.nothing(s.WORDS, s.WORDS, s.ints, s.codes, s.flags), cache=True)
def _mix_bytes(high: np.ndarray, low: np.ndarray, offsets: np.ndarray, data: np.ndarray, valid: np.ndarray) -> None:
    for i in range(len(high)):
        if not valid[i]:
            high[i], low[i] = _mix((high[i] + _NULL) * _HIGH), _mix((low[i] + _NULL) * _LOW)
            continue
        start, end = offsets[i], offsets[i + 1]
        # The length takes part, so that ('ab', 'c') and ('a', 'bc') differ.
        size = np.uint64(end - start + 1)
        one, two = _mix(high[i] * _HIGH + size), _mix(low[i] * _LOW + size)
        word, filled = np.uint64(0), 0
        for at in range(start, end):
            word |= np.uint64(data[at]) << np.uint64(8 * filled)
            filled += 1
            if filled == 8:
                one, two = _mix((one ^ word) * _HIGH), _mix((two ^ word) * _LOW)
                word, filled = np.uint64(0), 0
        high[i], low[i] = _mix((one ^ word) * _HIGH), _mix((two ^ word) * _LOW)


def is_valid(column: pa.Array) -> np.ndarray:
    if column.null_count == 0:
        return np.ones(len(column), np.bool_)
    return pc.is_valid(column).to_numpy(zero_copy_only=False)


def as_words(column: pa.Array) -> list[np.ndarray] | None:
    """A fixed-width column as 64-bit words (one or two per row); None for columns of variable width."""
    kind = column.type
    if pa.types.is_string(kind):  # most keys are
        return None
    if pa.types.is_decimal(kind):
        pairs = np.frombuffer(column.buffers()[1], np.uint64).reshape(-1, 2)[column.offset : column.offset + len(column)]
        return [np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])]
    if pa.types.is_floating(kind):
        floats = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        floats = np.where(np.isnan(floats), np.nan, floats + 0.0)  # one NaN, and -0.0 is 0.0, as in GROUP BY
        return [np.ascontiguousarray(floats).view(np.uint64)]
    if pa.types.is_boolean(kind):
        return [pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(np.uint64)]
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(kind):
        column = column.cast(pa.int64())
    if pa.types.is_integer(column.type):
        if column.null_count:
            column = pc.fill_null(column, 0)
        return [column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)]
    return None


def hash_columns(columns: list[pa.Array], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The 128-bit identity of each row's values in these columns, as two arrays of uint64."""
    high, low = np.empty(rows, np.uint64), np.empty(rows, np.uint64)
    high.fill(_HIGH)
    low.fill(_LOW)
    for column in columns if rows else ():
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        valid = is_valid(column)
        words = as_words(column)
        if words is not None:
            for part in words:
                _mix_words(high, low, part, valid)
            continue
        offsets, content = bytes_of(_as_text(column) if pa.types.is_nested(column.type) else column)
        _mix_bytes(high, low, offsets, content, valid)
    return high, low


def bytes_of(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """A column of text: where every value begins and ends, and the bytes of all of them."""
    _, ends, data = column.buffers()
    wide = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    offsets = np.frombuffer(ends, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return offsets.astype(np.int64, copy=False), content


def _as_text(column: pa.Array) -> pa.Array:
    """Arrays and structs are told apart by their text; keys of such types are rare and need not be fast."""
    return pa.array([None if v is None else repr(v) for v in column.to_pylist()], pa.large_string()).cast(pa.large_binary())
