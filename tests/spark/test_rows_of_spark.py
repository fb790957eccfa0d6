"""Expressions over one row are what Spark itself says of the same rows: types, values to the bit, and where it fails."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from values_of_spark import bits, java_of, python_value

from headrace.errors import QueryError
from headrace.plan.arrow import arrow_schema
from headrace.plan.expr import Expr
from headrace.plan.schema import normalize_type
from headrace.scalars.row.compiled import Compiled, ExpressionFailed
from headrace.scalars.row.compiled import compiled as compiled_row
from headrace.spark.sources.attempt import attempt
from row_cases import SCHEMA, TEMPLATES, expressions, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

SIMPLIFYING = ("ConstantFolding", "ConvertToLocalRelation", "SpecialDatetimeValues", "NullPropagation", "BooleanSimplification",
               "SimplifyConditionals", "SimplifyBinaryComparison", "OptimizeIn", "ReorderAssociativeOperator",
               "UnwrapCastInBinaryComparison")  # fmt: skip
FAILED = "failed"
TOGETHER = 50
ROWS = 25


@pytest.fixture(scope="module")
def plain(spark) -> Iterator[SparkSession]:
    """A session whose optimizer leaves expressions as they are: what is simplified away does not fail."""
    rules = ",".join(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in SIMPLIFYING)
    settings = {"spark.sql.optimizer.excludedRules": rules, "spark.sql.subexpressionElimination.enabled": "false"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key in settings:
        spark.conf.unset(key)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    schema = arrow_schema(SCHEMA)
    columns = [arrow_values([r[i] for r in rows], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def kinds() -> list[tuple[str, str]]:
    """PySpark takes every time of Arrow for a TIMESTAMP."""
    return [(f.name, f.type) for f in SCHEMA.fields]


def arrow_values(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).view(kind)
    if pa.types.is_struct(kind):
        return pa.array([None if v is None else dict(zip(kind.names, v, strict=True)) for v in values], kind)
    if pa.types.is_map(kind):
        return pa.array([None if v is None else list(v.items()) for v in values], kind)
    return pa.array(values, kind)


def ours(found: Compiled, rows: list[tuple[Any, ...]]) -> list[Any]:
    values = []
    for one in rows:
        try:
            values.append(found.function(one)[0])
        except ExpressionFailed:
            values.append(FAILED)
    return values


def theirs(frame: DataFrame, some: list[Expr]) -> tuple[list[str], list[list[Any]]]:
    """The types and the values by Spark of all expressions, in one job."""
    from pyspark.sql import functions as F

    tried = (attempt(F.expr(f"IF(_row >= 0, {e.sql}, NULL)")).alias(f"c{i}") for i, e in enumerate(some))  # which may be NULL
    selected = frame.select(*tried, "_row").orderBy("_row")
    types = [said(f.dataType["v"].dataType.simpleString()) for f in selected.schema.fields[:-1]]
    got = selected.toArrow()
    return types, [[FAILED if not v.is_valid else python_value(v["v"]) for v in got.column(i)] for i in range(len(some))]


def compare(spark: SparkSession, cases: list[tuple[str, str]], rows: list[tuple[Any, ...]]) -> tuple[list[str], Counter[str]]:
    """What differs, and how often each function had a result."""
    java, reached, different = java_of(spark), Counter[str](), []
    numbered = table_of(rows).append_column("_row", pa.array(range(len(rows))))
    frame = (
        spark.createDataFrame(numbered).selectExpr(*(f"CAST({n} AS {k}) AS {n}" for n, k in kinds()), "_row").localCheckpoint()
    )
    offered: list[tuple[str, Expr, Compiled]] = []
    for name, sql in cases:
        try:
            offered.append((name, Expr.of(sql), compiled_row([Expr.of(sql)], SCHEMA, java=java)))
        except QueryError as error:
            reached["refused"] += 1
            if os.environ.get("HEADRACE_SEED"):
                print("refused:", sql, "|", error.message)
    for start in range(0, len(offered), TOGETHER):
        some, types, values = analysed(frame, offered[start : start + TOGETHER], different)
        for (name, expr, found), kind, want in zip(some, types, values, strict=True):
            got = ours(found, rows)
            reached[name] += sum(v is not None and v != FAILED for v in got)
            reached["failed"] += sum(isinstance(v, str) and v == FAILED for v in got)
            reached["pairs"] += len(got)
            if (here := said(str(found.types[0]))) != kind:
                different.append(f"{expr}: type {here}, in Spark {kind}")
            wrong = [(r, g, w) for r, g, w in zip(rows, got, want, strict=True) if bits(g) != bits(w)]
            for r, g, w in wrong[:2]:
                used = {n: v for n, v in zip(SCHEMA.names, r, strict=True) if n in expr.columns}
                different.append(f"{expr}: {g!r}, in Spark {w!r}, of {used}")
    return different, reached


Tried = list[tuple[str, Expr, Compiled]]


def analysed(frame: DataFrame, some: Tried, different: list[str]) -> tuple[Tried, list[str], list[list[Any]]]:
    """Those that Spark analyses, with types and values: the others should have been refused."""
    try:
        return (some, *theirs(frame, [e for _, e, _ in some]))
    except AnalysisException as error:
        if len(some) == 1:
            different.append(f"{some[0][1]}: Spark refuses it: {str(error).splitlines()[0]}")
            return [], [], []
    half = len(some) // 2
    parts = [analysed(frame, part, different) for part in (some[:half], some[half:])]
    return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1], parts[0][2] + parts[1][2]


def said(kind: str) -> str:
    """A type in one spelling; of NULL there is none that can be written."""
    return kind.upper() if "void" in kind.lower() else normalize_type(kind)


def test_every_function_is_what_spark_says(plain):
    """`HEADRACE_THROUGHOUT=1` tries many more; `HEADRACE_SEED` says which."""
    throughout = bool(os.environ.get("HEADRACE_THROUGHOUT"))
    rng = random.Random(os.environ.get("HEADRACE_SEED", "1"))
    rows = [row(rng) for _ in range(40 if throughout else ROWS)]
    cases = list(expressions(rng, 5 if throughout else 0.25))
    different, reached = compare(plain, cases, rows)
    assert different == [], f"{len(different)} differ:\n" + "\n".join(different)
    never = sorted({t.name for t in TEMPLATES} - {name for name, count in reached.items() if count})
    assert never == []
    assert reached["failed"] > reached["pairs"] / 50
    assert reached["refused"] < len(cases) / 10
