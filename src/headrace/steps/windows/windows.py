"""Windows as moves: which rows of the stage enter and leave when its events are evaluated in order.

A window holds no rows itself. Each of its edges is a place in the reservoir; edges at one distance from now are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.aggregates.tally import Moves
from headrace.kernels.windows import rings
from headrace.plan.windows import FieldWindow, RangeWindow, RowsWindow, SpanWindow, UnboundedWindow, UntilWindow
from headrace.state.parts import Which, grown

if TYPE_CHECKING:
    from headrace.state.reservoir import RowRange
    from headrace.steps.windows.evaluate import Evaluator


def _counting(n: int) -> np.ndarray:
    return np.arange(1, n + 1, dtype=np.int64)


def _none(events: RowRange) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    empty = np.empty(0, np.int64)
    return [c[:0] for c in events.columns], empty, np.zeros(len(events.ts), np.int64)


def _entered(events: RowRange, peers: bool) -> np.ndarray:
    """How many rows have entered when each is evaluated: those up to it, or all of its time, which are then all there."""
    return events.ts.searchsorted(events.ts, side="right") if peers else _counting(len(events.ts))


@dataclass(frozen=True, slots=True)
class Entering:
    """Rows that windows move over in one pass: some of the open ones, and those at the edges of windows of time."""

    open_: RowRange
    rows: RowRange
    edges: dict[int, RowRange]
    seers: np.ndarray | None  # which of the rows look; None: all
    keep: bool  # for good, not for a moment
    ended: bool  # the input has ended


def moves_of(ev: Evaluator, index: int, pass_: Entering) -> Moves | None:
    """What a window does."""
    program, rows, edges = ev.stage.program.windows[index], pass_.rows, pass_.edges
    match program.window:
        case RangeWindow() as window:
            return range_moves(window, rows, edges, pass_.seers) if edges and index in ev.moving else None
        case RowsWindow() if index in ev.rings:
            return ev.rings[index].moves(rows, commit=pass_.keep)
        case RowsWindow(rows=size):
            stop = rows.stop - size
            return rows_moves(rows, ev.between(max(0, rows.first - size), max(0, stop), pass_.open_), size)
        case UnboundedWindow() as window:
            return unbounded_moves(window, rows)
        case SpanWindow() as window:
            return span_moves(window, rows)
        case UntilWindow() as window:
            return until_moves(window, rows, None)
        case FieldWindow(size=size):
            assert program.field is not None, "the field is a vector"
            field = ev.fields[program.field]
            on_to = ev.end_of(index, field.positions(rows)) if pass_.ended else None
            return field.moves(index, size, rows, lambda a, b: ev.between(a, b, pass_.open_), on_to)
    return None  # its rows are those of a life


def range_moves(window: RangeWindow, rows: RowRange, edges: dict[int, RowRange], seers: np.ndarray | None) -> Moves:
    """`[RANGE size LAG lag]`: rows enter at distance lag and leave at distance lag + size. `seers`: None for all rows."""
    enter, leave = rows if window.lag == 0 else edges[window.lag], edges[window.lag + window.size]
    ts = rows.ts if seers is None else rows.ts[seers]
    if window.lag or window.peers:
        enter_end = enter.ts.searchsorted(ts - window.lag, side="right")
    else:
        enter_end = _counting(len(ts)) if seers is None else seers + 1
    leave_end = leave.ts.searchsorted(ts - (window.lag + window.size), side="right")
    return Moves(enter.columns, enter.numbers, enter_end, leave.columns, leave.numbers, leave_end)


def rows_moves(events: RowRange, left: RowRange, size: int) -> Moves:
    """`[ROWS n]`: when a row enters, the one n places before it leaves. `left` holds those."""
    leave_end = np.clip(events.numbers + 1 - size - left.first, 0, len(left.ts))
    return Moves(events.columns, events.numbers, _counting(len(events.ts)), left.columns, left.numbers, leave_end)


def span_moves(window: SpanWindow, events: RowRange) -> Moves:
    """`[LANDMARK FROM ..]`, `[FIXED FROM .. TO ..]`: rows of that time enter and stay."""
    first = int(events.ts.searchsorted(window.start, side="right"))
    last = len(events.ts) if window.stop is None else int(events.ts.searchsorted(window.stop, side="right"))
    _, leave_row, leave_end = _none(events)
    columns = [c[first:last] for c in events.columns]
    enter_end = np.clip(_counting(len(events.ts)) - first, 0, max(0, last - first))
    return Moves(columns, events.numbers[first:last], enter_end, [c[:0] for c in events.columns], leave_row, leave_end)


def until_moves(window: UntilWindow, events: RowRange, gone: RowRange | None) -> Moves:
    """`[LANDMARK TO ..]`: rows up to that time enter; once it has passed, all of them leave, the oldest first."""
    last = int(events.ts.searchsorted(window.stop, side="right"))
    enter_end = np.minimum(_counting(len(events.ts)), last)
    left = [c[:0] for c in events.columns] if gone is None else gone.columns
    leave_row = np.empty(0, np.int64) if gone is None else gone.numbers
    none = np.zeros(len(events.ts), np.int64)
    return Moves([c[:last] for c in events.columns], events.numbers[:last], enter_end, left, leave_row, none)


def unbounded_moves(window: UnboundedWindow, events: RowRange) -> Moves:
    """`[UNBOUNDED]`: rows enter and stay."""
    leave, leave_row, leave_end = _none(events)
    return Moves(events.columns, events.numbers, _entered(events, window.peers), leave, leave_row, leave_end)


@dataclass(slots=True)
class Rings:
    """`[ROWS n PARTITIONED BY ..]`: the last n rows of every partition, slot by slot."""

    size: int
    partitions: int  # the table that numbers them
    total: np.ndarray
    owner: np.ndarray
    rows: np.ndarray
    columns: list[np.ndarray]

    @staticmethod
    def empty(window: RowsWindow, partitions: int, types: tuple[type, ...]) -> Rings:
        none = np.zeros(0, np.int64)
        return Rings(window.rows, partitions, none, none, none, [np.zeros(0, t) for t in types])

    def grow(self, partitions: int) -> None:
        self.total = grown(self.total, partitions)
        slots = len(self.total) * self.size
        more = slots - len(self.owner)
        if more > 0:
            self.owner = np.concatenate((self.owner, np.full(more, -1, np.int64)))
            self.rows = grown(self.rows, slots)
            self.columns = [grown(c, slots) for c in self.columns]

    def moves(self, events: RowRange, *, commit: bool) -> Moves:
        """Rows enter; each pushes out the oldest of a full partition. Without `commit` nothing is remembered."""
        partition = events.columns[self.partitions]
        n, base = len(partition), len(self.owner)
        slot, out = np.empty(n, np.int64), np.empty(n, np.int64)
        touched = None if commit else np.unique(partition)
        before = None if touched is None else self.total[touched].copy()
        rings.push_out(partition, self.size, self.total, self.owner, base, slot, out)
        self.owner[slot] = -1
        leaving = out[out >= 0]
        old = leaving < base
        from_slot, from_event = np.where(old, leaving, 0), np.where(old, 0, leaving - base)

        def pick(ring: np.ndarray, fresh: np.ndarray) -> np.ndarray:
            return np.where(old, ring[from_slot], fresh[from_event]) if len(leaving) else fresh[:0]

        leave = [pick(r, c) for r, c in zip(self.columns, events.columns, strict=True)]
        moves = Moves(
            events.columns, events.numbers, _counting(n),
            leave, pick(self.rows, events.numbers), np.cumsum(out >= 0),
        )  # fmt: skip
        if touched is None:
            self.rows[slot] = events.numbers  # later rows of a slot win: assignment goes in order
            for ring, column in zip(self.columns, events.columns, strict=True):
                ring[slot] = column
        else:
            self.total[touched] = before
        return moves

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        return self.dump_at(slice(start, stop))

    def load(self, start: int, stop: int, state: dict[str, Any]) -> None:
        self.load_at(slice(start, stop), state)

    def _slots(self, which: Which) -> Which:
        if isinstance(which, slice):
            return slice(which.start * self.size, which.stop * self.size)
        return np.asarray((which[:, None].astype(np.int64) * self.size + np.arange(self.size)).reshape(-1))

    def dump_at(self, which: Which) -> dict[str, Any]:
        slots = self._slots(which)
        return {"total": self.total[which], "rows": self.rows[slots], **{f"r{i}": c[slots] for i, c in enumerate(self.columns)}}

    def load_at(self, which: Which, state: dict[str, Any]) -> None:
        slots = self._slots(which)
        self.total[which], self.rows[slots] = state["total"], state["rows"]
        for i, column in enumerate(self.columns):
            column[slots] = state[f"r{i}"]
