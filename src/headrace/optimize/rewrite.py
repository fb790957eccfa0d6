"""How a rule walks a plan: inputs first, then the step itself."""

from __future__ import annotations

from collections.abc import Callable

from headrace.plan.nodes import Node, children, over

Rule = Callable[[Node], Node]


def bottom_up(node: Node, change: Rule) -> Node:
    """Apply a change to every step, the inputs of a step before the step."""
    return change(over(node, tuple(bottom_up(child, change) for child in children(node))))
