"""Expressions that may fail on a row: the row is told apart, the query lives on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F
from sqlglot import exp

if TYPE_CHECKING:
    from headrace.plan.expr import Expr

# Nodes that cannot fail on any row. Comparisons can: Spark casts one side to the type of the other.
SAFE = (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.And, exp.Or, exp.Not, exp.Paren, exp.Is)


def can_fail(expr: Expr) -> bool:
    """Whether evaluating the expression can raise an error for some row (under ANSI rules it can for most)."""
    return not all(isinstance(node, SAFE) for node in expr.tree.walk())


def attempt(column: Column) -> Column:
    """A struct with the value `v`, or NULL if evaluating it failed: a NULL value is a struct of NULL.

    Spark has this inside (it is how its try_ functions work) but not as a function of its own.
    """
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    assert context is not None, "there is a session wherever there is a column"
    assert context._jvm is not None, "a column of Spark Connect has no JVM; it is tried on the server"
    utils = context._jvm.org.apache.spark.sql.classic.ExpressionUtils
    inner = utils.expression(F.struct(column.alias("v"))._jc)
    return Column(utils.column(context._jvm.org.apache.spark.sql.catalyst.expressions.TryEval(inner)))
