"""Which expressions are known not to fail on any row, and are not tried."""

from __future__ import annotations

import pytest

from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.spark.sources.attempt import can_fail

COLUMNS = Schema.of(id="BIGINT", n="INT", x="DOUBLE", d="DECIMAL(10,2)", t="STRING", at="TIMESTAMP", day="DATE")


@pytest.mark.parametrize(
    "text",
    ["x <= 1.96 AND NOT id IS NULL", "x > -2", "id = n", "id <> 5", "d > x", "t = 'a'", "t <=> 'b'", "x BETWEEN 1 AND 2.5",
     "at > at", "(x) > (n) OR t < 'c'"],
)  # fmt: skip
def test_a_comparison_of_numbers_that_widen_or_of_one_type_cannot_fail(text):
    assert not can_fail(Expr.of(text), COLUMNS)


@pytest.mark.parametrize(
    "text",
    ["t = 5", "t < x", "at > '2020-01-01'", "at > day", "id = 1.5", "d > 1.5", "n BETWEEN 1 AND 2.5", "n + 1 > 2", "-n > 5",
     "id > 99999999999999999999", "x.y > 5", "nothing = 1", "CAST(t AS INT) = 1"],
)  # fmt: skip
def test_what_is_cast_or_computed_may_fail(text):
    assert can_fail(Expr.of(text), COLUMNS)
