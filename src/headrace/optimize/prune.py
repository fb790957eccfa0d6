"""Aggregates that nobody reads are not computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.plan.aggregates import Aggregate
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Node, Project, WindowAggregate, WindowReport, policy_exprs


def prune(node: Node) -> Node:
    """Drop aggregates that no step above reads, and the whole step where none is left.

    Only calls that cannot fail, on plain columns; a row on which another fails is rejected, and stays so.

    >>> from headrace.optimize import merge_projects
    >>> from headrace.optimize.example import example
    >>> inner = "SELECT card, SUM(amount) AS total, MAX(amount) AS top FROM payments [UNBOUNDED] GROUP BY card"
    >>> print(example(f"SELECT card, total FROM ({inner})", prune, merge_projects))
    Project card, total
      WindowAggregate [UNBOUNDED] GROUP BY card: SUM(amount) AS total, MAX(amount) AS top
        Scan payments
    becomes
    Project card, total
      WindowAggregate [UNBOUNDED] GROUP BY card: SUM(amount) AS total
        Scan payments
    """
    return _keep(node, None)


def _keep(node: Node, needed: frozenset[str] | None) -> Node:
    """Rewrite below a step that reads `needed` columns (lower case); None is all of them."""
    match node:
        case Filter():
            below = _keep(node.input, None if needed is None else needed | _columns([node.predicate]))
        case Project():
            below = _keep(node.input, _columns(value for _, value in node.items))
        case WindowAggregate():
            return _aggregate(node, needed)
        case WindowReport():
            below = _keep(node.input, _columns(_report_reads(node)))
        case _:
            return node
    return node if below is node.input else replace(node, input=below)


def _aggregate(node: WindowAggregate, needed: frozenset[str] | None) -> Node:
    if needed is None:
        below = _keep(node.input, None)
        return node if below is node.input else replace(node, input=below)
    kept = tuple(a for a in node.aggregates if a.name.lower() in needed or not _never_fails(a, node))
    below = _keep(node.input, needed | _columns(_reads(node, kept)))
    if not kept:
        return Filter(below, node.where) if node.where else below
    if kept == node.aggregates and below is node.input:
        return node
    return replace(node, input=below, aggregates=kept)


def _never_fails(call: Aggregate, node: WindowAggregate) -> bool:
    """Plain columns, and no sum of integers or decimals, which can overflow."""
    plain = all(e.as_column is not None for e in call.exprs)
    return plain and (not call.function.overflows or node.schema.field(call.name).type == "DOUBLE")


def _reads(node: WindowAggregate, calls: tuple[Aggregate, ...]) -> list[Expr]:
    found = [*node.keys, *node.window.exprs, *(e for a in calls for e in a.exprs)]
    return [e for e in (*found, node.where) if e is not None]


def _report_reads(node: WindowReport) -> list[Expr]:
    every = (*node.aggregates, *(a for _, some in node.beside for a in some))
    calls = (e for a in every for e in a.exprs)
    found = [*(e for _, e in node.keys), *policy_exprs(node), *calls, node.where]
    return [e for e in found if e is not None]


def _columns(values: Iterable[Expr]) -> frozenset[str]:
    return frozenset(name.lower() for value in values for name in value.columns)
