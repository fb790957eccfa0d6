"""Which rows are admitted, late or rejected, and how far the frontier is: row by row, from design section 2."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from headrace.errors import QueryError
from headrace.oracle.rows import MAX_TIME, MIN_TIME, Row, group_value, normal_rows, to_micros
from headrace.oracle.scalar import evaluate
from headrace.plan.expr import Expr
from headrace.plan.stream import Stream
from headrace.plan.time import END_OF_TIME, START_OF_TIME, TABLE_TIME

Key = tuple[int, ...]  # ts, hi (partition), lo (number of the row in its partition), and for derived rows sub: the total order


@dataclass(frozen=True, slots=True)
class Arrival:
    """A row as it comes in: values in the order of the schema, and the partition of the source it comes from."""

    values: Row
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """What arrives together: the time of the batch in microseconds, and rows by name of stream, in arrival order."""

    now: int
    rows: Mapping[str, Sequence[Arrival]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """A row with its place in the total order."""

    key: Key
    row: Row


@dataclass(frozen=True, slots=True)
class Rejection:
    """A row that has no time, or whose punctuation has none, with the reason; `key` has the position only."""

    key: Key
    row: Row
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one batch: each of its rows but punctuation is in one of the three lists, in arrival order."""

    admitted: tuple[Event, ...]
    late: tuple[Event, ...]
    rejected: tuple[Rejection, ...]
    frontier: int
    final_before: int
    clock: int  # how far time is for results that need not be final: the largest ts seen, or the frontier if that is further
    last: int = END_OF_TIME  # the clock; when the stream has ended, how far it was before


@dataclass(slots=True)
class Partition:
    """What is remembered of one partition of a source."""

    rows: int = 0
    max_ts: int | None = None  # over rows that count; a late row counts, one beyond AHEAD does not
    promised: int | None = None  # no more rows before this time: one microsecond past the largest punctuation that counts
    last_arrival: int = START_OF_TIME  # of any row, rejected ones too


class Admission:
    """The door of one stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.partitions: dict[int, Partition] = {}
        self.frontier = END_OF_TIME if stream.static else START_OF_TIME
        self.last = START_OF_TIME

    def push(self, batch: Batch) -> Outcome:
        stream, now = self.stream, batch.now
        arrivals = batch.rows.get(stream.rows_of, ())
        rows = normal_rows(stream.schema, [a.values for a in arrivals])
        admitted: list[Event] = []
        late: list[Event] = []
        rejected: list[Rejection] = []
        for arrival, row, came in zip(arrivals, rows, read_times(stream, rows, now), strict=True):
            hi = arrival.partition
            if hi != 0 and stream.single_partition:
                raise ValueError(f"stream {stream.name!r} has one partition, and a row came from partition {hi}")
            partition = self.partitions.setdefault(hi, Partition())
            lo = partition.rows
            partition.rows += 1
            partition.last_arrival = now
            if isinstance(came, str):
                rejected.append(Rejection((START_OF_TIME, hi, lo), row, came))
                continue
            ts = came.upto if isinstance(came, Punctuation) else came
            beyond = stream.ahead is not None and ts > now + stream.ahead
            if isinstance(came, Punctuation):
                if stream.punctuated and not beyond:
                    partition.promised = ts + 1 if partition.promised is None else max(partition.promised, ts + 1)
                continue
            event = Event((ts, hi, lo), row)
            (late if self._is_late(ts, partition) else admitted).append(event)
            if not beyond:
                partition.max_ts = ts if partition.max_ts is None else max(partition.max_ts, ts)
        before = self.frontier
        self.frontier = max(self.frontier, self._frontier_at(now))
        self._note_last(before)
        return Outcome(tuple(admitted), tuple(late), tuple(rejected), self.frontier, self.final_before, self.clock, self.last)

    def finish(self) -> Outcome:
        self.frontier = END_OF_TIME
        return Outcome((), (), (), self.frontier, self.final_before, self.clock, self.last)

    def _note_last(self, before: int) -> None:
        """How far time was, as long as the stream had not ended."""
        frontier = before if self.frontier == END_OF_TIME else self.frontier
        if frontier < END_OF_TIME:
            self.last = max([self.last, frontier, *(p.max_ts for p in self.partitions.values() if p.max_ts is not None)])

    @property
    def final_before(self) -> int:
        """A result at ts is final iff ts is below this."""
        in_order = self.stream.delay == 0 and self.stream.single_partition
        return self.frontier + 1 if in_order and self.frontier < END_OF_TIME else self.frontier

    @property
    def clock(self) -> int:
        """The largest time seen, or that of the frontier."""
        return max([self.frontier, *(p.max_ts for p in self.partitions.values() if p.max_ts is not None)])

    def _is_late(self, ts: int, partition: Partition) -> bool:
        """Behind the frontier at the start of the batch, or behind what its own partition has shown by now."""
        if self.stream.static:
            return False  # a table was there before anything began
        if self.frontier == END_OF_TIME:
            return True  # the stream has ended
        if not self.stream.bounded:
            return False
        complete = self._complete_before(partition)
        return ts < self.frontier or (complete is not None and ts < complete)

    def _complete_before(self, partition: Partition) -> int | None:
        """Up to where a partition is complete by what it has shown: by DELAY or by punctuation, whichever says more."""
        delay, found = self.stream.delay, []
        if isinstance(delay, int) and partition.max_ts is not None:
            found.append(partition.max_ts - delay)
        if partition.promised is not None:
            found.append(partition.promised)
        return max(found, default=None)

    def _frontier_at(self, now: int) -> int:
        """The frontier at the end of a batch, from all that came until now."""
        stream = self.stream
        if not self.partitions:
            return START_OF_TIME
        silence = now - max(p.last_arrival for p in self.partitions.values())
        if stream.end_after is not None and silence >= stream.end_after:
            return END_OF_TIME
        shown = [(self._complete_before(p), p.last_arrival) for p in self.partitions.values()]
        known = [(upto, last) for upto, last in shown if upto is not None]
        if not stream.bounded or not known:
            return START_OF_TIME
        awake = [upto for upto, last in shown if stream.idle is None or now - last < stream.idle]
        if stream.delay is None and None in awake:
            return START_OF_TIME  # a partition that has promised nothing yet may still bring anything
        moving = [upto for upto in awake if upto is not None]
        return min(moving) if moving else max(upto for upto, _ in known) + silence


@dataclass(frozen=True, slots=True)
class Punctuation:
    """What a row that is no event says: no more rows of its partition up to this time."""

    upto: int


def read_times(stream: Stream, rows: Sequence[Row], now: int) -> list[int | Punctuation | str]:
    """For every row its time in microseconds, what it promises if it is punctuation, or the reason why it is rejected."""
    if stream.punctuation is None:
        return list(event_times(stream, rows, now))
    values = [value for (value,) in evaluate((stream.punctuation,), stream.schema, rows)]
    events = iter(event_times(stream, [row for row, value in zip(rows, values, strict=True) if value is None], now))
    return [next(events) if value is None else _promise(stream, value) for value in values]


def _promise(stream: Stream, value: Any) -> Punctuation | str:
    assert stream.punctuation is not None
    upto = _micros(stream, "PUNCTUATED BY", "punctuation", stream.punctuation, value)
    return upto if isinstance(upto, str) else Punctuation(upto)


def event_times(stream: Stream, rows: Sequence[Row], now: int) -> list[int | str]:
    """For every row its time in microseconds, or the reason why it has none."""
    if stream.static:
        return [TABLE_TIME] * len(rows)
    if stream.timestamp is None:
        return [now] * len(rows)
    values = evaluate((stream.timestamp,), stream.schema, rows)
    return [_micros(stream, "TIMESTAMP BY", "timestamp", stream.timestamp, value) for (value,) in values]


def _micros(stream: Stream, clause: str, what: str, expr: Expr, value: Any) -> int | str:
    """A time in microseconds, or the reason why it is none."""
    match value:
        case None:
            return f"the {what} {expr} is NULL"
        case bool() | float() | str() | bytes() | Decimal():
            raise QueryError(f"{clause} {expr} is neither a time nor a whole number: {value!r}")
        case dt.datetime() | dt.date():
            return to_micros(value)
    # An integer in its unit; or microseconds, where a TIMESTAMP lies outside the calendar.
    micros: int = value if _is_timestamp(stream, expr) else value * stream.timestamp_unit
    return micros if MIN_TIME <= micros <= MAX_TIME else f"the {what} {expr} is outside years 1 to 9999"


def _is_timestamp(stream: Stream, expr: Expr) -> bool:
    name = expr.as_column
    kind = stream.schema.field(name).type if name is not None else expr.type_in(stream.schema)
    return kind.startswith("TIMESTAMP")


def unique(stream: Stream, events: Sequence[Event]) -> list[Event]:
    """`UNIQUE BY .. WITHIN t` over the sorted events: what a kept row reaches is dropped."""
    ordered = sorted(events, key=lambda e: e.key)
    if stream.unique is None:
        return ordered
    kept: list[Event] = []
    last_kept: dict[object, int] = {}
    columns = evaluate(stream.unique.by, stream.schema, [e.row for e in ordered])
    for event, values in zip(ordered, columns, strict=True):
        ts, group = event.key[0], tuple(map(group_value, values))
        if group in last_kept and last_kept[group] >= ts - stream.unique.within:
            continue
        last_kept[group] = ts
        kept.append(event)
    return kept


def admit(stream: Stream, batches: Sequence[Batch], *, end: bool = True) -> list[Outcome]:
    """What becomes of every batch; with `end`, one more outcome for the end of the input."""
    door = Admission(stream)
    outcomes = [door.push(batch) for batch in batches]
    return [*outcomes, door.finish()] if end else outcomes
