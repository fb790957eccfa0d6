"""Values that Spark gives through Arrow, as those of one row in Python."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_of(spark: SparkSession) -> int:
    return int(str(spark._jvm.java.lang.System.getProperty("java.specification.version")).removeprefix("1."))


def python_value(value: pa.Scalar) -> Any:
    """A value of Arrow as ours."""
    kind = value.type
    if not value.is_valid:
        return None
    if pa.types.is_temporal(kind):
        whole = pa.int32() if pa.types.is_date(kind) else pa.int64()
        return pa.array([value]).view(whole)[0].as_py() if isinstance(value, pa.Scalar) else value
    if pa.types.is_list(kind):
        return [python_value(v) for v in value.values]
    if pa.types.is_struct(kind):
        return tuple(python_value(value[name]) for name in kind.names)
    if pa.types.is_map(kind):
        return {python_value(pair["key"]): python_value(pair["value"]) for pair in value.values}
    return value.as_py()


def bits(value: Any) -> Any:
    """A stand-in that is equal exactly where two values have the same type and bits; NaN is NaN."""
    match value:
        case float():
            return ("float", "nan" if value != value else struct.pack("<d", value))
        case bool() | int() | str() | bytes() | None:
            return (type(value).__name__, value)
        case Decimal():
            return ("decimal", value.as_tuple())
        case list() | tuple():
            return (type(value).__name__, *map(bits, value))
        case dict():
            return ("dict", *((k, bits(v)) for k, v in value.items()))
    return value
