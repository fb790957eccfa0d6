"""Spark SQL by way of DuckDB, and the types that come back."""

import datetime as dt
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest

from headrace.errors import DataError, QueryError
from headrace.oracle import scalar, simple
from headrace.oracle.rows import batch_of_rows, canonical_row, from_micros, group_value, rows_of_batch
from headrace.oracle.scalar import evaluate, evaluate_batch, holds
from headrace.plan.arrow import arrow_schema, arrow_type, schema_of, spark_type
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema

SCHEMA = Schema.of(
    i="INT", l="BIGINT", d="DOUBLE", s="STRING", p="DECIMAL(10, 2)", at="TIMESTAMP", day="DATE", b="BOOLEAN", f="FLOAT"
)
ROWS = [
    (1, 2**40, -0.0, "x", Decimal("1.50"), from_micros(-1), dt.date(1969, 12, 31), True, 0.5),
    (None,) * 9,
    (-3, 7, -2.7, "é", Decimal("-2.55"), from_micros(5), dt.date(2020, 2, 29), False, 1.5),
]


@pytest.mark.parametrize(
    ("sql", "kind", "values"),
    [
        ("i", pa.int32(), [1, None, -3]),
        ("i + 1", pa.int32(), [2, None, -2]),
        ("i + l", pa.int64(), [2**40 + 1, None, 4]),
        ("i / 2", pa.float64(), [0.5, None, -1.5]),
        ("d * 2", pa.float64(), [-0.0, None, -5.4]),
        ("f * 2", pa.float32(), [1.0, None, 3.0]),
        ("CAST(d AS INT)", pa.int32(), [0, None, -2]),
        ("p + p", pa.decimal128(10, 2), [Decimal("3.00"), None, Decimal("-5.10")]),
        ("CONCAT(s, 'y')", pa.string(), ["xy", None, "éy"]),
        ("LENGTH(s)", pa.int32(), [1, None, 1]),
        ("CAST(at AS DATE)", pa.date32(), [dt.date(1969, 12, 31), None, dt.date(1970, 1, 1)]),
        ("HOUR(at)", pa.int32(), [23, None, 0]),
        ("at + INTERVAL 1 MINUTE", pa.timestamp("us", tz="UTC"), [from_micros(59_999_999), None, from_micros(60_000_005)]),
        ("TIMESTAMP_MILLIS(l)", pa.timestamp("us", tz="UTC"), [from_micros(2**40 * 1000), None, from_micros(7000)]),
        ("i > 0", pa.bool_(), [True, None, False]),
        ("s = 'x' OR b", pa.bool_(), [True, None, False]),
        ("i IS NULL", pa.bool_(), [False, True, False]),
        ("i <=> NULL", pa.bool_(), [False, True, False]),
        ("CASE WHEN b THEN d ELSE 1.0 END", pa.float64(), [-0.0, 1.0, 1.0]),
    ],
)
def test_values_and_types(sql, kind, values):
    batch = evaluate_batch([Expr.of(sql)], SCHEMA, batch_of_rows(SCHEMA, ROWS))
    assert batch.schema == pa.schema([("c0", kind)])
    assert [canonical_row(r) for r in rows_of_batch(batch)] == [canonical_row((v,)) for v in values]


SIMPLE = [
    "TRUE", "FALSE", "CAST(NULL AS DOUBLE)", "CAST(NULL AS DECIMAL(9, 2))", "CAST(NULL AS TIMESTAMP)", "i IS NULL",
    "NOT (s) IS NULL", "NOT d IS NULL", "b", "NOT b", "b AND i > 0", "b OR i > 0", "NOT (b OR i > 0) AND s IS NULL", "i = 1",
    "i <> l", "(i) < 7", "7 <= l", "i >= 1", "l > i", "l < 9223372036854775807", "s = 'x'", "'é' <> s", "s = s",
    "CASE WHEN s = 'x' THEN at END", "CASE WHEN b THEN d END", "CASE WHEN i IS NULL OR b THEN p END", "(s = 'x') OR FALSE",
]  # fmt: skip


@pytest.mark.parametrize("sql", SIMPLE)
def test_what_is_simple_is_what_duckdb_says(sql):
    """In value and type, for all rows that mix these values, and for none."""
    expr = Expr.of(sql)
    columns = list(zip(*ROWS, strict=True))
    rows = [tuple(map(Random(seed).choice, columns)) for seed in range(200)]
    for some in ([*ROWS, *rows], []):
        batch = batch_of_rows(SCHEMA, some)
        read = simple.reader(expr, SCHEMA)
        assert read is not None
        (wanted,) = scalar._compute((expr,), SCHEMA, batch)
        assert read(batch).equals(wanted)


NOT_SIMPLE = ["i + 1 > 2", "d > 1", "i > 1.5", "d = f", "s < 'y'", "at = at", "i = NULL", "s = i", "-i > 1", "b = TRUE", "NULL",
    "CASE WHEN b THEN d ELSE 1 END", "CASE i WHEN 1 THEN d END", "CASE WHEN b THEN d WHEN i > 1 THEN d END", "i IS TRUE", "p = 1",
    "CASE WHEN b THEN 1 END", "i <=> 1", "s LIKE 'x'", "1 = 1", "day = day", "i > -3", "l < 9223372036854775808"]  # fmt: skip


@pytest.mark.parametrize("sql", NOT_SIMPLE)
def test_all_else_is_left_to_duckdb(sql):
    assert simple.reader(Expr.of(sql), SCHEMA) is None


def test_rows_columns_and_names():
    exprs = [Expr.of("S"), Expr.of("`at`"), Expr.of("i + 1")]
    assert evaluate(exprs[:2], SCHEMA, ROWS) == [(row[3], row[5]) for row in ROWS]
    assert evaluate(exprs, SCHEMA, ROWS)[2] == ("é", from_micros(5), -2)
    assert evaluate_batch(exprs, SCHEMA, batch_of_rows(SCHEMA, ROWS), ["x", "y", "z"]).schema.names == ["x", "y", "z"]
    assert evaluate([], SCHEMA, ROWS) == [(), (), ()]
    assert evaluate(exprs, SCHEMA, []) == []
    assert evaluate([Expr.of("1 + 1")], Schema(()), [(), ()]) == [(2,), (2,)]
    assert holds(Expr.of("i > 0"), SCHEMA, ROWS) == [True, False, False]
    assert holds(None, SCHEMA, ROWS) == [True] * 3


def test_order_is_kept_over_many_rows():
    schema = Schema.of(n="BIGINT")
    assert evaluate([Expr.of("n + 1")], schema, [(n,) for n in range(10_000)]) == [(n + 1,) for n in range(10_000)]


def test_an_expression_that_fails_says_which():
    with pytest.raises(DataError, match=r"i \* 2 cannot be evaluated"):
        evaluate([Expr.of("i * 2")], SCHEMA, [(2**31 - 1, *[None] * 8)])


def test_times_outside_the_calendar_stay_numbers():
    schema = Schema.of(at="TIMESTAMP")
    assert rows_of_batch(batch_of_rows(schema, [(2**60,), (dt.datetime(1970, 1, 1),), (None,)])) == [
        (2**60,),
        (from_micros(0),),
        (None,),
    ]


@pytest.mark.parametrize(
    "text",
    ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY", "DATE", "TIMESTAMP",
     "TIMESTAMP_NTZ", "DECIMAL(10, 2)", "DECIMAL(38, 0)", "ARRAY<INT>", "MAP<STRING, DOUBLE>", "STRUCT<A: INT, B: ARRAY<DATE>>"],
)  # fmt: skip
def test_types_both_ways(text):
    assert spark_type(arrow_type(text)) == text
    assert arrow_type(text.lower()) == arrow_type(text) or text.startswith("STRUCT")


def test_schemas_both_ways():
    assert schema_of(arrow_schema(SCHEMA)) == SCHEMA
    assert spark_type(pa.dictionary(pa.int32(), pa.string())) == "STRING"
    assert spark_type(pa.timestamp("ns", tz="Europe/Oslo")) == "TIMESTAMP"
    with pytest.raises(QueryError, match="no type"):
        spark_type(pa.uint64())
    with pytest.raises(QueryError, match="cannot be carried"):
        arrow_type("variant")


def test_equality_is_of_bits_and_of_groups():
    nan = float("nan")
    assert canonical_row((nan, 1, True, 0.0)) == canonical_row((-nan, 1, True, 0.0))
    assert canonical_row((0.0,)) != canonical_row((-0.0,))
    assert canonical_row((1,)) != canonical_row((1.0,)) != canonical_row((True,))
    assert canonical_row((5,), Schema.of(at="TIMESTAMP")) == canonical_row((from_micros(5),), Schema.of(at="TIMESTAMP"))
    assert group_value(0.0) == group_value(-0.0)
