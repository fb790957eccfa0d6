"""Hypothesis strategies: random scripts over one stream of payments, and random arrivals for them.

Values are drawn where mistakes live: ties in time, rows exactly on the edges of windows and one microsecond beside them, times
before 1970, NULL, NaN, infinities, both zeros, the ends of the number ranges, empty groups, keys of all types.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from headrace.oracle.admission import Arrival, Batch
from headrace.plan.aggregates import FUNCTIONS, Aggregate, function
from headrace.plan.arrival import application_time, by_arrival
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Node, Project, Rejected, Scan, WindowAggregate, WindowReport
from headrace.plan.query import Emit, Query, Script
from headrace.plan.schema import Schema
from headrace.plan.stream import Bound, FileSource, FrameSource, Stream, Unique
from headrace.plan.time import SECOND
from headrace.plan.windows import (
    ONCE,
    DeltaWindow,
    EveryField,
    EveryInstant,
    EveryRows,
    EveryTime,
    FieldWindow,
    LookedAt,
    OnClose,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SpanWindow,
    Trigger,
    UnboundedWindow,
    UntilWindow,
    Window,
)
from headrace.testing.rows import Row, from_micros

PAYMENTS = Schema.of(
    at="TIMESTAMP", card="STRING", shop="INT", amount="DOUBLE", price="DECIMAL(10, 2)", qty="BIGINT", ok="BOOLEAN", day="DATE",
    weight="FLOAT",
)  # fmt: skip
NUMBERS = ("shop", "amount", "price", "qty", "weight", "amount * 2", "shop + 1", "CAST(qty AS DOUBLE)")
ANYTHING = (*NUMBERS, "card", "ok", "day", "at", "UPPER(card)")
PREDICATES = ("ok", "amount > 0", "shop IS NOT NULL", "card = 'a'", "qty >= 0 OR price < 1", "amount <> 0")
KEYS = ((), ("card",), ("shop",), ("card", "shop"), ("amount",), ("UPPER(card)",), ("ok",), ("day",), ("price",), ("weight",))
PARTITIONED = ((), ("card",), ("shop",), ("amount",))
PROMISE = "!"  # the card of a row that is punctuation
PUNCTUATION = (
    None,
    None,
    None,
    Expr.of(f"CASE WHEN card = '{PROMISE}' THEN at END"),
    Expr.of(f"CASE WHEN card = '{PROMISE}' THEN qty END"),
)
GRID = (0, 1, 2, 5, 10, 30)  # seconds: times, windows, delays all lie on it, so that edges are hit

big = st.sampled_from((0, 1, -1, 2**63 - 1, -(2**63), 2**62, 10**18)) | st.integers(-3, 30)
doubles = st.sampled_from(
    (0.0, -0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 1e16, -1e16, 1e308, -1e308, 5e-324, -5e-324, 1.7976931348623157e308, 2.5, float("nan"),
     float("inf"), float("-inf"))
) | st.floats(-100, 100)  # fmt: skip
floats = st.sampled_from((0.0, -0.0, 1.5, -2.25, 3.4028234663852886e38, float("nan"), float("inf"))) | st.floats(
    -10, 10, width=32
)
decimals = st.sampled_from(("0", "0.01", "-0.01", "99999999.99", "-99999999.99", "1.10", "2.50")).map(Decimal)


@dataclass(frozen=True, slots=True)
class Case:
    """A script and its input."""

    script: Script
    batches: tuple[Batch, ...]


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """A stream of payments with some of the clauses on disorder."""
    delay = draw(st.sampled_from((0, 0, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, Bound.UNBOUNDED, None)))
    many = draw(st.booleans())
    keep = draw(st.sampled_from((None, None, 2 * SECOND, 10 * SECOND)))
    timestamp = draw(st.sampled_from((Expr.of("at"),) * 6 + (Expr.of("qty"), Expr.of("day"), None)))
    punctuation = draw(st.sampled_from(PUNCTUATION)) if timestamp is not None and delay is not Bound.UNBOUNDED else None
    if delay is None and keep is None and punctuation is None:
        keep = 5 * SECOND
    unique = draw(st.sampled_from((None, None, None, Unique((Expr.of("card"),), 2 * SECOND), Unique((Expr.of("amount"),), 0))))
    return Stream(
        "payments",
        FrameSource("payments", ("p", "o")) if many else FileSource("payments.csv"),
        PAYMENTS,
        timestamp=timestamp,
        timestamp_unit=draw(st.sampled_from((SECOND, 1_000, 1))),
        delay=delay,
        punctuation=punctuation,
        idle=draw(st.sampled_from((None, None, SECOND, 5 * SECOND))),
        ahead=draw(st.sampled_from((None, None, 0, 5 * SECOND))),
        end_after=draw(st.sampled_from((None, None, None, 10 * SECOND))),
        keep=keep,
        unique=unique,
    )


def windows() -> st.SearchStrategy[Window]:
    """Any window evaluated for every event."""
    sizes = st.sampled_from((1, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 365 * 86_400 * SECOND))
    lags = st.sampled_from((0, 0, 1, SECOND, 5 * SECOND))
    by = st.sampled_from(PARTITIONED).map(_exprs)
    return st.one_of(
        st.builds(RangeWindow, sizes, lags, st.booleans()),
        st.builds(RowsWindow, st.integers(1, 5), by),
        st.builds(UnboundedWindow, st.booleans()),
    )


@st.composite
def aggregates(draw: st.DrawFn, name: str, columns: Sequence[str] = ANYTHING, numbers: Sequence[str] = NUMBERS) -> Aggregate:
    """Any aggregate call that its argument allows."""
    function = draw(st.sampled_from(list(FUNCTIONS.values())))
    condition = draw(st.sampled_from((None, None, None, *PREDICATES)))
    where = Expr.of(condition) if condition else None
    if function.name == "COUNT" and draw(st.booleans()):
        return Aggregate(name, function, None, where)
    argument = draw(st.sampled_from(list(columns if function.takes is None else numbers)))
    return Aggregate(name, function, Expr.of(argument), where)


@st.composite
def window_aggregates(draw: st.DrawFn, below: Node, prefix: str = "a") -> WindowAggregate:
    """A window over any input that has the columns of a payment."""
    calls = tuple(draw(aggregates(f"{prefix}{i}")) for i in range(draw(st.integers(1, 4))))
    where = draw(st.sampled_from((None, None, *PREDICATES)))
    keys = _exprs(draw(st.sampled_from(KEYS)))
    return WindowAggregate(below, draw(windows()), keys, calls, Expr.of(where) if where else None)


@st.composite
def window_reports(draw: st.DrawFn, below: Node) -> WindowReport:
    """A window that is looked at by the clock: tumbling, hopping or jumping, also with looks between the times of the grid."""
    seconds = st.sampled_from((1, 2, 3, 5, 10))
    window = RangeWindow(draw(seconds) * SECOND + draw(st.sampled_from((0, 0, 1))), draw(st.sampled_from((0, 0, 0, 1, SECOND))))
    trigger = EveryTime(draw(seconds) * SECOND, draw(st.sampled_from((0, 0, 0, 1, -SECOND))))
    calls = tuple(draw(aggregates(f"r{i}")) for i in range(draw(st.integers(0, 4))))
    where = draw(st.sampled_from((None, None, *PREDICATES)))
    keys = tuple((e.as_column or f"_key{i}", e) for i, e in enumerate(_exprs(draw(st.sampled_from(KEYS)))))
    return WindowReport(below, window, trigger, keys, calls, Expr.of(where) if where else None)


FIELDS = ("shop", "qty", "CASE WHEN ABS(amount) < 1000 THEN amount END")
DELTAS = ("ABS(shop - first.shop)", "amount - first.amount", "ABS(amount - first.amount) + ABS(weight - first.weight)")


@st.composite
def policies(draw: st.DrawFn, by: tuple[Expr, ...], clock: Expr | None) -> tuple[LookedAt, Trigger]:
    """What is in a window and when it is looked at: all pairs of time, rows and fields, and the windows that stand alone.

    Rows that stand in the order of arrival have application time as a field, `clock`: then these are the nine pairs of 002.
    """
    seconds, few = st.sampled_from((1, 2, 3, 5)), st.integers(1, 4)
    on, unit = (Expr.of(draw(st.sampled_from(FIELDS))), 1) if clock is None else (clock, SECOND)
    match draw(st.integers(0, 10)):
        case 3:
            return UntilWindow(draw(st.sampled_from((3, 8))) * SECOND), EveryTime(draw(seconds) * SECOND, 3 * SECOND)
        case 0:
            return SessionWindow(draw(seconds) * SECOND), OnClose()
        case 1:
            return DeltaWindow(draw(few), Expr.of(draw(st.sampled_from(DELTAS)))), OnClose()
        case 2:
            start = draw(st.sampled_from((-1, 0, 3))) * SECOND
            stop = start + draw(seconds) * SECOND
            return SpanWindow(start, stop), EveryTime(ONCE, stop)
    lag = draw(st.sampled_from((0, 0, 0, SECOND)))
    sizes: list[LookedAt] = [
        RangeWindow(draw(seconds) * SECOND, lag), RowsWindow(draw(few), by), UnboundedWindow(), SpanWindow(2 * SECOND),
        FieldWindow(draw(few) * unit, on),
    ]  # fmt: skip
    batch = draw(st.sampled_from((None, Expr.of("ok"))))
    slides: list[Trigger] = [
        EveryTime(draw(seconds) * SECOND, draw(st.sampled_from((0, 0, -1, 1))), draw(st.booleans())), EveryRows(draw(few), by),
        EveryField(draw(few) * unit, on), EveryInstant(batch=batch), EveryInstant(draw(few), by, batch),
    ]  # fmt: skip
    window, trigger = draw(st.sampled_from(sizes)), draw(st.sampled_from(slides))
    if isinstance(trigger, EveryTime) and not isinstance(window, RangeWindow):
        trigger = replace(trigger, every=max(trigger.every, 2 * SECOND))  # a window that never empties is looked at ever on
    return window, trigger


@st.composite
def policy_reports(draw: st.DrawFn, below: Node, clock: Expr | None = None) -> WindowReport:
    """A window of any measure, looked at by any trigger, partitioned or not."""
    by = _exprs(draw(st.sampled_from(((), ("card",), ("shop",)))))
    window, trigger = draw(policies(by, clock))
    more = _exprs(draw(st.sampled_from(((), (), ("card",), ("shop",), ("ok",)))))
    keys = tuple((e.as_column or f"_key{i}", e) for i, e in enumerate(dict.fromkeys((*by, *more))))
    calls = tuple(draw(aggregates(f"r{i}")) for i in range(draw(st.integers(1, 3))))
    where = draw(st.sampled_from((None, None, *PREDICATES)))
    change = isinstance(window, RangeWindow) and isinstance(trigger, EveryTime) and draw(st.booleans())
    return WindowReport(below, window, trigger, keys, calls, Expr.of(where) if where else None, change)


@st.composite
def policy_cases(draw: st.DrawFn, most_rows: int = 20) -> Case:
    """Queries over windows of all policies, with disorder, also by arrival, and queries over their results."""
    stream = replace(draw(streams()), keep=None, delay=draw(st.sampled_from((0, SECOND, 3 * SECOND))))
    scan = Scan(stream)
    queries = []
    for number in range(draw(st.integers(1, 2))):
        below: Node = scan if draw(st.integers(0, 3)) else Filter(scan, Expr.of(draw(st.sampled_from(PREDICATES))))
        node: Node
        if draw(st.integers(0, 3)) == 0:
            clock = application_time(stream) if stream.timestamp == Expr.of("at") else None
            node = draw(policy_reports(by_arrival(below), clock))
        else:
            node = draw(policy_reports(below))
        if draw(st.integers(0, 4)) == 0:
            node = WindowAggregate(node, RangeWindow(3 * SECOND), (), (Aggregate("rows", function("COUNT"), None),))
        queries.append(Query(f"q{number}", node, draw(st.sampled_from(list(Emit)))))
    return Case(Script(tuple(queries), (stream,)), tuple(draw(arrivals(stream, most_rows))))


SUMS = ("COUNT", "SUM", "AVG", "VARIANCE", "STDDEV_POP")


@st.composite
def shared_looks(draw: st.DrawFn, most_rows: int = 24) -> Case:
    """Windows of several lengths that the clock looks at together, which share slices, and others beside them."""
    stream = replace(draw(streams()), keep=None, delay=draw(st.sampled_from((0, SECOND, 3 * SECOND, 10 * SECOND))))
    scan: Node = Scan(stream)
    below = scan if draw(st.integers(0, 3)) else Filter(scan, Expr.of(draw(st.sampled_from(PREDICATES))))
    every = draw(st.sampled_from((1, 2, 3))) * SECOND
    trigger = EveryTime(every, draw(st.sampled_from((0, 0, 1, -SECOND))), draw(st.booleans()))
    keys = tuple((e.as_column or f"_key{i}", e) for i, e in enumerate(_exprs(draw(st.sampled_from(KEYS)))))
    text = draw(st.sampled_from((None, None, *PREDICATES)))
    where, emits = Expr.of(text) if text else None, (draw(st.sampled_from(list(Emit))), Emit.CHANGES)
    queries = []
    for number, length in enumerate(draw(st.lists(st.integers(1, 12), min_size=4, max_size=6, unique=True))):
        window = RangeWindow(length * every, every * (draw(st.integers(0, 14)) == 14))
        summed = aggregates("r").filter(lambda call: call.function.name in SUMS)
        calls = tuple(replace(draw(summed), name=f"r{i}") for i in range(draw(st.integers(0, 3))))
        if draw(st.integers(0, 14)) == 14:
            calls = (*calls, draw(aggregates("other")))
        change = draw(st.integers(0, 14)) == 14
        node: Node = WindowReport(below, window, trigger, keys, calls, where, change)
        if draw(st.integers(0, 9)) == 0:
            node = WindowAggregate(node, RangeWindow(3 * SECOND), (), (Aggregate("rows", function("COUNT"), None),))
        queries.append(Query(f"q{number}", node, emits[draw(st.integers(0, 9)) == 9]))
        if draw(st.integers(0, 5)) == 0:  # an event looks at the same window: it keeps tallies of its own
            every_event = WindowAggregate(
                below, window, tuple(e for _, e in keys), calls or (Aggregate("n", function("COUNT"), None),)
            )
            queries.append(Query(f"e{number}", every_event, draw(st.sampled_from(list(Emit)))))
    return Case(Script(tuple(queries), (stream,)), tuple(draw(arrivals(stream, most_rows))))


@st.composite
def report_nodes(draw: st.DrawFn, stream: Stream) -> Node:
    """A plan with a report: filters below and above it, a projection."""
    node: Node = Scan(stream)
    if draw(st.integers(0, 3)) == 0:
        node = Filter(node, Expr.of(draw(st.sampled_from(PREDICATES))))
    report = draw(window_reports(node))
    counted = [a.name for a in report.aggregates if a.function.name.startswith("COUNT")]
    several = bool(counted) and draw(st.booleans())
    above: Node = Filter(report, Expr.of(f"{counted[0]} > 1")) if several else report
    if draw(st.booleans()):
        above = Project(above, tuple((n, Expr.column(n)) for n in reversed(report.schema.names)))
    return above


@st.composite
def nodes(draw: st.DrawFn, stream: Stream, nested: bool = True) -> Node:
    """A plan: filters, windows, windows over windows where `nested`, projections."""
    node: Node = Scan(stream)
    if draw(st.integers(0, 3)) == 0:
        node = Filter(node, Expr.of(draw(st.sampled_from(PREDICATES))))
    depth = draw(st.sampled_from((0, 1, 1, 1, 1, 2 if nested else 1)))
    for level in range(depth):
        node = draw(window_aggregates(node, "ab"[level]))
        if draw(st.integers(0, 3)) == 0:
            counted = [a.name for a in node.aggregates if a.function.name.startswith("COUNT")] if depth else []
            node = Filter(node, Expr.of(f"{counted[0]} > 1" if counted else draw(st.sampled_from(PREDICATES))))
    if draw(st.booleans()):
        extra = tuple(name for name in node.schema.names if not PAYMENTS.has(name))
        names = ("card", "at", *extra)
        node = Project(node, (*((n, Expr.column(n)) for n in names), ("twice", Expr.of("shop + 1"))))
    return node


@st.composite
def scripts(draw: st.DrawFn, stream: Stream | None = None, most: int = 3, nested: bool = True) -> Script:
    """One to `most` queries over one stream, that run together."""
    stream = draw(streams()) if stream is None else stream
    queries = []
    for number in range(draw(st.integers(1, most))):
        node = draw(report_nodes(stream)) if draw(st.integers(0, 3)) == 0 else draw(nodes(stream, nested))
        levels = list(Emit) if stream.delay is not Bound.UNBOUNDED else [Emit.CHANGES]
        queries.append(Query(f"q{number}", node, draw(st.sampled_from(levels))))
    if draw(st.integers(0, 4)) == 0:
        queries.append(Query("lost", Filter(Late(stream), Expr.of("card IS NOT NULL"))))
        queries.append(Query("refused", Rejected(stream)))
    return Script(tuple(queries), (stream,))


@st.composite
def rows(draw: st.DrawFn, ts: int | None) -> Row:
    """A payment at a time; None is NULL."""

    def maybe(values: st.SearchStrategy[Any]) -> Any:
        return draw(st.none() | values if draw(st.integers(0, 3)) == 0 else values)

    return (
        None if ts is None else from_micros(ts),
        maybe(st.sampled_from(("a", "A", "b", "", "é", "z\U0001f600", "z\uffee"))),
        maybe(st.sampled_from((0, 1, 2, -1, 2**31 - 2, -(2**31)))),
        maybe(doubles),
        maybe(decimals),
        maybe(big),
        maybe(st.booleans()),
        maybe(st.dates(dt.date(1969, 12, 25), dt.date(1970, 1, 7))),
        maybe(floats),
    )


@st.composite
def promises(draw: st.DrawFn, stream: Stream, upto: int) -> Row:
    """A row that is punctuation. What it does not need for that is NULL, or anything."""
    at, _, *rest = draw(rows(None))
    if stream.punctuation == PUNCTUATION[-1]:
        return (at, PROMISE, *rest[:3], upto // stream.timestamp_unit, *rest[4:])
    return (from_micros(upto), PROMISE, *rest)


@st.composite
def arrivals(draw: st.DrawFn, stream: Stream, most: int = 24) -> list[Batch]:
    """Batches of arrivals: times wander forward on a grid with steps back within and sometimes beyond the bound.

    A stream with punctuation promises what it may keep or not, in any order, often or hardly ever, and not in all partitions.
    """
    base = draw(st.sampled_from((0, 1_700_000_000 * SECOND, -5 * SECOND, -(10**15))))
    partitions = 1 if stream.single_partition else draw(st.integers(1, 3))
    now = clock = base
    batches: list[Batch] = []
    promised = draw(st.sampled_from((1, 3, 9)))  # out of ten
    silent = draw(st.integers(0, 2 * partitions))
    left = draw(st.integers(0, 2)) if draw(st.integers(0, 9)) == 9 else draw(st.integers(most // 4, most))
    while left > 0 or (batches and draw(st.integers(0, 3)) == 0 and len(batches) < most):
        now += draw(st.sampled_from(GRID)) * SECOND
        size = min(left, draw(st.sampled_from((1, 0, 0, 1, 2, 3, 5, 8))))
        left -= size
        batch = []
        for _ in range(size):
            clock += draw(st.sampled_from((0, 0, 1, 1, 2, 5))) * SECOND
            back = draw(st.sampled_from((0, 0, 0, 1, 2, 5, 10))) * SECOND
            nudge = draw(st.sampled_from((0, 0, 0, 1, -1)))
            ts: int | None = clock - back + nudge
            match draw(st.integers(0, 39)):
                case 0:
                    ts = None
                case 1:
                    ts = draw(st.sampled_from((2**60, -(2**61))))  # outside the calendar
                case 2:
                    ts = clock + 1_000 * SECOND  # far ahead
            partition = draw(st.integers(0, partitions - 1))
            batch.append(Arrival(draw(rows(ts)), partition))
            if stream.punctuation is not None and partition != silent and draw(st.integers(0, 9)) < promised:
                upto = clock - draw(st.sampled_from((0, 1, 2, 5, 10, -5, -1_000))) * SECOND + nudge
                upto = 2**60 if draw(st.integers(0, 29)) == 0 else upto  # outside the calendar
                batch.append(Arrival(draw(promises(stream, upto)), partition))
        batches.append(Batch(now, {stream.name: batch}))
    return batches


@st.composite
def cases(draw: st.DrawFn, most_queries: int = 3, most_rows: int = 24, nested: bool = True) -> Case:
    """A script with arrivals for its stream."""
    stream = draw(streams())
    script = draw(scripts(stream, most_queries, nested))
    return Case(script, tuple(draw(arrivals(stream, most_rows))))


def _exprs(texts: Sequence[str]) -> tuple[Expr, ...]:
    """Expressions of their texts."""
    return tuple(map(Expr.of, texts))
