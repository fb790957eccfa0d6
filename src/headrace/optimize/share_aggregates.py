"""A call that is there twice is computed once."""

from __future__ import annotations

from dataclasses import replace

from headrace.optimize.rewrite import bottom_up
from headrace.plan.aggregates import Aggregate
from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, Project, WindowAggregate


def share_aggregates(node: Node) -> Node:
    """Drop duplicate calls of a step, and copy the result to the other names in a projection above it.

    >>> from headrace.optimize.example import twice
    >>> print(twice(share_aggregates))
    WindowAggregate [UNBOUNDED]: SUM(amount) AS a, SUM(amount) AS b
      Scan payments
    becomes
    Project id, card, amount, at, a, a AS b
      WindowAggregate [UNBOUNDED]: SUM(amount) AS a
        Scan payments
    """
    return bottom_up(node, _share)


def _share(node: Node) -> Node:
    if not isinstance(node, WindowAggregate):
        return node
    first: dict[Aggregate, str] = {}
    for call in node.aggregates:
        first.setdefault(replace(call, name=""), call.name)
    if len(first) == len(node.aggregates):
        return node
    kept = tuple(call for call in node.aggregates if first[replace(call, name="")] == call.name)
    columns = [(name, Expr.column(name)) for name in node.input.schema.names]
    results = [(call.name, Expr.column(first[replace(call, name="")])) for call in node.aggregates]
    return Project(replace(node, aggregates=kept), tuple(columns + results))
