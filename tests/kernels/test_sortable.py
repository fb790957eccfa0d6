"""Values as words that sort as Spark sorts the values: the engine's, and the oracle's, which were written apart."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal

import numpy as np
import pytest

from headrace.kernels.keys.sortable import sortable_words
from headrace.oracle.rows import array_of
from headrace.oracle.ties import group_words
from headrace.plan.arrow import arrow_type

DAY = dt.date(1970, 1, 1)
NOON = dt.datetime(1970, 1, 1, 12, tzinfo=dt.UTC)
# In the order of Spark's ORDER BY.
VALUES = {
    "BOOLEAN": [None, False, True],
    "TINYINT": [None, -128, -1, 0, 1, 127],
    "INT": [None, -(2**31), -5, 0, 7, 2**31 - 1],
    "BIGINT": [None, -(2**63), -1, 0, 1, 2**63 - 1],
    "FLOAT": [None, -math.inf, -1.5, 0.0, 2.5, math.inf, math.nan],
    "DOUBLE": [None, -math.inf, -1e300, -5e-324, 0.0, 5e-324, 1.0, 1e300, math.inf, math.nan],
    "DECIMAL(38, 2)": [
        None,
        *map(Decimal, ("-99999999999999999999.00", "-0.01", "0.00", "0.01", "1.00", "184467440737095516.17")),
    ],
    "STRING": [None, "", "\0", "\0\0", "\0a", "a", "a\0", "a\0b", "a\1", "aa", "ab", "b", "ä", "猫", "🐈"],
    "BINARY": [None, b"", b"\0", b"\0\xff", b"\1", b"a", b"\xff", b"\xff\xff"],
    "DATE": [None, DAY - dt.timedelta(1), DAY, DAY + dt.timedelta(1)],
    "TIMESTAMP": [None, NOON - dt.timedelta(1), NOON, NOON + dt.timedelta(microseconds=1)],
    "ARRAY<INT>": [None, [], [None], [None, 1], [-1], [1], [1, None], [1, 2], [2]],
    "STRUCT<a: INT, b: STRING>": [None, {"a": None, "b": "x"}, {"a": 1, "b": None}, {"a": 1, "b": "a"}, {"a": 1, "b": "b"}],
}


def words(types, rows):
    columns = [array_of(arrow_type(kind), [row[i] for row in rows]) for i, kind in enumerate(types)]
    lines = [tuple(map(int, line)) for line in sortable_words(columns, len(rows))]
    return [line[: max(k for k, word in enumerate(line) if word) + 1] for line in lines]


@pytest.mark.parametrize("kind", VALUES)
def test_words_have_the_order_of_values(kind):
    found = words([kind], [(v,) for v in VALUES[kind]])
    assert found == sorted(found)
    assert len(set(found)) == len(found)
    assert all(line[-1] for line in found), "what stands behind a row never mixes with it"


@pytest.mark.parametrize("kind", VALUES)
def test_words_do_not_depend_on_what_they_come_with(kind):
    rows = [(v,) for v in VALUES[kind]]
    assert words([kind], rows) == [words([kind], [row])[0] for row in rows]


@pytest.mark.parametrize(("first", "second"), list(itertools.product(("STRING", "INT", "ARRAY<INT>"), VALUES)))
def test_the_first_column_decides_first(first, second):
    rows = list(itertools.product(VALUES[first], VALUES[second]))
    found = words([first, second], rows)
    assert found == sorted(found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", VALUES)
def test_the_oracle_says_the_same(kind):
    rows = [(v, 7) for v in VALUES[kind]]
    assert words([kind, "INT"], rows) == [group_words([kind, "INT"], row) for row in rows]


def test_zeros_are_one():
    assert len(set(words(["DOUBLE"], [(0.0,), (-0.0,)]))) == 1
    assert group_words(["DOUBLE"], (0.0,)) == group_words(["DOUBLE"], (-0.0,))


def test_no_columns_are_one_group():
    assert words([], [(), ()]) == [group_words([], ())] * 2


def test_a_slice_is_read_from_where_it_begins():
    column = array_of(arrow_type("STRING"), ["long before", "b", None, "a"])
    assert np.array_equal(sortable_words([column[1:]], 3), sortable_words([array_of(arrow_type("STRING"), ["b", None, "a"])], 3))


@pytest.mark.spark
@pytest.mark.parametrize("kind", VALUES)
def test_spark_sorts_values_so(spark, kind):
    rows = VALUES[kind] if not kind.startswith("STRUCT") else [None if v is None else tuple(v.values()) for v in VALUES[kind]]
    found = spark.createDataFrame([(v, i) for i, v in enumerate(rows)][::-1], f"v {kind.replace(': ', ':')}, i INT").orderBy("v")
    assert [row.i for row in found.collect()] == list(range(len(rows)))
