"""The task processor of a topic and a partition (003, 3.3): the records of its log, one by one, and what each of them changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.changes.keys import SOURCE_BITS, Keys
from headrace.changes.values import column_of
from headrace.exchange.cells import batch_of, join_arrivals
from headrace.plan.arrow import arrow_type
from headrace.plan.expr import all_of
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Clock, Header, Segment
from headrace.runtime.processor import TaskProcessor
from headrace.runtime.single import Single, said
from headrace.scalars.row.compiled import compile_row
from headrace.serve.deployment import Deployment, Reader
from headrace.serve.records import NO_EVENT, Beat, Event, Reply, Said, Stamp, encode, read_topic
from headrace.serve.values import wire
from headrace.stages.lower import Finish

Row = Sequence[Any]
Changed = tuple[str, int, tuple[int, ...], tuple[Any, ...]]  # query, sign, order key, row


@dataclass(frozen=True, slots=True)
class Shown:
    """What is left to do with the rows of a query: which are shown, and as what."""

    query: int
    shows: Callable[[Row], tuple[Any, ...]]
    holds: Callable[[Row], tuple[Any, ...]] | None

    @staticmethod
    def of(query: int, finish: Finish) -> Shown:
        predicate = all_of(finish.predicates)
        holds = None if predicate is None else compile_row([predicate], finish.columns)
        return Shown(query, compile_row([e for _, e in finish.items], finish.columns), holds)

    def said(self, sign: int, key: list[int], row: Row) -> Said | None:
        if self.holds is not None and self.holds(row)[0] is not True:
            return None
        return Said(self.query, sign, key, list(self.shows(row)))


class Task:
    """One at a time for each partition in the whole deployment. It gives the same for the same records, whoever runs it."""

    def __init__(
        self, deployment: Deployment, topic: int, partition: int, processors: Mapping[int, TaskProcessor],
        offset: int = 0, epoch: int = 0,
    ) -> None:  # fmt: skip
        """`processors`: by the number of their stage, as they were before the record at this offset."""
        self.deployment, self.topic, self.partition, self.epoch = deployment, topic, partition, epoch
        self.processors, self.offset = processors, offset
        self._places = places_of(processors.values())
        self._singles = {stage: Single(processor) for stage, processor in processors.items()}
        readers = [deployment.readers(topic, s) for s in range(len(deployment.streams))]
        self._readers = [_by_stage(some) for some in readers]
        self._sources = [[r.source for r in some] for some in readers]
        stages = {r.stage for some in readers for r in some}
        self._ranks = {s: [source.rank for source in deployment.stage(s).sources] for s in stages}
        self._types = {s: [arrow_type(i.type) for i in deployment.stage(s).inputs] for s in stages}
        self._unpack = {s: wire([i.type for i in deployment.stage(s).inputs])[1] for s in stages}
        self._shown = {f.query.name: Shown.of(i, f) for i, f in enumerate(deployment.finishes())}

    def take(self, data: bytes) -> tuple[int, bytes] | None:
        """The next record of the log. Gives the front that waits for an answer, and the answer; nothing for a beat."""
        record, offset = read_topic(data), self.offset
        self.offset += 1
        if record.place < self._places.get(record.front, 0):
            return None  # whoever took the name of the front has sent it again
        is_event = isinstance(record, Event)
        self._places[record.front] = record.place + is_event
        changed = self._changes(record) if isinstance(record, Event) else self._beat(record)
        found = [self._shown[query].said(sign, _without_fill(list(key)), row) for query, sign, key, row in changed]
        told = [one for one in found if one is not None]
        if not is_event and not told:
            return None
        place = record.place if is_event else NO_EVENT
        return record.front, encode(Reply(self.topic, self.partition, offset, self.epoch, place, told))

    def _changes(self, event: Event) -> Iterator[Changed]:
        """What every stage gives for an event."""
        for stage, readers in self._readers[event.stream]:
            inputs = event.inputs[readers.start : readers.stop]
            if len(inputs) == 1:
                yield from self._one(stage, self._sources[event.stream][readers.start], event, inputs[0])
            else:
                yield from self._several(stage, self._sources[event.stream][readers.start : readers.stop], event, inputs)

    def _one(self, stage: int, source: int, event: Event, inputs: Row | None) -> list[Changed]:
        """A stage that reads the stream once."""
        single, stamp, place = self._singles[stage], event.stamp, (event.front, event.place)
        if inputs is None:
            return single.advance(Header(event.now, (_segment(event.front, event.place, stamp, source, rows=1),)))
        high = (self._ranks[stage][source] << SOURCE_BITS) + event.front
        values = tuple(self._unpack[stage](inputs))
        return single.call(
            event.ts,
            high,
            event.place,
            event.front,
            place,
            stamp.highest,
            stamp.promised,
            event.behind,
            event.now,
            values,
            source,
        )

    def _several(self, stage: int, sources: Sequence[int], event: Event, inputs: Sequence[Row | None]) -> list[Changed]:
        """A stage that reads the stream as several of its sources: a batch of as many rows."""
        segments = tuple(_segment(event.front, event.place, event.stamp, source, rows=1) for source in sources)
        parts = [
            self._arrivals(stage, source, event, row, i)
            for i, (source, row) in enumerate(zip(sources, inputs, strict=True))
            if row is not None
        ]
        return said(self.processors[stage].process(Header(event.now, segments), join_arrivals(parts)))

    def _arrivals(self, stage: int, source: int, event: Event, inputs: Row, segment: int) -> Arrivals:
        values = self._unpack[stage](inputs)
        arrays = [column_of(kind, [v]) for kind, v in zip(self._types[stage], values, strict=True)]
        high = (self._ranks[stage][source] << SOURCE_BITS) + event.front
        keys = Keys(*(np.array([part], np.int64) for part in (event.ts, high, event.place)))
        return Arrivals(keys, np.full(1, segment, np.int32), np.array([event.behind]), batch_of(arrays, 1))

    def _beat(self, beat: Beat) -> Iterator[Changed]:
        """Time has passed, with no event."""
        names = [s.name for s in self.deployment.streams]
        for stage, single in self._singles.items():
            stamps = [beat.stamps[names.index(source.name)] for source in self.deployment.stage(stage).sources]
            segments = (_segment(beat.front, beat.place - 1, stamp, i, rows=1) for i, stamp in enumerate(stamps))
            yield from single.advance(Header(beat.now, tuple(segments)))


def _by_stage(readers: Sequence[Reader]) -> list[tuple[int, range]]:
    """Those of a stage stand together."""
    stages = [r.stage for r in readers]
    return [(s, range(stages.index(s), stages.index(s) + stages.count(s))) for s in dict.fromkeys(stages)]


def places_of(processors: Iterable[TaskProcessor]) -> dict[int, int]:
    """By front, the place of its next event: behind all that the clocks have seen of it."""
    clocks = [clock for processor in processors for clock in processor.clock.sources if isinstance(clock, Clock)]
    seen = [(front, place) for clock in clocks for front, (_, place) in clock.last_place.items()]
    return {front: 1 + max(place for f, place in seen if f == front) for front, _ in seen}


def _segment(front: int, place: int, stamp: Stamp, source: int, rows: int) -> Segment:
    return Segment(front, (front, place), stamp.highest, rows, source, stamp.promised)


def _without_fill(key: list[int]) -> list[int]:
    """Words of derived rows are filled up with noughts."""
    while len(key) > 3 and key[-1] == 0:
        key.pop()
    return key
