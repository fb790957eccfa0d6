"""The log on Kafka: for several machines.

What Kafka promises is what this log promises (0029). When `append` returns, all replicas that are in sync have the records, so
that `sync` has nothing to write: with three brokers they survive the loss of a machine, with one the death of its process, and a
loss of power takes what the system had not written. An `append` that fails may have been done. That a topic was deleted is told
to who polls it within about a second, and by `sync` for sure: before state is kept.

Any number of threads append through one of these, and one at a time polls. It belongs to the process that made it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from headrace.errors import LogError, SystemFailure

try:
    from confluent_kafka import KafkaError, KafkaException
except ImportError as missing:
    raise SystemFailure("Kafka's client is not installed", hint="pip install 'headrace[kafka]'") from missing
from headrace.log.kafka_appending import MOST_RECORDS, OVERHEAD, Appenders, TopicGoneError
from headrace.log.kafka_cluster import MOST_BYTES, PAUSE_S, Cluster, Topic
from headrace.log.kafka_place import Place
from headrace.log.kafka_polling import Poller
from headrace.log.log import At, Record
from headrace.log.words import too_many_bytes

PATIENCE_S = 30.0
FETCH_MS = 50  # who polls other partitions than before waits so long at most
STALE_S = 0.5
MOST_PREFIX = 40  # characters; a name has 200 (`log.py`), and 249 on Kafka
P = ParamSpec("P")
R = TypeVar("R")


def told(method: Callable[Concatenate[KafkaLog, P], R]) -> Callable[Concatenate[KafkaLog, P], R]:
    """What Kafka's clients refuse is said as our errors are."""

    @wraps(method)
    def asked(self: KafkaLog, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except KafkaException as error:
            raise self.place.says(error.args[0], f"work there ({method.__name__})") from error

    return cast("Callable[Concatenate[KafkaLog, P], R]", asked)


class KafkaLog:
    """A `Log` on the brokers of a cluster: those of its topics and groups whose names begin with a prefix."""

    def __init__(
        self, brokers: str, prefix: str = "", *, patience_s: float = PATIENCE_S, fetch_ms: int = FETCH_MS,
        stale_s: float = STALE_S, settings: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Brokers as `host:port,host:port`. `settings` are of librdkafka, for passwords and TLS.

        With `stale_s` 0 every poll asks first whether its topics are still there, which takes a millisecond.
        """
        if len(prefix) > MOST_PREFIX:
            raise LogError(f"the prefix {prefix!r} is too long", where=brokers, hint=f"{MOST_PREFIX} characters at most")
        self.place = Place(brokers, prefix, patience_s, dict(settings or {}))
        try:
            self._cluster = Cluster(self.place)
        except KafkaException as error:
            raise self.place.says(error.args[0], "open a log") from error
        self._appenders = Appenders(self.place)
        self._poller = Poller(self._cluster, fetch_ms, stale_s)
        self._guard = threading.Lock()
        self._known: dict[str, Topic] = {}

    @told
    def create(self, topic: str, partitions: int) -> None:
        self._cluster.create(topic, partitions)

    @told
    def delete(self, topic: str) -> None:
        self._cluster.delete(topic)

    @told
    def topics(self) -> dict[str, int]:
        return self._cluster.topics()

    @told
    def append(self, at: At, values: Sequence[bytes]) -> int:
        size = sum(map(len, values)) + OVERHEAD * len(values)
        if size > MOST_BYTES:
            raise too_many_bytes(at, size, MOST_BYTES)
        if len(values) > MOST_RECORDS:
            raise LogError(f"{len(values):,} records are too many for one append", where=str(at), hint="append in several calls")
        if not values:
            return self.end(at)
        until = time.monotonic() + self.place.patience_s
        while True:
            self._know(at)
            try:
                return self._appenders.append(self.place.theirs(at.topic), at.partition, values)
            except TopicGoneError:
                self._forget(at.topic)
                self._cluster.open(at)  # an error, or another one of this name
                if time.monotonic() > until:
                    raise self.place.says(KafkaError(KafkaError._TIMED_OUT), f"append to {at}") from None
                time.sleep(PAUSE_S)

    @told
    def poll(self, offsets: Mapping[At, int], timeout: float, most: int = 1000) -> list[Record]:
        return self._poller.poll(offsets, timeout, most)

    @told
    def begin(self, at: At) -> int:
        self._cluster.open(at)
        return self._cluster.ends([at])[at].begin

    @told
    def end(self, at: At) -> int:
        self._cluster.open(at)
        return self._cluster.ends([at])[at].end

    @told
    def sync(self, ats: Iterable[At]) -> None:
        self._poller.confirm(self._cluster.open_all(ats))

    @told
    def commit(self, group: str, offsets: Mapping[At, int]) -> None:
        self._cluster.commit(group, offsets)

    @told
    def committed(self, group: str) -> dict[At, int]:
        return self._cluster.committed(group)

    @told
    def trim(self, at: At, offset: int) -> None:
        self._cluster.trim(at, offset)

    @told
    def close(self) -> None:
        self._poller.close()
        self._appenders.close()

    def _know(self, at: At) -> None:
        """That a partition is there; which is asked once."""
        topic = self._known.get(at.topic)
        if topic is None or not 0 <= at.partition < topic.partitions:
            topic = self._cluster.open(at)
            with self._guard:
                self._known[at.topic] = topic

    def _forget(self, name: str) -> None:
        with self._guard:
            self._known.pop(name, None)
