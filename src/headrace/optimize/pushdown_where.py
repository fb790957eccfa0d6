"""WHERE behind a window becomes a filter below it, where that changes nothing."""

from __future__ import annotations

from dataclasses import replace

from headrace.optimize.rewrite import bottom_up
from headrace.plan.nodes import Filter, Node, WindowAggregate, base_streams


def pushdown_where(node: Node) -> Node:
    """Filter before a RANGE or UNBOUNDED window: what is in it does not depend on other rows.

    Never for ROWS, where a row that WHERE drops still takes a place in the window. Nor for UNBOUNDED with KEEP, where such a row
    still keeps its key alive.

    >>> from headrace.optimize.example import example
    >>> sql = "SELECT card, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] WHERE amount > 9 GROUP BY card"
    >>> print(example(sql, pushdown_where))
    Project card, n
      WindowAggregate [RANGE 5 MINUTES] WHERE amount > 9 GROUP BY card: COUNT(*) AS n
        Scan payments
    becomes
    Project card, n
      WindowAggregate [RANGE 5 MINUTES] GROUP BY card: COUNT(*) AS n
        Filter amount > 9
          Scan payments
    """
    return bottom_up(node, _push)


def _push(node: Node) -> Node:
    if not isinstance(node, WindowAggregate) or node.where is None or node.window.counts_rows:
        return node
    if node.window.keeps_keys and any(s.keep is not None for s in base_streams(node)):
        return node
    return replace(node, input=Filter(node.input, node.where), where=None)
