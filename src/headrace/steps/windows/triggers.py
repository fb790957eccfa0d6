"""When a window that is not looked at by the clock alone is looked at, and how far its rows have moved by then.

A fire is one look at one window, or at one partition of it: after a row, before a row, at a time, or after all rows of one time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.aggregates.tally import CountTally, Moves
from headrace.changes.keys import Keys
from headrace.kernels.codes import NULL
from headrace.kernels.windows import reports
from headrace.plan.triggers import EveryField, EveryInstant, EveryRows, EveryTime
from headrace.plan.windows import FieldWindow, RangeWindow, SpanWindow, UntilWindow
from headrace.program.windows import Report, WindowStage
from headrace.state.reservoir import RowRange
from headrace.steps.windows.fields import Positions
from headrace.steps.windows.looks import Ask, Looks


@dataclass(slots=True)
class Firings:
    """Looks in the order in which they happen."""

    place: Keys
    entered: np.ndarray
    left: np.ndarray
    part: np.ndarray  # the partition it is about
    mark: np.ndarray | None = None  # tells several at one place apart
    row: np.ndarray | None = None  # where it is known: the last row that it sees

    def __len__(self) -> int:
        return len(self.place)

    def looks(self, at: np.ndarray, key: np.ndarray) -> Looks:
        """Looks at single keys: which fire, and the key."""
        place, mark = self.place.take(at), None if self.mark is None else self.mark[at]
        return Looks(place.ts, key, self.entered[at], self.left[at], place, mark)


@dataclass(slots=True)
class Pass:
    """One pass over rows: what moves, and what is known of the rows besides their columns."""

    stage: WindowStage
    rows: RowRange
    keys: Keys
    moves: Moves
    counter: CountTally | None  # of the rows of each partition
    positions: Positions | None  # of the field that lets it look
    leaving: np.ndarray | None  # the positions of rows that leave, where the window is measured on that field too
    filled: bool  # whether any row has come before
    end: int | None  # if the input ends: how far time was


def fired(report: Report, pass_: Pass, ask: Ask) -> Firings:
    """All looks of a report that are asked for."""
    match report.trigger:
        case EveryRows():
            return _after_rows(report, report.trigger, pass_, ask)
        case EveryField():
            return _before_rows(report, report.trigger, pass_, ask)
        case EveryInstant():
            return _after_instants(report, report.trigger, pass_, ask)
        case EveryTime():
            return _at_times(report, report.trigger, pass_, ask)
    raise AssertionError(f"not a trigger of a measured window: {report.trigger}")


def _parts(report: Report, pass_: Pass) -> tuple[np.ndarray, np.ndarray]:
    """The partition of every row, and which row of it each is."""
    rows = pass_.rows
    n = len(rows.ts)
    if report.partition is None:
        return np.zeros(n, np.int32), rows.first + 1 + np.arange(n, dtype=np.int64)
    part, counter = rows.columns[report.partition], pass_.counter
    assert counter is not None, "partitions are counted"
    out = np.empty(n, np.int64)
    reports.ordinals(part, counter.counts.copy(), out)
    return part, out


def _after_rows(report: Report, trigger: EveryRows, pass_: Pass, ask: Ask) -> Firings:
    part, ordinal = _parts(report, pass_)
    chosen = ordinal % trigger.every == 0
    index = np.arange(len(part)) + pass_.rows.first
    chosen &= (index >= ask.start) & (index < ask.stop)
    if ask.only is not None and report.partition is not None:
        chosen &= ask.only[part]
    at = np.flatnonzero(chosen)
    moves = pass_.moves
    parts = part[at] if report.partition is not None else np.zeros(len(at), np.int32)
    return Firings(pass_.keys.take(at), moves.enter_end[at], moves.leave_end[at], parts)


def _before_rows(report: Report, trigger: EveryField, pass_: Pass, ask: Ask) -> Firings:
    """A position that passes multiples of `every` lets them be looked at, right before the row that brings it."""
    positions, rows = pass_.positions, pass_.rows
    assert positions is not None, "the field has positions"
    window = pass_.stage.program.windows[pass_.stage.program.tallies[report.presence].window].window
    size = window.size if isinstance(window, FieldWindow) and pass_.leaving is not None else None
    row, mark = positions.passed(trigger.every, size)
    wanted = (row + rows.first >= ask.start) & (row + rows.first < ask.stop)
    row, mark = row[wanted], mark[wanted]
    # A window of time has moved on to the time of the row; one of rows moves only when the row enters.
    timed = isinstance(window, RangeWindow)
    lags = isinstance(window, RangeWindow) and window.lag > 0
    moves = pass_.moves
    entered = (moves.enter_end if lags else _padded(moves.enter_end))[row]
    left = (moves.leave_end if timed else _padded(moves.leave_end))[row]
    place = pass_.keys.take(row)
    last = None if pass_.end is None else positions.next_mark(trigger.every)
    if last is not None and pass_.end is not None:
        place = place.append(Keys.of_clock(np.array([pass_.end])))
        gone = len(moves.leave_row) if timed else _padded(moves.leave_end)[-1]
        entered, left = np.append(entered, len(moves.enter_row)), np.append(left, gone)
        mark = np.append(mark, last)
    if size is not None and pass_.leaving is not None:
        left = pass_.leaving.searchsorted(mark * trigger.every - size, side="right")
    return Firings(place, entered, left, np.zeros(len(place), np.int32), mark)


def _padded(ends: np.ndarray) -> np.ndarray:
    """How far rows had moved before each row, and after the last."""
    return np.concatenate((np.zeros(1, np.int64), ends))


def _at_times(report: Report, trigger: EveryTime, pass_: Pass, ask: Ask) -> Firings:
    """The clock looks at a window that does not empty by itself: from the first row on, and at the end up to the last."""
    rows = pass_.rows
    window = pass_.stage.program.windows[pass_.stage.program.tallies[report.presence].window].window
    start, stop = ask.start, ask.stop
    if pass_.end is not None:
        stop = min(stop, trigger.first_at(pass_.end) + 1)
    if isinstance(window, SpanWindow) and window.stop is not None:
        stop = min(ask.stop, window.stop + 1)
    if len(rows.ts):
        start = start if pass_.filled else max(start, int(rows.ts[0]))
    elif not pass_.filled:
        stop = start
    first = trigger.first_at(start)
    times = np.arange(first, stop, trigger.every, dtype=np.int64) if first < stop else np.empty(0, np.int64)
    at = rows.ts.searchsorted(times, side="right")
    entered, left = _padded(pass_.moves.enter_end)[at], _padded(pass_.moves.leave_end)[at]
    return Firings(Keys.of_clock(times), entered, left, np.zeros(len(times), np.int32))


def until(window: UntilWindow, every: int, gone: RowRange, ask: Ask, entered: int) -> Firings | None:
    """All windows that end when the time has come, and hold a row; `gone` are their rows. None: the time has not come."""
    if not ask.start <= window.stop < ask.stop or len(gone.ts) == 0:
        return None
    # Long after the last row, there are more windows without any than could be numbered.
    longest, shortest = ((window.stop - int(ts)) // every + 1 for ts in (gone.ts[0], gone.ts[-1]))
    count = longest - shortest + 1
    starts = window.stop - every * np.arange(longest, shortest - 1, -1, dtype=np.int64)
    return Firings(
        Keys.of_clock(np.full(count, window.stop, np.int64)), np.full(count, entered, np.int64),
        gone.ts.searchsorted(starts, side="right"), np.zeros(count, np.int32), (window.stop - starts) // every,
    )  # fmt: skip


def _after_instants(report: Report, trigger: EveryInstant, pass_: Pass, ask: Ask) -> Firings:
    rows, moves = pass_.rows, pass_.moves
    ts, n = rows.ts, len(rows.ts)
    ends = instants(rows, report.batch)
    wanted = (ts[ends] >= ask.start) & (ts[ends] < ask.stop)
    part = np.zeros(len(ends), np.int32)
    at = ends
    if trigger.rows is not None:
        parts, ordinal = _parts(report, pass_)
        run = ends.searchsorted(np.arange(n))
        full = np.flatnonzero(ordinal % trigger.rows == 0)
        which = parts if report.partition is not None else np.zeros(n, np.int32)
        pairs = np.unique(np.stack((run[full], which[full].astype(np.int64))), axis=1)
        chosen = wanted[pairs[0]] if len(ends) else np.zeros(0, np.bool_)
        at, part = ends[pairs[0][chosen]], pairs[1][chosen].astype(np.int32)
        wanted = np.ones(len(at), np.bool_)
    at, part = at[wanted], part[wanted]
    place = Keys.of_clock(ts[at]) if report.batch is None else pass_.keys.take(at)
    return Firings(place, moves.enter_end[at], moves.leave_end[at], part, row=at)


def instants(rows: RowRange, batch: int | None) -> np.ndarray:
    """The last row of every time, or of every batch."""
    ts = rows.ts
    if len(ts) == 0:
        return np.empty(0, np.int64)
    ends = ts[1:] != ts[:-1]
    if batch is not None:
        numbers = rows.columns[batch]
        ends |= numbers[1:] != numbers[:-1]
    return np.flatnonzero(np.append(ends, True))


def came_then(report: Report, pass_: Pass, fires: Firings, presence: CountTally) -> Looks:
    """Looks at the groups that had a row at that time or in that batch."""
    rows = pass_.rows
    ends = instants(rows, report.batch)
    run = ends.searchsorted(np.arange(len(rows.ts)))
    counts = np.flatnonzero(presence.at.code(rows.columns) < NULL)
    keys = presence.at.keys(rows.columns)
    pairs = np.unique(np.stack((run[counts], keys[counts].astype(np.int64))), axis=1)
    assert fires.row is not None, "instants end with a row"
    of = ends[pairs[0]] if len(ends) else np.empty(0, np.int64)
    place = fires.row.searchsorted(of)  # they are some of the instants
    hit = place < len(fires)
    hit[hit] = fires.row[place[hit]] == of[hit]
    return fires.looks(place[hit], pairs[1][hit].astype(np.int32))
