"""Expressions that may fail on a row: the row is told apart, the query lives on."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

from headrace.plan.expr import Expr
from headrace.plan.schema import Schema

# Nodes that cannot fail on any row.
SAFE = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.And, exp.Or, exp.Not, exp.Paren, exp.Is)
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between)
INTEGERS = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
FLOATS = {"FLOAT", "DOUBLE"}
ALIKE = {"STRING", "BOOLEAN", "DATE", "TIMESTAMP"}
DECIMAL = "DECIMAL"
MOST_DIGITS = 18  # of a number that is an integer of at most 64 bits


def can_fail(expr: Expr, columns: Schema) -> bool:
    """Whether evaluating the expression can raise an error for some row (under ANSI rules it can for most).

    To try one costs every row as much as reading it, so what is in nearly every condition is known not to fail.
    """
    return not all(_is_safe(node, columns) for node in expr.tree.walk())


def _is_safe(node: exp.Expr, columns: Schema) -> bool:
    if isinstance(node, COMPARISONS):
        kinds = [_kind(side, columns) for side in node.iter_expressions()]
        return all(_compare(kinds[0], other) for other in kinds[1:])
    return isinstance(node, SAFE) or _is_negative_number(node)


def _compare(one: str | None, other: str | None) -> bool:
    """Whether Spark compares two types without a cast that fails on some value: numbers that widen, or the same type."""
    if one is None or other is None:
        return False
    if one in FLOATS or other in FLOATS:
        return {one, other} <= INTEGERS | FLOATS | {DECIMAL}
    return {one, other} <= INTEGERS or (one == other and one in ALIKE)


def _kind(node: exp.Expr, columns: Schema) -> str | None:
    """The type of a column or a literal; None for anything else."""
    node = node.unnest()
    if _is_negative_number(node):
        node = node.this
    if isinstance(node, exp.Column) and not node.table and columns.has(node.name):
        kind = columns.field(node.name).type
        return DECIMAL if kind.startswith(DECIMAL) else kind
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        return "STRING"
    if node.name.isdigit():
        return "BIGINT" if len(node.name) <= MOST_DIGITS else None
    return DECIMAL if node.name.replace(".", "", 1).isdigit() else None


def _is_negative_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string


def attempt(column: Column) -> Column:
    """A struct with the value `v`, or NULL if evaluating it failed: a NULL value is a struct of NULL.

    Spark has this inside (it is how its try_ functions work) but not as a function of its own. Two attempts that share a part
    would have it computed once, before both and outside of them, where a failure ends the query: so what is tried stands behind
    a condition, always true, of which Spark does not know that.
    """
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None, "there is a session wherever there is a column"
    assert context._jvm is not None, "a column of Spark Connect has no JVM; it is tried on the server"
    utils = context._jvm.org.apache.spark.sql.classic.ExpressionUtils
    inner = utils.expression(F.when(F.spark_partition_id() >= 0, F.struct(column.alias("v")))._jc)
    return Column(utils.column(context._jvm.org.apache.spark.sql.catalyst.expressions.TryEval(inner)))
