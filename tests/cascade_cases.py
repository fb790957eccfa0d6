"""Random queries over the results of queries: aggregates of aggregates, looks at looks, merges of results."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Merge, Node, Project, Scan
from headrace.plan.query import Emit, Query, Script
from headrace.plan.stream import Stream
from headrace.plan.time import SECOND
from headrace.stages.lower import lower
from headrace.testing.strategies import (
    PAYMENTS,
    PREDICATES,
    Case,
    arrivals,
    policy_reports,
    sampled,
    streams,
    window_aggregates,
    window_reports,
)


@st.composite
def steps(draw: st.DrawFn, below: Node, level: int) -> Node:
    """A step over one with the columns of a payment, with those columns again where more is to come."""
    node: Node = draw(window_aggregates(below, f"l{level}_"))
    counted = [a.name for a in node.aggregates if a.function.name.startswith("COUNT")]  # type: ignore[union-attr]
    if counted and draw(st.booleans()):
        node = Filter(node, Expr.of(f"{counted[0]} > 1"))
    if counted and draw(st.booleans()):
        items = ((n, Expr.of(f"{counted[0]} * 2") if n == "qty" else Expr.column(n)) for n in PAYMENTS.names)
        return Project(node, tuple(items))
    return Project(node, tuple((n, Expr.column(n)) for n in PAYMENTS.names))


@st.composite
def cascades(draw: st.DrawFn) -> Case:
    """Two or three levels, sharing what is below, at any level of EMIT."""
    stream: Stream = replace(draw(streams()), delay=draw(st.sampled_from((5 * SECOND, 3 * SECOND, 5 * SECOND, 0))))
    first = draw(steps(Scan(stream), 1))
    queries = []
    for number in range(draw(st.integers(1, 2))):
        below = first
        match draw(st.integers(0, 3)):
            case 0:
                below = draw(steps(first, 2))
            case 1:
                below = Merge((first, Filter(Scan(stream), Expr.of(draw(st.sampled_from(PREDICATES))))))
        kind = draw(st.sampled_from((window_aggregates, window_reports, policy_reports)))
        if kind is policy_reports and stream.keep is not None:
            kind = window_reports
        queries.append(Query(f"q{number}", draw(kind(below)), draw(st.sampled_from(list(Emit)))))
    return Case(Script(tuple(queries), (stream,)), tuple(draw(arrivals(stream, 16))))


def a_case(seed: int) -> Case:
    case = sampled(cascades(), seed)
    lower(case.script)  # FIRST over ROWS whose partitions are no groups, KEEP that cannot end partitions: refused
    return case
