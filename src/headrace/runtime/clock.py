"""The frontier of a stream: up to where its input is complete, from what every partition of the source has shown.

Every bucket gets the same headers in the same batch, so every bucket computes the same frontier by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.program.stage import Disorder, Door, Source, Stage
from headrace.steps.step import Standing


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of rows of one source partition, in order: what every bucket must know of it.

    Segments of one partition are ordered by `place`; `highest` is the largest time in it that counts (rows too far ahead do
    not), `promised` the time before which punctuation in it says that no more rows come; START_OF_TIME if there is none.
    """

    partition: int
    place: tuple[int, int]
    highest: int
    rows: int
    source: int = 0  # of the stage
    promised: int = START_OF_TIME


@dataclass(frozen=True, slots=True)
class Follows:
    """How far a stage is whose results are a source of this one."""

    source: int  # of the stage that reads
    standing: Standing


@dataclass(frozen=True, slots=True)
class Header:
    """What a batch tells every bucket of a stage about its sources."""

    now: int
    segments: tuple[Segment, ...] = ()
    ended: bool = False
    follows: tuple[Follows, ...] = ()  # of the stages whose results are its sources
    punctuation: int = 0  # how many rows said up to where their stream is complete, and nothing else
    rows: int = 0  # how many were read, all of them; told to one bucket of one stage


@dataclass(slots=True)
class Clock:
    """The frontier of one stream, and what it follows from."""

    disorder: Disorder
    frontier: int = START_OF_TIME
    highest: dict[int, int] = field(default_factory=dict)  # per partition
    promised: dict[int, int] = field(default_factory=dict)  # per partition: punctuation says that no rows come before this
    arrival: dict[int, int] = field(default_factory=dict)  # per partition: when its last row came
    last_place: dict[int, tuple[int, int]] = field(default_factory=dict)
    ended: bool = False
    last: int = START_OF_TIME  # how far time is, or was when the stream ended
    furthest: int = START_OF_TIME  # the largest of `highest`

    @property
    def final_before(self) -> int:
        """Results at times below this are final."""
        one = self.disorder.delay == 0 and self.disorder.single_partition and self.frontier > START_OF_TIME
        return min(self.frontier + (1 if one else 0), END_OF_TIME)

    @property
    def latest(self) -> int:
        """How far time is for results that need not be final: the largest time seen, or the frontier if that is further."""
        return max(self.frontier, self.furthest)

    def thresholds(self, header: Header) -> np.ndarray:
        """For every segment, in the order of the header: rows below this time are late, whatever else."""
        segments = header.segments
        if len(segments) == 1:
            return np.array([self.bound_of(segments[0])], np.int64)
        bounds = np.empty(len(segments), np.int64)
        if self.ended or not self.disorder.bounded:
            bounds.fill(END_OF_TIME if self.ended else START_OF_TIME)
            return bounds
        highest, promised, undelayed = self.highest.copy(), self.promised.copy(), self.disorder.delay == 0
        for i in sorted(range(len(segments)), key=lambda i: segments[i].place):
            segment = segments[i]
            p, place = segment.partition, segment.place
            seen, said = highest.get(p, START_OF_TIME), promised.get(p, START_OF_TIME)
            bound = max(self.frontier, self._complete_before(seen, said))
            # With no delay at all the frontier is an order key: at the same time, what stands before the last row is late too.
            bounds[i] = bound + 1 if undelayed and place < self.last_place.get(p, place) else bound
            highest[p], promised[p] = max(seen, segment.highest), max(said, segment.promised)
        return bounds

    def bound_of(self, segment: Segment) -> int:
        """Rows of a segment that comes alone are late below this time, whatever else."""
        if self.ended or not self.disorder.bounded:
            return END_OF_TIME if self.ended else START_OF_TIME
        p, place = segment.partition, segment.place
        complete = self._complete_before(self.highest.get(p, START_OF_TIME), self.promised.get(p, START_OF_TIME))
        bound = max(self.frontier, complete)
        return bound + 1 if self.disorder.delay == 0 and place < self.last_place.get(p, place) else bound

    def advance(self, header: Header) -> None:
        """Take in a batch: the frontier moves, never back."""
        for segment in header.segments:
            if segment.rows:
                p = segment.partition
                self.highest[p] = max(self.highest.get(p, START_OF_TIME), segment.highest)
                self.furthest = max(self.furthest, segment.highest)
                self.promised[p] = max(self.promised.get(p, START_OF_TIME), segment.promised)
                self.arrival[p] = header.now
                self.last_place[p] = max(self.last_place.get(p, segment.place), segment.place)
        self.ended = self.ended or header.ended or self._silent(header.now, self.disorder.end_after)
        if self.ended:
            self.last = max(self.last, self.furthest)
            self.frontier = END_OF_TIME
        else:
            self.frontier = max(self.frontier, self._observed(header.now))
            self.last = self.latest

    def _silent(self, now: int, limit: int | None) -> bool:
        return limit is not None and bool(self.arrival) and now - max(self.arrival.values()) >= limit

    def _complete_before(self, seen: int, said: int) -> int:
        """Up to where a partition is complete: by DELAY from the largest time seen, or by what punctuation has said."""
        delay = self.disorder.delay
        return max(said, seen - delay) if isinstance(delay, int) and seen > START_OF_TIME else said

    def _observed(self, now: int) -> int:
        if not self.disorder.bounded:
            return START_OF_TIME
        known = [(p, self._complete_before(seen, self.promised[p])) for p, seen in self.highest.items()]
        waits, idle = self.disorder.delay is None, self.disorder.idle
        # A partition that has shown no time is not waited for; for a promise we wait.
        known = [(p, upto) for p, upto in known if waits or upto > START_OF_TIME]
        active = [upto for p, upto in known if idle is None or now - self.arrival[p] < idle]
        if active:
            return min(active)
        furthest = max((upto for _, upto in known), default=START_OF_TIME)
        return furthest if furthest == START_OF_TIME else furthest + (now - max(self.arrival.values()))

    def dump(self) -> dict[str, object]:
        return {
            "frontier": self.frontier,
            "ended": self.ended,
            "last": self.last,
            "partitions": [[p, t, self.promised[p], self.arrival[p], *self.last_place[p]] for p, t in self.highest.items()],
        }

    @staticmethod
    def load(disorder: Disorder, state: Mapping[str, Any]) -> Clock:
        clock = Clock(disorder, state["frontier"], ended=state["ended"], last=state["last"])
        for p, highest, promised, arrival, *place in state["partitions"]:
            clock.highest[p], clock.promised[p] = highest, promised
            clock.arrival[p], clock.last_place[p] = arrival, (place[0], place[1])
            clock.furthest = max(clock.furthest, highest)
        return clock


@dataclass(slots=True)
class Follower:
    """The clock of a source that is another stage: it stands where that one stands. Nothing it brings is late."""

    source: int
    frontier: int = START_OF_TIME
    final_before: int = START_OF_TIME
    latest: int = START_OF_TIME
    last: int = START_OF_TIME
    furthest: int = START_OF_TIME  # it has shown none itself

    def thresholds(self, header: Header) -> np.ndarray:
        """Whatever comes has been let in already."""
        return np.full(len(header.segments), START_OF_TIME, np.int64)

    def advance(self, header: Header) -> None:
        for other in header.follows:
            if other.source == self.source:
                standing = other.standing
                self.frontier, self.final_before = standing.frontier, standing.final_before
                self.latest, self.last = standing.latest, standing.last

    def dump(self) -> dict[str, object]:
        return {"frontier": self.frontier, "final_before": self.final_before, "latest": self.latest, "last": self.last}

    def load(self, state: Mapping[str, Any]) -> Follower:
        return replace(self, **state)


class Clocks:
    """The clocks of all sources of a stage. Together they are as far as the one that is furthest behind."""

    def __init__(self, stage: Stage[Any]) -> None:
        self.sources: list[Clock | Follower] = [_clock_of(i, source) for i, source in enumerate(stage.sources)]
        self._one = len(self.sources) == 1

    @property
    def frontier(self) -> int:
        """Up to where the input of all sources is complete."""
        return self.sources[0].frontier if self._one else min(c.frontier for c in self.sources)

    @property
    def final_before(self) -> int:
        """Results at times below this are final."""
        if self._one:
            return self.sources[0].final_before
        # At the frontier itself one source may still bring rows that stand before those of another.
        return min(min(c.final_before for c in self.sources), self.frontier)

    @property
    def latest(self) -> int:
        """How far time is for results that need not be final."""
        return self.sources[0].latest if self._one else min(c.latest for c in self.sources)

    @property
    def last(self) -> int:
        """How far time is, or was when the last of them ended."""
        return self.sources[0].last if self._one else max(c.last for c in self.sources)

    @property
    def furthest(self) -> int:
        """The largest time that any source has shown."""
        return self.sources[0].furthest if self._one else max(c.furthest for c in self.sources)

    def taken_before(self, doors: tuple[Door, ...]) -> int:
        """The time before which rows have been taken by K-slack, where that is furthest."""
        return max(self._taken_before(door) for door in doors) if doors else START_OF_TIME

    def _taken_before(self, door: Door) -> int:
        own = [self.sources[i] for i in door.sources]
        if all(c.frontier == END_OF_TIME for c in own):
            return END_OF_TIME
        return max(c.furthest for c in own) - door.slack

    def thresholds(self, header: Header) -> np.ndarray:
        """For every segment, in the order of the header: rows below this time are late, whatever else."""
        if self._one:
            return self.sources[0].thresholds(header)
        bounds = np.empty(len(header.segments), np.int64)
        for number, clock in enumerate(self.sources):
            own = [i for i, s in enumerate(header.segments) if s.source == number]
            bounds[own] = clock.thresholds(_of_source(header, number))
        return bounds

    def advance(self, header: Header) -> None:
        for number, clock in enumerate(self.sources):
            clock.advance(header if self._one else _of_source(header, number))

    def dump(self) -> list[dict[str, object]]:
        return [c.dump() for c in self.sources]

    def load(self, state: Sequence[Mapping[str, Any]]) -> None:
        self.sources = [
            Clock.load(c.disorder, s) if isinstance(c, Clock) else c.load(s) for c, s in zip(self.sources, state, strict=True)
        ]


def _clock_of(number: int, source: Source) -> Clock | Follower:
    if source.follows:
        return Follower(number)
    if source.disorder.static:  # a table was complete before anything began
        return Follower(number, END_OF_TIME, END_OF_TIME, END_OF_TIME)
    return Clock(source.disorder)


def _of_source(header: Header, number: int) -> Header:
    segments = tuple(s for s in header.segments if s.source == number)
    return Header(header.now, segments, header.ended, header.follows)
