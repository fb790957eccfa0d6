"""Two filters in a row become one."""

from __future__ import annotations

from sqlglot import exp

from headrace.optimize.rewrite import bottom_up
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Node


def merge_filters(node: Node) -> Node:
    """Join the predicates with AND, the lower one first.

    >>> from headrace.optimize.example import example
    >>> print(example("SELECT * FROM (SELECT * FROM payments WHERE amount > 9) WHERE card = 'a' OR id = 1", merge_filters))
    Filter card = 'a' OR id = 1
      Filter amount > 9
        Scan payments
    becomes
    Filter amount > 9 AND (card = 'a' OR id = 1)
      Scan payments
    """
    return bottom_up(node, _merge)


def _merge(node: Node) -> Node:
    match node:
        case Filter(input=Filter(input=below, predicate=first), predicate=second):
            return Filter(below, Expr.of(exp.and_(first.tree, second.tree)))
    return node
