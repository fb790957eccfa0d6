"""The runtime against the oracle: random scripts and arrivals, at every EMIT level, however they are cut, split or restarted.

The default profile looks for about a minute; `HYPOTHESIS_PROFILE=deep` looks a hundred times longer.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st

from headrace.plan.aggregates import FUNCTIONS, Aggregate
from headrace.plan.expr import Expr
from headrace.plan.nodes import Scan, WindowAggregate
from headrace.plan.query import Emit, Query, Script
from headrace.plan.stream import Bound, FileSource, Stream
from headrace.plan.time import SECOND
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow
from headrace.testing.conformance import Run, check_query
from headrace.testing.local import local_engine
from headrace.testing.reach import hold
from headrace.testing.strategies import PAYMENTS, PUNCTUATION, Case, arrivals, choices, sampled, scripts, streams
from seeds import FIRST, agrees, examples

DEEP = settings.default.max_examples > 1_000
WINDOWS = (
    RangeWindow(5 * SECOND), RangeWindow(5 * SECOND, 2 * SECOND), RowsWindow(3), RowsWindow(2, (Expr.of("card"),)),
    UnboundedWindow(), RangeWindow(5 * SECOND + 1, peers=True), UnboundedWindow(peers=True),
)  # fmt: skip
NUMBERS = ("amount", "price", "qty", "shop", "weight")


def any_script(seed: int) -> Case:
    """What the runtime can run."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        stream = draw(streams())
        return Case(draw(scripts(stream, 3, nested=False)), tuple(draw(arrivals(stream, 24))))

    case = sampled(cases(), seed)
    local_engine(case.script, 1, None)
    return case


def promised(seed: int) -> Case:
    """Over a stream with punctuation."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        stream = replace(draw(streams()), punctuation=draw(st.sampled_from(PUNCTUATION[-2:])), timestamp=Expr.of("at"))
        assume(stream.delay is not Bound.UNBOUNDED)
        return Case(draw(scripts(stream, 2)), tuple(draw(arrivals(stream, 24))))

    case = sampled(cases(), seed)
    local_engine(case.script, 1, None)
    return case


def conforms(run: Run, seed: int) -> None:
    """With some number of buckets, restarted at two places, or everywhere in the deep profile."""
    places = len(run.batches) + 1
    restarts = range(places) if DEEP else sorted({seed % places, seed // 7 % places})
    agrees(run, seed, (4, 1), (1,), (4,), (3, 7), (64,), restarts=restarts, recuts=2 if DEEP else 1)


def test_any_script_conforms():
    hold(any_script, conforms, examples(9, 1), first=FIRST)


def test_any_script_conforms_under_punctuation():
    """In order or not, lost, broken, or never there in one of the partitions; with DELAY and without."""
    hold(promised, conforms, examples(6, 5), first=FIRST)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_every_aggregate_at_every_level(window):
    """All functions over one window at all levels: they share a stage, its tables and its tallies."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        delay = draw(st.sampled_from((5 * SECOND, 5 * SECOND, SECOND, 5 * SECOND, 0)))
        stream = Stream("payments", FileSource("x.csv"), PAYMENTS, timestamp=Expr.of("at"), delay=delay)
        keys = draw(st.sampled_from(((), (Expr.of("card"),), (Expr.of("shop"),), (Expr.of("amount"),))))
        assume(set(window.partition_by if isinstance(window, RowsWindow) else ()) <= set(keys))  # others are refused
        column = draw(st.sampled_from(NUMBERS))
        calls = tuple(
            Aggregate(f"a{i}", f, tuple(Expr.of(draw(st.sampled_from(choices(p, [column], [column])))) for p in f.takes))
            for i, f in enumerate(FUNCTIONS.values())
        )
        queries = tuple(Query(e.name, WindowAggregate(Scan(stream), window, keys, calls), e) for e in Emit)
        return Case(Script(queries, (stream,)), tuple(draw(arrivals(stream, 30))))

    hold(lambda seed: sampled(cases(), seed), conforms, examples(3, 10), first=FIRST)


def test_rows_at_the_frontier_still_see_the_oldest_microsecond_of_their_window():
    """With DELAY 0 a row is final at once, but rows of the same time still come, and need the window as it was."""
    from headrace.sql import parse_script
    from headrace.testing.tables import read_batches

    script = parse_script(
        "CREATE STREAM p (at TIMESTAMP, x INT) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 0;"
        "SELECT x, COUNT(*) AS n FROM p [RANGE 5 SECONDS] EMIT FINAL INTO q"
    )
    table = """
        | now | at       | x |
        | 1   | 0.000001 | 1 |
        | 1   | 5        | 2 |
        | 2   | 5        | 3 |
        """
    check_query(script, read_batches("p", script.streams[0].schema, table), local_engine)
