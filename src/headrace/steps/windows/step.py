"""Windows as a step: what is said of every event, and what reports say, as rows come, are taken back and become final."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from headrace.aggregates.metrics import MetricColumn, metric_column, to_arrow
from headrace.aggregates.tally import DistinctTally
from headrace.changes.algebra import diff
from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.program.outputs import Output
from headrace.program.windows import WindowStage
from headrace.state.open_rows import OpenRows
from headrace.state.parts import HeadPart, KeyPart, PageStore, State
from headrace.state.reservoir import Reservoir, RowRange
from headrace.state.rows import Rows
from headrace.state.share import Share
from headrace.steps.reached import Reached, reached
from headrace.steps.shown import carried, show, wanted
from headrace.steps.step import Given, Live, Results, Standing, Step, StepParts, Times, Turn
from headrace.steps.windows.adopt import adopt_windows
from headrace.steps.windows.deltas import lives_of
from headrace.steps.windows.evaluate import Asks, Evaluator, Seen
from headrace.steps.windows.gather import gather_windows
from headrace.steps.windows.reporting import Reporting
from headrace.steps.windows.single.covers import slow_because
from headrace.steps.windows.slices import load_cells, save_cells

NOTHING = MetricColumn(np.empty(0, np.int64), np.empty(0, np.bool_))


class WindowsStep(Step):
    """The windows of one stage in one bucket."""

    keeps_open = True

    def __init__(self, parts: StepParts) -> None:
        stage: WindowStage = parts.stage
        self.stage, self.program, self.tables = stage, stage.program, parts.tables
        self.reservoir = Reservoir(parts.layout, parts.store, parts.cache, parts.owner, parts.chunk_rows)
        self.evaluator = Evaluator(stage, parts.layout, parts.tables, self.reservoir)
        self.lives = lives_of(stage, parts.tables, parts.layout)
        self.evaluator.lives = {lives.index: lives for lives in self.lives}
        self._carried = carried(stage)
        self.by_instant, self._peers = self.program.by_instant, self.program.has_peers
        self._spread = [_spread_by(stage, o) for o in self.program.outputs]
        self._some_final = any(not o.emit.early for o in self.program.outputs)
        self.may_wait = not (self._some_final or self.program.reports or self.lives)
        self._moved = False  # whether the state has, in this turn
        self._left: list[list[np.ndarray]] = []  # rows that have left their last window and still hold their keys

    def final_before(self, times: Times) -> int:
        """Where rows of one time are seen together, all of them must be there."""
        return times.next_frontier if self.by_instant else times.final_before

    # ---- a batch --------------------------------------------------------------------------------------------------

    def turn(self, turn: Turn) -> Results:
        """Read what was said, move on, and compare."""
        old, new, final, times = turn.old, turn.new, turn.final, turn.times
        for lives in self.lives:
            lives.assign(new.rows)
            for table in (lives.index, *lives.pairs):
                self.tables.touch_one(table, new.rows.columns[table])
        self.evaluator.grow()
        plans = [self._plan(i, o, turn) for i, o in enumerate(self.program.outputs)]
        reporting = Reporting(self.stage, self.tables, self.evaluator, times) if self.program.reports else None
        first = self.evaluator.next_row
        if reporting:
            self.evaluator.own(new.rows.columns)
            self.evaluator.places = (first, old.rows.keys)
        asked = _union([p.old for p in plans])
        before = self._read_old(old, asked, reporting.note(old, new, turn.removed, turn.added) if reporting else ())
        rows = RowRange(first, new.rows.ts, new.rows.columns)
        if reporting:
            self.evaluator.places = (first, new.rows.keys)
            reporting.rows(first, final, len(new))
        splits = [int(p.new.searchsorted(final)) for p in plans]
        done = _union([np.arange(final)] if self._some_final else [p.new[:n] for p, n in zip(plans, splits, strict=True)])
        early = self._move_on(turn, rows, done, reporting)
        for lives in self.lives:
            lives.settle(new.rows.slice(0, final))
        still_open = _union([p.new[n:] - final for p, n in zip(plans, splits, strict=True)])
        late = self.evaluator.temporary(rows, final, still_open, reporting.open_asks() if reporting else ())
        seen = ((asked, before), (done, early), (still_open + final, late))
        out = [change for i, o in enumerate(self.program.outputs) for change in self._output(i, o, plans[i], turn, *seen)]
        if reporting:
            out += reporting.emit(before, early, late)
        self._moved = early is not self.evaluator.nothing
        self._left = [] if early.left is None else [early.left.columns]
        return out

    def _plan(self, index: int, output: Output, turn: Turn) -> Reached:
        """The events of which something else may be to be said."""
        if not output.emit.early:
            return Reached.nothing()
        old, new = turn.old, turn.new
        tables, capacities = self._spread[index], self.tables.capacities
        plan = reached(tables, old.rows, new.rows, turn.removed, turn.added, capacities, self._peers)
        return Reached(wanted(old.wanted[index], plan.old), wanted(new.wanted[index], plan.new))

    def _read_old(self, old: OpenRows, events: np.ndarray, asks: Asks) -> Seen:
        """What was said before about the events whose results may change."""
        rows = RowRange(self.evaluator.next_row, old.rows.ts, old.rows.columns)
        return self.evaluator.temporary(rows, 0, events, asks)

    def _move_on(self, turn: Turn, rows: RowRange, events: np.ndarray, reporting: Reporting | None) -> Seen:
        """Move over the rows that are final now, for good, and on with time."""
        times = turn.times
        # Rows may still come at the frontier itself, so what leaves only after it must stay.
        drain: int | None = times.next_frontier
        if drain == END_OF_TIME:
            last = int(rows.ts[-1]) if len(rows.ts) else times.frontier
            drain = reporting.drain(last, times.last) if reporting else None
        ended = reporting is not None and times.next_frontier == END_OF_TIME > times.frontier
        end = times.last if ended and times.last > START_OF_TIME else None  # without a clock there is no last look
        return self.evaluator.permanent(rows, turn.final, events, drain, reporting.final_asks() if reporting else (), end)

    def _output(
        self, index: int, output: Output, plan: Reached, turn: Turn, before: tuple[np.ndarray, Seen],
        early: tuple[np.ndarray, Seen], late: tuple[np.ndarray, Seen],
    ) -> Results:  # fmt: skip
        old, new, final = turn.old, turn.new, turn.final
        if not output.emit.early:
            rows = wanted(new.wanted[index], np.arange(final))
            return self._show(output, new, rows, self._metrics(output, *early, rows), 1)
        split = int(plan.new.searchsorted(final))
        parts = self._metrics(output, *early, plan.new[:split]), self._metrics(output, *late, plan.new[split:])
        now = [a.append(b) for a, b in zip(*parts, strict=True)]
        if len(plan.old) == 0:  # most often: nothing that was said can have changed
            return self._show(output, new, plan.new, now, 1)
        was = self._metrics(output, *before, plan.old)
        take_back, say = _differences(old.rows, new.rows, plan, was, now, turn.removed)
        gone = self._show(output, old, plan.old[take_back], [m.take(take_back) for m in was], -1)
        return gone + self._show(output, new, plan.new[say], [m.take(say) for m in now], 1)

    def _metrics(self, output: Output, read: np.ndarray, seen: Seen, events: np.ndarray) -> list[MetricColumn]:
        """The metrics of an output at some of the events that were read."""
        if len(events) == 0:
            return [NOTHING for _ in output.metrics]
        place = read.searchsorted(events)
        columns = [metric_column(m, seen.events) for m in output.metrics]
        return columns if len(events) == len(read) else [c.take(place) for c in columns]

    def _show(self, output: Output, rows: OpenRows, which: np.ndarray, metrics: list[MetricColumn], sign: int) -> Results:
        if len(which) == 0:
            return []
        tallies, vectors = self.program.tallies, self.stage.vectors
        columns = [to_arrow(tallies, vectors, m, c, self.tables) for m, c in zip(output.metrics, metrics, strict=True)]
        return show(output, rows, which, self._carried, columns, sign)

    # ---- what is let go -------------------------------------------------------------------------------------------

    def settle(self, turn: Turn) -> Iterator[list[np.ndarray]]:
        """Rows that no window can reach any more; lives that are over, and keys that were silent for too long."""
        final = turn.final
        if not self._moved and not self.lives:
            return
        if self.evaluator.stores_rows:
            self.reservoir.append(turn.new.rows.slice(0, final))
            yield from self._left
        self.evaluator.settle(final)
        if self.lives:
            rows, still = turn.new.rows.slice(0, final), turn.new.rows.slice(final, len(turn.new))
            if not self.evaluator.stores_rows:
                yield rows.columns
            for lives in self.lives:
                lives.purge(turn.times.next_frontier, still.columns, self.evaluator.tallies, self.evaluator.rings)

    def live(self) -> Live | None:
        if slow_because(self.stage) is not None:
            return None
        from headrace.steps.windows.single.live import LiveWindows  # compiles what batches never need

        return LiveWindows(self)

    def standing(self, query: str, now: Standing) -> Standing:
        """What the clock makes at its own time may still come."""
        timed = self.program.has_peers or any(r.query == query and not r.by_rows for r in self.program.reports)
        return replace(now, final_before=now.frontier) if timed else now

    # ---- state ----------------------------------------------------------------------------------------------------

    def grow(self) -> None:
        self.evaluator.grow()
        for lives in self.lives:
            lives.grow()

    def parts(self) -> Iterable[HeadPart | KeyPart]:
        """Edges and positions, the index of the reservoir; tallies, rings, owners and lives by key."""
        evaluator, program = self.evaluator, self.program
        yield HeadPart("windows", self._dump, self._load)
        yield HeadPart("reservoir", self.reservoir.dump, self.reservoir.load)
        for i, (spec, tally) in enumerate(zip(program.tallies, evaluator.tallies, strict=True)):
            yield KeyPart(f"tally{i}", spec.group, tally.dump_at, tally.load_at)
            if isinstance(tally, DistinctTally):
                yield KeyPart(f"pairs{i}", tally.pairs, tally.dump_pairs_at, tally.load_pairs_at)
        for i, slices in enumerate(evaluator.slices):
            yield KeyPart(f"slices{i}", slices.group, slices.dump_keys, slices.load_keys)
        for (group, partition), owner in evaluator.owners.items():
            yield KeyPart(f"owner{partition}", group, owner.dump_at, owner.load_at)
        for i, ring in evaluator.rings.items():
            yield KeyPart(f"ring{i}", ring.partitions, ring.dump_at, ring.load_at)
        for lives in self.lives:
            for table in (lives.base, lives.index, *lives.pairs):
                yield KeyPart(f"life{lives.index}", table, partial(lives.dump_at, table), partial(lives.load_at, table))

    def _dump(self) -> State:
        evaluator = self.evaluator
        return {
            "numbered": evaluator.numbered,
            "moved_to": evaluator.moved_to,
            "edges": [list(pair) for pair in evaluator.edges.items()],
            "ended": sorted(evaluator.ended),
            "fields": [[vector, field.dump()] for vector, field in evaluator.fields.items()],
            "cells": [list(slices.cells) for slices in evaluator.slices],
        }

    def _load(self, state: State) -> None:
        evaluator = self.evaluator
        evaluator.numbered, evaluator.edges = state["numbered"], dict(state["edges"])
        evaluator.moved_to = state["moved_to"]
        evaluator.ended = set(state["ended"])
        for vector, field in state["fields"]:
            evaluator.fields[vector].load(field)
        self._cells: list[Any] = state["cells"]

    def save_pages(self, pages: PageStore) -> None:
        for i, slices in enumerate(self.evaluator.slices):
            save_cells(slices, i, pages)

    def restored(self, open_: OpenRows, pages: PageStore) -> None:
        for i, (slices, (start, stop)) in enumerate(zip(self.evaluator.slices, self._cells, strict=True)):
            load_cells(slices, i, (start, stop), pages)

    def adopt(self, old: Any, open_: OpenRows, given: Given) -> None:
        """Rows are carried over, and what can be made of them is."""
        adopt_windows(self, old, given)

    def owners(self, table: int) -> np.ndarray:
        """Whose a life is, and in which life a pair."""
        return next(lives.whose(table) for lives in self.lives if table in (lives.index, *lives.pairs))

    def gather(self, shares: Sequence[Share], open_: OpenRows) -> Sequence[list[np.ndarray]]:
        """Final rows in the order of time; what lies in no rows, key by key."""
        return gather_windows(self, shares)


def _spread_by(stage: WindowStage, output: Output) -> set[int] | None:
    """The tables by whose keys a change spreads; None: it spreads to every row after it."""
    found: set[int] = set()
    for metric in output.metrics:
        tally = stage.program.tallies[metric.tally]
        program = stage.program.windows[tally.window]
        if program.window.counts_rows and program.partitions != tally.group:
            return None
        base = stage.tables[tally.group].base
        found.add(tally.group if base is None else base)  # a late row may give other lives to all rows of its key
    return found


def _differences(
    old: Rows, new: Rows, rows: Reached, was: list[MetricColumn], now: list[MetricColumn], removed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places in `rows.old` to take back, and in `rows.new` to say. What was `removed` has changed if it came back."""

    def differs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        changed: np.ndarray = removed[rows.old[a]]
        for one, other in zip(was, now, strict=True):
            changed |= one.take(a).differs(other.take(b))
        return changed

    return diff(*old.keys.take(rows.old).beside(new.keys.take(rows.new)), differs)


def _union(parts: list[np.ndarray]) -> np.ndarray:
    """Sorted indexes that occur in any part."""
    filled = [p for p in parts if len(p)]
    if not filled:
        return np.empty(0, np.int64)
    return filled[0] if len(filled) == 1 else np.unique(np.concatenate(filled))
