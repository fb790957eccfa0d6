"""Plan -> plan, with the same answer: a tuple of rules, one file each.

A rule never changes what is computed on which row in a way that could be seen: an expression that might fail on a row, and so
send it to `rejected`, is neither dropped nor applied to other rows.
"""

from __future__ import annotations

from headrace.optimize.merge_filters import merge_filters
from headrace.optimize.merge_projects import merge_projects
from headrace.optimize.merge_windows import merge_windows
from headrace.optimize.prune import prune
from headrace.optimize.push_into_join import push_into_join
from headrace.optimize.pushdown_where import pushdown_where
from headrace.optimize.rewrite import Rule
from headrace.optimize.share_aggregates import share_aggregates
from headrace.plan.explain import tree
from headrace.plan.nodes import Node

RULES: tuple[Rule, ...] = (pushdown_where, merge_filters, push_into_join, merge_windows, share_aggregates, merge_projects, prune)
MAX_ROUNDS = 10

__all__ = ["RULES", "optimize"]


def optimize(node: Node) -> tuple[Node, list[tuple[str, str, str]]]:
    """Apply the rules until none changes anything; beside the plan, what each changed: (rule, before, after)."""
    changes: list[tuple[str, str, str]] = []
    for _ in range(MAX_ROUNDS):
        start = node
        for rule in RULES:
            after = rule(node)
            if after != node:
                changes.append((rule.__name__, tree(node), tree(after)))
            node = after
        if node == start:
            break
    return node, changes
