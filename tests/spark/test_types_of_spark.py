"""What `check` refuses of types is what Spark refuses to analyse or fails to evaluate, and nothing else."""

from __future__ import annotations

import os
import random
import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.signatures import SIGNATURES
from headrace.plan.typecheck import TypeMismatch, Typing
from headrace.spark.sources.attempt import attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

SEEN = Path(__file__).with_name("types_of_spark")  # what Spark fails at, of what is tried
# A value of every type. The text is none that could be read as anything else: Spark fails wherever it tries to.
COLUMNS = {
    "b": ("BOOLEAN", "true"), "t": ("TINYINT", "7Y"), "i": ("INT", "7"), "l": ("BIGINT", "7L"), "f": ("FLOAT", "2.5F"),
    "x": ("DOUBLE", "2.5D"), "d": ("DECIMAL(10, 2)", "CAST(2.5 AS DECIMAL(10, 2))"), "s": ("STRING", "'abc'"),
    "y": ("BINARY", "X'1F'"), "day": ("DATE", "DATE '2024-01-31'"), "at": ("TIMESTAMP", "TIMESTAMP '2024-01-31 12:00:00'"),
    "v": ("INTERVAL DAY TO SECOND", "INTERVAL '1 02:03:04' DAY TO SECOND"), "w": ("INTERVAL YEAR TO MONTH", "INTERVAL '1' MONTH"),
    "xs": ("ARRAY<INT>", "array(1, 2)"), "m": ("MAP<STRING, INT>", "map('k', 1)"),
}  # fmt: skip
LITERALS = (
    "5", "1.5", "2e0", "NULL", "TRUE", "'abc'", "''", "'12'", "' 7 '", "'12.5'", "'1e3'", "'true'", "'2024'", "'2024-01-31'",
    "'2024-13-01'", "'2024-02-30'", "'2024-01-31 12:30:00'", "'2024-01-31T12:30:00.5+02:00'", "'2024-01-31 25:00:00'",
    "'99999999999999999999'", "'NaN'", "DATE '2024-01-31'", "INTERVAL '5' SECOND",
)  # fmt: skip
# Where only one of two values is looked at, both are, one after the other.
BINARY = (
    "{a} = {b}", "{a} < {b}", "{a} <=> {b}", "{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} % {b}", "{a} DIV {b}",
    "{a} & {b}", "{a} || {b}", "{a} AND {b}", "{a} IN ({b}, {b})", "{a} BETWEEN {b} AND {b}",
    "struct(coalesce({a}, {b}), coalesce({b}, {a}))", "struct(if(b, {a}, {b}), if(b, {b}, {a}))",
    "struct(CASE WHEN b THEN {a} ELSE {b} END, CASE WHEN NOT b THEN {a} ELSE {b} END)", "CASE {a} WHEN {b} THEN 1 END",
    "nullif({a}, {b})", "greatest({a}, {b})", "struct(nvl2(b, {a}, {b}), nvl2(b, {b}, {a}))",
)  # fmt: skip
UNARY = ("-{a}", "~{a}", "NOT {a}", "{a} IS TRUE", "CASE WHEN {a} THEN 1 END", "if({a}, 1, 2)", "{a}[0]",
         *(f"CAST({{a}} AS {kind})" for kind, _ in COLUMNS.values() if "<" not in kind))  # fmt: skip
SIMPLIFYING = ("ConstantFolding", "ConvertToLocalRelation", "OptimizeIn", "SpecialDatetimeValues")
# A column of texts may hold what Spark reads them as; only between numbers and the like is that refused.
CONDITIONS = {f"{a} AND {b}" for a, b in product(("s", "b", "TRUE", "NULL", "'true'"), repeat=2) if "s" in (a, b)}
LET_BE = CONDITIONS | {"NOT s", "s IS TRUE"} | {f"CAST(s AS {kind})" for kind, _ in COLUMNS.values()}
# What depends on the value, not on its type; and texts of intervals, and NULL, of which nothing is known.
DATA = re.compile(r"NULL|AS INTERVAL|'NaN'|CAST\((at|v|w) AS|AS DECIMAL")


def refused(sql: str) -> str | None:
    """What we say against an expression, if anything."""
    try:
        Typing({n: kind for n, (kind, _) in COLUMNS.items()}, lambda node: node.sql(dialect="spark")).of(Expr.of(sql).tree)
    except TypeMismatch as error:
        return error.message
    return None


@pytest.fixture(scope="module")
def row(spark) -> Iterator[DataFrame]:
    """One row with a value of every type. What fails is to fail where it is tried, not when the plan is simplified."""
    rules = ",".join(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in SIMPLIFYING)
    settings = {"spark.sql.optimizer.excludedRules": rules, "spark.sql.subexpressionElimination.enabled": "false"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark.sql("SELECT " + ", ".join(f"{value} AS {n}" for n, (_, value) in COLUMNS.items())).localCheckpoint()
    for key in settings:
        spark.conf.unset(key)


def failing(row: DataFrame, expressions: Iterable[str]) -> set[str]:
    """The expressions that Spark does not analyse, or cannot evaluate for the row."""
    row.createOrReplaceTempView("row_of_types")
    state = row.sparkSession._jsparkSession.sessionState()
    fine, bad = [], set()
    for sql in expressions:
        plan = state.sqlParser().parsePlan(f"SELECT {Expr.of(sql)} FROM row_of_types")  # as it would be run
        try:
            resolved = state.analyzer().execute(plan).resolved()
        except Exception:  # of any class that py4j makes of it
            resolved = False
        fine.append(sql) if resolved else bad.add(sql)
    from pyspark.sql import functions as F

    for start in range(0, len(fine), 200):
        some = fine[start : start + 200]
        values = row.select(*(attempt(F.expr(Expr.of(e).sql)).isNull().alias(f"c{i}") for i, e in enumerate(some))).first()
        assert values is not None
        bad |= {e for e, failed in zip(some, values, strict=True) if failed}
    return bad


def operators() -> list[str]:
    """Every operator over columns and literals: some of all pairs, always the same."""
    every = [f.format(a=a, b=b) for f in BINARY for a, b in product((*COLUMNS, *LITERALS), repeat=2) if {a, b} & set(COLUMNS)]
    chosen = random.Random(13).sample(every, len(every) // 12)
    return [*chosen, *(f.format(a=a) for f in UNARY for a in (*COLUMNS, *LITERALS))]


def calls() -> list[str]:
    """Functions over columns of all types."""
    every = [f"{name}({', '.join(args)})" for (name, n) in sorted(SIGNATURES) for args in product(COLUMNS, repeat=n) if n < 3]
    return [e for e in random.Random(13).sample(every, 1500) if is_expression(e)]


def refused_calls() -> list[str]:
    """Those of them that we refuse: others may do anything."""
    return [e for e in calls() if refused(e)]


def is_expression(sql: str) -> bool:
    """Whether sqlglot reads it; of some functions it knows fewer arguments than Spark."""
    try:
        Expr.of(sql)
    except QueryError:
        return False
    return True


def recorded(name: str) -> set[str]:
    """The expressions that Spark was seen to fail at."""
    return set((SEEN / f"{name}.txt").read_text(encoding="utf-8").splitlines())


def test_operators_are_refused_where_spark_fails():
    """In both directions."""
    expressions, bad = operators(), recorded("operators")
    assert bad < set(expressions)
    ours = {e: refused(e) for e in expressions}
    false_alarms = [f"{e}: {why}" for e, why in ours.items() if why and e not in bad]
    missed = [e for e in expressions if e in bad and not ours[e] and e not in LET_BE and not DATA.search(e)]
    assert (false_alarms, missed) == ([], []), "\n".join((*false_alarms, "and missed:", *missed))
    assert len(bad) > 300
    assert len(expressions) - len(bad) > 300


def test_functions_are_refused_only_where_spark_fails():
    """No false alarm; the classes of the table are sometimes wider than what Spark takes."""
    ours = refused_calls()
    assert len(ours) > 300
    assert set(ours) - recorded("functions") == set()


@pytest.mark.parametrize(("name", "made"), [("operators", operators), ("functions", refused_calls)])
def test_spark_fails_where_it_was_seen_to(row, name, made):
    """One in fifteen is tried again. `HEADRACE_THROUGHOUT=1` tries all, `HEADRACE_UPDATE=1` writes anew what is seen."""
    expressions = sorted(made())
    update = bool(os.environ.get("HEADRACE_UPDATE"))
    if not update and not os.environ.get("HEADRACE_THROUGHOUT"):
        expressions = random.Random(os.environ.get("HEADRACE_SEED", "13")).sample(expressions, len(expressions) // 15)
    bad = failing(row, expressions)
    if update:
        (SEEN / f"{name}.txt").write_text("\n".join(sorted(bad)) + "\n", encoding="utf-8")
    assert bad == recorded(name) & set(expressions)
