"""A front end: takes events, judges them, sends them to the topics of their entities, and puts the answers together (003, 3.2).

An event counts once it is in the journal; its offset there is its place in the stream. Only then is it sent on, by one thread and
in order: so whoever takes over the name finds in the journal all that may not have been sent.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from headrace.log.log import At, Log
from headrace.plan.stream import Stream
from headrace.serve.deployment import Deployment
from headrace.serve.journal import Journal
from headrace.serve.records import Beat, Posted, Reply, Said, Stamp, encode, read_reply
from headrace.serve.sending import Part, sending_of
from headrace.serve.stamps import Stamping
from headrace.serve.values import wire

Row = Sequence[Any]
MOST_KNOWN = 10_000  # events whose ids, and answers, are remembered


@dataclass(frozen=True, slots=True)
class Answer:
    """All that an event changed, in the order of its topics."""

    place: int
    said: tuple[Said, ...]


@dataclass(slots=True)
class Waiting:
    """An event whose answers are not all there."""

    missing: set[int]  # topics
    said: dict[int, list[Said]]
    done: Future[Answer]


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a row that was posted; late events, and punctuation, have no answer."""

    place: int
    late: bool
    complete_before: int  # what the stream was complete up to when it came
    answer: Future[Answer] | None = None


class Front:
    """One front end of a deployment. One thread posts and beats; another may collect."""

    def __init__(self, deployment: Deployment, log: Log, number: int, now: Callable[[], int]) -> None:
        self.deployment, self.log, self.number, self.now = deployment, log, number, now
        self._replies = At(deployment.replies, number)
        self.stamping = [Stamping(s) for s in deployment.streams]
        self._sending = [sending_of(deployment, s) for s in range(len(deployment.streams))]
        self._wire = [wire([f.type for f in s.schema.fields]) for s in deployment.streams]
        self._waiting: dict[int, Waiting] = {}
        self._known: OrderedDict[tuple[int, str], Taken] = OrderedDict()
        self._guard = threading.Lock()
        self.listeners: list[Callable[[Reply], None]] = []
        self._journal = Journal(deployment, log, number)
        self._next_reply = self._take_name()

    # ---- events ---------------------------------------------------------------------------------------------------

    def post(self, stream: int, ts: int | None, values: Row, id: str | None = None, upto: int | None = None) -> Taken:
        """Take a row. It counts when this returns. `upto`: it is punctuation, and promises that no more come up to this time."""
        known = self._known.get((stream, id)) if id is not None else None
        if known is not None:
            return known
        parts = [] if ts is None else [sending.part(values) for sending in self._sending[stream]]
        now, stamping = self.now(), self.stamping[stream]
        complete, late = stamping.complete_before, False
        if ts is not None:
            late = stamping.event(ts, now)
        elif upto is not None:
            stamping.promise(upto, now)
        event = Posted(self._journal.epoch, stream, now, ts, late, stamping.stamp, list(self._wire[stream][0](values)), id)
        place = self._journal.append([encode(event)])
        taken = self._expect(event, Taken(place, late, complete))
        self._send(place, event, parts)
        self._journal.mark_now_and_then(self.stamping, self._next_reply)
        return taken

    def _expect(self, event: Posted, taken: Taken) -> Taken:
        """Wait for the answers of an event from now on."""
        if event.ts is not None and not event.behind:
            done: Future[Answer] = Future()
            with self._guard:
                self._waiting[taken.place] = Waiting(set(self.deployment.topics_for(event.stream)), {}, done)
            taken = replace(taken, answer=done)
        if event.id is not None:
            self._known[event.stream, event.id] = taken
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        return taken

    def _send(self, place: int, event: Posted, parts: Sequence[Part]) -> None:
        if event.ts is None:
            self.beat()
        for part in parts:
            self.log.append(part.at, [part.record(self.number, place, event)])

    def beat(self) -> None:
        """Tell every bucket how far this front end is."""
        record = encode(Beat(self.number, self._journal.next, self.now(), [s.stamp for s in self.stamping]))
        for t, topic in enumerate(self.deployment.topics):
            for partition in range(topic.partitions(self.deployment.partitions)):
                self.log.append(At(self.deployment.log_topic(t), partition), [record])

    # ---- answers --------------------------------------------------------------------------------------------------

    def collect(self, timeout: float) -> int:
        """Take what has been answered. How many answers that made whole."""
        whole = 0
        for record in self.log.poll({self._replies: self._next_reply}, timeout):
            self._next_reply = record.offset + 1
            reply = read_reply(record.value)
            for listener in self.listeners:
                listener(reply)
            whole += self._answered(reply)
        return whole

    def _answered(self, reply: Reply) -> bool:
        with self._guard:
            waiting = self._waiting.get(reply.place)
            if waiting is None or reply.topic not in waiting.missing:
                return False  # it was answered before, and this is the same answer
            waiting.missing.discard(reply.topic)
            waiting.said[reply.topic] = reply.said
            if waiting.missing:
                return False
            del self._waiting[reply.place]
        waiting.done.set_result(Answer(reply.place, tuple(one for topic in sorted(waiting.said) for one in waiting.said[topic])))
        return True

    def unanswered(self) -> int:
        with self._guard:
            return len(self._waiting)

    # ---- taking the name ------------------------------------------------------------------------------------------

    def _take_name(self) -> int:
        """Go on from what the journal has. Gives the first of the answers that may be to events in it."""
        found = self._journal.take(self.stamping)
        for place, event in found.events:
            self._expect(event, Taken(place, event.behind, _complete_before(self.deployment.streams[event.stream], event.stamp)))
            if place >= found.sent:
                values = self._wire[event.stream][1](event.values)
                parts = [] if event.ts is None else [s.part(values) for s in self._sending[event.stream]]
                self._send(place, event, parts)
        return found.replies


def _complete_before(stream: Stream, stamp: Stamp) -> int:
    """What it was for an event that is late, and moves nothing."""
    return Stamping(stream, stamp.highest, stamp.promised).complete_before
