"""How a rule walks a plan: inputs first, then the step itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.plan.nodes import Filter, Node, Project, WindowAggregate

Rule = Callable[[Node], Node]


def bottom_up(node: Node, change: Rule) -> Node:
    """Apply a change to every step, the inputs of a step before the step."""
    match node:
        case Filter() | Project() | WindowAggregate():
            below = bottom_up(node.input, change)
            return change(node if below is node.input else replace(node, input=below))
    return change(node)
