"""One event a call, from Python values to Python values: the same processor, the same state, the same changes in the same order.

Most stages take an event compiled, from open rows that stay where they are; what is not covered is a batch of one row. Either
way calls, batches and saves may follow each other as they like: parts of the processor are brought up to date when they are asked
for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.changes.changes import Changes
from headrace.changes.keys import Keys
from headrace.changes.values import batch_of_rows, rows_of
from headrace.plan.arrow import arrow_type
from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.program.outputs import Output
from headrace.program.stage import Stage
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Clock, Header, Segment
from headrace.runtime.processor import Result, TaskProcessor
from headrace.steps.kinds import slow_because
from headrace.steps.step import Live, Said

__all__ = ["Said", "Single", "slow_because", "wanted"]


def wanted(stage: Stage[Any], values: tuple[Any, ...]) -> bool:
    """Whether any query wants an event with these inputs; else it is not brought to the stage, only how far its stream is."""
    return not stage.keep or any(all(values[i] for i in masks) for masks in stage.keep)


class Single:
    """Takes single events for a processor."""

    def __init__(self, processor: TaskProcessor) -> None:
        """`fast`: whether events are taken compiled."""
        stage = processor.stage
        if processor.single is not None:
            processor.single.rest()
        self.processor, self.stage, self.clocks = processor, stage, processor.clock
        self._live: Live | None = processor.step.live() if slow_because(stage) is None else None
        self.fast = self._live is not None
        self.late, self.missed = False, False  # the last event: behind the frontier, and behind what K-slack has taken
        self._on = self._shown = False  # whether the live step has begun, and whether all is as it says
        self._idle = not stage.program.queries
        self._kinds = [arrow_type(i.type) for i in stage.inputs]
        self._names = [f"x{i}" for i in range(len(stage.inputs))]
        self._step, self._opening = processor.step, processor.open
        processor.single = self

    def call(
        self, ts: int, high: int, low: int, partition: int, place: tuple[int, int], highest: int, promised: int, behind: bool,
        now: int, values: tuple[Any, ...], source: int = 0,
    ) -> list[Said]:  # fmt: skip
        """Take in an event: its order key, what its segment says, whether it is behind that, and all its inputs.

        Values are int, float, bool, str, bytes or Decimal, microseconds of a TIMESTAMP, days of a DATE, or None; so are those
        that are given back, with the name of the query, the sign and the order key of each change.
        """
        header = Header(now, (Segment(partition, place, highest, 1, source, promised),))
        if self._live is None:
            return self._as_batch(header, ts, high, low, behind, values)
        if not self._idle:
            self._live.put(ts, high, low, values)
        self.late, self.missed = self._is_late(header.segments[0], ts, behind)
        self.clocks.advance(header)
        if not (self.late or self.missed):
            return [] if self._idle else self._step_on(event=True)
        lost = [self._late_row(o, ts, high, low, values) for o in self.stage.late if all(values[i] for i in o.masks)]
        return lost if self._idle else [*lost, *self._step_on(event=False)]

    def advance(self, header: Header) -> list[Said]:
        """Take in how far time is, without an event."""
        if self._live is None or header.ended or header.follows:
            return said(self.processor.process(header, None))
        self.clocks.advance(header)
        return [] if self._idle else self._step_on(event=False)

    def _is_late(self, segment: Segment, ts: int, behind: bool) -> tuple[bool, bool]:
        clock = self.clocks.sources[segment.source]
        late = behind or (isinstance(clock, Clock) and ts < clock.bound_of(segment))
        return late, not late and bool(self.stage.doors) and ts < self.clocks.taken_before(self.stage.doors)

    def _late_row(self, output: Output, ts: int, high: int, low: int, values: tuple[Any, ...]) -> Said:
        """A row of `late(s)`, with its time."""
        return output.query, 1, (ts, high, low), (*(values[i] for _, i in output.columns), ts)

    def _step_on(self, *, event: bool) -> list[Said]:
        live, frontier, processor = self._live, self.clocks.frontier, self.processor
        assert live is not None, "else it is a batch"
        if frontier == END_OF_TIME:  # all is said
            return []
        if not self._on:
            self._begin(live)
        self._shown = False
        before = frontier if self._step.by_instant else self.clocks.final_before
        changes = live.take(frontier, before) if event else live.pass_time(frontier, before)
        return self._told(changes) if processor.begun else changes

    def _told(self, changes: list[Said]) -> list[Said]:
        """Without what queries that were added later do not speak of."""
        begun = self.processor.begun
        return [c for c in changes if c[2][0] > begun.get(c[0], START_OF_TIME)]

    # ---- by turns with batches ------------------------------------------------------------------------------------

    def _begin(self, live: Live) -> None:
        """Go on from where batches have left the processor."""
        live.begin(self._opening.rows)
        self._on = True

    def show(self) -> None:
        """Bring the processor up to date; whoever reads it changes nothing."""
        if self._on and not self._shown and self._live is not None:
            self._opening.rows = self._live.put_back()
            self._opening.counts = np.zeros(0, np.bool_)
            self.processor.stand_at(self.clocks.frontier, self.clocks.final_before)
            self._shown = True

    def rest(self) -> None:
        """A batch comes: it goes on from here, and the next single event from there."""
        self.show()
        self._on = False

    def _as_batch(self, header: Header, ts: int, high: int, low: int, behind: bool, values: tuple[Any, ...]) -> list[Said]:
        keys = Keys(*(np.array([word], np.int64) for word in (ts, high, low)))
        inputs = batch_of_rows(self._kinds, self._names, [values])
        arrivals = Arrivals(keys, np.zeros(1, np.int32), np.array([behind]), inputs)
        result = self.processor.process(header, arrivals)
        self.late, self.missed = result.late > 0, result.missed > 0
        return said(result)


def said(result: Result) -> list[Said]:
    """The changes of a batch as Python values."""
    return [change for query, changes in result.changes for change in _each(query, changes)]


def _each(query: str, changes: Changes) -> list[Said]:
    keys = zip(*(part.tolist() for part in changes.keys.columns), strict=True)
    return [(query, sign, key, row) for sign, key, row in zip(changes.sign.tolist(), keys, rows_of(changes.rows), strict=True)]
