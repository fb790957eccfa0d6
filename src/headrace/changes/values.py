"""Columns of Arrow as Python values, and back: times are whole microseconds, dates days since 1970.

A STRUCT is a tuple of its fields, a MAP a dict; all else is what Arrow makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headrace.changes.rows import batch_of

EPOCH_TYPES = {pa.types.is_timestamp: pa.int64(), pa.types.is_duration: pa.int64(), pa.types.is_date32: pa.int32()}


def rows_of(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    """The rows of a batch."""
    return list(zip(*map(values_of, batch.columns), strict=True)) if batch.num_columns else [()] * batch.num_rows


def batch_of_rows(kinds: Sequence[pa.DataType], names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """A batch of these rows."""
    return batch_of([column_of(kind, [row[i] for row in rows]) for i, kind in enumerate(kinds)], names, len(rows))


def column_of(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    plain = plain_type(kind)
    array = pa.array([_as_arrow(kind, v) for v in values] if pa.types.is_nested(kind) else values, plain)
    return array if plain == kind else array.view(kind) if not pa.types.is_nested(kind) else array.cast(kind)


def values_of(array: pa.Array) -> list[Any]:
    kind = array.type
    plain = plain_type(kind)
    if pa.types.is_nested(kind):
        return [_from_arrow(kind, v) for v in (array if plain == kind else array.cast(plain)).to_pylist()]
    return list((array if plain == kind else array.view(plain)).to_pylist())


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The same without times and dates, which are numbers here."""
    for is_kind, plain in EPOCH_TYPES.items():
        if is_kind(kind):
            return plain
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", plain_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, plain_type(part.type)) for part in kind])
    return kind


def _as_arrow(kind: pa.DataType, value: Any) -> Any:
    """Structs by the names of their fields, which are none of ours."""
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_as_arrow(kind.value_type, v) for v in value]
    if pa.types.is_map(kind):
        return [(_as_arrow(kind.key_type, k), _as_arrow(kind.item_type, v)) for k, v in value.items()]
    if pa.types.is_struct(kind):
        return {part.name: _as_arrow(part.type, v) for part, v in zip(kind, value, strict=True)}
    return value


def _from_arrow(kind: pa.DataType, value: Any) -> Any:
    if value is None:
        return None
    if pa.types.is_list(kind):
        return [_from_arrow(kind.value_type, v) for v in value]
    if pa.types.is_map(kind):
        return {_from_arrow(kind.key_type, k): _from_arrow(kind.item_type, v) for k, v in value}
    if pa.types.is_struct(kind):
        return tuple(_from_arrow(part.type, value[part.name]) for part in kind)
    return value
