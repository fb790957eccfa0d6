"""Streams that are merged, against the oracle: each with its own disorder, in any cut, with any buckets, restarted anywhere."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headrace.oracle.admission import Batch
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Merge, Node, Project, Scan
from headrace.plan.query import Emit, Query, Script
from headrace.plan.stream import Bound, Stream
from headrace.testing.conformance import Run
from headrace.testing.local import local_engine
from headrace.testing.reach import hold
from headrace.testing.strategies import PREDICATES, Case, arrivals, sampled, streams, window_aggregates, window_reports
from seeds import FIRST, agrees, examples


@st.composite
def branches(draw: st.DrawFn, stream: Stream) -> Node:
    """A stream as it is, filtered, or with a column computed anew."""
    node: Node = Scan(stream)
    if draw(st.booleans()):
        node = Filter(node, Expr.of(draw(st.sampled_from(PREDICATES))))
    if draw(st.integers(0, 3)) == 0:
        names = stream.schema.names
        node = Project(node, tuple((n, Expr.of("amount * 2") if n == "amount" else Expr.column(n)) for n in names))
    return node


@st.composite
def merges(draw: st.DrawFn) -> Case:
    """Two streams, one of them perhaps twice, merged below windows and reports."""
    first = replace(draw(streams()), unique=None)
    second = replace(draw(streams()), name="refunds", unique=None)
    inputs = [draw(branches(s)) for s in draw(st.permutations([first, second, *([first] if draw(st.booleans()) else [])]))]
    node = Merge(tuple(inputs))
    late = any(s.delay is Bound.UNBOUNDED for s in (first, second))
    queries = []
    for number in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(("window", "report", "window", "report", "window", "rows")))
        above = node if kind == "rows" else draw(window_aggregates(node) if kind == "window" else window_reports(node))
        queries.append(Query(f"q{number}", above, Emit.CHANGES if late else draw(st.sampled_from(list(Emit)))))
    parts = [draw(arrivals(s, 12)) for s in (first, second)]
    nothing = Batch(0, {})
    batches, now = [], 0
    for i in range(max(map(len, parts))):
        a, b = (p[i] if i < len(p) else nothing for p in parts)
        now = max(now, a.now, b.now) if i else max(a.now, b.now)
        batches.append(Batch(now, {**a.rows, **b.rows}))
    return Case(Script(tuple(queries), (first, second)), tuple(batches))


def a_case(seed: int) -> Case:
    case = sampled(merges(), seed)
    local_engine(case.script, 1, None)
    return case


def conforms(run: Run, seed: int) -> None:
    places = len(run.batches) + 1
    agrees(run, seed, (1, 3), (4,), restarts=sorted({seed % places, seed // 7 % places}))


def test_merged_streams_conform():
    hold(a_case, conforms, examples(10, 3), first=FIRST, tries=7)
