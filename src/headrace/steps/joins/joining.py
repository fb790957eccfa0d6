"""Joins in a bucket: which pairs a batch makes and unmakes, and which rows have waited for a partner in vain.

State stands at the frontier, as for windows (decisions/0001): final rows are linked for good, open ones are linked behind them,
asked for their partners, and unlinked again. What was said before is found again from the open rows as they were, and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headrace.aggregates.metrics import MetricColumn, kept_to_arrow
from headrace.changes.changes import Changes
from headrace.kernels.codes import NULL
from headrace.kernels.keys.hashing import pair_hashes, place_hashes
from headrace.plan.query import Emit
from headrace.state.kept import Kept
from headrace.state.rows import SOURCE_BITS
from headrace.steps.joins.index import JoinIndex, Linked
from headrace.steps.windows import dirty
from headrace.steps.windows.looks import CLOCK_PLACE

if TYPE_CHECKING:
    from collections.abc import Hashable

    from headrace.program.stage import JoinProgram, Stage
    from headrace.state.reservoir import ChunkCache, ChunkStore
    from headrace.state.rows import Layout, Rows
    from headrace.state.tables import KeyTable
    from headrace.steps.windows.reporting import Times

_BELOW_CLOCK = np.int64(CLOCK_PLACE - 1)


@dataclass(slots=True)
class Found:
    """Joined rows: order key, the numbers of the rows of both sides (-1: NULL), the later row in the zone."""

    ts: np.ndarray
    high: np.ndarray
    low: np.ndarray
    sub: np.ndarray
    left: np.ndarray
    right: np.ndarray
    event: np.ndarray  # -1: made by the clock
    changed: np.ndarray  # whether one of the rows is not in the zone with which this is compared

    def __len__(self) -> int:
        """How many."""
        return len(self.ts)

    def take(self, index: np.ndarray) -> Found:
        """Those at these places."""
        return Found(*(getattr(self, name)[index] for name in self.__slots__))

    def append(self, other: Found) -> Found:
        """These, then the others."""
        if not len(self) or not len(other):
            return other if not len(self) else self
        return Found(*(np.concatenate((getattr(self, n), getattr(other, n))) for n in self.__slots__))

    def of_events(self, chosen: np.ndarray) -> Found:
        """Pairs of some events, and all that the clock made; `chosen` is one flag per row of the zone."""
        keep = self.event < 0
        keep[~keep] = chosen[self.event[~keep]]
        return self if keep.all() else self.take(np.flatnonzero(keep))

    @staticmethod
    def none() -> Found:
        """Nothing."""
        none = np.empty(0, np.int64)
        return Found(none, none, none, none, none, none, none, np.empty(0, np.bool_))


@dataclass(slots=True)
class Open:
    """The rows of a zone on their way through a join: as they are linked, and by side."""

    rows: Rows
    linked: Linked
    changed: np.ndarray
    first: tuple[int, int]  # the number that the first row of each side gets
    of_side: tuple[np.ndarray, np.ndarray]  # places in the zone

    def numbers(self, start: int) -> np.ndarray:
        """The number of every row from `start` on."""
        out = np.empty(len(self.linked.ts), np.int64)
        for first, places in zip(self.first, self.of_side, strict=True):
            out[places] = first + np.arange(len(places))
        return out[start:]


class Joining:
    """The joins of one stage in one bucket. They show different columns of the same pairs."""

    def __init__(
        self, stage: Stage, layout: Layout, tables: list[KeyTable], store: ChunkStore, cache: ChunkCache, owner: Hashable,
        chunk_rows: int,
    ) -> None:  # fmt: skip
        """Empty."""
        self.stage, self.layout, self.tables = stage, layout, tables
        self.join = stage.joins[0]
        self.index = JoinIndex(self.join.windows)
        self.kept = tuple(Kept(layout, store, cache, (owner, s), chunk_rows, s, places=self._words(s)) for s in (0, 1))
        self.eager = [j for j in stage.joins if j.emit is Emit.CHANGES or self._hurries(j)]
        self.patient = [j for j in stage.joins if j not in self.eager]
        self.outer = any(self.join.preserved)

    def _words(self, side: int) -> int:
        """What stands for the order key of a kept row; one that may leave alone leaves by its place, so that is there as well."""
        return 3 if self.join.preserved[side] else 1

    def _hurries(self, join: JoinProgram) -> bool:
        """What can never change leaves at once."""
        return join.emit is Emit.FINAL and not join.moving and not self.stage.signed

    # ---- a batch --------------------------------------------------------------------------------------------------

    def run(
        self, old: Rows, new: Rows, removed: np.ndarray, is_new: np.ndarray, final: int, times: Times
    ) -> list[tuple[str, Changes]]:
        """What leaves because of a batch, of which the first `final` rows are final now."""
        was, now = self._open(old, removed), self._open(new, is_new)
        plan = self._plan(old, new, removed, is_new)
        before = self._before(was, plan.old, times)
        asked = np.zeros(len(new), np.bool_)
        asked[plan.new] = True
        early, settled = self._early(now, final, asked, times)
        after = self._after(now, final, asked, times, early)
        out: list[tuple[str, Changes]] = []
        take_back, say = _differences(before, after)
        for join in self.eager:
            out += self._changes(join, before.take(take_back), was, -1) + self._changes(join, after.take(say), now, 1)
        for join in self.patient:
            out += self._changes(join, settled, now, 1)
        for side, kept in enumerate(self.kept):
            places = now.of_side[side]
            keys = (new.high, new.low, now.linked.place)[3 - self._words(side) :]
            kept.append(new, places[: int(places.searchsorted(final))], *keys)
        return out

    def _open(self, rows: Rows, changed: np.ndarray) -> Open:
        side = ((rows.high & _BELOW_CLOCK) >> SOURCE_BITS >= self.join.split).astype(np.uint8)
        code = self.layout.codes[self.join.live]
        live = np.ones(len(rows), np.bool_) if code is None else rows.columns[code] == 0
        place = place_hashes(rows.ts, rows.high, rows.low, rows.sub)
        linked = Linked(rows.ts, side, rows.columns[self.join.key], live, place)
        first = int(self.index.count[0]), int(self.index.count[1])
        return Open(rows, linked, changed, first, (np.flatnonzero(side == 0), np.flatnonzero(side == 1)))

    def _plan(self, old: Rows, new: Rows, removed: np.ndarray, is_new: np.ndarray) -> dirty.Plan:
        """The events whose pairs may have changed."""
        if not self.eager:
            return dirty.nothing()
        counts = any(k == 1 for k in self.index.windows[::3])
        tables = None if counts else {self.join.key}
        return dirty.spread(tables, old, new, removed, is_new, [t.capacity for t in self.tables])

    def _before(self, was: Open, events: np.ndarray, times: Times) -> Found:
        """What had been said of these events, and of rows that waited in vain."""
        if not self.eager or not (self.outer or len(events)):
            return Found.none()
        ask = np.zeros(len(was.rows), np.bool_)
        ask[events] = True
        found = self._pass(was, 0, len(was.rows), np.ones_like(ask) if self.outer else ask, (times.frontier, times.clock))
        return found.of_events(ask)

    def _early(self, now: Open, final: int, asked: np.ndarray, times: Times) -> tuple[Found, Found]:
        """Link the rows that are final now: the pairs that eager queries ask for, and all that is final."""
        everything = self.outer or bool(self.patient)
        ask = np.ones(final, np.bool_) if everything else asked[:final]
        rows = now.linked.slice(0, final)
        self.index.grow(rows.side, self.tables[self.join.key].capacity)
        pairs = self._pairs(now, 0, *self.index.add(rows, ask))
        settled = pairs
        if self.patient and self.outer:
            settled = pairs.append(self._alone(now, times.frontier, times.next_frontier))
        return pairs.of_events(asked), settled

    def _after(self, now: Open, final: int, asked: np.ndarray, times: Times, early: Found) -> Found:
        """What is to be said now, of the events that are asked for and of rows that waited in vain."""
        if not self.eager or not (self.outer or asked[final:].any()):
            return early
        ask = np.ones(len(now.rows) - final, np.bool_) if self.outer else asked[final:]
        late = self._pass(now, final, len(now.rows), ask, (times.frontier, times.next_clock))
        return early.append(late.of_events(asked))

    def _pass(self, rows: Open, start: int, stop: int, ask: np.ndarray, times: tuple[int, int]) -> Found:
        """Link rows of the zone, look, and unlink them."""
        some = rows.linked.slice(start, stop)
        self.index.grow(some.side, self.tables[self.join.key].capacity)
        met = [side.met.copy() for side in self.index] if self.outer else []
        found = self._pairs(rows, start, *self.index.add(some, ask))
        if self.outer:
            found = found.append(self._alone(rows, *times))
        self.index.take_back(some)
        for side, flags in zip(self.index, met, strict=False):
            side.met = flags
        return found

    def _pairs(self, zone: Open, start: int, event: np.ndarray, partner: np.ndarray) -> Found:
        """Pairs as joined rows: they stand where their later row stands."""
        if not len(event):
            return Found.none()
        right = zone.linked.side[start:][event].astype(np.bool_)
        own = zone.numbers(start)[event]
        event = event + start
        place, changed = np.empty(len(event), np.int64), zone.changed[event]
        for side, index in enumerate(self.index):  # of the partner
            mine = np.flatnonzero(right if side == 0 else ~right)
            number = partner[mine]
            place[mine] = index.place[number - index.base]
            near = np.flatnonzero(number >= zone.first[side])
            changed[mine[near]] |= zone.changed[zone.of_side[side][number[near] - zone.first[side]]]
        rows = zone.rows
        sub = pair_hashes(place, None if rows.sub is None else rows.sub[event])
        left, right_ = np.where(right, partner, own), np.where(right, own, partner)
        return Found(rows.ts[event], rows.high[event], rows.low[event], sub, left, right_, event, changed)

    def _alone(self, zone: Open, start: int, stop: int) -> Found:
        """Rows of preserved sides that have met none and leave their window at a time in start..stop."""
        out = Found.none()
        for side, index in enumerate(self.index):
            if not self.join.preserved[side]:
                continue
            number = self.index.alone(side, start, stop)
            n, at = len(number), number - index.base
            changed = np.zeros(n, np.bool_)
            near = np.flatnonzero(number >= zone.first[side])
            changed[near] = zone.changed[zone.of_side[side][number[near] - zone.first[side]]]
            nothing = np.full(n, -1, np.int64)
            left, right = (number, nothing) if side == 0 else (nothing, number)
            time = index.ts[at] + int(self.index.windows[3 * side + 1])
            high, low = self._places(side, number, zone)
            out = out.append(Found(time, high | CLOCK_PLACE, low, index.place[at], left, right, nothing, changed))
        return out

    def _places(self, side: int, number: np.ndarray, zone: Open) -> tuple[np.ndarray, np.ndarray]:
        """Where rows of a side stand in their source: those that leave together do so in that order."""
        high, low = np.empty(len(number), np.int64), np.empty(len(number), np.int64)
        near = number >= zone.first[side]
        at = zone.of_side[side][number[near] - zone.first[side]]
        high[near], low[near] = zone.rows.high[at], zone.rows.low[at]
        _, high[~near], low[~near], _ = self.kept[side].keys(number[~near])
        return high, low

    # ---- what leaves ----------------------------------------------------------------------------------------------

    def _changes(self, join: JoinProgram, found: Found, zone: Open, sign: int) -> list[tuple[str, Changes]]:
        if not len(found):
            return []
        columns = [self._values(join, side, number, zone) for side, number in enumerate((found.left, found.right))]
        arrays = [columns[c.side][c.name] for c in join.columns]
        batch = pa.RecordBatch.from_arrays(arrays, [c.name for c in join.columns]) if arrays else _no_columns(len(found))
        signs = np.full(len(found), sign, np.int8)
        return [(join.query, Changes(signs, found.ts, found.high, found.low, batch, found.sub))]

    def _values(self, join: JoinProgram, side: int, number: np.ndarray, zone: Open) -> dict[str, pa.Array]:
        """The columns of one side, for these rows."""
        shown = [c for c in join.columns if c.side == side]
        wanted = sorted({w for c in shown for w in (*self.layout.values[c.vector], self._code(c.vector))})
        there = np.flatnonzero(number >= 0)
        own = self.kept[side].gather(number[there], wanted, zone.rows, zone.of_side[side])
        out = {}
        for column in shown:
            words, valid = np.zeros(len(number), np.int64), np.zeros(len(number), np.bool_)
            words[there] = own[wanted.index(self.layout.values[column.vector][0])]
            valid[there] = own[wanted.index(self._code(column.vector))] != NULL
            vector = self.stage.vectors[column.vector]
            out[column.name] = kept_to_arrow(vector, column.type, MetricColumn(words, valid), self.tables)
        return out

    def _code(self, vector: int) -> int:
        code = self.layout.codes[vector]
        assert code is not None, "a value may be NULL"
        return code

    # ---- state ----------------------------------------------------------------------------------------------------

    def settle(self, frontier: int) -> list[list[np.ndarray]]:
        """Let go of rows that no other can meet any more. Gives their columns."""
        gone = []
        for side, kept in enumerate(self.kept):
            if self.index.windows[3 * side] == 2:
                gone += self._compact(side)
            else:
                gone += kept.drop_before(self.index.unneeded(side, frontier))
            self.index.sides[side].oldest = kept.oldest
        return gone

    def _compact(self, side: int) -> list[list[np.ndarray]]:
        """Of rows per key only the last count; once most do not, the others are written anew."""
        kept = self.kept[side]
        if not kept.is_full:
            return []
        gone = kept.compact(self.index.reachable(side))
        self._link(side)
        return gone

    def _link(self, side: int) -> None:
        """Link the final rows of a side anew."""
        kept = self.kept[side]
        ts, columns = kept.rows()
        self.index.restart(side, kept.oldest)
        code = self.layout.codes[self.join.live]
        live = np.ones(len(ts), np.bool_) if code is None else columns[code] == 0
        rows = Linked(ts, np.full(len(ts), side, np.uint8), columns[self.join.key], live, columns[-1])
        self.index.grow(rows.side, self.tables[self.join.key].capacity)
        self.index.add(rows, np.zeros(len(ts), np.bool_))

    def dump(self) -> dict[str, Any]:
        """The state, as arrays."""
        out: dict[str, Any] = {}
        for side, kept in enumerate(self.kept):
            own = self.index.sides[side]
            met = own.met[own.rows(int(self.index.count[side]))] if self.join.preserved[side] else np.zeros(0, np.bool_)
            out |= {f"join{side}.{k}": v for k, v in kept.dump().items()} | {f"join{side}.met": met.view(np.uint8)}
        return out

    def load(self, parts: list[dict[str, Any]]) -> None:
        """What was dumped, after the tables are there."""
        for side, (kept, state) in enumerate(zip(self.kept, parts, strict=True)):
            met = state.pop("met").view(np.bool_)
            kept.load(state)
            self._link(side)
            if self.join.preserved[side]:
                own = self.index.sides[side]
                own.met[own.rows(int(self.index.count[side]))] = met


def _no_columns(rows: int) -> pa.RecordBatch:
    from headrace.runtime.zone import empty_batch

    return empty_batch(rows)


def _differences(old: Found, new: Found) -> tuple[np.ndarray, np.ndarray]:
    """Which of the old to take back and which of the new to say: all that are not in both."""
    if not len(old) or not len(new):
        return np.arange(len(old)), np.arange(len(new))
    n = len(old)
    keys = [np.concatenate((getattr(old, name), getattr(new, name))) for name in ("sub", "low", "high", "ts")]
    order = np.lexsort((np.arange(len(keys[0])), *keys))
    same = np.ones(len(order) - 1, np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    twin = np.flatnonzero(same)
    a, b = order[twin], order[twin + 1] - n
    unchanged = ~(old.changed[a] | new.changed[b])
    take_back, say = np.ones(n, np.bool_), np.ones(len(new), np.bool_)
    take_back[a[unchanged]] = False
    say[b[unchanged]] = False
    return np.flatnonzero(take_back), np.flatnonzero(say)
