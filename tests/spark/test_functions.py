"""Functions that DuckDB has not, or has otherwise: what a query says of them is what Spark itself says of the same rows.

Those on which both agree are in `tests/queries/operators`, where the oracle has its say.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_driver import FIRST_WRITTEN, read_sink, write_file

from headrace.oracle.rows import rows_of_batch
from headrace.plan.schema import Schema
from headrace.spark.run import start_run
from headrace.sql import parse_script

COLUMNS = Schema.of(
    at="TIMESTAMP", a="INT", b="TINYINT", l="BIGINT", x="DOUBLE", d="DECIMAL(10, 2)", s="STRING", t="STRING", day="DATE"
)
ROWS = (
    (5_000_000, 7, 5, 10**12, 2.5, Decimal("12.34"), "Ann Lee", "10", dt.date(2024, 2, 29)),
    (3_000_000, -7, -128, -5, -2.5, Decimal("-0.05"), "  bob ", "x1", dt.date(1969, 12, 31)),
    (4_000_000, 0, 127, 0, 0.0, Decimal(0), "", "a,b,c", dt.date(2023, 3, 26)),
    (6_000_000, 1_000_000, 0, 255, 1e6, Decimal("99999999.99"), "éclair-2024_x%", "3.7", dt.date(2024, 12, 30)),
)
LEVELS = ("CHANGES", "FINAL", "FINAL IN ORDER")

NUMBERS = (
    "pmod(a, 3)", "try_add(a, 1)", "try_subtract(b, 1)", "try_multiply(a, 1000000)", "bround(x, 0)", "b + 1", "a << 2",
    "shiftrightunsigned(a, 28)", "hypot(3, a)", "width_bucket(x, 0, 10, 5)", "coalesce(a, 1)",
    "d + 1", "d * 2", "d / 4", "d * d", "round(d, 1)", "round(d)", "abs(d)",
    "CAST(at AS BIGINT)", "TRY_CAST(t AS INT)", "try_to_number(t, '99')", "bigint(a)",
    "year(at)", "year(day)", "dayofweek(at)", "weekday(at)", "weekofyear(day)", "unix_timestamp(at)",
    "months_between(day, DATE '2024-01-31')", "timestampdiff(HOUR, TIMESTAMP '2024-01-01 00:00:00', at)",
    "octet_length(s)", "levenshtein(s, t)", "find_in_set('b', t)",
)  # fmt: skip
OTHERS = (
    "CAST(at AS STRING)", "CAST(a AS TIMESTAMP)", "try_to_timestamp(t)", "format_number(x, 2)", "format_string('%s!', s)",
    "isnull(s)", "conv(t, 16, 10)", "dayname(day)", "monthname(day)", "trunc(day, 'MM')", "date_trunc('MINUTE', at)",
    "timestamp_seconds(a)", "to_utc_timestamp(at, 'Europe/Paris')", "btrim(s)", "substring_index(t, ',', 2)", "soundex(s)",
    "base64(CAST(s AS BINARY))", "regexp_substr(s, 'e+')", "split_part(t, ',', 2)", "get(split(t, ','), 1)",
    "regexp_replace(s, '(\\\\w+) (\\\\w+)', '$2 $1')", "s LIKE '%2024\\\\_x%'", "overlay(s PLACING 'XX' FROM 2)",
)  # fmt: skip
EXPRESSIONS = (*NUMBERS, *OTHERS)
AGGREGATES = tuple(f"{f}({e})" for f, some in (("MAX", EXPRESSIONS), ("SUM", NUMBERS)) for e in some)


@pytest.fixture(scope="module")
def root(spark, tmp_path_factory) -> Path:
    """Where one script with all expressions has run over two files, out of order."""
    folder: Path = tmp_path_factory.mktemp("functions")
    (folder / "in").mkdir()
    for number in (0, 1):
        rows = list(ROWS[2 * number : 2 * number + 2])
        write_file(folder / "in" / f"{number}.parquet", COLUMNS, rows, FIRST_WRITTEN + number)
    sql = f"CREATE STREAM p {COLUMNS} SOURCE FILE('{folder}/in', 'parquet') TIMESTAMP BY at DELAY 10 SECONDS;"
    for level in LEVELS:
        sql += f"SELECT at, {named(EXPRESSIONS)} FROM p EMIT {level} INTO FILE('{folder}/{level}');"
    sql += f"SELECT {named(AGGREGATES)} FROM p [UNBOUNDED] EMIT FINAL IN ORDER INTO FILE('{folder}/aggregates');"
    options = {"maxFilesPerTrigger": "1"}
    start_run(spark, parse_script(sql), {}, checkpoint=str(folder / "checkpoint"), buckets=2, options=options).wait(240)
    return folder


def named(expressions: tuple[str, ...]) -> str:
    return ", ".join(f"{e} AS c{i}" for i, e in enumerate(expressions))


@pytest.fixture(scope="module")
def values(spark, root) -> list[list[Any]]:
    """For every expression: its values in the order of time, by Spark of all rows at once and by the query at each level."""
    batch = spark.read.parquet(str(root / "in")).orderBy("at")
    tables = [rows_of_batch(batch.selectExpr(*EXPRESSIONS).toArrow())]
    for level in LEVELS:
        rows = [row[1:] if level == "CHANGES" else row for row in read_sink(root / level)]
        tables.append([row[1:] for row in sorted(rows, key=lambda row: row[0])])
    return [[[row[i] for row in table] for table in tables] for i in range(len(EXPRESSIONS))]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_value_is_as_spark_says(values, expression):
    want, *got = values[EXPRESSIONS.index(expression)]
    assert got == [want] * len(LEVELS)


@pytest.fixture(scope="module")
def aggregates(spark, root) -> list[tuple[Any, Any]]:
    """For every aggregate: by Spark of all rows at once, and by the query at the last row."""
    batch = spark.read.parquet(str(root / "in")).selectExpr(*(f"{e} AS v{i}" for i, e in enumerate(EXPRESSIONS)))
    (want,) = rows_of_batch(batch.selectExpr(*(a.replace(e, f"v{i}") for a, i, e in _of_columns())).toArrow())
    return list(zip(want, read_sink(root / "aggregates")[-1], strict=True))


def _of_columns() -> list[tuple[str, int, str]]:
    return [(a, EXPRESSIONS.index(a[4:-1]), a[4:-1]) for a in AGGREGATES]


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_aggregate_is_as_spark_says(aggregates, aggregate):
    want, got = aggregates[AGGREGATES.index(aggregate)]
    assert got == want
