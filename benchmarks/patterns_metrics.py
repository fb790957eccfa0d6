"""The metrics of 001, table II, from what was seen call by call.

Latency is the mean, over the results that stand at the end, of the time from the arrival of the last of their events to their
output. An event is handed over in one call; the output time of a result is the end of the call that gave it. Three readings:

    wait    in time units of the stream: how long results wait for promises, or for the clock of K-slack. Calls take no time.
    busy    in milliseconds, with the events back to back: the next call begins when the last one ends. What is waited for
            arrives as fast as the engine takes it.
    queued  in milliseconds, with the stream played at one speed: an event that comes while the engine is busy waits for its
            turn, so a call that takes long delays the results of those behind it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

MILLI = 1e-6  # of nanoseconds


@dataclass(frozen=True)
class Trace:
    """What was seen. Calls are numbered; `ids` are the rows of a result's events, which count arrivals from 0 on."""

    row: np.ndarray  # per call: the number of the row it brought
    arrival: np.ndarray  # per call, microseconds
    busy: np.ndarray  # per call, nanoseconds
    stored: np.ndarray  # per call: events in memory after it
    call: np.ndarray  # per change: the call that gave it; those given at the end of the stream have the number behind the last
    sign: np.ndarray  # per change
    ids: np.ndarray  # per change and place
    loaded: np.ndarray | None = None  # per call: frames read from outside memory

    @property
    def calls(self) -> int:
        return len(self.row)

    @property
    def loads(self) -> int:
        return 0 if self.loaded is None else int(self.loaded.sum())


@dataclass(frozen=True)
class Timeline:
    """What is left of a trace for latency: calls, and of each result the call that gave it and that of its latest event."""

    row: np.ndarray
    arrival: np.ndarray
    busy: np.ndarray
    loaded: np.ndarray
    call: np.ndarray
    latest: np.ndarray

    @property
    def load(self) -> float:
        """Nanoseconds of work for a microsecond of the stream."""
        return float(self.busy.sum()) / max(int(self.arrival[-1] - self.arrival[0]), 1)

    def wait_units(self, unit: int) -> float | None:
        return _mean(self.waits(unit))

    def waits(self, unit: int) -> np.ndarray:
        """Of every result, in time units."""
        return np.asarray((self.arrival[self.call] - self.arrival[self.latest]) / unit)

    def busy_ms(self) -> float | None:
        finish = np.cumsum(self.busy)
        return _mean((finish[self.call] - (finish - self.busy)[self.latest]) * MILLI)

    def queued_ms(self, speed: float) -> float | None:
        """`speed`: nanoseconds that a microsecond of the stream takes."""
        came = (self.arrival - self.arrival[0]) * speed
        done = np.empty(len(came))
        now = 0.0
        for i, (at, takes) in enumerate(zip(came.tolist(), self.busy.tolist(), strict=True)):
            now = max(now, at) + takes
            done[i] = now
        return _mean((done[self.call] - came[self.latest]) * MILLI)


@dataclass(frozen=True)
class Measures:
    """The figures of a run but for `queued`. None where there is no result to take a mean of."""

    wait_units: float | None
    busy_ms: float | None
    execution_us: float  # per event of all types
    stored: float
    results: int  # that stand at the end
    compensations: int  # changes that take a result back
    late_results: int  # of the results: whose latest event was not the last of the sequence
    unreleased: int  # of the results: given only at the end of the stream, and in no latency
    loads: int
    calls: int


def measured(trace: Trace, events: int, unit: int) -> tuple[Measures, Timeline]:
    """`events`: of all types, also those the query does not read."""
    standing = standing_of(trace)
    timed = standing & (trace.call < trace.calls)
    ids = trace.ids[timed]
    latest = np.searchsorted(trace.row, ids.max(axis=1, initial=0))
    in_order = ids.argmax(axis=1) == ids.shape[1] - 1 if len(ids) else np.zeros(0, np.bool_)
    loaded = np.zeros(trace.calls, np.int64) if trace.loaded is None else trace.loaded
    line = Timeline(trace.row, trace.arrival, trace.busy, loaded, trace.call[timed], latest)
    return Measures(
        wait_units=line.wait_units(unit),
        busy_ms=line.busy_ms(),
        execution_us=float(trace.busy.sum()) * 1e-3 / events,
        stored=float(trace.stored.mean()),
        results=int(standing.sum()),
        compensations=int((trace.sign < 0).sum()),
        late_results=int((~in_order).sum()),
        unreleased=int((standing & (trace.call == trace.calls)).sum()),
        loads=trace.loads,
        calls=trace.calls,
    ), line


def standing_of(trace: Trace) -> np.ndarray:
    """Which changes are the `+` of a result that is never taken back.

    A result that comes twice, or goes without having come, is a bug of the engine.
    """
    if not len(trace.sign):
        return np.zeros(0, np.bool_)
    which = np.unique(trace.ids, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(which, kind="stable")  # the changes of a result side by side, in the order in which they came
    sign, same = trace.sign[order].astype(np.int64), which[order]
    first = np.r_[True, same[1:] != same[:-1]]
    before = np.where(first, -1, np.r_[-1, sign[:-1]])
    if (sign == before).any():
        raise RuntimeError("a result came twice, or was taken back without being there")
    out = np.zeros(len(sign), np.bool_)
    out[order] = np.r_[first[1:], True] & (sign > 0)
    return out


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
