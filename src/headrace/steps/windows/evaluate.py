"""Evaluates the windows of a stage for the events of a batch, and moves its state along with the frontier.

State always stands at the frontier: every tally holds the window as it is just before the first row that is not final. Final rows
move it for good. Rows that may still be joined by late ones ("open") are evaluated from there and the moves taken back, so a
late row needs nothing undone. Everything is exact, so taking back restores every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from headrace.aggregates.make import make_tally
from headrace.aggregates.tally import NOTHING, DistinctTally, Moves, Reading
from headrace.changes.keys import Keys
from headrace.plan.time import START_OF_TIME
from headrace.plan.triggers import EveryField
from headrace.plan.windows import FieldWindow, RangeWindow, RowsWindow, UntilWindow
from headrace.program.aggregates import Tally, parts_read, vectors_of
from headrace.program.windows import WindowStage
from headrace.state.parts import KeyArrays, grown
from headrace.state.reservoir import Reservoir, RowRange, join
from headrace.state.rows import Layout
from headrace.state.tables import Tables
from headrace.steps.windows.fields import FieldState, Positions
from headrace.steps.windows.lifetimes import Lifetimes
from headrace.steps.windows.looking import find_looks
from headrace.steps.windows.looks import Ask, Looks, Reads
from headrace.steps.windows.slices import Sliced, Slices
from headrace.steps.windows.windows import Entering, Rings, moves_of

Asks = Sequence[Sequence[Ask]]  # per report


@dataclass(slots=True)
class Seen:
    """What one pass over rows found: the tallies at the events, the looks of every report, and the tallies there."""

    events: list[Reading]
    looks: list[Looks]
    at_looks: list[dict[int, Reading]]  # per report, by tally
    moved: list[dict[int, Looks]] = field(default_factory=list)  # per report: its looks as other windows see them
    left: RowRange | None = None  # rows that hold their keys no longer

    @staticmethod
    def nothing(tallies: int, reports: int) -> Seen:
        none = [Looks.none() for _ in range(reports)]
        return Seen([{} for _ in range(tallies)], none, [{} for _ in range(reports)], [{} for _ in range(reports)])


class Owner(KeyArrays):
    """In which partition each group is."""

    arrays: ClassVar[dict[str, str]] = {"of": "of"}

    def __init__(self) -> None:
        self.of = np.zeros(0, np.int32)


class Evaluator:
    """The windows and tallies of one stage in one bucket."""

    def __init__(self, stage: WindowStage, layout: Layout, tables: Tables, reservoir: Reservoir) -> None:
        self.stage, self.layout, self.tables, self.reservoir = stage, layout, tables, reservoir
        self.offsets = stage.program.edges
        self.edges = dict.fromkeys(self.offsets, 0)  # number of the next row to pass each edge
        self.moved_to = START_OF_TIME  # the time up to which they have moved
        sliced = stage.program.sliced
        parts = parts_read(stage.program.metrics)
        every = frozenset[str]().union(*parts.values())
        self.tallies = [
            Sliced() if i in sliced else make_tally(stage, spec, layout, tables, parts.get(i, ()))
            for i, spec in enumerate(stage.program.tallies)
        ]
        self.slices = [  # for windows of all lengths
            Slices(stage, spec, layout, lambda t: make_tally(stage, t, layout, tables, every)) for spec in stage.program.slices
        ]
        self.moving, self._peers = stage.program.moving, stage.program.has_peers
        self._flags = [np.zeros(0, np.bool_) for _ in stage.tables]  # of keys, all down but for a moment
        self._readers = _readers(stage)
        self.rings = {
            i: Rings.empty(w.window, w.partitions, layout.types)
            for i, w in enumerate(stage.program.windows)
            if isinstance(w.window, RowsWindow) and w.partitions is not None
        }
        self._until = {i for i, w in enumerate(stage.program.windows) if isinstance(w.window, UntilWindow)}
        self._pushed = [i for i, w in enumerate(stage.program.windows) if not isinstance(w.window, RangeWindow)]
        self._last_rows = [w.window.last_rows for w in stage.program.windows if w.window.last_rows is not None]
        self.stores_rows = stage.program.stores_rows
        self.nothing = Seen.nothing(len(self.tallies), len(stage.program.reports))
        self._room: list[int] = []  # for how many keys of each table there is room
        self.numbered = 0  # rows that have become final, where no reservoir counts them
        vectors = {w.field for w in stage.program.windows} | {r.field for r in stage.program.reports}
        self.fields = {v: FieldState.of(layout, v) for v in vectors if v is not None}
        self.owners = {
            (stage.program.tallies[r.presence].group, r.partition): Owner()
            for r in stage.program.reports
            if r.partition is not None
        }
        self.places = (0, Keys.none())  # where looks need them: the number of the first open row, and the keys of all
        self.lives: dict[int, Lifetimes] = {}  # by their table
        self.ended: set[int] = set()  # windows that end at one time, which has passed

    def grow(self) -> None:
        if self._room == (capacities := self.tables.capacities):
            return
        self._room = capacities
        self._flags = [grown(flags, size) for flags, size in zip(self._flags, capacities, strict=True)]
        for spec, tally in zip(self.stage.program.tallies, self.tallies, strict=True):
            tally.grow(self.tables[spec.group].capacity)
            if isinstance(tally, DistinctTally):
                tally.grow_pairs(self.tables[tally.pairs].capacity)
        for slices in self.slices:
            slices.grow(self.tables[slices.group].capacity)
        for ring in self.rings.values():
            ring.grow(self.tables[ring.partitions].capacity)
        for (group, _), owner in self.owners.items():
            owner.grow(self.tables[group].capacity)

    def own(self, columns: list[np.ndarray]) -> None:
        """Remember in which partition each group of these rows is."""
        for (group, partition), owner in self.owners.items():
            owner.of[columns[group]] = columns[partition]

    def keys_of(self, rows: RowRange) -> Keys:
        first, keys = self.places
        return keys.slice(rows.first - first, rows.first - first + len(rows.ts))

    @property
    def next_row(self) -> int:
        """The number of the first row that is not final."""
        return self.reservoir.count if self.stores_rows else self.numbered

    def permanent(
        self, open_: RowRange, final: int, events: np.ndarray, drain: int | None, asks: Asks = (), end: int | None = None
    ) -> Seen:
        """Move the state over the first `final` open rows, and on to the time `drain` where it is given.

        `end`: the input has ended, and this is how far time was before.
        """
        if not (final or asks or drain is None or drain > self.moved_to):
            return self.nothing
        rows = open_.cut(0, final)
        # At the end of the input a row beyond AHEAD may be final that lies after the time the clock had.
        bound = drain if not final else int(rows.ts[-1]) if drain is None else max(drain, int(rows.ts[-1]))
        edges = {} if bound is None else self._read_edges(open_, bound)
        self.moved_to = self.moved_to if bound is None else max(self.moved_to, bound)
        moves = self._moves(open_, rows, edges, events, keep=True, ended=end is not None)
        seen = self._seen(open_, rows, edges, asks, moves, end)
        self._run(moves, rows, events, seen, keep=True)
        for slices in self.slices:
            slices.enter(rows)
            self._look_at(slices, asks, seen)
            if drain is not None:
                slices.forget(drain)
        for state in self.fields.values():
            state.settle(rows)
        for i in self._pushed:  # out of them go rows of other keys than those that come; rows of an edge are touched below
            move = moves[i]
            if move is not None and len(move.leave_row):
                self.tables.touch(move.leave)
                self.ended |= {i} & self._until
        self.tables.touch(rows.columns)
        for offset, edge in edges.items():
            self.edges[offset] = edge.stop
            self.tables.touch(edge.columns)
        seen.left = edges.get(self.offsets[-1]) if self.offsets else self._left_field(moves)
        return seen

    def _left_field(self, moves: list[Moves | None]) -> RowRange | None:
        """The rows that have left for good, where a field alone decides on that."""
        move = moves[0] if len(moves) == 1 and isinstance(self.stage.program.windows[0].window, FieldWindow) else None
        if move is None:
            return None
        self.tables.touch(move.leave)
        return RowRange(0, move.leave_row, move.leave)

    def temporary(self, open_: RowRange, start: int, events: np.ndarray, asks: Asks = ()) -> Seen:
        """Read the given events among the open rows from `start` on, and leave the state as it was."""
        stop, upto = self._asked(asks) if asks else (START_OF_TIME, 0)
        if len(events) == 0 and stop == START_OF_TIME and upto == 0:
            return self.nothing
        ts = open_.ts[start:]
        last = int(ts.searchsorted(stop)) if stop > START_OF_TIME else 0
        last = max(last, int(events[-1]) + 1 if len(events) else 0, upto - open_.first - start)
        if self._peers and last:
            last = int(ts.searchsorted(ts[last - 1], side="right"))
        rows = open_.cut(start, start + last)
        edges = self._read_edges(open_, max(stop, int(rows.ts[-1]) if last else START_OF_TIME))
        moves = self._moves(open_, rows, edges, events, keep=False)
        seen = self._seen(open_, rows, edges, asks, moves)
        self._run(moves, rows, events, seen, keep=False)
        for slices in self.slices:
            count = slices.count
            entered = slices.enter(rows)
            self._look_at(slices, asks, seen)
            slices.take_back(entered, count)
        return seen

    def _asked(self, asks: Asks) -> tuple[int, int]:
        """Up to which time, and up to which row, reports are asked for."""
        kinds = [(r.by_rows, a.stop) for r, ask in zip(self.stage.program.reports, asks, strict=False) for a in ask]
        times, rows = ([stop for by_rows, stop in kinds if by_rows is kind] for kind in (False, True))
        return max(times, default=START_OF_TIME), max(rows, default=0)

    def _seen(
        self,
        open_: RowRange,
        rows: RowRange,
        edges: dict[int, RowRange],
        asks: Asks,
        moves: list[Moves | None],
        end: int | None = None,
    ) -> Seen:
        """What reports look at, before any row moves."""
        if not self.stage.program.reports:
            return Seen([], [], [])
        looks, moved = find_looks(self, open_, rows, edges, asks, moves, end)
        return Seen([], looks, [{} for _ in looks], moved)

    def _look_at(self, slices: Slices, asks: Asks, seen: Seen) -> None:
        """What reports that share slices see. They are all asked for the same."""
        ask = asks[slices.spec.reports[0]] if asks else ()
        for report, (looks, readings) in zip(slices.spec.reports, slices.read(ask), strict=True):
            seen.looks[report], seen.at_looks[report] = looks, readings

    def _reads(self, spec: Tally, moves: Moves, keys: np.ndarray, seen: Seen) -> Reads | None:
        """Where to read a tally, if any report reads it; else it is read at the events alone."""
        mine = {}
        for i in self._readers.get((spec.window, spec.group), ()):
            of = self.stage.program.tallies[self.stage.program.reports[i].presence]
            own = seen.looks[i] if of.window == spec.window else seen.moved[i].get(spec.window)
            if own is not None and len(own):
                mine[i] = own
        return Reads.of(moves, keys, mine) if mine else None

    def _read_edges(self, open_: RowRange, bound: int) -> dict[int, RowRange]:
        """For every edge, the rows that pass it when time moves on to `bound`."""
        return {offset: self.until(row, bound - offset, open_) for offset, row in self.edges.items()}

    def until(self, row: int, bound: int, open_: RowRange) -> RowRange:
        """Rows from number `row` on, of the reservoir and then of the open rows, as long as their time is at most `bound`."""
        runs = self.reservoir.until(row, bound) if row < self.reservoir.count else []
        start = (runs[-1].stop if runs else row) - open_.first
        if start >= 0 and (stop := int(open_.ts.searchsorted(bound, side="right"))) > start:
            runs.append(open_.cut(start, stop))
        return join(runs, row, self.layout)

    def between(self, row: int, stop: int, open_: RowRange) -> RowRange:
        runs = self.reservoir.between(row, stop)
        at = max(row, open_.first)
        if stop > at:
            runs.append(open_.cut(at - open_.first, stop - open_.first))
        return join(runs, row, self.layout)

    def _moves(
        self, open_: RowRange, rows: RowRange, edges: dict[int, RowRange], events: np.ndarray, *, keep: bool, ended: bool = False
    ) -> list[Moves | None]:
        """What every window does, as all rows see it, or where nobody else asks, as the events do."""
        seers = None if self.stage.program.reports else events
        pass_ = Entering(open_, rows, edges, seers, keep, ended)
        return [moves_of(self, i, pass_) for i in range(len(self.stage.program.windows))]

    def end_of(self, window: int, positions: Positions) -> float | None:
        """At the end of the input a window that is looked at by position moves on to the next look."""
        for report in self.stage.program.reports:
            if self.stage.program.tallies[report.presence].window == window and isinstance(report.trigger, EveryField):
                mark = positions.next_mark(report.trigger.every)
                return None if mark is None else mark * report.trigger.every
        return None

    def _run(self, moves: list[Moves | None], rows: RowRange, events: np.ndarray, seen: Seen, *, keep: bool) -> None:
        """Run all tallies. `found` has the raw readings, of which a sum needs the count beside it."""
        found: list[Reading] = []
        same: dict[tuple[int, int], tuple[Moves, np.ndarray, Reads | None]] = {}  # tallies of one window and group see the same
        for i, (spec, tally) in enumerate(zip(self.stage.program.tallies, self.tallies, strict=True)):
            move, place = moves[spec.window], (spec.window, spec.group)
            if move is None or isinstance(tally, Sliced):
                seen.events.append({})
                found.append({})
                continue
            if place not in same:
                same[place] = self._read_at(spec, move.at(events), rows.columns[spec.group][events], seen, keep)
            part, keys, reads = same[place]
            found.append(tally.run(part, keys, NOTHING if spec.count is None else found[spec.count]["value"], keep))
            if reads is None:
                seen.events.append(found[-1])
                continue
            for report, looks in reads.parts.items():
                seen.at_looks[report][i] = _at(found[-1], looks)
            seen.events.append(_at(found[-1], reads.events))

    def _read_at(
        self, spec: Tally, moves: Moves, keys: np.ndarray, seen: Seen, keep: bool
    ) -> tuple[Moves, np.ndarray, Reads | None]:
        """The moves as events and looks see them, and the keys that they read. For a moment, only those keys need move."""
        reads = self._reads(spec, moves, keys, seen)
        if reads is not None:
            moves = Moves(moves.enter, moves.enter_row, reads.entered, moves.leave, moves.leave_row, reads.left)
            keys = reads.key
        return moves if keep else moves.only(spec.group, keys, self._flags[spec.group]), keys, reads

    def settle(self, rows: int) -> None:
        """The first `rows` open rows are final: forget what no window can reach any more."""
        if not self.stores_rows:
            self.numbered += rows
            return
        needed = min(self.edges.values(), default=self.reservoir.count)
        for state in self.fields.values():
            needed = min(needed, min((row for row, _ in state.tails.values()), default=needed))
        if not self.ended.issuperset(self._until):
            needed = 0
        for size in self._last_rows:
            needed = min(needed, max(0, self.reservoir.count - size))
        self.reservoir.drop_before(needed)
        for row in self.edges.values():
            self.reservoir.load_ahead(row)


def _readers(stage: WindowStage) -> dict[tuple[int, int], list[int]]:
    """For every window and group, the reports that read tallies of it one by one."""
    out: dict[tuple[int, int], list[int]] = {}
    sharing = {r for s in stage.program.slices for r in s.reports}
    for i, report in enumerate(stage.program.reports):
        tallies = {report.presence, *report.moved, *(m.tally for m in report.metrics)}
        for place in (
            {(stage.program.tallies[t].window, stage.program.tallies[t].group) for t in tallies} if i not in sharing else ()
        ):
            out.setdefault(place, []).append(i)
    return out


def _at(reading: Reading, part: np.ndarray) -> Reading:
    return {name: values[part] for name, values in reading.items()}


def freed_tables(stage: WindowStage) -> frozenset[int]:
    return frozenset(i for i in range(len(stage.tables)) if _lets_go(stage, i))


def _lets_go(stage: WindowStage, table: int) -> bool:
    """Whether a number of this table means nothing once no row holds it: all that is kept for it is of windows in time."""
    if stage.program.lets_go:
        return True
    for tally in stage.program.tallies:
        used = (tally.group, tally.pairs, *(stage.vectors[v].table for v in vectors_of(tally)))
        if table in used and not stage.program.windows[tally.window].window.rows_leave:
            return False
    bases = {t.base for t in stage.tables} | {w.partitions for w in stage.program.windows}
    return table not in bases and stage.program.stores_rows
