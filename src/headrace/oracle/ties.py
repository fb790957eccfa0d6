"""The order of rows that nothing orders: groups of one look, pairs of one event, sequences with one last event.

It only has to be always the same. It is that of a hash, which is shared with the engine: there is nothing to get right about it
but that it is this one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.kernels.keys.hashing import hash_columns, pair_hashes, place_hashes
from headrace.plan.schema import Field, Schema
from headrace.testing.rows import Row, batch_of_rows


def group_places(types: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """For the keys of every group, its place among those of the same look."""
    if not types:
        rows = [(0,)] * len(rows)
    schema = Schema(tuple(Field(f"k{i}", t) for i, t in enumerate(types)))
    columns = batch_of_rows(schema, rows).columns if types else []
    _, low = hash_columns(columns, len(rows))
    return [int(x) >> 1 for x in low]


def mixed(place: int, mark: int) -> int:
    """A place that also tells apart the looks that one row lets happen."""
    return (place + mark * 0x9E3779B97F4A7C15) % 2**63


def row_place(key: tuple[int, ...]) -> int:
    """What stands for the order key of a row where it is the last part of another."""
    ts, high, low, sub = (np.array([part], np.int64) for part in (*key, 0)[:4])
    return int(place_hashes(ts, high, low, sub)[0])


def pair_place(earlier: tuple[int, ...], later: tuple[int, ...]) -> int:
    """What tells the pairs of one row apart: the key of the other row."""
    sub = later[3] if len(later) > 3 else 0
    return _folded(row_place(earlier), sub)


def choice_place(keys: Sequence[tuple[int, ...]]) -> int:
    """What tells the results of one last event apart: the keys of the other events, in order."""
    *others, last = keys
    sub = last[3] if len(last) > 3 else 0
    if not others:
        return sub
    place = row_place(others[0])
    for key in others[1:]:
        place = _folded(place, row_place(key))
    return _folded(place, sub)


def _folded(place: int, more: int) -> int:
    return int(pair_hashes(np.array([place], np.int64), np.array([more], np.int64))[0])
