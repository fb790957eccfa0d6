"""Expressions over one row: what is offered and refused, where they fail, and DuckDB where it means the same."""

from __future__ import annotations

import random
import struct
from decimal import Decimal
from typing import Any

import pytest

from headrace.errors import QueryError
from headrace.oracle.scalar import evaluate
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.scalars.row.compiled import ExpressionFailed, compile_row, compiled
from headrace.scalars.row.functions import FUNCTIONS
from headrace.scalars.row.meaning import patterns
from headrace.scalars.row.meaning.digits import digits_of, text_of
from headrace.scalars.row.meaning.times import read_time
from row_cases import SCHEMA, TEMPLATES, row


def value(sql: str, schema: Schema | None = None, *values: Any) -> Any:
    return compile_row([Expr.of(sql)], schema or Schema(()))(values)[0]


def test_every_function_that_is_offered_is_tried_on_spark():
    """The list of what is offered is that of the templates, which `tests/spark/test_rows_of_spark.py` goes through."""
    tried = {t.name for t in TEMPLATES if t.name.islower() and t.name.replace("_", "").isalnum()}
    assert tried == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SIN(x)", "SIN(x) is not offered"), ("UPPER(SOUNDEX(s))", "in UPPER(SOUNDEX(s)): SOUNDEX(s) is not offered"),
        ("RAND()", "RAND() is not offered"), ("s RLIKE '(?i)a'", "outside of Java"), ("s RLIKE u", "outside of Java"),
        ("SPLIT(s, 'a|b')", "outside of Java"), ("CAST('now' AS TIMESTAMP)", "is not a time"), ("s + day", "no +"),
        ("ROUND(x, i)", "not written out"), ("DATE_FORMAT(at, 'EEE')", "pattern"), ("nothing + 1", "does not exist"),
        ("p.zz", "field 'zz' does not exist"), ("xs = xs", "no == of"), ("x IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)", "IN of 11"),
        ("CURRENT_DATE()", "not offered"), ("SPLIT(s, ',')[i]", "no column"),
     ("IF(i, 1, 2)", "not a condition"), ("SUBSTRING(s, l)", "BIGINT, and a INT"),
    ],
)  # fmt: skip
def test_what_is_not_offered_is_refused_when_it_is_compiled(sql, said):
    with pytest.raises(QueryError) as caught:
        compile_row([Expr.of(sql)], SCHEMA)
    assert said in caught.value.message
    assert caught.value.hint or "there are" in caught.value.message


def test_a_failure_names_the_expression_and_the_reason():
    run = compile_row([Expr.of("i"), Expr.of("i + 1")], Schema.of(i="INT"))
    assert run((1,)) == (1, 2)
    assert run((None,)) == (None, None)
    with pytest.raises(ExpressionFailed) as caught:
        run((2**31 - 1,))
    assert (caught.value.number, caught.value.expr.sql, caught.value.reason) == (1, "i + 1", "2147483648 does not fit into INT")


@pytest.mark.parametrize(
    ("sql", "want"),
    [("n + 1 / z", None), ("b AND 1 / z > 0", False), ("CASE WHEN z = 0 THEN 0 ELSE 1 / z END", 0.0), ("COALESCE(z, 1 / z)", 0.0),
     ("IF(z = 0, 1, 2 / z)", 1.0), ("z IN (0, CAST(1 / z AS INT))", True), ("n BETWEEN 1 AND CAST(1 / z AS INT)", None),
     ("(1 / z) / n", None), ("TRY_CAST('x' AS INT)", None)],
)  # fmt: skip
def test_what_is_not_needed_is_not_computed(sql, want):
    assert value(sql, Schema.of(z="INT", n="INT", b="BOOLEAN"), 0, None, False) == want


@pytest.mark.parametrize(
    "sql", ["1 / z", "CAST(z / z AS INT)", "z % z", "TRY_CAST(1 / z AS INT)", "CONCAT_WS(n, CAST(1 / z AS DECIMAL(5, 2)))"]
)
def test_what_spark_fails_at_fails(sql):
    with pytest.raises(ExpressionFailed):
        value(sql, Schema.of(z="INT", n="STRING"), 0, None)


def test_an_integer_that_is_a_float_on_the_way_to_a_double_keeps_its_digits():
    """Spark's optimizer leaves the cast in the middle out."""
    assert value("CAST(CAST(l AS FLOAT) AS DOUBLE)", Schema.of(l="BIGINT"), 10**12) == 1e12
    assert value("CAST(l AS FLOAT)", Schema.of(l="BIGINT"), 10**12) == 999999995904.0


def test_deep_and_wide_expressions_compile():
    schema = Schema.of(i="BIGINT")
    assert value("CASE " + " ".join(f"WHEN i = {n} THEN {n * 2}" for n in range(300)) + " ELSE -1 END", schema, 299) == 598
    assert value(" + ".join(["i"] * 300), schema, 2) == 600
    assert value(" AND ".join([f"i <> {n}" for n in range(300)]), schema, 300) is True


# The decimals that Java prints. Those of 17 and of 21 were asked of both.
PRINTED = [
    (2e-3, "0.002", "0.002"),
    (1e7, "1.0E7", "1.0E7"),
    (9999999.0, "9999999.0", "9999999.0"),
    (2e23, "1.9999999999999998E23", "2.0E23"),
    (1e23, "9.999999999999999E22", "1.0E23"),
    (5e-324, "4.9E-324", "4.9E-324"),
    (-0.0, "-0.0", "-0.0"),
    (0.1, "0.1", "0.1"),
    (2.0**-44, "5.6843418860808015E-14", "5.684341886080802E-14"),
    (3.6010817099706186e25, "3.6010817099706185E25", "3.6010817099706186E25"),
    (float("inf"), "Infinity", "Infinity"),
    (1e-3, "0.001", "0.001"),
    (123456.789, "123456.789", "123456.789"),
    (2.0**63, "9.223372036854776E18", "9.223372036854776E18"),
]


@pytest.mark.parametrize(("x", "before", "since"), PRINTED)
def test_doubles_look_as_java_prints_them(x, before, since):
    assert text_of(x, digits_of(17)) == before
    assert text_of(x, digits_of(21)) == since


def test_what_java_prints_is_read_as_the_same_double():
    rng = random.Random(3)
    for _ in range(3000):
        x = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(63)))[0]
        if x - x == 0.0:
            assert float(text_of(x, digits_of(17))) == x == float(text_of(x, digits_of(21)))


@pytest.mark.parametrize(
    ("pattern", "known"),
    [
        ("^a.*b$", True),
        ("[0-9]{2,3}", True),
        ("(a|b)+?c", True),
        ("a\\.b", True),
        ("[^a-z]", True),
        ("\\p{L}", False),
        ("a++", False),
        ("(?<x>a)", False),
        ("[a&&b]", False),
        ("\\bx", False),
        ("(a", False),
        ("\\Qa\\E", False),
        ("a{2", False),
        ("*a", False),
    ],
)
def test_regular_expressions_that_mean_the_same_in_java_are_known(pattern, known):
    assert (patterns.regular(pattern) is not None) is known


def test_an_hour_without_a_date_is_no_time():
    """For Spark it is one of the day on which it is read."""
    with pytest.raises(Exception, match="an hour of no day"):
        read_time("12:30")


# What DuckDB and Spark agree on, over values at which neither fails.
AGREED = (
    "i + j", "l - k", "i * 2", "l % 7", "i = j", "x < y", "x >= 0.5", "d > 1.5", "s = u", "s || u", "UPPER(u)", "LENGTH(s)",
    "b AND c", "b OR c", "NOT b", "i IS NULL", "b IS TRUE", "COALESCE(i, j)", "NULLIF(i, j)", "CASE WHEN b THEN i ELSE j END",
    "GREATEST(i, j)", "LEAST(d, d)", "i IN (1, 2, j)", "i BETWEEN 0 AND j", "REPLACE(s, 'a', 'b')", "ABS(k)", 
    "DATEDIFF(day, eve)", "REVERSE(u)", "STARTSWITH(s, u)", "CAST(i AS STRING)", "CAST(b AS INT)", "CAST(i AS DOUBLE)",
    "i & j", "s LIKE 'a%'", "CAST(d AS DOUBLE)", "TRIM(s)", "CONCAT(s, u)", "SQRT(ABS(y))", "x = y", "LPAD(u, 5, '*')",
)  # fmt: skip


def test_duckdb_agrees_where_it_means_the_same():
    rng = random.Random(5)
    small = {"i": 1000, "j": 1000, "l": 10**9, "k": 10**6}
    rows = []
    for _ in range(60):
        made = dict(zip(SCHEMA.names, row(rng), strict=True))
        made |= {n: rng.choice((None, rng.randint(-most, most))) for n, most in small.items()}
        made |= {n: rng.choice((None, rng.randint(-30_000, 30_000))) for n in ("day", "eve")}
        made |= {n: rng.choice((None, "", "ab", "Abc", "x y", "ba")) for n in ("s", "u")}
        made |= {n: rng.choice((None, rng.uniform(-9, 9), 0.5, 0.0)) for n in ("x", "y")}
        made |= {"d": Decimal(rng.randint(-999, 999)).scaleb(-2), "g": Decimal(rng.randint(-999, 999)).scaleb(-5)}
        rows.append(tuple(made.values()))
    names = [n for n in SCHEMA.names if n in {c for e in AGREED for c in Expr.of(e).columns}]
    schema = Schema(tuple(SCHEMA.field(n) for n in names))
    cut = [tuple(r[SCHEMA.names.index(n)] for n in names) for r in rows]
    exprs = [Expr.of(e) for e in AGREED]
    run, there = compiled(exprs, schema), 0
    for mine, want in zip(map(run.function, cut), evaluate(exprs, schema, cut), strict=True):
        for expr, a, b in zip(exprs, mine, want, strict=True):
            assert a == b, (expr, a, b)
            there += a is not None
    assert there > len(rows) * len(exprs) / 2
