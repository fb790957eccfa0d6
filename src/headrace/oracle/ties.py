"""The order of rows that nothing orders: groups of one look, pairs of one event. It only has to be always the same.

It is that of a hash, which is shared with the engine: there is nothing to get right about it but that it is this one.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.kernels.hashing import hash_columns
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
