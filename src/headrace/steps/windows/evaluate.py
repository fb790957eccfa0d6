"""Evaluates the windows of a stage for the events of a batch, and moves its state along with the frontier.

State always stands at the frontier: every tally holds the window as it is just before the first row that is not final. Final rows
move it for good. Rows that may still be joined by late ones ("open") are evaluated from there and the moves taken back, so a
late row needs nothing undone. Everything is exact, so taking back restores every bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.aggregates.moves import Moves
from headrace.aggregates.queue import QueueTally
from headrace.aggregates.sums import DecimalSumTally, DoubleSumTally, IntegerSumTally, MomentsTally
from headrace.aggregates.tally import CountTally, DistinctTally, grown
from headrace.changes.keys import Keys
from headrace.plan.aggregates import decimal_parts, result_type
from headrace.plan.aggregates import function as aggregate_function
from headrace.plan.time import START_OF_TIME
from headrace.plan.windows import (
    EveryField,
    FieldWindow,
    RangeWindow,
    RowsWindow,
    SpanWindow,
    UnboundedWindow,
    UntilWindow,
)
from headrace.program.stage import Report, Stage, TableRole, Tally, TallyKind, VectorKind
from headrace.state.reservoir import Reservoir, Run, join
from headrace.steps.windows.fields import FieldState, Positions
from headrace.steps.windows.looking import find_looks
from headrace.steps.windows.looks import Ask, Looks, Reads
from headrace.steps.windows.slices import Sliced, Slices
from headrace.steps.windows.windows import (
    Rings,
    edges_of,
    moving_windows,
    range_moves,
    rows_moves,
    span_moves,
    unbounded_moves,
    until_moves,
)

if TYPE_CHECKING:
    from headrace.aggregates.tally import Reading, TallyState
    from headrace.state.rows import Layout
    from headrace.state.tables import KeyTable
    from headrace.steps.windows.lives import Lives


Asks = Sequence[Sequence[Ask]]  # per report


def make_tally(stage: Stage, spec: Tally, layout: Layout, tables: list[Any], mean: bool) -> TallyState:
    """The state for a tally, chosen by its kind and by how its values lie in memory; `mean`: whether anybody asks for it."""
    vector = stage.vectors[spec.vector]
    match spec.kind:
        case TallyKind.COUNT:
            return CountTally(spec, layout)
        case TallyKind.DISTINCT:
            return DistinctTally(spec, layout)
        case TallyKind.QUEUE:
            return QueueTally(spec, layout, None if vector.table is None else tables[vector.table])
        case TallyKind.MOMENTS:
            return MomentsTally(spec, layout)
    match vector.kind:
        case VectorKind.DOUBLE:
            return DoubleSumTally(spec, layout, mean)
        case VectorKind.INT:
            return IntegerSumTally(spec, layout)
        case VectorKind.DECIMAL:
            assert vector.input is not None
            kind = stage.inputs[vector.input].type
            average = result_type(aggregate_function("AVG"), kind)
            return DecimalSumTally(spec, layout, decimal_parts(average)[1] - decimal_parts(kind)[1])
    raise AssertionError(f"no sums over {vector.kind}")


class Evaluator:
    """The windows and tallies of one stage in one bucket."""

    def __init__(self, stage: Stage, layout: Layout, tables: list[KeyTable], reservoir: Reservoir) -> None:
        """At the beginning of time."""
        self.stage, self.layout, self.tables, self.reservoir = stage, layout, tables, reservoir
        self.offsets = edges_of(stage)
        self.edges = dict.fromkeys(self.offsets, 0)  # number of the next row to pass each edge
        sliced = stage.sliced
        means = {m.tally for m in stage.metrics if m.function == "AVG"}
        averaged = {stage.tallies[i].vector for i in means}
        self.tallies = [
            Sliced() if i in sliced else make_tally(stage, spec, layout, tables, i in means)
            for i, spec in enumerate(stage.tallies)
        ]
        self.slices = [  # for windows of all lengths
            Slices(stage, spec, layout, lambda t: make_tally(stage, t, layout, tables, t.vector in averaged))
            for spec in stage.slices
        ]
        self._moving = moving_windows(stage)
        self._counts = {(t.window, t.group, t.vector): i for i, t in enumerate(stage.tallies) if t.kind is TallyKind.COUNT}
        self._readers = _readers(stage)
        self.rings = {
            i: Rings.empty(w.window, w.partitions, layout.types)
            for i, w in enumerate(stage.windows)
            if isinstance(w.window, RowsWindow) and w.partitions is not None
        }
        self.stores_rows = stage.stores_rows
        self.numbered = 0  # rows that have become final, where no reservoir counts them
        self.touched: list[list[np.ndarray]] = [[] for _ in tables]
        vectors = {w.field for w in stage.windows} | {r.field for r in stage.reports}
        self.fields = {v: FieldState.of(layout, v) for v in vectors if v is not None}
        self.owners = {_owner(stage, r): np.zeros(0, np.int32) for r in stage.reports if r.partition is not None}
        self.places = (0, Keys.none())  # where looks need them: the number of the first row of the zone, and the keys of all
        self.lives: dict[int, Lives] = {}  # by their table
        self.ended: set[int] = set()  # windows that end at one time, which has passed
        self.zone = Run(0, np.empty(0, np.int64), layout.empty())  # of the last pass
        self.moved: list[dict[int, Looks]] = []  # of the last pass: the looks as other windows see them
        self.looks: list[Looks] = []  # of the last pass: what every report looked at
        self.reported: list[dict[int, Reading]] = []  # and what the tallies said there
        self._freed = {stage.tables[i] for i in range(len(tables)) if _lets_go(stage, i)}

    def grow(self) -> None:
        """Make room for the keys that have come."""
        for spec, tally in zip(self.stage.tallies, self.tallies, strict=True):
            tally.grow(self.tables[spec.group].capacity)
            if isinstance(tally, DistinctTally):
                tally.grow_pairs(self.tables[tally.pairs].capacity)
        for slices in self.slices:
            slices.grow(self.tables[slices.group].capacity)
        for ring in self.rings.values():
            ring.grow(self.tables[ring.partitions].capacity)
        for (group, partition), owner in self.owners.items():
            self.owners[group, partition] = grown(owner, self.tables[group].capacity)

    def own(self, columns: list[np.ndarray]) -> None:
        """Remember in which partition each group of these rows is."""
        for (group, partition), owner in self.owners.items():
            owner[columns[group]] = columns[partition]

    def keys_of(self, rows: Run) -> Keys:
        """The order keys of rows of the zone."""
        first, keys = self.places
        return keys.slice(rows.first - first, rows.first - first + len(rows.ts))

    @property
    def next_row(self) -> int:
        """The number of the first row that is not final."""
        return self.reservoir.count if self.stores_rows else self.numbered

    def permanent(
        self, zone: Run, final: int, events: np.ndarray, drain: int | None, asks: Asks = (), end: int | None = None
    ) -> list[Reading]:
        """Move the state over the first `final` rows of the zone, and on to the time `drain` where it is given.

        `end`: the input has ended, and this is how far time was before.
        """
        self.zone = zone
        rows = Run(zone.first, zone.ts[:final], [c[:final] for c in zone.columns])
        # At the end of the input a row beyond AHEAD may be final that lies after the time the clock had.
        bounds = [*([] if drain is None else [drain]), *([int(rows.ts[-1])] if final else [])]
        bound = max(bounds, default=None)
        edges = {} if bound is None else self._read_edges(zone, bound)
        moves = self._moves(zone, rows, edges, commit=True, ended=end is not None)
        find_looks(self, rows, edges, asks, moves, end)
        readings = self._run(moves, rows, events)
        for slices in self.slices:
            slices.enter(rows)
            self._look_at(slices, asks)
            if drain is not None:
                slices.forget(drain)
        for field in self.fields.values():
            field.settle(rows)
        for i, program in enumerate(self.stage.windows):
            move = moves[i]
            if isinstance(program.window, UntilWindow) and move is not None and len(move.leave_row):
                self.ended.add(i)
                self.touch(move.leave)
        self.touch(rows.columns)
        for offset, edge in edges.items():
            self.edges[offset] = edge.first + len(edge.ts)
            self.touch(edge.columns)
        self._passed = edges.get(self.offsets[-1]) if self.offsets else self._left_field(moves)
        return readings

    def _left_field(self, moves: list[Moves | None]) -> Run | None:
        """The rows that have left for good, where a field alone decides on that."""
        move = moves[0] if len(moves) == 1 and isinstance(self.stage.windows[0].window, FieldWindow) else None
        if move is None:
            return None
        self.touch(move.leave)
        return Run(0, move.leave_row, move.leave)

    def temporary(self, zone: Run, start: int, events: np.ndarray, asks: Asks = ()) -> list[Reading]:
        """Read the given events among the rows of the zone from `start` on, and leave the state as it was."""
        kinds = [(r.by_rows, a.stop) for r, ask in zip(self.stage.reports, asks, strict=False) for a in ask]
        stop = max((stop for by_rows, stop in kinds if not by_rows), default=START_OF_TIME)
        upto = max((stop for by_rows, stop in kinds if by_rows), default=0)
        if len(events) == 0 and stop == START_OF_TIME and upto == 0:
            self.looks = [Looks.none() for _ in self.stage.reports]
            self.moved = [{} for _ in self.stage.reports]
            self.reported = [{} for _ in self.stage.reports]
            return [{} for _ in self.tallies]
        self.zone = zone
        rows = Run(zone.first + start, zone.ts[start:], [c[start:] for c in zone.columns])
        last = int(rows.ts.searchsorted(stop)) if stop > START_OF_TIME else 0
        last = max(last, int(events[-1]) + 1 if len(events) else 0, upto - rows.first)
        if self.stage.has_peers and last:
            last = int(rows.ts.searchsorted(rows.ts[last - 1], side="right"))
        rows = Run(rows.first, rows.ts[:last], [c[:last] for c in rows.columns])
        edges = self._read_edges(zone, max(stop, int(rows.ts[-1]) if last else START_OF_TIME))
        moves = self._moves(zone, rows, edges, commit=False)
        find_looks(self, rows, edges, asks, moves)
        readings = self._run_and_undo(moves, rows, events)
        for slices in self.slices:
            count = slices.count
            entered = slices.enter(rows)
            self._look_at(slices, asks)
            slices.take_back(entered, count)
        return readings

    def _look_at(self, slices: Slices, asks: Asks) -> None:
        """What reports that share slices see. They are all asked for the same."""
        ask = asks[slices.spec.reports[0]] if asks else ()
        for report, (looks, readings) in zip(slices.spec.reports, slices.read(ask), strict=True):
            self.looks[report], self.reported[report] = looks, readings

    def _reads(self, spec: Tally, moves: Moves, keys: np.ndarray) -> Reads | None:
        """Where to read a tally, if any report reads it; else it is read at the events alone."""
        mine = {}
        for i in self._readers.get((spec.window, spec.group), ()):
            of = self.stage.tallies[self.stage.reports[i].presence]
            own = self.looks[i] if of.window == spec.window else self.moved[i].get(spec.window)
            if own is not None and len(own):
                mine[i] = own
        return Reads.of(moves, keys, mine) if mine else None

    def _read_edges(self, zone: Run, bound: int) -> dict[int, Run]:
        """For every edge, the rows that pass it when time moves on to `bound`."""
        return {offset: self.until(row, bound - offset, zone) for offset, row in self.edges.items()}

    def until(self, row: int, bound: int, zone: Run) -> Run:
        """Rows from number `row` on, of the reservoir and then of the zone, as long as their time is at most `bound`."""
        runs = self.reservoir.until(row, bound) if row < self.reservoir.count else []
        at = runs[-1].first + len(runs[-1].ts) if runs else row
        start, stop = at - zone.first, int(zone.ts.searchsorted(bound, side="right"))
        if start >= 0 and stop > start:
            runs.append(Run(at, zone.ts[start:stop], [c[start:stop] for c in zone.columns]))
        return join(runs, row, self.layout)

    def _between(self, row: int, stop: int, zone: Run) -> Run:
        runs = self.reservoir.between(row, stop)
        at = max(row, zone.first)
        if stop > at:
            a, b = at - zone.first, stop - zone.first
            runs.append(Run(at, zone.ts[a:b], [c[a:b] for c in zone.columns]))
        return join(runs, row, self.layout)

    def _moves(self, zone: Run, rows: Run, edges: dict[int, Run], *, commit: bool, ended: bool = False) -> list[Moves | None]:
        out: list[Moves | None] = []
        for i, program in enumerate(self.stage.windows):
            match program.window:
                case RangeWindow() as window:
                    out.append(range_moves(window, rows, edges) if edges and i in self._moving else None)
                case RowsWindow() if i in self.rings:
                    out.append(self.rings[i].moves(rows, commit=commit))
                case RowsWindow(rows=size):
                    stop = rows.first + len(rows.ts) - size
                    out.append(rows_moves(rows, self._between(max(0, rows.first - size), max(0, stop), zone), size))
                case UnboundedWindow() as window:
                    out.append(unbounded_moves(window, rows))
                case SpanWindow() as window:
                    out.append(span_moves(window, rows))
                case UntilWindow() as window:
                    out.append(until_moves(window, rows, None))
                case FieldWindow(size=size):
                    assert program.field is not None, "the field is a vector"
                    field = self.fields[program.field]
                    on_to = self._end_of(i, field.positions(rows)) if ended else None
                    out.append(field.moves(i, size, rows, lambda a, b: self._between(a, b, zone), on_to))
        return out

    def _end_of(self, window: int, positions: Positions) -> float | None:
        """At the end of the input a window that is looked at by position moves on to the next look."""
        for report in self.stage.reports:
            if self.stage.tallies[report.presence].window == window and isinstance(report.trigger, EveryField):
                mark = positions.next_mark(report.trigger.every)
                return None if mark is None else mark * report.trigger.every
        return None

    def _run(self, moves: list[Moves | None], rows: Run, events: np.ndarray) -> list[Reading]:
        out: list[Reading] = []
        found: list[Reading] = []
        seen: dict[tuple[int, int], tuple[Moves, np.ndarray, Reads | None]] = {}  # tallies of one window and group see the same
        self.reported = [{} for _ in self.stage.reports]
        for i, (spec, tally) in enumerate(zip(self.stage.tallies, self.tallies, strict=True)):
            move, place = moves[spec.window], (spec.window, spec.group)
            if move is None or isinstance(tally, Sliced):
                out.append({})
                found.append({})
                continue
            if place not in seen:
                ends, keys = _ends_at(move, events), rows.columns[spec.group][events]
                seen[place] = ends, keys, self._reads(spec, ends, keys)
            out.append(self._tell(i, spec, tally, *seen[place], found))
        return out

    def _tell(
        self, index: int, spec: Tally, tally: TallyState, moves: Moves, keys: np.ndarray, reads: Reads | None,
        found: list[Reading],
    ) -> Reading:  # fmt: skip
        """Run a tally. `found` has the raw readings of all before it, of which a sum needs the count beside it."""
        if reads is None:
            found.append(tally.run(moves, keys, self._count_beside(spec, found)))
            return found[-1]
        merged = Moves(moves.enter, moves.enter_row, reads.entered, moves.leave, moves.leave_row, reads.left)
        found.append(tally.run(merged, reads.key, self._count_beside(spec, found)))
        for report, part in reads.parts.items():
            self.reported[report][index] = _at(found[-1], part)
        return _at(found[-1], reads.events)

    def _run_and_undo(self, moves: list[Moves | None], rows: Run, events: np.ndarray) -> list[Reading]:
        out: list[Reading] = []
        found: list[Reading] = []
        undo: list[tuple[TallyState, Moves]] = []
        active_moves: dict[tuple[int, int], tuple[Moves, Reads | None]] = {}
        self.reported = [{} for _ in self.stage.reports]
        for i, (spec, tally) in enumerate(zip(self.stage.tallies, self.tallies, strict=True)):
            if isinstance(tally, Sliced):
                out.append({})
                found.append({})
                continue
            keys = rows.columns[spec.group][events]
            move = moves[spec.window]
            assert move is not None, "a window of open rows has edges"
            if (spec.window, spec.group) not in active_moves:
                active_moves[spec.window, spec.group] = self._active(spec, move, keys, events)
            part, reads = active_moves[spec.window, spec.group]
            if isinstance(tally, QueueTally):
                tally.save(np.unique(keys if reads is None else reads.key))
            out.append(self._tell(i, spec, tally, part, keys, reads, found))
            undo.append((tally, part))
        for tally, part in undo:
            tally.undo(part)
        return out

    def _active(self, spec: Tally, moves: Moves, keys: np.ndarray, events: np.ndarray) -> tuple[Moves, Reads | None]:
        """The moves of the keys that are read, and where they are read."""
        reads = self._reads(spec, _ends_at(moves, events), keys)
        active = np.zeros(self.tables[spec.group].capacity, np.bool_)
        active[keys if reads is None else reads.key] = True
        if reads is None:
            return moves.only(spec.group, active, events), None
        entered, left = reads.entered, reads.left
        part = Moves(moves.enter, moves.enter_row, entered, moves.leave, moves.leave_row, left)
        part = part.only(spec.group, active, np.arange(len(entered)))
        return part, Reads(reads.key, part.enter_end, part.leave_end, reads.events, reads.parts)

    def _count_beside(self, spec: Tally, readings: list[Reading]) -> np.ndarray | None:
        """The count over the same values, which a sum needs to tell an empty window from a sum of zero."""
        if spec.kind not in (TallyKind.SUM, TallyKind.MOMENTS):
            return None
        return readings[self._counts[spec.window, spec.group, spec.vector]]["value"]

    def touch(self, columns: list[np.ndarray]) -> None:
        """The keys of these rows have changed, and must be saved."""
        for touched, numbers in zip(self.touched, columns, strict=False):
            if len(numbers):
                touched.append(numbers)
            if len(touched) > 1024:  # a run that is never saved must not remember every row
                touched[:] = [np.unique(np.concatenate(touched))]

    def release(self, columns: list[np.ndarray]) -> None:
        """These rows are gone: they hold their keys no longer. What UNIQUE BY and KEEP number has a life of its own."""
        for spec, table, numbers in zip(self.stage.tables, self.tables, columns, strict=False):
            if spec.role is TableRole.UNIQUE or spec.derived:
                continue
            if spec in self._freed:
                table.release(numbers)
            else:
                table.drop(numbers)

    def settle(self, rows: int) -> None:
        """The first `rows` rows of the zone are final: forget what no window can reach any more."""
        if not self.stores_rows:
            self.numbered += rows
            return
        if self._passed is not None:
            self.release(self._passed.columns)
        needed = min(self.edges.values(), default=self.reservoir.count)
        for field in self.fields.values():
            needed = min(needed, min((row for row, _ in field.tails.values()), default=needed))
        for i, program in enumerate(self.stage.windows):
            if isinstance(program.window, UntilWindow) and i not in self.ended:
                needed = 0
            if isinstance(program.window, RowsWindow) and program.partitions is None:
                needed = min(needed, max(0, self.reservoir.count - program.window.rows))
        self.reservoir.drop_before(needed)
        for row in self.edges.values():
            self.reservoir.load_ahead(row)


def _owner(stage: Stage, report: Report) -> tuple[int, int]:
    assert report.partition is not None
    return stage.tallies[report.presence].group, report.partition


def _readers(stage: Stage) -> dict[tuple[int, int], list[int]]:
    """For every window and group, the reports that read tallies of it one by one."""
    out: dict[tuple[int, int], list[int]] = {}
    sharing = {r for s in stage.slices for r in s.reports}
    for i, report in enumerate(stage.reports):
        tallies = {report.presence, *report.moved, *(m.tally for m in report.metrics)}
        for place in {(stage.tallies[t].window, stage.tallies[t].group) for t in tallies} if i not in sharing else ():
            out.setdefault(place, []).append(i)
    return out


def _at(reading: Reading, part: np.ndarray) -> Reading:
    return {name: values[part] for name, values in reading.items()}


def _ends_at(moves: Moves, events: np.ndarray) -> Moves:
    """The same moves, read at some of the events only."""
    if len(events) == len(moves.enter_end):
        return moves
    return type(moves)(
        moves.enter, moves.enter_row, moves.enter_end[events], moves.leave, moves.leave_row, moves.leave_end[events]
    )


def _lets_go(stage: Stage, table: int) -> bool:
    """Whether a number of this table means nothing once no row holds it: all that is kept for it is of windows in time."""
    if stage.lets_go:
        return True
    for tally in stage.tallies:
        used = (tally.group, tally.pairs, stage.vectors[tally.vector].table)
        if table in used and not isinstance(stage.windows[tally.window].window, RangeWindow | FieldWindow):
            return False
    bases = {t.base for t in stage.tables} | {w.partitions for w in stage.windows}
    return table not in bases and stage.stores_rows
