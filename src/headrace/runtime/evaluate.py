"""Evaluates the windows of a stage for the events of a batch, and moves its state along with the frontier.

State always stands at the frontier: every tally holds the window as it is just before the first row that is not final. Final rows
move it for good. Rows that may still be joined by late ones ("open") are evaluated from there and the moves taken back, so a
late row needs nothing undone. Everything is exact, so taking back restores every bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.operators.queue import QueueTally
from headrace.operators.sums import DecimalSumTally, DoubleSumTally, IntegerSumTally, MomentsTally
from headrace.operators.tally import CountTally, DistinctTally
from headrace.operators.windows import Rings, edges_of, range_moves, rows_moves, unbounded_moves
from headrace.plan.aggregates import decimal_parts, result_type
from headrace.plan.aggregates import function as aggregate_function
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow
from headrace.runtime.reservoir import Reservoir, Run, join
from headrace.stages.program import Stage, TableRole, Tally, TallyKind, VectorKind

if TYPE_CHECKING:
    from headrace.operators.moves import Moves
    from headrace.operators.tally import Reading, TallyState
    from headrace.runtime.rows import Layout
    from headrace.runtime.tables import KeyTable


def make_tally(stage: Stage, spec: Tally, layout: Layout, tables: list[Any]) -> TallyState:
    """The state for a tally, chosen by its kind and by how its values lie in memory."""
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
            asked = [m for o in stage.outputs for m in o.metrics if stage.tallies[m.tally] == spec]
            return DoubleSumTally(spec, layout, mean=any(m.function == "AVG" for m in asked))
        case VectorKind.INT:
            return IntegerSumTally(spec, layout)
        case VectorKind.DECIMAL:
            assert vector.input is not None
            kind = stage.inputs[vector.input].type
            mean = result_type(aggregate_function("AVG"), kind)
            return DecimalSumTally(spec, layout, decimal_parts(mean)[1] - decimal_parts(kind)[1])
    raise AssertionError(f"no sums over {vector.kind}")


@dataclass(slots=True)
class Wanted:
    """Which of the events of a pass are read."""

    events: np.ndarray  # indexes


class Evaluator:
    """The windows and tallies of one stage in one bucket."""

    def __init__(self, stage: Stage, layout: Layout, tables: list[KeyTable], reservoir: Reservoir) -> None:
        """At the beginning of time."""
        self.stage, self.layout, self.tables, self.reservoir = stage, layout, tables, reservoir
        self.offsets = edges_of(stage)
        self.edges = dict.fromkeys(self.offsets, 0)  # number of the next row to pass each edge
        self.tallies = [make_tally(stage, spec, layout, tables) for spec in stage.tallies]
        self.rings = {
            i: Rings.empty(w.window, w.partitions, layout.types)
            for i, w in enumerate(stage.windows)
            if isinstance(w.window, RowsWindow) and w.partitions is not None
        }
        self.stores_rows = stage.stores_rows
        self.numbered = 0  # rows that have become final, where no reservoir counts them
        self.touched: list[list[np.ndarray]] = [[] for _ in tables]
        self._freed = {stage.tables[i] for i in range(len(tables)) if _lets_go(stage, i)}

    def grow(self) -> None:
        """Make room for the keys that have come."""
        for spec, tally in zip(self.stage.tallies, self.tallies, strict=True):
            tally.grow(self.tables[spec.group].capacity)
            if isinstance(tally, DistinctTally):
                tally.grow_pairs(self.tables[tally.pairs].capacity)
        for ring in self.rings.values():
            ring.grow(self.tables[ring.partitions].capacity)

    @property
    def next_row(self) -> int:
        """The number of the first row that is not final."""
        return self.reservoir.count if self.stores_rows else self.numbered

    def permanent(self, zone: Run, final: int, events: np.ndarray, drain: int | None) -> list[Reading]:
        """Move the state over the first `final` rows of the zone, and on to the time `drain` where it is given."""
        rows = Run(zone.first, zone.ts[:final], [c[:final] for c in zone.columns])
        bound = drain if drain is not None else (int(rows.ts[-1]) if final else None)
        edges = {} if bound is None else self._read_edges(zone, bound)
        moves = self._moves(zone, rows, edges, commit=True)
        readings = self._run(moves, rows, events)
        self.touch(rows.columns)
        for offset, edge in edges.items():
            self.edges[offset] = edge.first + len(edge.ts)
            self.touch(edge.columns)
        self._passed = edges.get(self.offsets[-1]) if self.offsets else None
        return readings

    def temporary(self, zone: Run, start: int, events: np.ndarray) -> list[Reading]:
        """Read the given events among the rows of the zone from `start` on, and leave the state as it was."""
        if len(events) == 0:
            return [{} for _ in self.tallies]
        rows = Run(zone.first + start, zone.ts[start:], [c[start:] for c in zone.columns])
        last = int(events[-1]) + 1
        rows = Run(rows.first, rows.ts[:last], [c[:last] for c in rows.columns])
        edges = self._read_edges(zone, int(rows.ts[-1]))
        moves = self._moves(zone, rows, edges, commit=False)
        return self._run_and_undo(moves, rows, events)

    def _read_edges(self, zone: Run, bound: int) -> dict[int, Run]:
        """For every edge, the rows that pass it when time moves on to `bound`."""
        return {offset: self._until(row, bound - offset, zone) for offset, row in self.edges.items()}

    def _until(self, row: int, bound: int, zone: Run) -> Run:
        runs = self.reservoir.until(row, bound) if row < self.reservoir.count else []
        at = runs[-1].first + len(runs[-1].ts) if runs else row
        start, stop = at - zone.first, int(np.searchsorted(zone.ts, bound, side="right"))
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

    def _moves(self, zone: Run, rows: Run, edges: dict[int, Run], *, commit: bool) -> list[Moves | None]:
        out: list[Moves | None] = []
        for i, program in enumerate(self.stage.windows):
            match program.window:
                case RangeWindow() as window:
                    out.append(range_moves(window, rows, edges) if edges else None)
                case RowsWindow() if i in self.rings:
                    out.append(self.rings[i].moves(rows, commit=commit))
                case RowsWindow(rows=size):
                    stop = rows.first + len(rows.ts) - size
                    out.append(rows_moves(rows, self._between(max(0, rows.first - size), max(0, stop), zone), size))
                case UnboundedWindow():
                    out.append(unbounded_moves(rows))
        return out

    def _run(self, moves: list[Moves | None], rows: Run, events: np.ndarray) -> list[Reading]:
        readings: list[Reading] = []
        for spec, tally in zip(self.stage.tallies, self.tallies, strict=True):
            move = moves[spec.window]
            if move is None:
                readings.append({})
                continue
            seen = _ends_at(move, events)
            readings.append(tally.run(seen, rows.columns[spec.group][events], self._count_beside(spec, readings)))
        return readings

    def _run_and_undo(self, moves: list[Moves | None], rows: Run, events: np.ndarray) -> list[Reading]:
        readings: list[Reading] = []
        undo: list[tuple[TallyState, Moves]] = []
        parts: dict[tuple[int, int], Moves] = {}
        for spec, tally in zip(self.stage.tallies, self.tallies, strict=True):
            keys = rows.columns[spec.group][events]
            part = parts.get((spec.window, spec.group))
            move = moves[spec.window]
            assert move is not None, "a window of open rows has edges"
            if part is None:
                active = np.zeros(self.tables[spec.group].capacity, np.bool_)
                active[keys] = True
                part = parts[spec.window, spec.group] = move.only(spec.group, active, events)
            if isinstance(tally, QueueTally):
                tally.save(np.unique(keys))
            readings.append(tally.run(part, keys, self._count_beside(spec, readings)))
            undo.append((tally, part))
        for tally, part in undo:
            tally.undo(part)
        return readings

    def _count_beside(self, spec: Tally, readings: list[Reading]) -> np.ndarray | None:
        """The count over the same values, which a sum needs to tell an empty window from a sum of zero."""
        if spec.kind not in (TallyKind.SUM, TallyKind.MOMENTS):
            return None
        beside = Tally(TallyKind.COUNT, spec.window, spec.group, spec.vector)
        return readings[self.stage.tallies.index(beside)]["value"]

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
        for program in self.stage.windows:
            if isinstance(program.window, RowsWindow) and program.partitions is None:
                needed = min(needed, max(0, self.reservoir.count - program.window.rows))
        self.reservoir.drop_before(needed)
        for row in self.edges.values():
            self.reservoir.load_ahead(row)


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
        if table in used and not isinstance(stage.windows[tally.window].window, RangeWindow):
            return False
    bases = {t.base for t in stage.tables} | {w.partitions for w in stage.windows}
    return table not in bases and stage.stores_rows
