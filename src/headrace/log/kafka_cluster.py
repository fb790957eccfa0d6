"""What brokers are asked that is neither appending nor polling: topics, where they begin and end, how far groups are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from headrace.log.kafka_place import PASSING, UNKNOWN, Place
from headrace.log.log import At, checked_name
from headrace.log.words import no_partition, no_partitions, no_topic, other_partitions

SEGMENT_BYTES = 64 << 20
MOST_BYTES = 32 << 20  # of an append
SAFE_COPIES = 3
PAUSE_S = 0.01
TRY_S = 2.0
AGAIN = PASSING | {KafkaError._TIMED_OUT}
# Records stay until they are trimmed.
KEPT = {
    "cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1", "segment.bytes": str(SEGMENT_BYTES),
    "max.message.bytes": str(MOST_BYTES + (1 << 20)), "unclean.leader.election.enable": "false",
}  # fmt: skip
SIDES = {"begin": OffsetSpec.earliest(), "end": OffsetSpec.latest()}  # type: ignore[no-untyped-call]
K = TypeVar("K")
Answers = dict[K, Any]


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it was when it was asked for. One that is made anew under its name has another identity."""

    name: str
    identity: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Ends:
    """Where a partition begins and ends."""

    begin: int
    end: int


class Cluster:
    """Asked by any number of threads."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._admin = AdminClient(place.client())

    def create(self, name: str, partitions: int) -> None:
        checked_name("topic", name)
        if partitions < 1:
            raise no_partitions(name, partitions)
        there = self.find(name)
        if there is None:
            self._make(name, partitions)
            there = self._appeared(name)
        if there.partitions != partitions:
            raise other_partitions(name, there.partitions, partitions)
        self.ends([At(name, number) for number in range(partitions)])  # it can be appended to

    def delete(self, name: str) -> None:
        theirs = self.place.theirs(checked_name("topic", name))
        there = self.find(name)
        if there is None:
            return
        what = f"delete topic {name!r}"
        answers = self.ask(what, lambda wait: self._admin.delete_topics([theirs], request_timeout=wait, operation_timeout=wait))
        self._refuse(answers, what, UNKNOWN)
        self._until(lambda: self.find(name) != there, what)

    def topics(self) -> dict[str, int]:
        listed = self._admin.list_topics(timeout=self.place.patience_s).topics
        found = ((self.place.ours(name), len(topic.partitions)) for name, topic in listed.items() if topic.error is None)
        return {name: partitions for name, partitions in sorted((n, p) for n, p in found if n is not None)}

    def find(self, name: str) -> Topic | None:
        return self.find_all([name])[name]

    def find_all(self, names: Iterable[str], wait: float | None = None) -> dict[str, Topic | None]:
        """Topics as they are now; None for what is not there."""
        names = list(names)
        if not names:
            return {}
        what = f"look for {', '.join(names)}"
        answers = self.ask(what, lambda left: self.look(names, left), wait)
        self._refuse(answers, what, UNKNOWN)
        return {name: answered(name, answers[self.place.theirs(name)]) for name in names}

    def look(self, names: Iterable[str], wait: float) -> dict[str, Future[Any]]:
        """Ask for topics, and do not wait for the answers."""
        theirs = TopicCollection([self.place.theirs(name) for name in names])
        return self._admin.describe_topics(theirs, request_timeout=wait)

    def open(self, at: At) -> Topic:
        """The topic of a partition that is there."""
        return self.open_all([at])[at.topic]

    def open_all(self, ats: Iterable[At]) -> dict[str, Topic]:
        ats = list(ats)
        found = self.find_all({checked_name("topic", at.topic) for at in ats})
        opened = {name: topic for name, topic in found.items() if topic is not None}
        for at in ats:
            if at.topic not in opened:
                raise no_topic(at.topic, self.topics(), str(self.place))
            if not 0 <= at.partition < opened[at.topic].partitions:
                raise no_partition(at, opened[at.topic].partitions, str(self.place))
        return opened

    def ends(self, ats: Iterable[At], wait: float | None = None) -> dict[At, Ends]:
        """Of partitions that are there."""
        theirs = {at: TopicPartition(self.place.theirs(at.topic), at.partition) for at in ats}
        what = "ask where partitions begin and end"

        def ask(left: float) -> dict[tuple[str, At], Future[Any]]:
            found: dict[tuple[str, At], Future[Any]] = {}
            for side, spec in SIDES.items():
                futures = self._admin.list_offsets(dict.fromkeys(theirs.values(), spec), request_timeout=left)
                found |= {(side, at): futures[part] for at, part in theirs.items()}
            return found

        until = time.monotonic() + (self.place.patience_s if wait is None else wait)
        while unsettled(answers := self.ask(what, ask, wait)):
            if time.monotonic() > until:
                raise self.place.says(KafkaError(KafkaError.LEADER_NOT_AVAILABLE), what)
            self.open_all(theirs)  # one broker may hear of a topic later than another; or it was deleted
            time.sleep(PAUSE_S)
        self._refuse(answers, what)
        return {at: Ends(answers["begin", at].offset, answers["end", at].offset) for at in theirs}

    def trim(self, at: At, offset: int) -> None:
        self.open(at)
        there = self.ends([at])[at]
        if offset <= there.begin:
            return
        part = TopicPartition(self.place.theirs(at.topic), at.partition, min(offset, there.end))
        what = f"trim {at}"
        self._refuse(self.ask(what, lambda wait: self._admin.delete_records([part], request_timeout=wait)), what)

    def commit(self, group: str, offsets: Mapping[At, int]) -> None:
        """The identity of the topic goes along: what was noted of another one of its name is nothing."""
        theirs = self.place.theirs(checked_name("group", group))
        topics = self.open_all(offsets)
        parts = [
            TopicPartition(self.place.theirs(at.topic), at.partition, offset, metadata=topics[at.topic].identity)
            for at, offset in offsets.items()
        ]
        if not parts:
            return
        what = f"note how far group {group!r} is"
        asked = [ConsumerGroupTopicPartitions(theirs, parts)]
        self._ask_group(what, lambda wait: self._admin.alter_consumer_group_offsets(asked, request_timeout=wait))

    def committed(self, group: str) -> dict[At, int]:
        theirs = self.place.theirs(checked_name("group", group))
        what = f"ask how far group {group!r} is"
        asked = [ConsumerGroupTopicPartitions(theirs)]
        parts = self._ask_group(what, lambda wait: self._admin.list_consumer_group_offsets(asked, request_timeout=wait))
        noted = [(self.place.ours(part.topic), part) for part in parts if part.offset >= 0]
        topics = self.find_all({name for name, _ in noted if name is not None}) if noted else {}
        return {
            At(name, part.partition): part.offset
            for name, part in noted
            if name is not None and (topic := topics[name]) is not None and part.metadata == topic.identity
        }

    def ask(self, what: str, ask: Callable[[float], Mapping[K, Future[Any]]], wait: float | None = None) -> Answers[K]:
        """What is answered, an error among it, once no part of it is one that passes by itself.

        A client waits for the controller that it knows, and does not see by itself that another one took its place.
        """
        until = time.monotonic() + (self.place.patience_s if wait is None else wait)
        while True:
            futures = ask(min(max(until - time.monotonic(), PAUSE_S), TRY_S))
            answers = {key: outcome(future) for key, future in futures.items()}
            errors = [answer for answer in answers.values() if isinstance(answer, KafkaError) and answer.code() in AGAIN]
            if not errors:
                return answers
            if time.monotonic() > until:
                raise self.place.says(errors[0], what)
            time.sleep(PAUSE_S)
            with suppress(KafkaException):  # hears of brokers and their controller
                self._admin.list_topics(timeout=min(max(until - time.monotonic(), PAUSE_S), TRY_S))

    def _ask_group(self, what: str, ask: Callable[[float], Mapping[str, Future[Any]]]) -> list[TopicPartition]:
        """Of a group each partition has an error of its own: its coordinator may have begun just now."""
        until = time.monotonic() + self.place.patience_s
        while True:
            answers = self.ask(what, ask)
            self._refuse(answers, what, {KafkaError.GROUP_ID_NOT_FOUND})
            parts = [p for answer in answers.values() if not isinstance(answer, KafkaError) for p in answer.topic_partitions]
            errors = {str(part): part.error for part in parts if part.error is not None}
            if time.monotonic() > until or not any(error.code() in PASSING for error in errors.values()):
                self._refuse(errors, what)
                return parts
            time.sleep(PAUSE_S)

    def _make(self, name: str, partitions: int) -> None:
        what = f"create topic {name!r}"
        copies = min(SAFE_COPIES, len(self._admin.list_topics(timeout=self.place.patience_s).brokers))
        config = {**KEPT, "min.insync.replicas": str(max(copies - 1, 1))}
        new = NewTopic(self.place.theirs(name), partitions, copies, config=config)
        answers = self.ask(what, lambda wait: self._admin.create_topics([new], request_timeout=wait, operation_timeout=wait))
        self._refuse(answers, what, {KafkaError.TOPIC_ALREADY_EXISTS})

    def _appeared(self, name: str) -> Topic:
        found: list[Topic] = []

        def appears() -> bool:
            found.extend(topic for topic in [self.find(name)] if topic is not None)
            return bool(found)

        self._until(appears, f"create topic {name!r}")
        return found[0]

    def _until(self, done: Callable[[], bool], what: str) -> None:
        """What is decided is known by a broker a moment later."""
        until = time.monotonic() + self.place.patience_s
        while not done():
            if time.monotonic() > until:
                raise self.place.says(KafkaError(KafkaError._TIMED_OUT), what)
            time.sleep(PAUSE_S)

    def _refuse(self, answers: Mapping[Any, Any], what: str, fine: Iterable[int] = ()) -> None:
        for answer in answers.values():
            if isinstance(answer, KafkaError) and answer.code() not in fine:
                raise self.place.says(answer, what)


def outcome(future: Future[Any]) -> Any:
    """What came of it: an answer, or the error that is one. Clients keep to the time that they were given."""
    try:
        return future.result()
    except KafkaException as error:
        return error.args[0]


def unsettled(answers: Mapping[Any, Any]) -> bool:
    """Whether some of these offsets are none: a partition that changes its broker has no error, and no offset either."""
    return any(answer.code() in UNKNOWN if isinstance(answer, KafkaError) else answer.offset < 0 for answer in answers.values())


def answered(name: str, answer: Any) -> Topic | None:
    if isinstance(answer, KafkaError):
        return None
    return Topic(name, str(answer.topic_id), len(answer.partitions))
