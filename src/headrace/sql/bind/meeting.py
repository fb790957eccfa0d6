"""Joins of windows that the clock looks at: `a [SIZE 1 HOUR] JOIN b [SIZE 1 HOUR]`.

At every look the windows of both sides are joined. A pair is told once, if there is a look at which both rows are in their
windows: the first look that is not before the later of them. That follows from the times of the two rows alone, so it is a
condition on pairs, and nobody has to wait for the look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.plan.arrival import application_time
from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, Project, base_streams
from headrace.sql.errors import Text
from headrace.sql.parse.syntax import From
from headrace.sql.parse.windows import SizeSpec

TIMES = ("_left_time", "_right_time")
HINT = "give both sides [SIZE .. EVERY ..] in application time with one EVERY, or windows such as [RANGE 5 MINUTES]"


@dataclass(frozen=True, slots=True)
class Meeting:
    """The sides with the times of their rows beside their columns, and which pairs are in both windows at one look."""

    nodes: tuple[Node, ...]
    predicate: Expr


def meeting(sides: Sequence[From], nodes: Sequence[Node], text: Text, *, outer: bool) -> Meeting | None:
    """The condition for two windows that are looked at together; None if every row looks at them."""
    specs = [side.window.spec if side.window else None for side in sides]
    if not any(isinstance(spec, SizeSpec) for spec in specs):
        return None
    for side, spec in zip(sides, specs, strict=True):
        at = side.window.span if side.window else side.span
        if not isinstance(spec, SizeSpec) or any(a.unit != "time" or a.system for a in (spec.size, spec.every)):
            raise text.error("windows that the clock looks at are joined with such windows only", at, hint=HINT)
        if spec.partition_by:
            raise text.error("a join has its partitions by ON", at, hint="leave PARTITIONED BY out")
    left, right = (spec for spec in specs if isinstance(spec, SizeSpec))
    if left.every.value != right.every.value:
        raise text.error("both windows must be looked at together", sides[1].span, hint=HINT)
    if outer:
        raise text.error("an outer join of windows that the clock looks at is not there yet", sides[1].span, hint=HINT)
    timed = tuple(_timed(node, name, side, text) for node, name, side in zip(nodes, TIMES, sides, strict=True))
    return Meeting(timed, _first_look(left, right))


def _timed(node: Node, name: str, side: From, text: Text) -> Node:
    streams = base_streams(node)
    with text.at(side.span):
        time = application_time(streams[0])
    if len(streams) > 1 or not all(node.schema.has(column) for column in time.columns):
        raise text.error(f"the time of these rows is not among their columns: {time}", side.span, hint="select it too")
    return Project(node, (*((n, Expr.column(n)) for n in node.schema.names), (name, time)))


def _first_look(left: SizeSpec, right: SizeSpec) -> Expr:
    """Both rows are in their windows at the first look that is not before either."""
    every = int(left.every.value)
    later = f"GREATEST({TIMES[0]}, {TIMES[1]})"
    look = f"({later} + ({every} - ({later} % {every} + {every}) % {every}) % {every})"
    inside = [
        f"{look} - {spec.lag + int(spec.size.value)} < {name} AND {name} <= {look} - {spec.lag}"
        for spec, name in zip((left, right), TIMES, strict=True)
    ]
    return Expr.of(" AND ".join(inside))
