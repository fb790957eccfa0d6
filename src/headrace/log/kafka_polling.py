"""Polling partitions of Kafka's: one consumer without a group, which reads ahead.

What it has read ahead may be of a topic that has been deleted meanwhile, or of another one of its name. So it is asked again and
again whether topics still are those that were opened, beside reading and without waiting for the answer. A poll gives nothing
only where the brokers say that there is nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from headrace.errors import LogError, SystemFailure
from headrace.log.kafka_cluster import Cluster, Ends, Topic, answered, outcome
from headrace.log.kafka_place import SILENT, UNKNOWN
from headrace.log.log import At, Record
from headrace.log.words import before_begin, behind_end, deleted

ANSWER_S = 5.0  # a poll waits so long for brokers to answer, even if it is to wait for no record
LOOK_S = 0.5
SHORTLY_S = 0.1
AT_ONCE = 1_000  # messages
MOST_AHEAD = 16 << 20  # bytes that are kept here, beside what the consumer keeps
OVERHEAD = 150  # bytes of a record beside its value


class Poller:
    """Everything that one who polls has read ahead."""

    def __init__(self, cluster: Cluster, fetch_ms: int, stale_s: float) -> None:
        """Brokers that have nothing new say so after `fetch_ms`; what is known of topics is about `stale_s` old at most."""
        self._cluster, self._fetch_ms, self._stale_s = cluster, fetch_ms, stale_s
        self._consumer: Consumer | None = None
        self._topics: dict[str, Topic] = {}
        self._ats: dict[tuple[str | None, int | None], At] = {}
        self._next: dict[At, int] = {}  # what the consumer is to give next, of all that is polled
        self._ahead: dict[At, deque[Record]] = {}
        self._held = 0  # bytes of these
        self._turn = 0
        self._doubtful = False  # others are polled than before, or brokers refused something: look before anything else
        self._sure = 0.0  # when topics were those that were opened
        self._asked: dict[str, Future[Any]] = {}
        self._asked_at = 0.0
        self._silent = 0.0  # since when nobody answers, if so

    def poll(self, offsets: Mapping[At, int], timeout: float, most: int) -> list[Record]:
        until = time.monotonic() + timeout
        self._stand(offsets)
        self._watch(offsets)
        self._read(0.0)
        while not (records := self._give(offsets, max(most, 1))):
            left = until - time.monotonic()
            if left <= 0 and not self._judge(offsets):
                break
            self._read(min(left, LOOK_S) if left > 0 else SHORTLY_S)
            self._watch(offsets)
        return records

    def confirm(self, found: Mapping[str, Topic]) -> None:
        """What was given of these topics is of those that have been found now."""
        opened = {name: topic for name in found if (topic := self._topics.get(name)) is not None}
        if gone := others(opened, found):
            raise deleted(gone, str(self._cluster.place))

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _stand(self, offsets: Mapping[At, int]) -> None:
        """Go on from these offsets, and let go of everything else."""
        moved = [at for at, offset in offsets.items() if self._position(at) != offset]
        if not moved and offsets.keys() == self._next.keys():
            return
        self._doubtful = True
        opened = {at.topic: topic for at in offsets if (topic := self._topics.get(at.topic)) is not None}
        new = [at for at in moved if at.topic not in opened or not 0 <= at.partition < opened[at.topic].partitions]
        if new:  # those that were polled before come first: that they are gone is said before that others are not there
            self._compare(self._cluster.find_all(opened), time.monotonic())
        for at in new:
            opened.setdefault(at.topic, self._cluster.open(at))
        self._topics = opened
        self._next = {at: offsets[at] if at in moved else self._next[at] for at in offsets}
        self._ahead = {at: deque() if at in moved else self._ahead[at] for at in offsets}
        self._count()
        self._ats = {(self._cluster.place.theirs(at.topic), at.partition): at for at in offsets}

    def _position(self, at: At) -> int | None:
        ahead = self._ahead.get(at)
        return ahead[0].offset if ahead else self._next.get(at)

    def _count(self) -> None:
        self._held = sum(len(record.value) + OVERHEAD for ahead in self._ahead.values() for record in ahead)

    def _give(self, offsets: Mapping[At, int], most: int) -> list[Record]:
        """Of each partition in order; who calls next begins with another one."""
        ats = list(offsets)
        first = self._turn % len(ats) if ats else 0
        self._turn += 1
        records: list[Record] = []
        for at in ats[first:] + ats[:first]:
            ahead = self._ahead[at]
            while ahead and len(records) < most:
                records.append(ahead.popleft())
                self._held -= len(records[-1].value) + OVERHEAD
        return records

    def _read(self, wait: float) -> None:
        """What has come, or comes within that time."""
        if self._consumer is None:
            time.sleep(wait)
        elif self._held < MOST_AHEAD:
            first = self._consumer.poll(wait) if wait else None
            for message in ([first] if first is not None else []) + self._consumer.consume(AT_ONCE, 0):
                self._keep(message)

    def _keep(self, message: Message) -> None:
        error, at = message.error(), self._ats.get((message.topic(), message.partition()))
        if error is not None:
            self._refused(error)
        elif at is not None and not self._doubtful:
            offset, value = message.offset() or 0, message.value() or b""
            if offset > self._next[at]:
                hint = "such a topic is no log: it is compacted, or written to in transactions; copy it into one of Headrace's"
                raise LogError(f"behind offset {self._next[at] - 1} comes {offset}", where=str(at), hint=hint)
            if offset == self._next[at]:
                self._next[at] = offset + 1
                self._ahead[at].append(Record(at, offset, value))
                self._held += len(value) + OVERHEAD

    def _refused(self, error: KafkaError) -> None:
        """Whether a topic or an offset is gone is found out by looking; with everything else a client goes on by itself."""
        if error.code() not in SILENT:
            self._doubtful = True

    def _watch(self, offsets: Mapping[At, int]) -> None:
        """See now and then whether topics are those that were opened, without waiting; where there is doubt, before going on."""
        now = time.monotonic()
        if self._doubtful or now - self._sure > max(4 * self._stale_s, ANSWER_S * bool(self._stale_s)):
            self._judge(offsets)
        elif self._asked:
            if all(future.done() for future in self._asked.values()):
                self._hear()
        elif self._topics and now - self._sure > self._stale_s:
            self._asked, self._asked_at = self._cluster.look(self._topics, ANSWER_S), now

    def _hear(self) -> None:
        theirs = self._cluster.place.theirs
        answers = {name: outcome(self._asked[theirs(name)]) for name in self._topics if theirs(name) in self._asked}
        self._asked = {}
        if any(isinstance(answer, KafkaError) and answer.code() not in UNKNOWN for answer in answers.values()):
            self._doubtful = True
        else:
            self._compare({name: answered(name, answer) for name, answer in answers.items()}, self._asked_at)

    def _judge(self, offsets: Mapping[At, int]) -> bool | None:
        """Whether there is something to read at these offsets, which have to be there; None where nobody answers."""
        asked = time.monotonic()
        try:
            self._compare(self._cluster.find_all(self._topics, ANSWER_S), asked)
            ends = self._cluster.ends(offsets, ANSWER_S) if offsets else {}
        except SystemFailure:
            self._silent = self._silent or asked
            if time.monotonic() - self._silent > self._cluster.place.patience_s:
                raise
            return None
        for at, offset in offsets.items():
            self._check(at, offset, ends[at])
        if self._doubtful:
            self._assign()
        return any(offset < ends[at].end for at, offset in offsets.items())

    def _compare(self, found: Mapping[str, Topic | None], asked: float) -> None:
        """Say which topics are gone, and forget them: the next poll finds those that are there then, if any."""
        if gone := others({name: self._topics[name] for name in found}, found):
            for name in gone:
                del self._topics[name]
            for at in [at for at in self._next if at.topic in gone]:
                del self._next[at], self._ahead[at]
            self._count()
            self._doubtful = True
            raise deleted(gone, str(self._cluster.place))
        self._sure, self._silent = asked, 0.0

    def _check(self, at: At, offset: int, there: Ends) -> None:
        if not there.begin <= offset <= there.end:
            self._doubtful = True
            raise before_begin(at, offset, there.begin) if offset < there.begin else behind_end(at, offset, there.end)

    def _assign(self) -> None:
        """Have the consumer read from where it is to go on; it lets go of what it has read ahead."""
        if self._consumer is None:
            self._consumer = Consumer(self._cluster.place.client(
                group_id="headrace", enable_auto_commit=False, enable_auto_offset_store=False, auto_offset_reset="error",
                isolation_level="read_uncommitted", fetch_wait_max_ms=self._fetch_ms, fetch_queue_backoff_ms=10,
                fetch_error_backoff_ms=10, queued_min_messages=10_000, topic_metadata_propagation_max_ms=1_000,
            ))  # fmt: skip
        theirs = self._cluster.place.theirs
        self._consumer.assign([TopicPartition(theirs(at.topic), at.partition, offset) for at, offset in self._next.items()])
        self._doubtful = False


def others(opened: Mapping[str, Topic], found: Mapping[str, Topic | None]) -> list[str]:
    """Those of these topics that are gone, or other ones of their name."""
    return [name for name, topic in opened.items() if (now := found[name]) is None or now.identity != topic.identity]
