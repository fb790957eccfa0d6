"""Values of rows as serving has them: what JSON and msgpack can hold, and nothing that has to be made for each event.

A TIMESTAMP is microseconds since 1970 in UTC, a DATE days, an INTERVAL microseconds, a STRUCT a sequence of its fields, a MAP a
dict; all else is what Arrow makes of it. On the wire a DECIMAL is its text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.plan.arrow import arrow_type

Change = Callable[[Any], Any]
EPOCH_TYPES = {pa.types.is_timestamp: pa.int64(), pa.types.is_duration: pa.int64(), pa.types.is_date32: pa.int32()}


def batch_of_values(types: Sequence[str], names: Sequence[str], row: Sequence[Any]) -> pa.RecordBatch:
    """One row as Arrow has it."""
    if not names:
        return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
    arrays = [array_of_values(arrow_type(kind), [value]) for kind, value in zip(types, row, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, list(names))


def array_of_values(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    plain = plain_type(kind)
    array = pa.array([_as_arrow(kind, v) for v in values] if pa.types.is_nested(kind) else values, plain)
    return array if plain == kind else array.view(kind) if not pa.types.is_nested(kind) else array.cast(kind)


def values_of_array(array: pa.Array) -> list[Any]:
    kind = array.type
    plain = plain_type(kind)
    if pa.types.is_nested(kind):
        return [_from_arrow(kind, v) for v in (array if plain == kind else array.cast(plain)).to_pylist()]
    return list((array if plain == kind else array.view(plain)).to_pylist())


def rows_of_values(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    if batch.num_columns == 0:
        return [()] * batch.num_rows
    return list(zip(*map(values_of_array, batch.columns), strict=True))


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


# ---- on the wire ------------------------------------------------------------------------------------------------------


def wire(types: Sequence[str]) -> tuple[Callable[[Sequence[Any]], Sequence[Any]], Callable[[Sequence[Any]], Sequence[Any]]]:
    """How rows of these types are put into a record, and taken out of it."""
    kinds = [arrow_type(t) for t in types]
    return _by_place([_packing(k) for k in kinds]), _by_place([_unpacking(k) for k in kinds])


def _by_place(changes: Sequence[Change | None]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    some = [(i, change) for i, change in enumerate(changes) if change is not None]
    if not some:
        return lambda row: row

    def changed(row: Sequence[Any]) -> Sequence[Any]:
        out = list(row)
        for i, change in some:
            if out[i] is not None:
                out[i] = change(out[i])
        return out

    return changed


def _packing(kind: pa.DataType) -> Change | None:
    return _deep(kind, lambda value: format(value, "f"))


def _unpacking(kind: pa.DataType) -> Change | None:
    return _deep(kind, Decimal)


def _deep(kind: pa.DataType, of_decimal: Change) -> Change | None:
    """A change of all DECIMALs in a value; None: there are none."""
    if pa.types.is_decimal(kind):
        return of_decimal
    if pa.types.is_list(kind):
        inner = _deep(kind.value_type, of_decimal)
        return inner and (lambda value: [None if v is None else inner(v) for v in value])
    if pa.types.is_map(kind):
        keys, items = _deep(kind.key_type, of_decimal), _deep(kind.item_type, of_decimal)
        return (keys or items) and (
            lambda value: {keys(k) if keys else k: items(v) if items and v is not None else v for k, v in value.items()}
        )
    if pa.types.is_struct(kind):
        parts = [_deep(part.type, of_decimal) for part in kind]
        if not any(parts):
            return None
        return lambda value: [v if v is None or p is None else p(v) for p, v in zip(parts, value, strict=True)]
    return None
