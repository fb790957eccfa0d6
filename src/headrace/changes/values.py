"""Columns of Arrow as Python values, and back: times are whole microseconds, dates days since 1970."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headrace.changes.rows import batch_of


def values_of(column: pa.Array) -> list[Any]:
    """The values of a column."""
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    values: list[Any] = column.to_pylist()
    return values


def rows_of(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """The rows of a batch."""
    return list(zip(*map(values_of, batch.columns), strict=True)) if batch.num_columns else [()] * batch.num_rows


def column_of(kind: pa.DataType, values: Iterable[Any]) -> pa.Array:
    """A column of these values."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.array(values, pa.int64()).view(kind)
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).view(kind)
    return pa.array(values, kind)


def batch_of_rows(kinds: Sequence[pa.DataType], names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """A batch of these rows."""
    return batch_of([column_of(kind, [row[i] for row in rows]) for i, kind in enumerate(kinds)], names, len(rows))
