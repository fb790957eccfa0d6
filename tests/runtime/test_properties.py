"""The runtime against the oracle: random scripts and arrivals, at every EMIT level, however they are cut, split or restarted.

The default profile looks for about a minute; `HYPOTHESIS_PROFILE=deep` looks a hundred times longer.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace.errors import QueryError
from headrace.plan.aggregates import FUNCTIONS, Aggregate
from headrace.plan.expr import Expr
from headrace.plan.nodes import Scan, WindowAggregate
from headrace.plan.query import Emit, Query, Script
from headrace.plan.stream import FileSource, Stream
from headrace.plan.time import SECOND
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow
from headrace.testing.conformance import check_query
from headrace.testing.local import local_engine
from headrace.testing.strategies import PAYMENTS, Case, arrivals, scripts, streams

RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
DEEP = settings.default.max_examples > 1_000
WINDOWS = (
    RangeWindow(5 * SECOND), RangeWindow(5 * SECOND, 2 * SECOND), RowsWindow(3), RowsWindow(2, (Expr.of("card"),)),
    UnboundedWindow(), RangeWindow(5 * SECOND + 1, peers=True), UnboundedWindow(peers=True),
)  # fmt: skip
NUMBERS = ("amount", "price", "qty", "shop", "weight")


@st.composite
def cases(draw: st.DrawFn, most_queries: int = 3, most_rows: int = 24) -> Case:
    """What the runtime can run."""
    stream = draw(streams())
    script = draw(scripts(stream, most_queries, nested=False))
    try:
        local_engine(script, 1, None)
    except QueryError:
        assume(False)
    return Case(script, tuple(draw(arrivals(stream, most_rows))))


@st.composite
def places(draw: st.DrawFn, case: Case) -> list[int]:
    """Where to restart: in the deep profile everywhere."""
    most = len(case.batches)
    return list(range(most + 1)) if DEEP else sorted(draw(st.sets(st.integers(0, most), max_size=2)))


@settings(suppress_health_check=RELAXED)
@given(st.data())
def test_any_script_conforms(data):
    case = data.draw(cases())
    buckets = data.draw(st.sampled_from(((1,), (4,), (3, 7), (4, 1), (64,))))
    check_query(
        case.script, case.batches, local_engine, buckets=buckets, restarts=data.draw(places(case)), recuts=2 if DEEP else 1,
        seed=data.draw(st.integers(0, 1_000)),
    )  # fmt: skip


@settings(suppress_health_check=RELAXED, max_examples=max(6, settings.default.max_examples // 5))
@given(st.data())
def test_any_script_conforms_under_punctuation(data):
    """In order or not, lost, broken, or never there in one of the partitions; with DELAY and without."""
    stream = data.draw(streams().filter(lambda s: s.punctuation is not None))
    case = Case(data.draw(scripts(stream, 2)), tuple(data.draw(arrivals(stream, 24))))
    try:
        local_engine(case.script, 1, None)
    except QueryError:
        assume(False)
    check_query(case.script, case.batches, local_engine, buckets=(3,), restarts=data.draw(places(case)))


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(suppress_health_check=RELAXED, max_examples=max(6, settings.default.max_examples // 10))
@given(data=st.data())
def test_every_aggregate_at_every_level(window, data):
    """All functions over one window at all levels: they share a stage, its tables and its tallies."""
    delay = data.draw(st.sampled_from((0, SECOND, 5 * SECOND)))
    stream = Stream("payments", FileSource("x.csv"), PAYMENTS, timestamp=Expr.of("at"), delay=delay)
    column = data.draw(st.sampled_from(NUMBERS))
    keys = (Expr.of(data.draw(st.sampled_from(("card", "shop", "amount")))),) if data.draw(st.booleans()) else ()
    calls = tuple(Aggregate(f"a{i}", f, Expr.of(column)) for i, f in enumerate(FUNCTIONS.values()))
    node = WindowAggregate(Scan(stream), window, keys, calls)
    by = window.partition_by if isinstance(window, RowsWindow) else ()
    assume(set(by) <= set(keys))  # others are refused: tests/operators/test_rows_out_of_order.py
    case = Case(Script(tuple(Query(e.name, node, e) for e in Emit), (stream,)), tuple(data.draw(arrivals(stream, 30))))
    check_query(case.script, case.batches, local_engine, buckets=(3,), restarts=data.draw(places(case)))


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
