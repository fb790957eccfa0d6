"""The task processor (003, 3.3): what runs in a bucket. Admit, evaluate, release, emit; one batch or one event a call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.aggregates.metrics import MetricColumn, metric_column, to_arrow
from headrace.changes.changes import Changes
from headrace.changes.keys import Keys
from headrace.changes.rows import empty_batch, take
from headrace.plan.arrow import arrow_type
from headrace.plan.query import Emit
from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.program.stage import Output, Stage, TableRole
from headrace.runtime.clock import Clocks, Header
from headrace.runtime.intake import Intake, all_true
from headrace.runtime.unique import Uniques
from headrace.runtime.zone import Zone
from headrace.state.reservoir import CHUNK_ROWS, ChunkCache, ChunkStore, Reservoir, Run
from headrace.state.rows import Layout, Rows
from headrace.state.tables import KeyTable, ValueTable
from headrace.steps.joins.joining import Joining
from headrace.steps.patterns.matching import Matching, Passed, decided_before
from headrace.steps.windows import dirty
from headrace.steps.windows.deltas import lives_of
from headrace.steps.windows.evaluate import Evaluator
from headrace.steps.windows.reporting import Reporting, Times

if TYPE_CHECKING:
    from collections.abc import Hashable

    from headrace.aggregates.tally import Reading
    from headrace.steps.windows.evaluate import Asks

TIME_COLUMN = pa.field("_time", pa.timestamp("us", "UTC"))


@dataclass(slots=True)
class Arrivals:
    """Rows as they come: time, position, the segment each belongs to, whether it is behind its own segment, the inputs."""

    keys: Keys
    segment: np.ndarray
    behind: np.ndarray
    inputs: pa.RecordBatch
    sign: np.ndarray | None = None  # None: nothing is taken back

    def __len__(self) -> int:
        """How many rows."""
        return len(self.keys)

    def take(self, index: np.ndarray) -> Arrivals:
        """The rows at these places."""
        return Arrivals(
            self.keys.take(index), self.segment[index], self.behind[index], take(self.inputs, index),
            None if self.sign is None else self.sign[index],
        )  # fmt: skip


@dataclass(slots=True)
class Result:
    """What a batch gave: changes per query, and counts."""

    changes: list[tuple[str, Changes]] = field(default_factory=list)
    late: int = 0  # behind the frontier of their stream
    late_of: dict[int, int] = field(default_factory=dict)  # the same by the number of the source
    missed: int = 0  # of those admitted: behind what has been taken by K-slack


class TaskProcessor:
    """The stage of a plan in one bucket. Holds its state in memory; `headrace.runtime.save` writes and reads it."""

    def __init__(
        self, stage: Stage, store: ChunkStore, cache: ChunkCache | None = None, owner: Hashable = 0, chunk_rows: int = CHUNK_ROWS
    ) -> None:
        """At the beginning of time."""
        self.stage, self.layout = stage, Layout.of(stage)
        self.clock = Clocks(stage)
        self.tables: list[KeyTable] = [
            ValueTable(arrow_type(stage.inputs[t.inputs[0]].type)) if t.role is TableRole.VALUE else KeyTable()
            for t in stage.tables
        ]
        self.intake = Intake(stage, self.layout, self.tables)
        self.cache = cache if cache is not None else ChunkCache()
        self.reservoir = Reservoir(self.layout, store, self.cache, owner, chunk_rows)
        self.evaluator = Evaluator(stage, self.layout, self.tables, self.reservoir)
        self._carried = tuple(sorted({i for o in stage.outputs for _, i in o.columns}))
        fields = [pa.field(f"i{i}", arrow_type(stage.inputs[i].type)) for i in self._carried]
        nothing = pa.RecordBatch.from_pylist([], pa.schema(fields)) if fields else empty_batch(0)
        self.zone = Zone(Rows.empty(self.layout), nothing, [None for _ in stage.outputs])
        unique = stage.unique_table
        self.uniques: Uniques | None = None
        if unique is not None and stage.unique_within is not None:
            self.uniques = Uniques(stage.unique_within, unique, self.tables[unique])
            self.zone.wanted.append(None)
        self.lives = lives_of(stage, self.tables, self.layout)
        self.evaluator.lives = {lives.index: lives for lives in self.lives}
        self.kept = np.zeros(0, np.bool_)  # with UNIQUE: which rows of the zone count
        self.joining: Joining | None = None
        if stage.joins:
            self.joining = Joining(stage, self.layout, self.tables, store, self.cache, owner, chunk_rows)
        self.matching: Matching | None = None
        if stage.pattern is not None:
            parts = (self.layout, self.tables, store, self.cache, owner, chunk_rows)
            self.matching = Matching(stage, stage.pattern, *parts)

    def attach(self, store: ChunkStore) -> None:
        """Go on with another handle to the same chunks."""
        self.reservoir.store = store
        if self.joining is not None:
            for kept in self.joining.kept:
                kept.store.store = store
        if self.matching is not None:
            self.matching.kept.store.store = store

    def process(self, header: Header, arrivals: Arrivals | None) -> Result:
        """Take in a batch (or one event), and give what leaves because of it."""
        result = Result()
        bounds = self.clock.thresholds(header)
        taken = self.clock.taken_before(self.stage.doors)
        before = (self.clock.frontier, self.clock.latest)
        self.clock.advance(header)
        times = Times(*before, self.clock.frontier, self.clock.latest)
        fresh = self._admit(header, arrivals, bounds, taken, result) if arrivals is not None and len(arrivals) else None
        if self.joining is not None:
            self._join(self.joining, fresh, result, times)
        elif self.matching is not None:
            self._match(self.matching, fresh, result, times)
        elif self.stage.reports or any(not o.late for o in self.stage.outputs):
            if self.stage.windows or self.uniques is not None:
                self._evaluate(fresh, result, times)
            else:
                self._pass_through(fresh, result)
        return result

    def _admit(self, header: Header, arrivals: Arrivals, bounds: np.ndarray, taken: int, result: Result) -> Arrivals:
        """Part the late rows from the others. What comes behind rows that have been taken is late, too."""
        late = arrivals.behind | (arrivals.keys.ts < bounds[arrivals.segment])
        result.late = int(np.count_nonzero(late))
        if result.late:
            sources = np.array([s.source for s in header.segments])[arrivals.segment[late]]
            result.late_of = {int(s): int(n) for s, n in zip(*np.unique(sources, return_counts=True), strict=True)}
        if self.stage.doors:
            late |= arrivals.keys.ts < taken
            result.missed = int(np.count_nonzero(late)) - result.late
        if result.late + result.missed == 0:
            return arrivals
        lost = np.flatnonzero(late)
        result.changes += [self._late_rows(o, arrivals.take(lost)) for o in self.stage.outputs if o.late]
        return arrivals.take(np.flatnonzero(~late))

    def _late_rows(self, output: Output, rows: Arrivals) -> tuple[str, Changes]:
        """The rows of `late(s)`, with their time."""
        wanted = all_true(rows.inputs, output.masks)
        rows = rows if wanted is None else rows.take(np.flatnonzero(wanted))
        columns = [rows.inputs.column(i) for _, i in output.columns]
        columns.append(pa.array(rows.keys.ts, pa.int64()).cast(TIME_COLUMN.type))
        batch = pa.RecordBatch.from_arrays(columns, [n for n, _ in output.columns] + [TIME_COLUMN.name])
        return output.query, Changes.of(1, rows.keys, batch)

    def _zone_of(self, arrivals: Arrivals) -> Zone:
        """Arrivals as rows of the zone, sorted."""
        columns = self.intake.columns(arrivals.inputs)
        rows = Rows(arrivals.keys, columns)
        if self._carried:
            names = [f"i{i}" for i in self._carried]
            carry = pa.RecordBatch.from_arrays([arrivals.inputs.column(i) for i in self._carried], names)
        else:
            carry = empty_batch(len(arrivals))
        wanted = [all_true(arrivals.inputs, o.masks) for o in self.stage.outputs]
        if self.uniques is not None:
            wanted.append(all_true(arrivals.inputs, self.stage.members))
        return Zone(rows, carry, wanted).sorted()

    # ---- queries without windows ----------------------------------------------------------------------------------

    def _pass_through(self, fresh: Arrivals | None, result: Result) -> None:
        """Rows that cannot change leave at once; IN ORDER waits for the frontier, and so does FINAL if rows may be taken back."""
        gone, new = self._signed(fresh) if fresh is not None else (self.zone.slice(0, 0),) * 2
        waits = (Emit.FINAL_IN_ORDER, Emit.FINAL) if self.stage.signed else (Emit.FINAL_IN_ORDER,)
        waiting = [o.emit in waits for o in self.stage.outputs]
        if any(waiting):
            left = np.ones(len(self.zone), np.bool_)
            places = self.zone.rows.keys.locate(gone.rows.keys)
            left[places[places >= 0]] = False
            self.zone, _ = (self.zone.take(np.flatnonzero(left)) if len(gone) else self.zone).merge(new)
        final = self._final_rows(self.zone)
        for i, output in enumerate(self.stage.outputs):
            if not waiting[i]:
                self._emit_rows(result, output, gone, _where(gone.wanted[i], np.arange(len(gone))), [], -1)
            source = self.zone.slice(0, final) if waiting[i] else new
            self._emit_rows(result, output, source, _where(source.wanted[i], np.arange(len(source))), [], 1)
        self.zone = self.zone.slice(final, len(self.zone))

    def _signed(self, fresh: Arrivals) -> tuple[Zone, Zone]:
        """What is taken back, and what comes."""
        if fresh.sign is None:
            return self.zone.slice(0, 0), self._zone_of(fresh)
        return tuple(self._zone_of(fresh.take(np.flatnonzero(fresh.sign == sign))) for sign in (-1, 1))  # type: ignore[return-value]

    def _final_rows(self, zone: Zone) -> int:
        bound = self.clock.frontier if self.stage.by_instant else self.clock.final_before
        return int(zone.rows.ts.searchsorted(bound, side="left"))

    def standing(self, query: str) -> tuple[int, int, int, int]:
        """How far the results of a query are: frontier, before which time they are final, clock, and where time ended.

        What the clock makes at its own time may still come, and so may results of a pattern that ends in a negation.
        """
        clock, pattern = self.clock, self.stage.pattern
        timed = self.stage.has_peers or any(r.query == query and not r.by_rows for r in self.stage.reports)
        frontier, final = clock.frontier, clock.frontier if timed else clock.final_before
        if pattern is not None:
            frontier, final = (decided_before(frontier, time, pattern) for time in (frontier, final))
        return frontier, final, clock.latest, clock.last

    # ---- patterns -------------------------------------------------------------------------------------------------

    def _match(self, matching: Matching, fresh: Arrivals | None, result: Result, times: Times) -> None:
        old, new, removed, is_new = self._merge(fresh)
        clock = self.clock
        frontiers = tuple(c.frontier for c in clock.sources)
        passed = Passed(times.clock, times.next_clock, frontiers, clock.final_before, clock.furthest)
        if matching.spec.slack is not None:
            taken = clock.taken_before(self.stage.doors)
            passed = Passed(taken, taken, (taken,) * len(clock.sources), taken)
        final = int(new.rows.ts.searchsorted(passed.final_before, side="left"))
        result.changes += matching.run(old.rows, new.rows, removed, is_new, final, passed)
        if self.stage.signed:
            self._let_go(old, removed)
        for columns in matching.settle(new.rows, final, passed):
            self.evaluator.touch(columns)
            self.evaluator.release(columns)
        self.zone = new.slice(final, len(new)) if final else new

    # ---- joins ----------------------------------------------------------------------------------------------------

    def _join(self, joining: Joining, fresh: Arrivals | None, result: Result, times: Times) -> None:
        old, new, removed, is_new = self._merge(fresh)
        final = self._final_rows(new)
        result.changes += joining.run(old.rows, new.rows, removed, is_new, final, times)
        if self.stage.signed:
            self._let_go(old, removed)
        for columns in joining.settle(self.clock.frontier):
            self.evaluator.touch(columns)
            self.evaluator.release(columns)
        self.zone = new.slice(final, len(new)) if final else new

    # ---- queries with windows -------------------------------------------------------------------------------------

    def _evaluate(self, fresh: Arrivals | None, result: Result, times: Times) -> None:
        old, new, removed, is_new = self._merge(fresh) if self.uniques is None else self._merge_unique(fresh, self.uniques)
        for lives in self.lives:
            lives.assign(new.rows)
            for table in (lives.index, *lives.pairs):
                self._renumber(table, new.rows.columns[table])
        self.evaluator.grow()
        plans = [self._plan(i, o, old, new, removed, is_new) for i, o in enumerate(self.stage.outputs)]
        reporting = Reporting(self.stage, self.tables, self.evaluator, times) if self.stage.reports else None
        first = self.evaluator.next_row
        if reporting:
            self.evaluator.own(new.rows.columns)
            self.evaluator.places = (first, old.rows.keys)
        before = self._read_old(old, plans, reporting.note(old, new, removed, is_new) if reporting else ())
        final = self._final_rows(new)
        zone = Run(first, new.rows.ts, new.rows.columns)
        if reporting:
            self.evaluator.places = (first, new.rows.keys)
            reporting.rows(first, final, len(new))
        done = _union([np.arange(final)] if self._any_final() else [p.new[p.new < final] for p in plans])
        # Rows may still come at the frontier itself, so what leaves only after it must stay.
        drain: int | None = times.next_frontier
        if drain == END_OF_TIME:
            last = int(new.rows.ts[-1]) if len(new) else times.frontier
            drain = reporting.drain(last, self.clock.last) if reporting else None
        ended = reporting is not None and times.next_frontier == END_OF_TIME > times.frontier
        end = self.clock.last if ended and self.clock.last > START_OF_TIME else None  # without a clock there is no last look
        early = self.evaluator.permanent(zone, final, done, drain, reporting.final_asks() if reporting else (), end)
        for lives in self.lives:
            lives.settle(new.rows.slice(0, final))
        late_events = _union([p.new[p.new >= final] - final for p in plans])
        late = self.evaluator.temporary(zone, final, late_events, reporting.open_asks() if reporting else ())
        self._emit(result, plans, old, new, final, removed, before, (done, early), (late_events + final, late))
        if reporting:
            result.changes += reporting.emit()
        if self.evaluator.stores_rows:
            self.reservoir.append(new.rows.slice(0, final))
        self.evaluator.settle(final)
        self._settle_lives(new, final)
        if self.uniques is None:
            if self.stage.signed:
                self._let_go(old, removed)
            self.zone = new.slice(final, len(new)) if final else new
        else:
            self._settle_unique(self.uniques)

    def _let_go(self, old: Zone, removed: np.ndarray) -> None:
        """Rows that were taken back hold their keys no longer."""
        columns = old.rows.take(np.flatnonzero(removed)).columns
        self.evaluator.touch(columns)
        self.evaluator.release(columns)

    def _renumber(self, table: int, numbers: np.ndarray) -> None:
        """The rows that count have these numbers now: remember it for the zone, of which they may be only some."""
        self.evaluator.touched[table].append(numbers)
        if self.uniques is not None:
            column = self.zone.rows.columns[table].copy()
            column[self.kept] = numbers
            self.zone.rows.columns[table] = column

    def _settle_lives(self, new: Zone, final: int) -> None:
        """Lives that are over are forgotten, and keys that were silent for too long."""
        if not self.lives:
            return
        rows, still = new.rows.slice(0, final), new.rows.slice(final, len(new))
        if not self.evaluator.stores_rows:
            self.evaluator.release(rows.columns)
        for lives in self.lives:
            evaluator = self.evaluator
            lives.purge(self.clock.frontier, still.columns, evaluator.tallies, evaluator.rings, evaluator.touched)

    def _merge(self, fresh: Arrivals | None) -> tuple[Zone, Zone, np.ndarray, np.ndarray]:
        """The zone as it was and as it is, and which rows of either are not in the other."""
        old = self.zone
        removed = np.zeros(len(old), np.bool_)
        if fresh is None:
            return old, old, removed, np.zeros(len(old), np.bool_)
        incoming = self._incoming(fresh, removed)
        new, is_new = (old.take(np.flatnonzero(~removed)) if removed.any() else old).merge(incoming)
        return old, new, removed, is_new

    def _merge_unique(self, fresh: Arrivals | None, uniques: Uniques) -> tuple[Zone, Zone, np.ndarray, np.ndarray]:
        """The same among the rows that count. A row that comes late may count in the place of one that was there."""
        before, after, _, is_fresh = self._merge(fresh)
        uniques.grow()
        kept = uniques.kept(after.rows.ts, after.rows.columns)
        member = after.wanted[-1]
        kept = kept if member is None else kept & member
        was_kept = np.zeros(len(after), np.bool_)
        was_kept[~is_fresh] = self.kept
        old, new = before.take(np.flatnonzero(self.kept)), after.take(np.flatnonzero(kept))
        removed = ~kept[~is_fresh][self.kept]
        self.zone, self.kept = after, kept
        return old, new, removed, ~was_kept[kept]

    def _settle_unique(self, uniques: Uniques) -> None:
        """Final rows leave the zone; those that did not count hold nothing any more."""
        final = self._final_rows(self.zone)
        rows = self.zone.rows.slice(0, final)
        self.evaluator.touch(rows.columns)
        if self.stage.lets_go:
            self.evaluator.release(rows.take(np.flatnonzero(~self.kept[:final])).columns)
        gone = uniques.settle(rows.ts, rows.columns, self.clock.frontier)
        self.evaluator.touched[uniques.index].append(gone)
        self.zone, self.kept = self.zone.slice(final, len(self.zone)), self.kept[final:]

    def _incoming(self, fresh: Arrivals, removed: np.ndarray) -> Zone:
        """The rows that come in; what is taken back is marked in `removed`."""
        minus = None if fresh.sign is None else np.flatnonzero(fresh.sign < 0)
        if minus is not None and len(minus):
            gone = fresh.take(minus)
            places = self.zone.rows.keys.locate(gone.keys)
            removed[places[places >= 0]] = True
            fresh = fresh.take(np.flatnonzero(fresh.sign > 0)) if fresh.sign is not None else fresh
        incoming = self._zone_of(fresh)
        for i, table in enumerate(self.tables):
            numbers = incoming.rows.columns[i]
            if self.stage.tables[i].derived:
                continue
            table.hold(numbers)
            self.evaluator.touched[i].append(numbers)
        return incoming

    def _any_final(self) -> bool:
        return any(o.emit is not Emit.CHANGES for o in self.stage.outputs)

    def _plan(self, index: int, output: Output, old: Zone, new: Zone, removed: np.ndarray, is_new: np.ndarray) -> dirty.Plan:
        if output.emit is not Emit.CHANGES:
            return dirty.nothing()
        plan = dirty.plan(self.stage, output, old.rows, new.rows, removed, is_new, [t.capacity for t in self.tables])
        return dirty.Plan(_where(old.wanted[index], plan.old), _where(new.wanted[index], plan.new))

    def _read_old(self, old: Zone, plans: list[dirty.Plan], asks: Asks) -> tuple[np.ndarray, list[Reading]]:
        """What was said before about the events whose results may change."""
        events = _union([p.old for p in plans])
        zone = Run(self.evaluator.next_row, old.rows.ts, old.rows.columns)
        return events, self.evaluator.temporary(zone, 0, events, asks)

    def _emit(
        self, result: Result, plans: list[dirty.Plan], old: Zone, new: Zone, final: int, removed: np.ndarray,
        before: tuple[np.ndarray, list[Reading]], early: tuple[np.ndarray, list[Reading]], late: tuple[np.ndarray, list[Reading]],
    ) -> None:  # fmt: skip
        for i, output in enumerate(self.stage.outputs):
            if output.emit is not Emit.CHANGES:
                rows = _where(new.wanted[i], np.arange(final))
                self._emit_rows(result, output, new, rows, self._metrics(output, early, rows), 1)
                continue
            plan = plans[i]
            split = int(plan.new.searchsorted(final))
            parts = [self._metrics(output, early, plan.new[:split]), self._metrics(output, late, plan.new[split:])]
            now = [a.append(b) for a, b in zip(*parts, strict=True)]
            was = self._metrics(output, before, plan.old)
            take_back, say = dirty.differences(old.rows, new.rows, plan, was, now, removed)
            self._emit_rows(result, output, old, plan.old[take_back], [m.take(take_back) for m in was], -1)
            self._emit_rows(result, output, new, plan.new[say], [m.take(say) for m in now], 1)

    def _metrics(self, output: Output, readings: tuple[np.ndarray, list[Reading]], events: np.ndarray) -> list[MetricColumn]:
        """The metrics of an output at some of the events that were read."""
        read, values = readings
        if len(events) == 0:
            return [MetricColumn(np.empty(0, np.int64), np.empty(0, np.bool_)) for _ in output.metrics]
        place = read.searchsorted(events)
        columns = [metric_column(self.stage, m, values) for m in output.metrics]
        return columns if len(events) == len(read) else [c.take(place) for c in columns]

    def _emit_rows(
        self, result: Result, output: Output, zone: Zone, rows: np.ndarray, metrics: list[MetricColumn], sign: int
    ) -> None:
        if len(rows) == 0 or output.late:
            return
        carry = zone.carry if len(rows) == len(zone) else take(zone.carry, rows)
        columns = [carry.column(self._carried.index(i)) for _, i in output.columns]
        columns += [to_arrow(self.stage, m, c, self.tables) for m, c in zip(output.metrics, metrics, strict=True)]
        names = [n for n, _ in output.columns] + [m.name for m in output.metrics]
        keys = zone.rows.keys if len(rows) == len(zone) else zone.rows.keys.take(rows)
        batch = pa.RecordBatch.from_arrays(columns, names)
        result.changes.append((output.query, Changes.of(sign, keys, batch)))


def _where(wanted: np.ndarray | None, rows: np.ndarray) -> np.ndarray:
    return rows if wanted is None else rows[wanted[rows]]


def _union(parts: list[np.ndarray]) -> np.ndarray:
    """Sorted indexes that occur in any part."""
    filled = [p for p in parts if len(p)]
    if not filled:
        return np.empty(0, np.int64)
    return filled[0] if len(filled) == 1 else np.unique(np.concatenate(filled))
