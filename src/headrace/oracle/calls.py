"""Aggregate calls and groups, evaluated for every row of a table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from headrace.oracle.aggregates import aggregate
from headrace.oracle.rows import Row, group_value
from headrace.oracle.scalar import evaluate, holds
from headrace.plan.aggregates import Aggregate
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema


def groups(exprs: Sequence[Expr], schema: Schema, table: Sequence[Row]) -> list[Hashable]:
    """For every row a stand-in for its values of the expressions that compares as GROUP BY does."""
    return [tuple(map(group_value, values)) for values in evaluate(exprs, schema, table)]


class Call:
    """One aggregate call with its arguments and filter evaluated for every row."""

    def __init__(self, call: Aggregate, schema: Schema, table: Sequence[Row], result_type: str) -> None:
        self.function = call.function
        self.result_type = result_type
        self.passes = holds(call.filter, schema, table)
        # Each row has the value of the argument, or a tuple of those of several; COUNT(*) sees that it is there.
        rows = evaluate(call.arguments, schema, table) if call.arguments else [(1,)] * len(table)
        self.values = [row if len(row) > 1 else row[0] for row in rows]

    def over(self, window: Sequence[int]) -> object:
        return aggregate(self.function, [self.values[j] for j in window if self.passes[j]], self.result_type)
