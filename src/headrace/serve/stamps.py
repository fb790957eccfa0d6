"""Where a front end is with a stream, and what that makes of the next event: the judgement that all buckets take over."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.stream import Stream
from headrace.plan.time import START_OF_TIME
from headrace.serve.records import Stamp


@dataclass(slots=True)
class Stamping:
    """Of one stream, as one front end has seen it: as the clock of a bucket sees a partition of a source."""

    stream: Stream
    highest: int = START_OF_TIME
    promised: int = START_OF_TIME

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.highest, self.promised)

    @property
    def complete_before(self) -> int:
        """Events before this time are late."""
        delay = self.stream.delay
        if isinstance(delay, int) and self.highest > START_OF_TIME:
            return max(self.promised, self.highest - delay)
        return self.promised

    def event(self, ts: int, now: int) -> bool:
        """Take an event in. Whether it is late."""
        behind = self.stream.bounded and ts < self.complete_before
        if self._counts(ts, now):
            self.highest = max(self.highest, ts)
        return behind

    def promise(self, upto: int, now: int) -> None:
        """Punctuation: no more events up to this time."""
        if self.stream.punctuated and self._counts(upto, now):
            self.promised = max(self.promised, upto + 1)

    def follow(self, others: Stamp) -> None:
        """Nothing comes from here that is before what the other front ends wait for."""
        self.promised = max(self.promised, others.promised)

    def _counts(self, ts: int, now: int) -> bool:
        """A time too far ahead of the clock moves nothing."""
        return self.stream.ahead is None or ts <= now + self.stream.ahead
