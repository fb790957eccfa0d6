"""Two aggregates over one window and one key become one."""

from __future__ import annotations

from dataclasses import replace

from headrace.optimize.rewrite import bottom_up
from headrace.plan.nodes import Node, WindowAggregate


def merge_windows(node: Node) -> Node:
    """Compute stacked aggregates with the same window, keys and WHERE in one step, if the upper does not read the lower.

    Every event gives one row in both, so the upper sees the very rows that the lower saw.

    >>> from headrace.optimize.example import example
    >>> inner = "SELECT *, SUM(amount) AS total FROM payments [UNBOUNDED]"
    >>> print(example(f"SELECT *, COUNT(*) AS n FROM ({inner}) [UNBOUNDED]", merge_windows))
    WindowAggregate [UNBOUNDED]: COUNT(*) AS n
      WindowAggregate [UNBOUNDED]: SUM(amount) AS total
        Scan payments
    becomes
    WindowAggregate [UNBOUNDED]: SUM(amount) AS total, COUNT(*) AS n
      Scan payments
    """
    return bottom_up(node, _merge)


def _merge(node: Node) -> Node:
    if not isinstance(node, WindowAggregate) or not isinstance(node.input, WindowAggregate):
        return node
    below = node.input
    same = (node.window, node.keys, node.where) == (below.window, below.keys, below.where)
    made = {a.name.lower() for a in below.aggregates}
    if not same or node.where is not None or any(c.lower() in made for c in _reads(node)):
        return node
    return replace(below, aggregates=below.aggregates + node.aggregates)


def _reads(node: WindowAggregate) -> list[str]:
    values = [*node.keys, *(e for call in node.aggregates for e in call.exprs)]
    return [column for value in values for column in value.columns]
