"""Windows that are looked at when a trigger fires, from the definitions of 002: what is inside (2.2, 3.2), and when (3.3).

A look sees a prefix of the rows in the total order. Of these, the window holds those that its measure says: by time
(t - size, t], by number the last n, by a field (p - size, p]. Partitioned windows of rows have a count of their
own in every partition.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headrace.errors import DataError
from headrace.oracle.admission import Key
from headrace.oracle.aggregates import Call, groups
from headrace.oracle.rows import Row, from_micros
from headrace.oracle.scalar import evaluate, holds
from headrace.oracle.ties import HALF, group_words
from headrace.plan.aggregates import Aggregate
from headrace.plan.expr import Expr
from headrace.plan.nodes import WindowReport
from headrace.plan.schema import Field, Schema
from headrace.plan.time import END_OF_TIME
from headrace.plan.triggers import EveryField, EveryInstant, EveryRows, EveryTime, OnClose
from headrace.plan.windows import (
    DeltaWindow,
    FieldWindow,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SpanWindow,
    UnboundedWindow,
    UntilWindow,
)

CLOCK = 2**62  # rows made by the clock at u follow every event at u
Found = Sequence[tuple[Key, Row]]


@dataclass(frozen=True, slots=True)
class Look:
    """One look: its order key, the time it is about, the rows in the window, and the bounds of the window in time."""

    key: Key
    rows: list[int]
    start: int
    end: int
    mark: int | None = None  # tells looks with the same key apart
    only: frozenset[Hashable] | None = None  # the groups it is about; None: all


def reports(node: WindowReport, found: Found, clock: int, last: int | None = None) -> list[tuple[Key, Row]]:
    """One row for every look and every group with a selected row in the window.

    `clock` is how far time is; END_OF_TIME when the input has ended, and then `last` is how far it was before.
    """
    return sorted(_Reports(node, found, clock, last).rows(), key=lambda pair: pair[0])


class _Reports:
    def __init__(self, node: WindowReport, found: Found, clock: int, last: int | None) -> None:
        self.node, self.clock = node, clock
        self.schema = node.input.schema
        self.keys_of = [key for key, _ in found]
        self.times = [key[0] for key in self.keys_of]
        self.table = [row for _, row in found]
        self.ended = clock == END_OF_TIME
        self.last = last if last is not None else max(self.times, default=0)
        exprs = [e for _, e in node.keys]
        self.groups = groups(exprs, self.schema, self.table)
        self.values = evaluate(exprs, self.schema, self.table)
        self.types = [f.type for f in node.schema.fields[: len(node.keys)]]
        self.selected = holds(node.where, self.schema, self.table)

    def rows(self) -> Iterator[tuple[Key, Row]]:
        node = self.node
        calls = [self.call(call) for call in node.aggregates]
        beside = [(window, [self.call(call) for call in some]) for window, some in node.beside]
        before: dict[Hashable, list[int]] = {}
        looks = self.segments() if isinstance(node.trigger, OnClose) else self.looks()
        for look in looks:
            window = [j for j in look.rows if self.selected[j]]
            now = {g: [j for j in window if self.groups[j] == g] for g in dict.fromkeys(self.groups[j] for j in window)}
            told = {g: w for g, w in now.items() if look.only is None or g in look.only}
            if node.on_change:
                told = {g: w for g, w in told.items() if before.get(g) != w}
                before = now if look.only is None else {**before, **{g: now.get(g, []) for g in look.only}}
            for group in told.values():
                bounds: tuple[Any, ...] = (from_micros(look.start), from_micros(look.end))[2 - len(node.window.bounds) :]
                shown = map(_positive_zero, self.values[group[0]])
                mark = () if look.mark is None else (look.mark + HALF,)
                key = (*look.key, *mark, *group_words(self.types, self.values[group[0]]))
                more = [call.over(self.also(window, look, group[0])) for window, some in beside for call in some]
                yield key, (*shown, *bounds, *(call.over(group) for call in calls), *more)

    def call(self, call: Aggregate) -> Call:
        return Call(call, self.schema, self.table, self.node.schema.field(call.name).type)

    def also(self, window: RangeWindow, look: Look, member: int) -> list[int]:
        """The rows of a group that are in another window of time, at the same look."""
        now = look.key[0]
        inside = [j for j in range(len(self.times)) if now - window.lag - window.size < self.times[j] <= now - window.lag]
        return [j for j in inside if self.selected[j] and self.groups[j] == self.groups[member]]

    # ---- looks at windows that are measured

    def looks(self) -> Iterator[Look]:
        match self.node.trigger:
            case EveryTime():
                yield from self.by_time(self.node.trigger)
            case EveryRows(every=every, partition_by=by):
                yield from self.by_rows(every, by)
            case EveryField(every=every, on=on):
                yield from self.by_field(every, on)
            case EveryInstant():
                yield from self.by_instant(self.node.trigger)

    def by_time(self, trigger: EveryTime) -> Iterator[Look]:
        """At every time on the grid that the clock has passed; at the end, up to the last that can hold an event."""
        if isinstance(self.node.window, UntilWindow):
            yield from self.until(self.node.window.stop, trigger.every)
            return
        every: set[int] = set()
        for t in self.times:
            u = trigger.first_at(t)
            while self.holds_until(t, u) and (self.ended or u < self.clock):
                every |= {u, u + trigger.every} if self.node.on_change else {u}
                u += trigger.every
        for u in sorted(every):
            if not (self.ended or u < self.clock):
                continue
            seen = [j for j, t in enumerate(self.times) if t <= u]
            # [l, u) holds the rows of (l, u] a microsecond before: for whole microseconds the two are the same.
            start, end = (bound + 1 if trigger.open_above else bound for bound in self.bounds(u))
            yield Look((u, CLOCK, 0), self.inside(seen, u, self.position(seen)), start, end)

    def until(self, stop: int, every: int) -> Iterator[Look]:
        """At one time, all windows that end there, from the shortest that holds a row to the first that holds every row."""
        seen = [j for j, t in enumerate(self.times) if t <= stop]
        start = stop - (stop - self.times[seen[-1]]) // every * every if seen else stop
        firsts = {self.groups[j]: self.times[j] for j in reversed(seen) if self.selected[j]}
        while firsts and stop < self.clock and start >= min(firsts.values()):
            start -= every
            inside = [j for j in seen if self.times[j] > start]
            only = frozenset(g for g, first in firsts.items() if first <= start + every)  # the window before held not all of it
            yield Look((stop, CLOCK, 0), inside, start, stop, mark=(stop - start) // every, only=only)

    def holds_until(self, t: int, u: int) -> bool:
        """Whether a look at u is to be made because of a row at t."""
        match self.node.window:
            case RangeWindow(size=size, lag=lag):
                return u < t + size + lag
            case SpanWindow(stop=stop) if stop is not None:
                return u <= stop
        assert isinstance(self.node.trigger, EveryTime)
        return u <= self.node.trigger.first_at(self.last) if self.ended else u < self.clock

    def by_rows(self, every: int, by: tuple[Expr, ...]) -> Iterator[Look]:
        """Right after each such number of rows. A look at one of a partition is about the groups of that partition."""
        parts = groups(by, self.schema, self.table)
        counts: dict[Hashable, int] = {}
        for i, part in enumerate(parts):
            counts[part] = counts.get(part, 0) + 1
            if counts[part] % every == 0:
                seen, now = list(range(i + 1)), self.times[i]
                only = frozenset(g for g, p in zip(self.groups, parts, strict=True) if p == part) if by else None
                yield Look(self.keys_of[i], self.inside(seen, now, self.position(seen)), *self.bounds(now), only=only)

    def by_field(self, every: float, on: Expr) -> Iterator[Look]:
        """Whenever the position passes a multiple of `every`: right before the row that passes it."""
        positions = self.positions(on)
        same = isinstance(self.node.window, FieldWindow) and self.node.window.on == on
        u: float | None = None
        for i, p in enumerate(positions):
            if p is None:
                continue
            first = -(-p // every) * every
            if u is None:
                u = first
            while u < p:
                seen = list(range(i))
                inside = self.inside(seen, self.times[i], u if same else self.position(seen))
                if inside:
                    yield Look(self.keys_of[i], inside, *self.bounds(self.times[i]), mark=_multiple(u, every))
                # Where the window is measured otherwise, all looks that one row passes would say the same; and once the
                # window is empty, no look further on has anything in it: a row may pass more multiples than can be counted.
                u = u + every if same and inside else first
        if self.ended and u is not None:
            seen = list(range(len(self.times)))
            inside = self.inside(seen, self.last, u if same else self.position(seen))
            if inside:
                yield Look((self.last, CLOCK, 0), inside, *self.bounds(self.last), mark=_multiple(u, every))

    def by_instant(self, trigger: EveryInstant) -> Iterator[Look]:
        """After all rows of one time, or of one batch."""
        batches = (
            [v for (v,) in evaluate((trigger.batch,), self.schema, self.table)] if trigger.batch else [None] * len(self.times)
        )
        parts = groups(trigger.partition_by, self.schema, self.table)
        counts: dict[Hashable, int] = {}
        first = 0
        full: set[Hashable] = set()
        for i, t in enumerate(self.times):
            if trigger.rows is not None:
                counts[parts[i]] = counts.get(parts[i], 0) + 1
                full |= {parts[i]} if counts[parts[i]] % trigger.rows == 0 else set()
            more = i + 1 < len(self.times)
            if more and self.times[i + 1] == t and batches[i + 1] == batches[i]:
                continue
            if t < self.clock:
                yield from self._instant(trigger, first, i, parts, full)
            first, full = i + 1, set()

    def _instant(self, trigger: EveryInstant, first: int, i: int, parts: list[Hashable], full: set[Hashable]) -> Iterator[Look]:
        t, seen = self.times[i], list(range(i + 1))
        key = (t, CLOCK, 0) if trigger.batch is None else self.keys_of[i]
        inside = self.inside(seen, t, self.position(seen))
        if trigger.rows is None:
            came = frozenset(self.groups[j] for j in range(first, i + 1) if self.selected[j])
            yield Look(key, inside, *self.bounds(t), only=came)
        elif full:
            of = frozenset(g for g, p in zip(self.groups, parts, strict=True) if p in full) if trigger.partition_by else None
            yield Look(key, inside, *self.bounds(t), only=of)

    # ---- what is inside

    def inside(self, seen: list[int], now: int, position: float | None) -> list[int]:
        match self.node.window:
            case RangeWindow(size=size, lag=lag):
                return [j for j in seen if now - lag - size < self.times[j] <= now - lag]
            case RowsWindow(rows=rows, partition_by=by):
                parts = groups(by, self.schema, self.table)
                return [j for j in seen if sum(1 for k in seen if k > j and parts[k] == parts[j]) < rows]
            case UnboundedWindow():
                return seen
            case SpanWindow(start=start, stop=stop):
                return [j for j in seen if start < self.times[j] and (stop is None or self.times[j] <= stop)]
            case FieldWindow(size=size, on=on):
                at = self.positions(on)
                return [j for j in seen if position is not None and _within(at[j], position - size, position)]
        raise AssertionError(f"no measure: {self.node.window}")

    def bounds(self, now: int) -> tuple[int, int]:
        match self.node.window:
            case RangeWindow(size=size, lag=lag):
                return now - lag - size, now - lag
            case SpanWindow(start=start, stop=stop):
                return start, now if stop is None else stop
        return now, now

    def positions(self, on: Expr) -> list[Any]:
        """For every row the largest value of the field so far; NULL, and what is no position, moves nothing."""
        out: list[Any] = []
        for (value,) in evaluate((on,), self.schema, self.table):
            before = out[-1] if out else None
            exact = 2**53 if isinstance(value, float) else 2**60
            moves = value is not None and abs(value) <= exact and (before is None or value > before)
            out.append(value if moves else before)
        return out

    def position(self, seen: list[int]) -> Any:
        if not isinstance(self.node.window, FieldWindow) or not seen:
            return None
        return self.positions(self.node.window.on)[seen[-1]]

    # ---- windows that end by what comes

    def segments(self) -> Iterator[Look]:
        """For every group, its rows cut into windows; a window is told when it has ended, if a row of it is selected."""
        members: dict[Hashable, list[int]] = {}
        for j, group in enumerate(self.groups):
            members.setdefault(group, []).append(j)
        found: list[Look] = []
        for group, rows in members.items():
            only = frozenset((group,))
            window = [rows[0]]
            for j in rows[1:]:
                if self.ends(window, j):
                    found += self.closed(window, j, only)
                    window = [j]
                else:
                    window.append(j)
            found += self.closed(window, None, only)
        yield from sorted(found, key=lambda look: look.key)

    def ends(self, window: list[int], j: int) -> bool:
        match self.node.window:
            case SessionWindow(gap=gap):
                return self.times[j] - self.times[window[-1]] > gap
            case DeltaWindow(limit=limit, expr=expr):
                delta = delta_of(expr, self.schema, self.table[window[0]], self.table[j])
                return delta is not None and (delta > limit or delta != delta)
        raise AssertionError("not a window that ends by what comes")

    def closed(self, window: list[int], by: int | None, only: frozenset[Hashable]) -> Iterator[Look]:
        first, last = self.times[window[0]], self.times[window[-1]]
        match self.node.window:
            case SessionWindow(gap=gap) if last + gap < self.clock:
                yield Look((last + gap, CLOCK, 0), window, first, last + gap, only=only)
            case DeltaWindow() if by is not None:
                yield Look(self.keys_of[by], window, first, self.times[by], only=only)
            case DeltaWindow() if self.ended:
                yield Look((self.last, CLOCK, 0), window, first, self.last, only=only)


def delta_of(expr: Expr, schema: Schema, first: Row, row: Row) -> float | None:
    """The distance of a row from the first of its window; in the expression the first is called `first`. An overflow is NULL."""
    names = {f.name.lower(): f"first_{f.name}" for f in schema.fields}
    tree = expr.tree
    for column in tree.find_all(exp.Column):
        if column.table.lower() == "first":
            column.set("this", Expr.column(names[column.name.lower()]).tree.this)
            column.set("table", None)
    both = Schema(schema.fields + tuple(Field(names[f.name.lower()], f.type) for f in schema.fields))
    try:
        delta: float | None = evaluate((Expr.of(f"CAST({Expr.of(tree)} AS DOUBLE)"),), both, [(*row, *first)])[0][0]
    except DataError as error:
        if "Overflow" not in str(error):
            raise
        return None
    return delta


def _multiple(u: float, every: float) -> int:
    """Which multiple it is. Whole numbers may be larger than a double can tell apart."""
    return u // every if isinstance(u, int) and isinstance(every, int) else round(u / every)


def _within(value: Any, above: Any, upto: Any) -> bool:
    return value is not None and above < value <= upto


def _positive_zero(value: Any) -> Any:
    """Zeros of either sign are one group, shown as 0.0."""
    return value + 0.0 if isinstance(value, float) else value
