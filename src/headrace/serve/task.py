"""The task processor of a topic and a partition (003, 3.3): the records of its log, one by one, and what each of them changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.changes.changes import Changes
from headrace.changes.keys import SOURCE_BITS, Keys
from headrace.exchange.cells import batch_of, join_arrivals
from headrace.plan.arrow import arrow_type
from headrace.plan.expr import all_of
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Clock, Header, Segment
from headrace.runtime.processor import TaskProcessor
from headrace.scalars.row.compiled import compile_row
from headrace.serve.deployment import Deployment
from headrace.serve.records import NO_EVENT, Beat, Event, Reply, Said, Stamp, encode, read_topic
from headrace.serve.values import array_of_values, rows_of_values, wire
from headrace.stages.lower import Finish

Row = Sequence[Any]


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
        streams = range(len(deployment.streams))
        self._readers = [deployment.readers(topic, s) for s in streams]
        stages = {r.stage for readers in self._readers for r in readers}
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
        said = [one for query, changes in changed for one in self._said(query, changes)]
        if not is_event and not said:
            return None
        place = record.place if is_event else NO_EVENT
        return record.front, encode(Reply(self.topic, self.partition, offset, self.epoch, place, said))

    def _changes(self, event: Event) -> list[tuple[str, Changes]]:
        """What every stage gives for an event."""
        own: dict[int, tuple[list[Segment], list[Arrivals]]] = {}
        for reader, inputs in zip(self._readers[event.stream], event.inputs, strict=True):
            segments, parts = own.setdefault(reader.stage, ([], []))
            if inputs is not None:
                parts.append(self._arrivals(reader.stage, reader.source, event, inputs, len(segments)))
            segments.append(_segment(event.front, event.place, event.stamp, reader.source, rows=1))
        found: list[tuple[str, Changes]] = []
        for stage, (segments, parts) in own.items():
            header = Header(event.now, tuple(segments))
            found += self.processors[stage].process(header, join_arrivals(parts)).changes
        return found

    def _arrivals(self, stage: int, source: int, event: Event, inputs: Row, segment: int) -> Arrivals:
        values = self._unpack[stage](inputs)
        arrays = [array_of_values(kind, [v]) for kind, v in zip(self._types[stage], values, strict=True)]
        rank = self.deployment.stage(stage).sources[source].rank
        keys = Keys(*(np.array([part], np.int64) for part in (event.ts, (rank << SOURCE_BITS) + event.front, event.place)))
        return Arrivals(keys, np.full(1, segment, np.int32), np.array([event.behind]), batch_of(arrays, 1))

    def _beat(self, beat: Beat) -> list[tuple[str, Changes]]:
        """Time has passed, with no event."""
        names, found = [s.name for s in self.deployment.streams], list[tuple[str, Changes]]()
        for stage, processor in self.processors.items():
            stamps = [beat.stamps[names.index(source.name)] for source in self.deployment.stage(stage).sources]
            segments = tuple(_segment(beat.front, beat.place - 1, stamp, i, rows=1) for i, stamp in enumerate(stamps))
            found += processor.process(Header(beat.now, segments), None).changes
        return found

    def _said(self, query: str, changes: Changes) -> list[Said]:
        shown, keys = self._shown[query], zip(*(words.tolist() for words in changes.keys.columns), strict=True)
        out = []
        for sign, key, row in zip(changes.sign.tolist(), keys, rows_of_values(changes.rows), strict=True):
            said = shown.said(sign, _without_fill(list(key)), row)
            if said is not None:
                out.append(said)
        return out


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
