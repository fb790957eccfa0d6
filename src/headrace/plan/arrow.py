"""Spark SQL types as text <-> Arrow types, one mapping for everybody. A TIMESTAMP is microseconds in UTC."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.schema import Field, Schema, normalize_type
from headrace.plan.types import decimal_parts

TIMESTAMP = pa.timestamp("us", tz="UTC")

_SIMPLE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "INTERVAL DAY TO SECOND": pa.duration("us"),
    "VOID": pa.null(),
}
_ALIASES = {"TIMESTAMP_LTZ": "TIMESTAMP", "NULL": "VOID", "BYTE": "TINYINT", "SHORT": "SMALLINT", "LONG": "BIGINT",
            "INTEGER": "INT", "REAL": "FLOAT", "INTERVAL": "INTERVAL DAY TO SECOND"}  # fmt: skip
_SPARK = {kind: name for name, kind in _SIMPLE.items()}
_SPARK |= {pa.large_string(): "STRING", pa.large_binary(): "BINARY", pa.string_view(): "STRING", pa.date64(): "DATE"}


@lru_cache(maxsize=1024)
def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a Spark SQL type.

    >>> arrow_type("decimal(10, 2)"), arrow_type("array<int>")
    (Decimal128Type(decimal128(10, 2)), ListType(list<element: int32>))
    """
    upper = text.strip().upper()
    if (found := _SIMPLE.get(_ALIASES.get(upper, upper))) is not None:
        return found
    return _parsed_type(exp.DataType.build(normalize_type(text), dialect="spark"))


def _parsed_type(kind: exp.DataType) -> pa.DataType:
    """The Arrow type of a parsed type: nested ones by their parts."""
    match kind.this:
        case exp.DataType.Type.ARRAY if kind.expressions:
            return pa.list_(pa.field("element", _parsed_type(kind.expressions[0])))
        case exp.DataType.Type.MAP if len(kind.expressions) == 2:
            return pa.map_(*map(_parsed_type, kind.expressions))
        case exp.DataType.Type.STRUCT:
            return pa.struct([pa.field(part.name, _parsed_type(part.args["kind"])) for part in kind.expressions])
    text = kind.sql(dialect="spark").upper()
    if text.startswith("DECIMAL"):
        return pa.decimal128(*decimal_parts(text))
    if text.startswith(("VARCHAR", "CHAR")):
        return pa.string()
    if (found := _SIMPLE.get(_ALIASES.get(text, text))) is not None:
        return found
    known = f"{', '.join(_SIMPLE)}, DECIMAL, ARRAY, MAP, STRUCT"
    raise QueryError(f"columns of type {text} cannot be carried", hint=f"types are: {known}")


def spark_type(kind: pa.DataType) -> str:
    """The Spark SQL type of an Arrow type.

    >>> spark_type(pa.decimal128(10, 2)), spark_type(pa.list_(pa.int32()))
    ('DECIMAL(10, 2)', 'ARRAY<INT>')
    """
    if (found := _SPARK.get(kind)) is not None:
        return found
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP"
    if pa.types.is_duration(kind):
        return "INTERVAL DAY TO SECOND"
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{part.name}: {spark_type(part.type)}' for part in kind)}>"
    raise QueryError(f"Spark SQL has no type for Arrow's {kind}", hint="cast the column first")


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a schema; every column may be NULL."""
    return pa.schema([pa.field(f.name, arrow_type(f.type)) for f in schema.fields])


def schema_of(columns: pa.Schema) -> Schema:
    return Schema(tuple(Field(f.name, spark_type(f.type)) for f in columns))
