"""Rows as Python tuples: to and from Arrow, and compared bit for bit.

A value is what Arrow makes of it (`int`, `float`, `str`, `bool`, `bytes`, `Decimal`, `date`), a TIMESTAMP is a `datetime` in UTC.
Going in, a TIMESTAMP may also be an `int` of microseconds since 1970, which is the only way to write one outside years 1 to 9999.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headrace.plan.arrow import arrow_schema
from headrace.plan.schema import Schema

Row = tuple[Any, ...]

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MIN_TIME = -62_135_596_800_000_000  # 0001-01-01 00:00:00
MAX_TIME = 253_402_300_799_999_999  # 9999-12-31 23:59:59.999999
_MICROSECOND = dt.timedelta(microseconds=1)


def to_micros(value: dt.datetime | dt.date | int) -> int:
    """Microseconds since 1970 of an instant; a date is its midnight, no time zone is UTC."""
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return (aware - EPOCH) // _MICROSECOND
    if isinstance(value, dt.date):
        return (value - EPOCH.date()) // _MICROSECOND
    return int(value)


def from_micros(micros: int) -> dt.datetime | int:
    """The instant, or the number itself where no calendar reaches."""
    return EPOCH + dt.timedelta(microseconds=micros) if MIN_TIME <= micros <= MAX_TIME else micros


def batch_of_rows(schema: Schema, rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
    rows = list(rows)
    target = arrow_schema(schema)
    if not schema.fields:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    columns = [array_of(field.type, [row[i] for row in rows]) for i, field in enumerate(target)]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def array_of(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Python values as an Arrow array; times have microseconds."""
    if pa.types.is_timestamp(kind):
        assert kind.unit == "us", kind
        micros = [None if v is None else to_micros(v) for v in values]
        return pa.array(micros, pa.int64()).view(kind)
    return pa.array(values, kind)


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        if column.type.unit != "us":
            column = column.cast(pa.timestamp("us", tz=column.type.tz))
        micros = column.cast(pa.int64()).to_pylist()
        return [None if m is None else from_micros(m) for m in micros]
    return list(column.to_pylist())


def rows_of_batch(batch: pa.RecordBatch | pa.Table) -> list[Row]:
    if batch.num_columns == 0:
        return [()] * batch.num_rows
    return list(zip(*(values_of(column) for column in batch.columns), strict=True))


def normal_rows(schema: Schema, rows: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows with every value as Arrow gives it back: a FLOAT rounded, a DECIMAL with its scale, a TIMESTAMP as a `datetime`."""
    return rows_of_batch(batch_of_rows(schema, rows))


def canonical(value: Any) -> Any:
    """A stand-in that is equal, and hashes equal, exactly where two values have the same type and bits; NaN equals NaN."""
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    match value:
        case bool():
            return ("bool", value)
        case float():
            return ("float", "nan" if math.isnan(value) else struct.pack("<d", value))
        case dt.datetime():
            return ("time", to_micros(value))
        case list() | tuple():
            return ("list", *map(canonical, value))
        case dict():
            return ("dict", *((k, canonical(v)) for k, v in value.items()))
    return value


def canonical_row(row: Sequence[Any], schema: Schema | None = None) -> Row:
    """All values of a row made comparable; with a schema, an `int` in a TIMESTAMP column is a time."""
    if schema is None:
        return tuple(map(canonical, row))
    assert len(row) == len(schema.fields), f"the row has {len(row)} values, the schema {len(schema.fields)}: {row}"
    return tuple(
        ("time", to_micros(v)) if v is not None and field.type.startswith("TIMESTAMP") else canonical(v)
        for v, field in zip(row, schema.fields, strict=True)
    )


def group_value(value: Any) -> Any:
    """A stand-in that is equal where GROUP BY puts values together: NULL with NULL, NaN with NaN, -0.0 with 0.0."""
    return canonical(0.0 if isinstance(value, float) and value == 0 else value)
