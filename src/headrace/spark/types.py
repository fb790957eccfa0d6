"""Types: Catalyst is asked for those of expressions, and values travel in physical types that need no conversion in Python."""

from __future__ import annotations

from functools import lru_cache

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema, normalize_type


def ddl(schema: Schema) -> str:
    return ", ".join(f"`{f.name}` {f.type}" for f in schema.fields)


class CatalystTypes:
    """Tells the type of an expression by asking Spark's analyser."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._type = lru_cache(maxsize=None)(self._ask)

    def __call__(self, expr: Expr, schema: Schema) -> str:
        name = expr.as_column
        if name is not None and schema.has(name):
            return schema.field(name).type
        return self._type(expr.sql, ddl(schema))

    def _ask(self, sql: str, columns: str) -> str:
        try:
            frame = self.spark.createDataFrame([], columns).selectExpr(f"{sql} AS x")
        except (AnalysisException, ParseException) as error:
            message = str(error).split("\n")[0]
            raise QueryError(f"Spark does not accept {sql!r}: {message}") from error
        return normalize_type(frame.schema.fields[0].dataType.simpleString())


FLOATS = ("ARRAY<FLOAT>", "ARRAY<DOUBLE>")


def physical(kind: str) -> str:
    """The type in which a column leaves Python: times and dates as plain integers, lists of floats as text.

    Spark takes lists from pandas, for which NaN is NULL.
    """
    if kind.startswith("TIMESTAMP"):
        return "BIGINT"
    if kind in FLOATS:
        return "ARRAY<STRING>"
    return "INT" if kind == "DATE" else kind


def logical(name: str, kind: str) -> str:
    """SQL that turns the physical column back."""
    match kind:
        case "TIMESTAMP":
            return f"timestamp_micros({name})"
        case "TIMESTAMP_NTZ":
            return f"CAST(timestamp_micros({name}) AS TIMESTAMP_NTZ)"
        case "DATE":
            return f"date_from_unix_date({name})"
        case _ if kind in FLOATS:
            return f"CAST({name} AS {kind})"
    return name
