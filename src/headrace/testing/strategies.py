"""Hypothesis strategies: random scripts over one stream of payments, and random arrivals for them.

Values are drawn where mistakes live: ties in time, rows exactly on the edges of windows and one microsecond beside them, times
before 1970, NULL, NaN, infinities, both zeros, the ends of the number ranges, empty groups, keys of all types.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.control import BuildContext
from hypothesis.errors import StopTest, UnsatisfiedAssumption
from hypothesis.internal.conjecture.data import ConjectureData

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import Row, from_micros
from headrace.plan.aggregates import FUNCTIONS, Aggregate, Laws
from headrace.plan.aggregates.counts import COUNT, bigint
from headrace.plan.aggregates.function import Parameter
from headrace.plan.arrival import application_time, by_arrival
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Node, Project, Rejected, Scan, WindowAggregate, WindowReport
from headrace.plan.query import Emit, Query, Script
from headrace.plan.schema import Schema
from headrace.plan.stream import Bound, FileSource, FrameSource, Stream, Unique
from headrace.plan.time import SECOND
from headrace.plan.triggers import ONCE, EveryField, EveryInstant, EveryRows, EveryTime, OnClose, Trigger
from headrace.plan.windows import (
    DeltaWindow,
    FieldWindow,
    LookedAt,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SpanWindow,
    UnboundedWindow,
    UntilWindow,
    Window,
)

T = TypeVar("T")

PAYMENTS = Schema.of(
    at="TIMESTAMP", card="STRING", shop="INT", amount="DOUBLE", price="DECIMAL(10, 2)", qty="BIGINT", ok="BOOLEAN", day="DATE",
    weight="FLOAT",
)  # fmt: skip
NUMBERS = ("shop", "amount", "price", "qty", "weight", "amount * 2", "shop + 1", "CAST(qty AS DOUBLE)")
ANYTHING = (*NUMBERS, "card", "ok", "day", "at", "UPPER(card)")
PREDICATES = ("ok", "amount > 0", "shop IS NOT NULL", "card = 'a'", "qty >= 0 OR price < 1", "amount <> 0")
KEYS = (
    *(((), ("card",), ("ok",)) * 4), ("shop",), ("UPPER(card)",), ("card", "shop"), ("amount",), ("day",), ("price",),
    ("weight",),
)  # fmt: skip
PARTITIONED = ((), ("card",), ("card",), ("shop",), ("amount",))
PROMISE = "!"  # the card of a row that is punctuation
PUNCTUATION = (None, None, None, *(Expr.of(f"CASE WHEN card = '{PROMISE}' THEN {column} END") for column in ("at", "qty")))
DELAYS = (5 * SECOND, 10 * SECOND, 3 * SECOND, 10 * SECOND) * 4 + (0,)
GRID = (0, 1, 2, 5, 10, 30)  # seconds: times, windows, delays all lie on it, so that edges are hit

BIG = (0, 1, -1, 2**63 - 1, -(2**63), 2**62, 10**18)
DOUBLES = (
    0.0, -0.0, 1.0, -1.0, 0.1, 0.2, 0.3, 1e16, -1e16, 1e308, -1e308, 5e-324, -5e-324, 1.7976931348623157e308, 2.5, float("nan"),
    float("inf"), float("-inf"),
)  # fmt: skip
FLOATS = (0.0, -0.0, 1.5, -2.25, 3.4028234663852886e38, float("nan"), float("inf"))
DECIMALS = tuple(map(Decimal, ("0", "0.01", "-0.01", "99999999.99", "-99999999.99", "1.10", "2.50")))


def sampled(strategy: st.SearchStrategy[T], seed: int) -> T:
    """What a strategy gives for a seed, all choices being equally likely.

    Hypothesis itself draws small examples first and then varies what it knows: of a few dozen cases hardly one has many rows.
    """
    data = ConjectureData(random=Random(seed))
    try:
        with BuildContext(data, is_final=False, wrapped_test=sampled):
            return data.draw(strategy)
    except StopTest as nothing:  # a filter that let nothing through
        raise UnsatisfiedAssumption(f"seed {seed} gives nothing") from nothing


@dataclass(frozen=True, slots=True)
class Case:
    """A script and its input."""

    script: Script
    batches: tuple[Batch, ...]


def seldom(one_in: int) -> st.SearchStrategy[bool]:
    return st.sampled_from((False,) * (one_in - 1) + (True,))


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """A stream of payments with some of the clauses on disorder."""
    bounds = (5 * SECOND, 5 * SECOND, 10 * SECOND, 5 * SECOND, 2 * SECOND, 10 * SECOND, Bound.UNBOUNDED, None)
    delay = draw(st.sampled_from((*bounds, *bounds, 0)))
    many = draw(seldom(3))
    keep = draw(st.sampled_from((None, None, None, None, 10 * SECOND, 2 * SECOND)))
    timestamp = draw(st.sampled_from((Expr.of("at"),) * 21 + (Expr.of("qty"), Expr.of("day"), None)))
    punctuation = draw(st.sampled_from(PUNCTUATION)) if timestamp is not None and delay is not Bound.UNBOUNDED else None
    if delay is None and keep is None and punctuation is None:
        keep = 5 * SECOND
    unique = draw(st.sampled_from((None,) * 8 + (Unique((Expr.of("card"),), 2 * SECOND), Unique((Expr.of("amount"),), 0))))
    return Stream(
        "payments",
        FrameSource("payments", ("p", "o")) if many else FileSource("payments.csv"),
        PAYMENTS,
        timestamp=timestamp,
        timestamp_unit=draw(st.sampled_from((SECOND, 1_000, 1))),
        delay=delay,
        punctuation=punctuation,
        idle=draw(st.sampled_from((None,) * 6 + (5 * SECOND, SECOND))),
        ahead=draw(st.sampled_from((None,) * 6 + (5 * SECOND, 0))),
        end_after=draw(st.sampled_from((None,) * 9 + (10 * SECOND,))),
        keep=keep,
        unique=unique,
    )


def windows() -> st.SearchStrategy[Window]:
    """Any window evaluated for every event."""
    sizes = st.sampled_from((5 * SECOND, 10 * SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 365 * 86_400 * SECOND, SECOND, 1))
    lags = st.sampled_from((0, 0, 0, 1, SECOND, 2 * SECOND))
    by = st.sampled_from(PARTITIONED).map(_exprs)
    return st.one_of(
        st.builds(RangeWindow, sizes, lags, st.booleans()),
        st.builds(RowsWindow, st.integers(1, 5), by),
        st.builds(UnboundedWindow, st.booleans()),
    )


def choices(parameter: Parameter, columns: Sequence[str], numbers: Sequence[str]) -> list[str]:
    """What a parameter of an aggregate takes, of these columns."""
    return list(parameter.examples or (columns if parameter.types is None else numbers))


@st.composite
def aggregates(draw: st.DrawFn, name: str, columns: Sequence[str] = ANYTHING, numbers: Sequence[str] = NUMBERS) -> Aggregate:
    """Any aggregate call that its argument allows."""
    function = draw(st.sampled_from((*FUNCTIONS.values(), *(COUNT,) * 6)))
    condition = draw(st.sampled_from((None,) * 12 + PREDICATES))
    where = Expr.of(condition) if condition else None
    if function.stars and draw(st.booleans()):
        return Aggregate(name, function, (), where)
    arguments = tuple(draw(st.sampled_from(choices(p, columns, numbers))) for p in function.takes)
    return Aggregate(name, function, _exprs(arguments), where)


@st.composite
def window_aggregates(draw: st.DrawFn, below: Node, prefix: str = "a") -> WindowAggregate:
    """A window over any input that has the columns of a payment."""
    calls = tuple(draw(aggregates(f"{prefix}{i}")) for i in range(draw(st.integers(1, 4))))
    where = draw(st.sampled_from((None,) * 10 + PREDICATES))
    keys = _exprs(draw(st.sampled_from(KEYS)))
    return WindowAggregate(below, draw(windows()), keys, calls, Expr.of(where) if where else None)


@st.composite
def window_reports(draw: st.DrawFn, below: Node) -> WindowReport:
    """A window that is looked at by the clock: tumbling, hopping or jumping, also with looks between the times of the grid."""
    seconds = st.sampled_from((1, 2, 3, 5, 10))
    window = RangeWindow(draw(seconds) * SECOND + draw(st.sampled_from((0, 0, 1))), draw(st.sampled_from((0, 0, 0, 1, SECOND))))
    trigger = EveryTime(draw(seconds) * SECOND, draw(st.sampled_from((0, 0, 0, 1, -SECOND))))
    calls = tuple(draw(aggregates(f"r{i}")) for i in range(draw(st.integers(0, 4))))
    where = draw(st.sampled_from((None,) * 10 + PREDICATES))
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
    where = draw(st.sampled_from((None,) * 10 + PREDICATES))
    change = isinstance(window, RangeWindow) and isinstance(trigger, EveryTime) and draw(st.booleans())
    return WindowReport(below, window, trigger, keys, calls, Expr.of(where) if where else None, change)


def _never_empties(node: Node) -> bool:
    """Whether a window is looked at by the clock that holds rows for ever."""
    assert isinstance(node, WindowReport)
    return isinstance(node.trigger, EveryTime) and not isinstance(node.window, RangeWindow)


@st.composite
def policy_cases(draw: st.DrawFn, most_rows: int = 26) -> Case:
    """Queries over windows of all policies, with disorder, also by arrival, and queries over their results."""
    stream = replace(draw(streams()), keep=None, delay=draw(st.sampled_from(DELAYS)))
    scan = Scan(stream)
    queries = []
    for number in range(draw(st.integers(1, 2))):
        below: Node = Filter(scan, Expr.of(draw(st.sampled_from(PREDICATES)))) if draw(seldom(6)) else scan
        node: Node
        if draw(seldom(8)):
            clock = application_time(stream) if stream.timestamp == Expr.of("at") else None
            node = draw(policy_reports(by_arrival(below), clock))
        else:
            node = draw(policy_reports(below))
        if stream.timestamp == Expr.of("day") and _never_empties(node):
            raise UnsatisfiedAssumption("a look every few seconds, for weeks")
        if draw(st.integers(0, 4)) == 0:
            node = WindowAggregate(node, RangeWindow(3 * SECOND), (), (Aggregate("rows", COUNT),))
        queries.append(Query(f"q{number}", node, draw(st.sampled_from(list(Emit)))))
    return Case(Script(tuple(queries), (stream,)), tuple(draw(arrivals(stream, most_rows))))


@st.composite
def shared_looks(draw: st.DrawFn, most_rows: int = 24) -> Case:
    """Windows of several lengths that the clock looks at together, which share slices, and others beside them."""
    stream = replace(draw(streams()), keep=None, delay=draw(st.sampled_from(DELAYS)))
    scan: Node = Scan(stream)
    below = scan if draw(st.integers(0, 3)) else Filter(scan, Expr.of(draw(st.sampled_from(PREDICATES))))
    every = draw(st.sampled_from((1, 2, 3))) * SECOND
    trigger = EveryTime(every, draw(st.sampled_from((0, 0, 1, -SECOND))), draw(st.booleans()))
    keys = tuple((e.as_column or f"_key{i}", e) for i, e in enumerate(_exprs(draw(st.sampled_from(KEYS)))))
    text = draw(st.sampled_from((None,) * 10 + PREDICATES))
    where, emits = Expr.of(text) if text else None, (draw(st.sampled_from(list(Emit))), Emit.CHANGES)
    queries = []
    for number, length in enumerate(draw(st.lists(st.integers(1, 12), min_size=4, max_size=6, unique=True))):
        window = RangeWindow(length * every, every * (draw(st.integers(0, 14)) == 14))
        summed = aggregates("r").filter(lambda call: call.function.laws is Laws.ADDITIVE)
        calls = tuple(replace(draw(summed), name=f"r{i}") for i in range(draw(st.integers(0, 3))))
        if draw(st.integers(0, 14)) == 14:
            calls = (*calls, draw(aggregates("other")))
        change = draw(st.integers(0, 14)) == 14
        node: Node = WindowReport(below, window, trigger, keys, calls, where, change)
        if draw(st.integers(0, 9)) == 0:
            node = WindowAggregate(node, RangeWindow(3 * SECOND), (), (Aggregate("rows", COUNT),))
        queries.append(Query(f"q{number}", node, emits[draw(st.integers(0, 9)) == 9]))
        if draw(st.integers(0, 5)) == 0:  # an event looks at the same window: it keeps tallies of its own
            every_event = WindowAggregate(below, window, tuple(e for _, e in keys), calls or (Aggregate("n", COUNT),))
            queries.append(Query(f"e{number}", every_event, draw(st.sampled_from(list(Emit)))))
    return Case(Script(tuple(queries), (stream,)), tuple(draw(arrivals(stream, most_rows))))


@st.composite
def report_nodes(draw: st.DrawFn, stream: Stream) -> Node:
    """A plan with a report: filters below and above it, a projection."""
    node: Node = Scan(stream)
    if draw(st.integers(0, 3)) == 0:
        node = Filter(node, Expr.of(draw(st.sampled_from(PREDICATES))))
    report = draw(window_reports(node))
    counted = [a.name for a in report.aggregates if a.function.returns is bigint]
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
    depth = draw(st.sampled_from((1, 1, 1, 1, 2 if nested else 1) * 2 + (0,)))
    for level in range(depth):
        node = draw(window_aggregates(node, "ab"[level]))
        if draw(st.integers(0, 3)) == 0:
            counted = [a.name for a in node.aggregates if a.function.returns is bigint] if depth else []
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


CARDS = (*("a",) * 7, "b", "b", "A", "", "é", "z\U0001f600", "z\uffee")
SHOPS = (1, 1, 1, 0, 2, -1, 2**31 - 2, -(2**31))


def a_row(rng: Random, ts: int | None) -> Row:
    """A payment at a time; None is NULL. Keys are few, so that rows of one key meet; one NaN, and a sum no longer changes."""
    wild = one_in(rng, 4)

    def maybe(*values: Any) -> Any:
        return None if one_in(rng, 10) else rng.choice(values)

    return (
        None if ts is None else from_micros(ts),
        maybe(*CARDS),
        maybe(*SHOPS),
        maybe(1.0, 2.5, 0.1, 4.25, -3.0, rng.uniform(-100, 100), rng.choice(DOUBLES) if wild else 0.5),
        maybe(*DECIMALS),
        maybe(rng.choice(BIG), rng.randint(-3, 30), rng.randint(-3, 30)),
        maybe(True, True, False),
        maybe(dt.date(1969, 12, 25) + dt.timedelta(days=rng.randint(0, 13))),
        maybe(1.5, 0.0, rng.choice(FLOATS) if wild else 7.5, rng.randint(-40, 40) / 4),
    )


def a_promise(rng: Random, stream: Stream, upto: int) -> Row:
    """A row that is punctuation. What it does not need for that is NULL, or anything."""
    at, _, *rest = a_row(rng, None)
    if stream.punctuation == PUNCTUATION[-1]:
        return (at, PROMISE, *rest[:3], upto // stream.timestamp_unit, *rest[4:])
    return (from_micros(upto), PROMISE, *rest)


def one_in(rng: Random, many: int) -> bool:
    """Whether something happens that does so once in a while."""
    return rng.randrange(many) == 0


def arrivals(stream: Stream, most: int = 24) -> st.SearchStrategy[list[Batch]]:
    """Batches of arrivals, from a seed: hypothesis keeps what it draws small, and few rows reach little."""
    return st.integers(0, 2**64 - 1).map(lambda seed: seeded_arrivals(Random(seed), stream, most))


def seeded_arrivals(rng: Random, stream: Stream, most: int) -> list[Batch]:
    """Time wanders forward on a grid, and half of the rows come after newer ones, most of them within the bound.

    One case in eight is wild: times that are NULL, outside the calendar or far ahead, long silences, hardly any rows.
    A stream with punctuation promises what it may keep or not, in any order, often or hardly ever, and not in all partitions.
    """
    wild = one_in(rng, 8)
    bound = stream.delay if isinstance(stream.delay, int) and stream.delay else 5 * SECOND
    backs = [b * SECOND for b in GRID if 0 < b * SECOND <= bound] + [bound]
    partitions = 1 if stream.single_partition else rng.randint(1, 3)
    promised, silent = rng.choice((0.1, 0.3, 0.9)), rng.randint(0, 2 * partitions)
    now = clock = rng.choice((0,) * 8 + (-5 * SECOND, -5 * SECOND, 1_700_000_000 * SECOND, -(10**15)))
    left = rng.randint(0, 2) if wild and one_in(rng, 4) else rng.randint(2 * most // 3, most)
    batches: list[Batch] = []
    while left > 0 or (batches and one_in(rng, 4) and len(batches) < most):
        size = min(left, rng.choice((2, 3, 1, 2, 4, 0)))
        left -= size
        batch = []
        for _ in range(size):
            clock += rng.choice((1, 1, 0, 2, 0, 1)) * SECOND
            nudge = rng.choice((0, 0, 0, 1, -1))
            back = bound + SECOND if one_in(rng, 20) else rng.choice((0, rng.choice(backs), rng.choice(backs)))
            ts = _wild(rng, clock) if wild and one_in(rng, 8) else clock - back + nudge
            partition = rng.randrange(partitions)
            batch.append(Arrival(a_row(rng, ts), partition))
            if stream.punctuation is not None and partition != silent and rng.random() < promised:
                upto = clock - bound - rng.choice((0, 1, 2, 5, -2)) * SECOND + nudge
                upto = 2**60 if wild and one_in(rng, 30) else upto  # outside the calendar
                batch.append(Arrival(a_promise(rng, stream, upto), partition))
        now = max(now, clock) + rng.choice(GRID if wild else (1, 1, 0, 2)) * SECOND
        batches.append(Batch(now, {stream.name: batch}))
    return batches


def _wild(rng: Random, clock: int) -> int | None:
    """No time, one outside the calendar, or one far ahead."""
    return rng.choice((None, 2**60, -(2**61), clock + 1_000 * SECOND))


@st.composite
def cases(draw: st.DrawFn, most_queries: int = 3, most_rows: int = 24, nested: bool = True) -> Case:
    stream = draw(streams())
    script = draw(scripts(stream, most_queries, nested))
    return Case(script, tuple(draw(arrivals(stream, most_rows))))


def _exprs(texts: Sequence[str]) -> tuple[Expr, ...]:
    return tuple(map(Expr.of, texts))
