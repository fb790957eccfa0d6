"""Random joins: any kind, windows and keys, over two streams, one with itself, or one with a table."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from headrace.oracle.admission import Arrival, Batch
from headrace.plan.aggregates import Aggregate, function
from headrace.plan.expr import Expr
from headrace.plan.joins import Join, JoinKind
from headrace.plan.nodes import Filter, Node, Project, Scan, WindowAggregate
from headrace.plan.query import Emit, Query, Script
from headrace.plan.schema import Schema
from headrace.plan.stream import Bound, FileSource, Stream
from headrace.plan.time import SECOND
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow, Window
from headrace.testing.strategies import PREDICATES, Case, arrivals, seldom, streams

KEYS = (*(("shop",), ("card",), ("shop",)) * 3, ("ok",), ("card", "shop"), (), ("amount",), ("price",))
SHOPS = Stream("shops", FileSource("shops.csv"), Schema.of(id="BIGINT", city="STRING"), static=True)


def renamed(node: Node) -> Node:
    """The same rows under other names."""
    return Project(node, tuple((f"{n}_", Expr.column(n)) for n in node.schema.names))


@st.composite
def sides(draw: st.DrawFn, stream: Stream) -> Node:
    """A stream as it is, filtered, or with an aggregate beside its columns: a feed, which takes back what it said."""
    node: Node = Scan(stream)
    match draw(st.integers(0, 5)):
        case 0:
            node = Filter(node, Expr.of(draw(st.sampled_from(PREDICATES))))
        case 1 | 2:
            count = Aggregate("n", function("COUNT"))
            node = WindowAggregate(node, RangeWindow(2 * SECOND), (Expr.of("card"),), (count,))
    return node


@st.composite
def windows(draw: st.DrawFn, keys: tuple[Expr, ...], preserved: bool) -> Window:
    """Any window that a side may have."""
    sizes = st.sampled_from((2 * SECOND, SECOND, 3 * SECOND, 2 * SECOND, SECOND, 5 * SECOND, 1))
    if preserved:
        return RangeWindow(draw(sizes))
    rows = st.builds(RowsWindow, st.integers(1, 3), st.sampled_from(((), keys) if keys else ((),)))
    ranges = st.builds(RangeWindow, sizes, st.sampled_from((0, 0, 1, SECOND)))
    return draw(st.one_of(rows, rows, ranges, st.just(UnboundedWindow())))


@st.composite
def joins(draw: st.DrawFn) -> Case:
    """Two streams, or one with itself, or one with a table; joined, and perhaps filtered or aggregated after that."""
    first, second = (replace(draw(streams()), name=name, keep=None) for name in ("payments", "refunds"))
    first, second = (replace(s, delay=5 * SECOND) if s.delay is None else s for s in (first, second))
    kind = draw(st.sampled_from((JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL, JoinKind.LEFT, JoinKind.INNER)))
    base, table = (first, second), draw(seldom(8)) and kind in (JoinKind.INNER, JoinKind.LEFT)
    if table:
        base = (first, SHOPS)
        window = RangeWindow(draw(st.sampled_from((1, SECOND))))
        node = Join(draw(sides(first)), Scan(SHOPS), window, UnboundedWindow(), kind, ((Expr.of("shop"), Expr.of("id")),))
    else:
        other = draw(st.sampled_from((second, second, first)))
        base = (first, second) if other is second else (first,)
        on = tuple((Expr.of(n), Expr.of(f"{n}_")) for n in draw(st.sampled_from(KEYS)))
        left, right = (draw(windows(tuple(p[i] for p in on), kind.preserved[i])) for i in (0, 1))
        node = Join(draw(sides(first)), renamed(draw(sides(other))), left, right, kind, on)
    endless = any(s.delay is Bound.UNBOUNDED for s in base)
    queries = []
    for number in range(draw(st.integers(1, 2))):
        above: Node = node
        match draw(st.integers(0, 3)):
            case 0:
                above = Filter(node, Expr.of(draw(st.sampled_from(PREDICATES))))
            case 1:
                above = Project(node, tuple((n, Expr.column(n)) for n in node.schema.names[1:4]))
            case 2:
                count = Aggregate("pairs", function("COUNT"))
                above = WindowAggregate(node, RangeWindow(3 * SECOND), (Expr.of("card"),), (count,))
        queries.append(Query(f"q{number}", above, Emit.CHANGES if endless else draw(st.sampled_from(list(Emit)))))
    return Case(Script(tuple(queries), base), tuple(_together(draw, base)))


def _together(draw: st.DrawFn, base: tuple[Stream, ...]) -> list[Batch]:
    """The arrivals of all streams, batch by batch; those of a table all at first."""
    parts = [draw(arrivals(s, 18)) for s in base if not s.static]
    batches, now = [], 0
    for i in range(max(map(len, parts), default=0)):
        here = [p[i] for p in parts if i < len(p)]
        now = max([now, *(b.now for b in here)]) if i else max(b.now for b in here)
        batches.append(Batch(now, {name: rows for b in here for name, rows in b.rows.items()}))
    if batches and base[-1].static:
        ids = draw(st.lists(st.sampled_from((0, 1, 1, 2, -1, None)), max_size=6))
        rows = [Arrival((i, f"city {n}")) for n, i in enumerate(ids)]
        batches[0] = Batch(batches[0].now, {**batches[0].rows, "shops": rows})
    return batches
