"""Windows that are looked at by the clock: what to look at in a batch, and what of it to say.

A look at time u is final once the frontier has passed u. Under CHANGES it is said as soon as the clock (the largest time seen)
has passed u, and corrected when a late row changes it: what was said is read again from the rows as they were, and compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.changes.changes import Changes
from headrace.operators.looks import Ask, Looks
from headrace.operators.metrics import MetricColumn, metric_column, to_arrow
from headrace.plan.arrow import arrow_type
from headrace.plan.nodes import BOUNDS
from headrace.plan.query import Emit
from headrace.plan.time import END_OF_TIME
from headrace.plan.windows import RangeWindow

if TYPE_CHECKING:
    from headrace.runtime.evaluate import Asks, Evaluator
    from headrace.runtime.tables import KeyTable
    from headrace.runtime.zone import Zone
    from headrace.stages.program import Report, Stage

CLOCK_PLACE = 2**62  # rows made by the clock at u follow every event at u


@dataclass(frozen=True, slots=True)
class Times:
    """The frontier and the clock, before a batch and after it."""

    frontier: int
    clock: int
    next_frontier: int
    next_clock: int


@dataclass(slots=True)
class Said:
    """What a report says at some looks."""

    looks: Looks
    metrics: list[MetricColumn]

    def append(self, other: Said) -> Said:
        """Both, the other last."""
        if not len(self.looks) or not len(other.looks):
            return other if not len(self.looks) else self
        return Said(self.looks.append(other.looks), [a.append(b) for a, b in zip(self.metrics, other.metrics, strict=True)])


class Reporting:
    """The reports of one stage in one bucket, through one batch."""

    def __init__(self, stage: Stage, tables: list[KeyTable], evaluator: Evaluator, times: Times) -> None:
        """Before anything has moved."""
        self.stage, self.tables, self.evaluator, self.times = stage, tables, evaluator, times
        self.changed: list[tuple[int, np.ndarray] | None] = [None for _ in stage.reports]  # since when, and which keys
        self._heard: list[list[Said]] = []  # what was said before, what is final, what is still open

    def note(self, old: Zone, new: Zone, removed: np.ndarray, is_new: np.ndarray) -> Asks:
        """Find what the rows of this batch may change. Gives what must be read again as it was."""
        fresh, gone = np.flatnonzero(is_new), np.flatnonzero(removed)
        firsts = [int(z.rows.ts[i[0]]) for z, i in ((new, fresh), (old, gone)) if len(i)]
        for i, report in enumerate(self.stage.reports):
            if report.emit is Emit.CHANGES and firsts and min(firsts) < self.times.clock:
                group = self.stage.tallies[report.presence].group
                only = np.zeros(self.tables[group].capacity, np.bool_)
                only[new.rows.columns[group][fresh]] = True
                only[old.rows.columns[group][gone]] = True
                self.changed[i] = (max(min(firsts), self.times.frontier), only)
        return [() if c is None else _asks((c[0], self.times.clock, c[1])) for c in self.changed]

    def final_asks(self) -> Asks:
        """The looks that the frontier passes in this batch; the pass before was over what had been said."""
        self._hear()
        t = self.times
        return [self._between(i, r, t.frontier, t.next_frontier) for i, r in enumerate(self.stage.reports)]

    def open_asks(self) -> Asks:
        """The looks that the clock has passed, but not the frontier; the pass before was over the final ones."""
        self._hear()
        t = self.times
        return [
            self._between(i, r, t.next_frontier, t.next_clock) if r.emit is Emit.CHANGES else ()
            for i, r in enumerate(self.stage.reports)
        ]

    def _between(self, index: int, report: Report, start: int, stop: int) -> list[Ask]:
        """Under FINAL all looks; under CHANGES those that may have changed, and all that are new."""
        if report.emit is not Emit.CHANGES:
            return _asks((start, stop, None))
        since, only = self.changed[index] or (stop, None)
        clock = self.times.clock
        return _asks((max(start, since), min(stop, clock), only), (max(start, clock), stop, None))

    def drain(self, last_row: int) -> int | None:
        """At the end of the input, the time up to which some window may still hold a row."""
        if not self.stage.reports:
            return None
        reach = max(_window(self.stage, r).size + _window(self.stage, r).lag + r.trigger.every for r in self.stage.reports)
        return max(last_row, self.times.clock if self.times.clock < END_OF_TIME else last_row) + reach

    def _hear(self) -> None:
        """Remember what the reports say at the looks of the last pass."""
        self._heard.append([
            Said(looks, [metric_column(self.stage, m, readings) for m in report.metrics] if len(looks) else [])
            for report, looks, readings in zip(self.stage.reports, self.evaluator.looks, self.evaluator.reported, strict=True)
        ])  # fmt: skip

    def emit(self) -> list[tuple[str, Changes]]:
        """The changes of every report, after the pass over open looks."""
        self._hear()
        out = []
        for report, old, early, late in zip(self.stage.reports, *self._heard, strict=True):
            now = early.append(late)
            take_back, say = _differences(old, now)
            out += self._changes(report, old, take_back, -1) + self._changes(report, now, say, 1)
        return out

    def _changes(self, report: Report, said: Said, chosen: np.ndarray, sign: int) -> list[tuple[str, Changes]]:
        if not len(chosen):
            return []
        window, time = _window(self.stage, report), said.looks.time[chosen]
        columns = [
            to_arrow(self.stage, m, c.take(chosen), self.tables) for m, c in zip(report.metrics, said.metrics, strict=True)
        ]
        ends = (time - window.lag - window.size, time - window.lag)
        columns[report.bounds : report.bounds] = [pa.array(end).view(arrow_type("TIMESTAMP")) for end in ends]
        names = [m.name for m in report.metrics]
        names[report.bounds : report.bounds] = [f.name for f in BOUNDS]
        batch = pa.RecordBatch.from_arrays(columns, names)
        n = len(chosen)
        place, none = np.full(n, CLOCK_PLACE, np.int64), np.zeros(n, np.int64)
        group = self.tables[self.stage.tallies[report.presence].group]
        # Groups of one look stand in the order of their hashes: no order means more, and this one is always the same.
        sub = (group.low[said.looks.key[chosen]] >> np.uint64(1)).view(np.int64)
        return [(report.query, Changes(np.full(n, sign, np.int8), time, place, none, batch, sub))]


def _asks(*parts: tuple[int, int, np.ndarray | None]) -> list[Ask]:
    return [Ask(start, stop, only) for start, stop, only in parts if start < stop]


def _window(stage: Stage, report: Report) -> RangeWindow:
    window = stage.windows[stage.tallies[report.presence].window].window
    assert isinstance(window, RangeWindow), "the clock looks at windows of time"
    return window


def _differences(old: Said, now: Said) -> tuple[np.ndarray, np.ndarray]:
    """Which of the old to take back, and which of the new to say: all that is not the same to the bit in both."""
    n, m = len(old.looks), len(now.looks)
    if n == 0 or m == 0:
        return np.arange(n), np.arange(m)
    time = np.concatenate((old.looks.time, now.looks.time))
    key = np.concatenate((old.looks.key, now.looks.key))
    order = np.lexsort((key, time))
    pair = np.flatnonzero((time[order[1:]] == time[order[:-1]]) & (key[order[1:]] == key[order[:-1]]))
    a, b = order[pair], order[pair + 1] - n  # stable: the old one stands first
    differs = np.zeros(len(pair), np.bool_)
    for was, is_ in zip(old.metrics, now.metrics, strict=True):
        differs |= was.take(a).differs(is_.take(b))
    keep_old, keep_now = np.ones(n, np.bool_), np.ones(m, np.bool_)
    keep_old[a[~differs]] = False
    keep_now[b[~differs]] = False
    return np.flatnonzero(keep_old), np.flatnonzero(keep_now)
