"""The journal of a front end: what it has accepted, in the order that is the order of its partition of every stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.errors import InUseError
from headrace.log.log import At, Log
from headrace.serve.deployment import Deployment
from headrace.serve.records import Mark, Posted, encode, read_journal
from headrace.serve.stamps import Stamping

MARK_EVERY = 5_000  # records between two marks: so many are read again, at most twice, by whoever takes the name
MOST_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Found:
    """What somebody finds who takes the name: events, up to where they were sent on, and from where on they were answered."""

    events: list[tuple[int, Posted]]
    sent: int
    replies: int


class Journal:
    """One partition, written by one process at a time."""

    def __init__(self, deployment: Deployment, log: Log, number: int) -> None:
        self.log, self.number = log, number
        self.at, self.replies = At(deployment.journal, number), At(deployment.replies, number)
        self._group = f"{deployment.name}.front-{number}"
        self.epoch = self.next = self._marked = self._sent = 0
        self._events: list[tuple[int, Posted]] = []
        self._before: dict[At, int] = {}  # where the mark before the last one is, and the answers were then

    def append(self, records: Sequence[bytes]) -> int:
        """The place of the first. If it does not stand where it should, another process writes here, too."""
        first = self.log.append(self.at, records)
        if first != self.next:
            message = f"front end {self.number} has been taken over by another process"
            raise InUseError(message, hint="clients find the other one at the address they know; this one ends")
        self.next = first + len(records)
        return first

    def mark_now_and_then(self, stamping: Sequence[Stamping], replies: int) -> None:
        """All that stands here has been sent on."""
        if self.next - self._marked >= MARK_EVERY:
            self._mark(stamping, self.next, replies)

    def _mark(self, stamping: Sequence[Stamping], sent: int, replies: int) -> None:
        self._marked = self.append([encode(Mark(self.epoch, sent, [s.stamp for s in stamping]))])
        self.log.commit(self._group, self._before or {self.at: self._marked, self.replies: replies})
        self._before = {self.at: self._marked, self.replies: replies}

    def take(self, stamping: Sequence[Stamping]) -> Found:
        """Make it this process's own: who had it before can append once more, at most, and then knows."""
        committed = self.log.committed(self._group)
        first = max(committed.get(self.at, 0), self.log.begin(self.at))
        replies = max(committed.get(self.replies, 0), self.log.begin(self.replies))
        self._sent = first
        self._read(first, stamping)
        while True:
            end = self.next
            self.epoch += 1
            stands = self.log.append(self.at, [encode(Mark(self.epoch, self._sent, [s.stamp for s in stamping]))])
            if stands == end:
                break
            self._read(end, stamping)  # somebody came in between
        self.next, self._marked = stands + 1, stands
        self._before = {self.at: first, self.replies: replies}
        events, self._events = self._events, []
        return Found(events, self._sent, replies)

    def _read(self, offset: int, stamping: Sequence[Stamping]) -> None:
        """From there to the end. What an earlier owner wrote behind the mark of a later one never was."""
        end = self.log.end(self.at)
        while offset < end:
            for record in self.log.poll({self.at: offset}, 1.0, MOST_AT_ONCE):
                self._note(record.offset, read_journal(record.value), stamping)
                offset = record.offset + 1
        self.next = offset

    def _note(self, offset: int, record: Posted | Mark, stamping: Sequence[Stamping]) -> None:
        if record.epoch < self.epoch:
            return
        match record:
            case Posted():
                self._events.append((offset, record))
                stamping[record.stream].highest = record.stamp.highest
                stamping[record.stream].promised = record.stamp.promised
            case Mark():
                self.epoch, self._sent = record.epoch, record.sent
                for one, stamp in zip(stamping, record.stamps, strict=True):
                    one.highest, one.promised = stamp.highest, stamp.promised
