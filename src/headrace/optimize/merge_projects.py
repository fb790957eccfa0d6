"""Two projections in a row become one."""

from __future__ import annotations

from collections import Counter

from sqlglot import exp

from headrace.optimize.rewrite import bottom_up
from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, Project


def merge_projects(node: Node) -> Node:
    """Put the lower expressions into the upper ones.

    A lower expression that is more than a column must be used exactly once: it is neither computed twice nor left out, because a
    row on which it fails is rejected.

    >>> from headrace.optimize.example import example
    >>> print(example("SELECT x + 1 AS y FROM (SELECT amount * 2 AS x, card FROM payments)", merge_projects))
    Project x + 1 AS y
      Project amount * 2 AS x, card
        Scan payments
    becomes
    Project (amount * 2) + 1 AS y
      Scan payments
    """
    return bottom_up(node, _merge)


def _merge(node: Node) -> Node:
    match node:
        case Project(input=Project(input=below, items=lower), items=upper):
            if _once(lower, upper):
                inner = {name.lower(): value for name, value in lower}
                return Project(below, tuple((name, _into(value, inner)) for name, value in upper))
    return node


def _once(lower: tuple[tuple[str, Expr], ...], upper: tuple[tuple[str, Expr], ...]) -> bool:
    uses = Counter(column.name.lower() for _, value in upper for column in value.tree.find_all(exp.Column))
    return all(value.as_column is not None or uses[name.lower()] == 1 for name, value in lower)


def _into(value: Expr, inner: dict[str, Expr]) -> Expr:
    """Substitute; a column in the place of a column needs no brackets."""
    alone = value.as_column
    if alone is not None:
        return inner[alone.lower()]
    return Expr.of(value.tree.transform(lambda node: _swap(node, inner)))


def _swap(node: exp.Expr, inner: dict[str, Expr]) -> exp.Expr:
    if not isinstance(node, exp.Column):
        return node
    tree = inner[node.name.lower()].tree
    return tree if isinstance(tree, exp.Column | exp.Literal) else exp.paren(tree)
