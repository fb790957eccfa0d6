"""Parquet: whether a file has the declared columns, in types that can be read as the declared ones. The footer says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import DataError

if TYPE_CHECKING:
    from headrace.plan.schema import Field, Schema

# What Spark's reader widens without loss. It would also narrow, and wrap around.
WIDER = {
    "TINYINT": ("TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE"),
    "SMALLINT": ("SMALLINT", "INT", "BIGINT", "DOUBLE"),
    "INT": ("INT", "BIGINT", "DOUBLE"),
    "FLOAT": ("FLOAT", "DOUBLE"),
    "DATE": ("DATE", "TIMESTAMP_NTZ"),
    "STRING": ("STRING", "BINARY"),
    "BINARY": ("BINARY", "STRING"),
    "TIMESTAMP_NTZ": ("TIMESTAMP_NTZ", "TIMESTAMP"),
}
UNKNOWN_CODECS = {"BROTLI", "LZO"}
DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
SIMPLE = {
    pa.bool_(): "BOOLEAN", pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INT", pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT", pa.uint16(): "INT", pa.uint32(): "BIGINT", pa.uint64(): "DECIMAL(20, 0)",
    pa.float32(): "FLOAT", pa.float64(): "DOUBLE", pa.date32(): "DATE", pa.string(): "STRING", pa.large_string(): "STRING",
    pa.string_view(): "STRING", pa.binary(): "BINARY", pa.large_binary(): "BINARY",
}  # fmt: skip


def spark_type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        return "BINARY"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz is not None else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{kind.field(i).name}: {spark_type(kind.field(i).type)}' for i in range(kind.num_fields))}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    return SIMPLE.get(kind, str(kind).upper())


def readable(found: str, declared: str) -> bool:
    if found == declared or declared in WIDER.get(found, ()):
        return True
    nested = ("ARRAY", "STRUCT", "MAP")
    if found.startswith(nested) and declared.startswith(nested):
        return found.split("<")[0] == declared.split("<")[0]  # what is inside is left to Spark
    if declared.startswith("DECIMAL"):
        whole, scale = _digits(declared)
        if found.startswith("DECIMAL"):
            inner, fraction = _digits(found)
            return whole >= inner and scale >= fraction
        return found in DIGITS and whole >= DIGITS[found]
    return False


def _digits(decimal: str) -> tuple[int, int]:
    """How many digits before and behind the point."""
    precision, _, scale = decimal.removeprefix("DECIMAL").strip("()").partition(",")
    return int(precision or 10) - int(scale or 0), int(scale or 0)


def schema_of(path: str, where: str) -> pa.Schema:
    """The columns of a file that Spark can unpack."""
    try:
        footer = pq.read_metadata(path)
        columns = footer.schema.to_arrow_schema()
    except (pa.ArrowException, OSError) as error:
        message = f"{os.path.basename(path)} cannot be read as parquet: {error}"
        raise DataError(message, where=where, hint="it may not be written to its end") from error
    packed = {footer.row_group(0).column(i).compression for i in range(footer.num_columns)} if footer.num_row_groups else set()
    if unknown := sorted(packed & UNKNOWN_CODECS):
        message = f"{os.path.basename(path)} is compressed with {unknown[0]}, which Spark has no reader for"
        raise DataError(message, where=where, hint="write it with zstd, snappy, gzip or lz4")
    return columns


def _column(columns: pa.Schema, field: Field) -> pa.Field | None:
    return next((c for c in columns if c.name.lower() == field.name.lower()), None)


def check_columns(path: str, columns: pa.Schema, schema: Schema, where: str) -> None:
    """Refuse a file that lacks a declared column, or has it in a type that cannot be read as declared."""
    missing = [f.name for f in schema.fields if _column(columns, f) is None]
    if missing:
        raise DataError(
            f"{os.path.basename(path)} has no column {', '.join(map(repr, missing))}; it has: {', '.join(columns.names)}",
            where=where, hint="correct the columns of CREATE STREAM, or the file",
        )  # fmt: skip
    for declared in schema.fields:
        _check_column(os.path.basename(path), columns, declared, where)


def _check_column(file: str, columns: pa.Schema, declared: Field, where: str) -> None:
    twins = [c.name for c in columns if c.name.lower() == declared.name.lower()]
    if len(twins) > 1:
        raise DataError(
            f"{file} has several columns {declared.name!r}: {', '.join(twins)}", where=where,
            hint="names of columns do not mind case: give them names that differ in more",
        )  # fmt: skip
    column = _column(columns, declared)
    assert column is not None
    found = spark_type(column.type)
    if readable(found, declared.type):
        return
    hint = f"declare it: {declared.name} {found}; a query can CAST({declared.name} AS {declared.type})"
    if pa.types.is_null(column.type):
        hint = "a column without any value has no type in the file: write it with one, in pandas with astype"
    raise DataError(
        f"in {file} the column {declared.name!r} is {column.type} ({found}), and is declared {declared.type}", where=where,
        hint=hint,
    )  # fmt: skip


def unmarked_texts(files: dict[str, pa.Schema], schema: Schema) -> frozenset[str]:
    """The columns declared STRING that some file has as bytes, of which it does not say that they are text."""
    texts = [f for f in schema.fields if f.type == "STRING"]
    found = [(f, _column(columns, f)) for columns in files.values() for f in texts]
    return frozenset(f.name for f, column in found if column is not None and spark_type(column.type) == "BINARY")


def nanosecond_columns(files: dict[str, pa.Schema], schema: Schema, where: str) -> frozenset[str]:
    """The declared columns that are times in nanoseconds, in lower case; all files must agree."""
    first: dict[str, tuple[bool, str]] = {}
    times = [f for f in schema.fields if f.type.startswith("TIMESTAMP")]
    for path, columns in files.items():
        for field in times:
            column = _column(columns, field)
            if column is None or not pa.types.is_timestamp(column.type):
                continue
            fine = column.type.unit == "ns" and not _old_style(path, column.name)
            known, other = first.setdefault(field.name.lower(), (fine, path))
            if known != fine:
                raise DataError(
                    f"the times in column {field.name!r} are nanoseconds in {os.path.basename(path if fine else other)},"
                    f" and not in {os.path.basename(other if fine else path)}",
                    where=where, hint="write them in one unit, or read them as two streams and MERGE them",
                )  # fmt: skip
    return frozenset(name for name, (fine, _) in first.items() if fine)


def _old_style(path: str, name: str) -> bool:
    """Whether a time is written as INT96, which Spark reads as it is; Arrow calls it nanoseconds."""
    footer = pq.ParquetFile(path).schema
    return any(footer.column(i).path == name and footer.column(i).physical_type == "INT96" for i in range(len(footer)))
