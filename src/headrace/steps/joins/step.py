"""Joins in a bucket: which pairs a batch makes and unmakes, and which rows have waited for a partner in vain.

State stands at the frontier, as for windows (decisions/0001): final rows are linked for good, open ones are linked behind them,
asked for their partners, and unlinked again. What was said before is found again from the open rows as they were, and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.aggregates.metrics import MetricColumn, kept_to_arrow
from headrace.changes.algebra import diff
from headrace.changes.changes import Changes
from headrace.changes.keys import CLOCK_PLACE, SOURCE_BITS, Keys
from headrace.changes.rows import batch_of
from headrace.kernels.codes import NULL
from headrace.program.joins import JoinOutput, JoinStage
from headrace.state.final_rows import FinalRows
from headrace.state.open_rows import OpenRows
from headrace.state.parts import HeadPart, KeyPart, State
from headrace.state.relayout import carry_final
from headrace.state.rows import Rows
from headrace.state.share import Share
from headrace.steps.joins.index import JoinIndex, Linked
from headrace.steps.reached import Reached, reached
from headrace.steps.step import Given, Results, Step, StepParts, Times, Turn

_BELOW_CLOCK = np.int64(CLOCK_PLACE - 1)


@dataclass(slots=True)
class Found:
    """Joined rows: the numbers of the rows of both sides (-1: NULL), and the later one as an open row (-1: the clock made it)."""

    left: np.ndarray
    right: np.ndarray
    event: np.ndarray

    def __len__(self) -> int:
        return len(self.event)

    def take(self, index: np.ndarray) -> Found:
        return Found(self.left[index], self.right[index], self.event[index])

    def append(self, other: Found) -> Found:
        if not len(self) or not len(other):
            return other if not len(self) else self
        return Found(*(np.concatenate((getattr(self, n), getattr(other, n))) for n in self.__slots__))

    def of_events(self, chosen: np.ndarray) -> Found:
        """Pairs of some events, and all that the clock made; `chosen` is one flag per open row."""
        keep = self.event < 0
        keep[~keep] = chosen[self.event[~keep]]
        return self if keep.all() else self.take(np.flatnonzero(keep))

    @staticmethod
    def none() -> Found:
        none = np.empty(0, np.int64)
        return Found(none, none, none)


@dataclass(slots=True)
class Open:
    """Open rows on their way through a join: as they are linked, and by side."""

    rows: Rows
    linked: Linked
    first: tuple[int, int]  # the number that the first row of each side gets
    of_side: tuple[np.ndarray, np.ndarray]  # places among the open rows

    def numbers(self, start: int) -> np.ndarray:
        """The number of every row from `start` on."""
        out = np.empty(len(self.linked.ts), np.int64)
        for first, places in zip(self.first, self.of_side, strict=True):
            out[places] = first + np.arange(len(places))
        return out[start:]

    def identity(self, found: Found, ids: np.ndarray) -> list[np.ndarray]:
        """What tells joined rows apart: final rows by number, open ones by `ids`, which are below every number."""
        out = []
        for side, number in enumerate((found.left, found.right)):
            one = number.copy()
            near = np.flatnonzero(number >= self.first[side])
            one[near] = ids[self.of_side[side][number[near] - self.first[side]]]
            out.append(one)
        return out


class JoinStep(Step):
    """The join of one stage in one bucket. Its queries show different columns of the same pairs."""

    def __init__(self, parts: StepParts) -> None:
        self.stage: JoinStage = parts.stage
        self.join, self.layout, self.tables = self.stage.program, parts.layout, parts.tables
        self.index = JoinIndex(self.join.windows)
        self.kept = tuple(
            FinalRows(parts.layout, parts.store, parts.cache, (parts.owner, s), parts.chunk_rows, s) for s in (0, 1)
        )
        self.eager = [o for o in self.join.shown if o.emit.early or self._hurries(o)]
        self.patient = [o for o in self.join.shown if o not in self.eager]
        self.outer = any(self.join.preserved)

    def _hurries(self, output: JoinOutput) -> bool:
        """What can never change leaves at once, unless it is to come in order."""
        return not output.emit.ordered and not self.join.moving and not self.stage.signed

    # ---- a batch --------------------------------------------------------------------------------------------------

    def turn(self, turn: Turn) -> Results:
        """Find again what was said, link what is final, find what is to be said, and compare."""
        old, new, removed, is_new = turn.old.rows, turn.new.rows, turn.removed, turn.added
        final, times = turn.final, turn.times
        was, now = self._open(old), self._open(new)
        plan = self._plan(old, new, removed, is_new)
        before = self._before(was, plan.old, times)
        asked = np.zeros(len(new), np.bool_)
        asked[plan.new] = True
        early, settled = self._early(now, final, asked, times)
        after = self._after(now, final, asked, times, early)
        out: Results = []
        ids, old_ids = -2 - np.arange(len(new)), -2 - len(new) - np.arange(len(old))
        old_ids[~removed] = ids[~is_new]  # rows that stay
        take_back, say = diff(was.identity(before, old_ids), now.identity(after, ids), lambda a, _: np.zeros(len(a), np.bool_))
        for output in self.eager:
            out += self._changes(output, before.take(take_back), was, -1) + self._changes(output, after.take(say), now, 1)
        for output in self.patient:
            out += self._changes(output, settled, now, 1)
        for side, kept in enumerate(self.kept):
            places = now.of_side[side]
            kept.append(new, places[: int(places.searchsorted(final))])
        return out

    def _open(self, rows: Rows) -> Open:
        side = ((rows.keys.high & _BELOW_CLOCK) >> SOURCE_BITS >= self.join.split).astype(np.uint8)
        code = self.layout.codes[self.join.live]
        live = np.ones(len(rows), np.bool_) if code is None else rows.columns[code] == 0
        linked = Linked(rows.ts, side, rows.columns[self.join.key], live)
        first = int(self.index.count[0]), int(self.index.count[1])
        return Open(rows, linked, first, (np.flatnonzero(side == 0), np.flatnonzero(side == 1)))

    def _plan(self, old: Rows, new: Rows, removed: np.ndarray, is_new: np.ndarray) -> Reached:
        """The events whose pairs may have changed."""
        if not self.eager:
            return Reached.nothing()
        counts = any(k == 1 for k in self.index.windows[::3])
        tables = None if counts else {self.join.key}
        return reached(tables, old, new, removed, is_new, self.tables.capacities)

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
            settled = pairs.append(self._alone(times.frontier, times.next_frontier))
        return pairs.of_events(asked), settled

    def _after(self, now: Open, final: int, asked: np.ndarray, times: Times, early: Found) -> Found:
        """What is to be said now, of the events that are asked for and of rows that waited in vain."""
        if not self.eager or not (self.outer or asked[final:].any()):
            return early
        ask = np.ones(len(now.rows) - final, np.bool_) if self.outer else asked[final:]
        late = self._pass(now, final, len(now.rows), ask, (times.frontier, times.next_clock))
        return early.append(late.of_events(asked))

    def _pass(self, rows: Open, start: int, stop: int, ask: np.ndarray, times: tuple[int, int]) -> Found:
        """Link open rows, look, and unlink them."""
        some = rows.linked.slice(start, stop)
        self.index.grow(some.side, self.tables[self.join.key].capacity)
        met = [side.met.copy() for side in self.index] if self.outer else []
        found = self._pairs(rows, start, *self.index.add(some, ask))
        if self.outer:
            found = found.append(self._alone(*times))
        self.index.take_back(some)
        for side, flags in zip(self.index, met, strict=False):
            side.met = flags
        return found

    def _pairs(self, open_: Open, start: int, event: np.ndarray, partner: np.ndarray) -> Found:
        """Pairs as joined rows."""
        if not len(event):
            return Found.none()
        right = open_.linked.side[start:][event].astype(np.bool_)
        own = open_.numbers(start)[event]
        return Found(np.where(right, partner, own), np.where(right, own, partner), event + start)

    def _alone(self, start: int, stop: int) -> Found:
        """Rows of preserved sides that have met none and leave their window at a time in start..stop."""
        out = Found.none()
        for side in (0, 1):
            if self.join.preserved[side]:
                number = self.index.alone(side, start, stop)
                nothing = np.full(len(number), -1, np.int64)
                left, right = (number, nothing) if side == 0 else (nothing, number)
                out = out.append(Found(left, right, nothing))
        return out

    # ---- what leaves ----------------------------------------------------------------------------------------------

    def _changes(self, output: JoinOutput, found: Found, open_: Open, sign: int) -> Results:
        if not len(found):
            return []
        columns = [self._values(output, side, number, open_) for side, number in enumerate((found.left, found.right))]
        batch = batch_of([columns[c.side][c.name] for c in output.columns], [c.name for c in output.columns], len(found))
        return [(output.query, Changes.of(sign, self._keys(found, open_), batch))]

    def _keys(self, found: Found, open_: Open) -> Keys:
        """A pair stands where its later row stands, one for each of the others; what the clock made, where the row came from."""
        pair, alone = np.flatnonzero(found.event >= 0), np.flatnonzero(found.event < 0)
        event = found.event[pair]
        right = open_.linked.side[event].astype(np.bool_)
        partner = np.where(right, found.left[pair], found.right[pair])
        parts, places = [open_.rows.keys.take(event).under(self._of_rows(~right, partner, open_).whole())], [pair]
        if len(alone):
            right = found.left[alone] < 0
            own = self._of_rows(right, np.where(right, found.right[alone], found.left[alone]), open_)
            leaves = own.ts + self.index.windows[[1, 4]][right.astype(np.int64)]
            parts.append(Keys(leaves, own.high | CLOCK_PLACE, own.low, own.sub))
            places.append(alone)
        return Keys.concat(parts).take(np.argsort(np.concatenate(places)))

    def _of_rows(self, right: np.ndarray, number: np.ndarray, open_: Open) -> Keys:
        parts, places = [], []
        for side, kept in enumerate(self.kept):
            mine = np.flatnonzero(right == bool(side))
            near = number[mine] >= open_.first[side]
            here = open_.of_side[side][number[mine[near]] - open_.first[side]]
            parts += [open_.rows.keys.take(here), kept.keys(number[mine[~near]])]
            places += [mine[near], mine[~near]]
        return Keys.concat(parts).take(np.argsort(np.concatenate(places)))

    def _values(self, output: JoinOutput, side: int, number: np.ndarray, open_: Open) -> dict[str, pa.Array]:
        """The columns of one side, for these rows."""
        shown = [c for c in output.columns if c.side == side]
        wanted = sorted({w for c in shown for w in (*self.layout.values[c.vector], self._code(c.vector))})
        there = np.flatnonzero(number >= 0)
        own = self.kept[side].gather(number[there], wanted, open_.rows, open_.of_side[side])
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

    def settle(self, turn: Turn) -> list[list[np.ndarray]]:
        """Let go of rows that no other can meet any more. Gives their columns."""
        frontier = turn.times.next_frontier
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
        own = kept.rows()
        self.index.restart(side, kept.oldest)
        code = self.layout.codes[self.join.live]
        live = np.ones(len(own), np.bool_) if code is None else own.columns[code] == 0
        rows = Linked(own.ts, np.full(len(own), side, np.uint8), own.columns[self.join.key], live)
        self.index.grow(rows.side, self.tables[self.join.key].capacity)
        self.index.add(rows, np.zeros(len(own), np.bool_))

    def parts(self) -> Iterable[HeadPart | KeyPart]:
        """The final rows of either side."""
        return [HeadPart(f"join{side}", partial(self._dump, side), partial(self._load, side)) for side in (0, 1)]

    def _dump(self, side: int) -> State:
        own = self.index.sides[side]
        met = own.met[own.rows(int(self.index.count[side]))] if self.join.preserved[side] else np.zeros(0, np.bool_)
        return self.kept[side].dump() | {"met": met.view(np.uint8)}

    def _load(self, side: int, state: State) -> None:
        met = state.pop("met").view(np.bool_)
        self.kept[side].load(state)
        self._link(side)
        if self.join.preserved[side]:
            own = self.index.sides[side]
            own.met[own.rows(int(self.index.count[side]))] = met

    def adopt(self, old: Any, open_: OpenRows, given: Given) -> None:
        for side, kept in enumerate(self.kept):
            carry_final(old.kept[side], kept, given.relayout)
            self._load(side, kept.dump() | {"met": old._dump(side)["met"]})

    def gather(self, shares: Sequence[Share], open_: OpenRows) -> Sequence[list[np.ndarray]]:
        """Both sides, each in the total order, and which rows have met another."""
        for side, kept in enumerate(self.kept):
            rows, met = Rows.empty(self.layout), np.zeros(0, np.uint8)
            for share in shares:
                own = share.step.kept[side].rows()
                rows = rows.append(share.rows(own))
                if self.join.preserved[side]:
                    met = np.concatenate((met, share.step._dump(side)["met"][share.mine(own.columns)]))
            order = np.lexsort(rows.keys.columns[::-1])
            kept.append(rows, order)
            self._load(side, kept.dump() | {"met": met[order] if len(met) else met})
        return [kept.rows().columns for kept in self.kept]
