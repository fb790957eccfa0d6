"""Windows that are looked at by the clock: what to look at in a batch, and what of it to say.

A look at time u is final once the frontier has passed u. Under CHANGES it is said as soon as the clock (the largest time seen)
has passed u, and corrected when a late row changes it: what was said is read again from the rows as they were, and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.aggregates.metrics import MetricColumn, metric_column, to_arrow
from headrace.aggregates.tally import Reading
from headrace.changes.algebra import diff
from headrace.changes.changes import Changes
from headrace.kernels.keys.sortable import sortable_words
from headrace.plan.arrow import arrow_type
from headrace.plan.time import END_OF_TIME
from headrace.plan.triggers import ONCE, EveryField, EveryInstant, EveryTime, OnClose
from headrace.plan.windows import BOUNDS, LookedAt, RangeWindow, SpanWindow
from headrace.program.windows import Report, WindowStage
from headrace.state.open_rows import OpenRows
from headrace.state.tables import Tables
from headrace.steps.step import Results, Times
from headrace.steps.windows.evaluate import Asks, Evaluator, Seen
from headrace.steps.windows.looks import Ask, Looks


@dataclass(slots=True)
class Said:
    """What a report says at some looks."""

    looks: Looks
    metrics: list[MetricColumn]

    def beside(self, other: Said) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """What tells looks apart, here and there."""
        a, b = self.looks, other.looks
        places = a.keys.beside(b.keys) if a.place is not None and b.place is not None else ([a.time], [b.time])
        return [a.key, *places[0]], [b.key, *places[1]]

    def differs(self, other: Said) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Whether the other says something else at the same looks."""

        def at(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            out = np.zeros(len(a), np.bool_)
            for was, now in zip(self.metrics, other.metrics, strict=True):
                out |= was.take(a).differs(now.take(b))
            return out

        return at

    def append(self, other: Said) -> Said:
        if not len(self.looks) or not len(other.looks):
            return other if not len(self.looks) else self
        return Said(self.looks.append(other.looks), [a.append(b) for a, b in zip(self.metrics, other.metrics, strict=True)])


class Reporting:
    """The reports of one stage in one bucket, through one batch."""

    def __init__(self, stage: WindowStage, tables: Tables, evaluator: Evaluator, times: Times) -> None:
        self.stage, self.tables, self.evaluator, self.times = stage, tables, evaluator, times
        self.changed: list[tuple[int, np.ndarray | None] | None] = [
            None for _ in stage.program.reports
        ]  # since when, and which keys

    def note(self, old: OpenRows, new: OpenRows, removed: np.ndarray, is_new: np.ndarray) -> Asks:
        """Find what the rows of this batch may change. Gives what must be read again as it was."""
        fresh, gone = np.flatnonzero(is_new), np.flatnonzero(removed)
        firsts = [int(z.rows.ts[i[0]]) for z, i in ((new, fresh), (old, gone)) if len(i)]
        self.same = min([len(old), *(int(i[0]) for i in (fresh, gone) if len(i))])
        first = self.evaluator.next_row
        out: list[list[Ask]] = []
        for i, report in enumerate(self.stage.program.reports):
            if not report.emit.early or not firsts:
                out.append([])
                continue
            only: np.ndarray | None = None
            group = self.stage.program.tallies[report.presence].group
            table = group if not report.by_rows else self.stage.tables[group].base if report.closed_by_rows else report.partition
            if table is not None:
                only = np.zeros(self.tables[table].capacity, np.bool_)
                only[new.rows.columns[table][fresh]] = True
                only[old.rows.columns[table][gone]] = True
            if report.by_rows:
                only = None if self._shared(report) else only
                self.changed[i] = (first + self.same, only)
                out.append(_asks((first + self.same, first + len(old), only)))
            elif min(firsts) < self.times.clock:
                # A window of rows can change with rows of other groups, one of a life with rows of others of its key.
                only = only if isinstance(_window(self.stage, report), RangeWindow) and _alone(report) else None
                since = max(min(firsts), self.times.frontier)
                self.changed[i] = (since, only)
                out.append(_asks((since, self.times.clock, only)))
            else:
                out.append([])
        return out

    def _shared(self, report: Report) -> bool:
        """Whether rows of one partition change what is in the window of another."""
        program = self.stage.program.windows[self.stage.program.tallies[report.presence].window]
        if report.closed_by_rows:
            return False
        return program.window.last_rows is not None or program.window.depends_on == "positions"

    def rows(self, first: int, final: int, rows: int) -> None:
        """The open rows: the number of the first, how many are final now, and how many there are."""
        self._first, self._final, self._rows = first, first + final, first + rows

    def final_asks(self) -> Asks:
        """The looks that the frontier passes in this batch."""
        t = self.times
        return [
            self._rows_asks(i, r, self._first, self._final) or self._at_end(r)
            if r.by_rows
            else self._between(i, r, t.frontier, t.next_frontier)
            for i, r in enumerate(self.stage.program.reports)
        ]

    def open_asks(self) -> Asks:
        """The looks that the clock has passed, but not the frontier."""
        t = self.times
        out: list[list[Ask]] = []
        for i, report in enumerate(self.stage.program.reports):
            if not report.emit.early:
                out.append([])
            elif report.by_rows:
                out.append(self._rows_asks(i, report, self._final, self._rows))
            else:
                out.append(self._between(i, report, t.next_frontier, t.next_clock))
        return out

    def _between(self, index: int, report: Report, start: int, stop: int) -> list[Ask]:
        """Under FINAL all looks; under CHANGES those that may have changed, and all that are new."""
        if not report.emit.early:
            return _asks((start, stop, None))
        since, only = self.changed[index] or (stop, None)
        clock = self.times.clock
        return _asks((max(start, since), min(stop, clock), only), (max(start, clock), stop, None))

    def _rows_asks(self, index: int, report: Report, start: int, stop: int) -> list[Ask]:
        """The same for looks that rows let happen."""
        if not report.emit.early:
            return _asks((start, stop, None))
        since, only = self.changed[index] or (stop, None)
        return _asks((max(start, since), stop, only))

    def _at_end(self, report: Report) -> list[Ask]:
        """The end of the input is one more look, also if no row lets it happen."""
        ends = self.times.next_frontier == END_OF_TIME > self.times.frontier and isinstance(report.trigger, EveryField | OnClose)
        return [Ask(self._final, self._final)] if ends else []

    def drain(self, last_row: int, end: int) -> int:
        """At the end of the input, the time up to which some window may still hold a row; `end` is how far time was."""
        reach = 0
        for report in self.stage.program.reports:
            window = _window(self.stage, report)
            if isinstance(window, RangeWindow) and isinstance(report.trigger, EveryTime):
                reach = max(reach, window.size + window.lag + min(report.trigger.every, ONCE // 4))
        return end if reach == 0 else max(last_row, end) + reach

    def _said(self, report: Report, looks: Looks, readings: dict[int, Reading]) -> Said:
        if not len(looks):
            return Said(looks, [])
        metrics = [metric_column(m, readings) for m in report.metrics]
        # A row that came at an instant may not be in a window that lags; a window that has ended may hold only rows that WHERE
        # drops; and nothing may have come or gone.
        of = (report.presence,) if isinstance(report.trigger, EveryInstant | OnClose) else report.moved
        if not of:
            return Said(looks, metrics)
        there = np.flatnonzero(sum(readings[tally]["value"] for tally in of) > 0)
        return Said(looks.take(there), [m.take(there) for m in metrics])

    def emit(self, before: Seen, final: Seen, open_: Seen) -> Results:
        """The changes of every report: from what had been said, what is final now, and what is still open."""
        out: Results = []
        for i, report in enumerate(self.stage.program.reports):
            old, early, late = (self._said(report, seen.looks[i], seen.at_looks[i]) for seen in (before, final, open_))
            now = early.append(late)
            take_back, say = diff(*old.beside(now), old.differs(now))
            out += self._changes(report, old, take_back, -1) + self._changes(report, now, say, 1)
        return out

    def _changes(self, report: Report, said: Said, chosen: np.ndarray, sign: int) -> Results:
        if not len(chosen):
            return []
        looks, metrics = said.looks, said.metrics
        if len(chosen) < len(looks):
            looks, metrics = looks.take(chosen), [m.take(chosen) for m in metrics]
        columns = [
            to_arrow(self.stage.program.tallies, self.stage.vectors, m, c, self.tables)
            for m, c in zip(report.metrics, metrics, strict=True)
        ]
        ends = _bounds(_window(self.stage, report), looks)[2 - report.ends :]
        after = report.trigger.shown
        columns[report.bounds : report.bounds] = [pa.array(end + after).view(arrow_type("TIMESTAMP")) for end in ends]
        names = [m.name for m in report.metrics]
        names[report.bounds : report.bounds] = [f.name for f in BOUNDS[2 - report.ends :]]
        batch = pa.RecordBatch.from_arrays(columns, names)
        group = sortable_words(columns[: report.bounds], len(chosen))
        return [(report.query, Changes.of(sign, looks.keys.under(group), batch))]


def _bounds(window: LookedAt, looks: Looks) -> tuple[np.ndarray, np.ndarray]:
    """Where the windows begin and end."""
    match window:
        case RangeWindow(size=size, lag=lag):
            return looks.time - lag - size, looks.time - lag
        case SpanWindow(start=start, stop=stop):
            return np.full(len(looks), start), looks.time if stop is None else np.full(len(looks), stop)
    return looks.begin if looks.begin is not None else looks.time, looks.time


def _alone(report: Report) -> bool:
    """Whether what is said of a group depends on rows of that group alone."""
    return not isinstance(report.trigger, EveryInstant) or report.trigger.rows is None


def _asks(*parts: tuple[int, int, np.ndarray | None]) -> list[Ask]:
    return [Ask(start, stop, only) for start, stop, only in parts if start < stop]


def _window(stage: WindowStage, report: Report) -> LookedAt:
    return stage.program.windows[stage.program.tallies[report.presence].window].window
