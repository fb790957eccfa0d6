"""How a rule walks a plan: inputs first, then the step itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headrace.plan.joins import Join
from headrace.plan.nodes import Filter, Merge, Node, Project, WindowAggregate, WindowReport
from headrace.plan.patterns import Pattern

Rule = Callable[[Node], Node]


def bottom_up(node: Node, change: Rule) -> Node:
    """Apply a change to every step, the inputs of a step before the step."""
    match node:
        case Filter() | Project() | WindowAggregate() | WindowReport():
            below = bottom_up(node.input, change)
            return change(node if below is node.input else replace(node, input=below))
        case Merge(inputs=inputs):
            changed = tuple(bottom_up(child, change) for child in inputs)
            return change(node if changed == inputs else Merge(changed))
        case Join(left=left, right=right):
            sides = bottom_up(left, change), bottom_up(right, change)
            same = sides[0] is left and sides[1] is right
            return change(node if same else replace(node, left=sides[0], right=sides[1]))
        case Pattern(places=places):
            inputs = tuple(bottom_up(p.input, change) for p in places)
            same = all(new is p.input for new, p in zip(inputs, places, strict=True))
            changed_places = tuple(replace(p, input=new) for new, p in zip(inputs, places, strict=True))
            return change(node if same else replace(node, places=changed_places))
    return change(node)
