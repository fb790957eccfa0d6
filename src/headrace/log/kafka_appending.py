"""Putting records at the end of a partition of Kafka's.

A batch of records is put into a partition as a whole, and their offsets follow each other; what a broker puts together of two
batches is nothing. So an append is a batch: it has a producer of its own while it lasts, which holds back all that it is given
until it is told to send it, and then sends it in one. A producer is idempotent: a batch that is sent again is there once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headrace.errors import InternalError
from headrace.log.kafka_cluster import MOST_BYTES
from headrace.log.kafka_place import UNKNOWN, Place

MOST_RECORDS = 1_000_000  # of a batch
OVERHEAD = 64  # bytes of a record in a batch beside its value, at most
AT_ONCE = 16  # appends
# With the last of them a producer ends what it still had for a partition that went with its topic.
GONE = UNKNOWN | {KafkaError._DESTROY}
SOON_S = 0.005  # an append is over by then; to make another producer takes ten times as long


class TopicGoneError(Exception):
    """There is no such partition, as far as the broker knows."""


class Appenders:
    """Producers that are lent, each to one append at a time."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._idle: list[Producer] = []
        self._made = 0
        self._change = threading.Condition()

    def append(self, topic: str, partition: int, values: Sequence[bytes]) -> int:
        """The offset of the first of the records."""
        producer = None
        try:
            producer = self._take() or self._make(topic)
            first = self._put(producer, topic, partition, values)
        except BaseException:
            if producer is not None:
                producer.purge()  # nobody knows what became of what it has not sent: whoever comes next gets another
            self._give_back(None)
            raise
        self._give_back(producer)
        return first

    def close(self) -> None:
        with self._change:
            self._made -= len(self._idle)
            self._idle.clear()

    def _take(self) -> Producer | None:
        """One that is idle; None if another one may be made."""
        with self._change:
            wait = 0.0 if not self._made else SOON_S if self._made < AT_ONCE else None
            if self._change.wait_for(lambda: self._idle, wait):
                return self._idle.pop()
            self._made += 1
            return None

    def _give_back(self, producer: Producer | None) -> None:
        with self._change:
            if producer is None:
                self._made -= 1
            else:
                self._idle.append(producer)
            self._change.notify()

    def _make(self, topic: str) -> Producer:
        patience_ms = int(self._place.patience_s * 1_000)
        producer = Producer(self._place.client(
            enable_idempotence=True, acks="all", compression_type="none", allow_auto_create_topics=False,
            linger_ms=patience_ms // 2, delivery_timeout_ms=patience_ms, topic_metadata_propagation_max_ms=0,
            batch_num_messages=MOST_RECORDS, queue_buffering_max_messages=2 * MOST_RECORDS,
            batch_size=2 * MOST_BYTES, message_max_bytes=2 * MOST_BYTES,
            reconnect_backoff_ms=100,  # with less, a producer often asks for its id before it is connected: half a second
        ))  # fmt: skip
        producer.list_topics(topic, self._place.patience_s)  # has it reach a broker now, and not half a second later
        return producer

    def _put(self, producer: Producer, topic: str, partition: int, values: Sequence[bytes]) -> int:
        told: list[tuple[KafkaError | None, int | None]] = []

        def hear(error: KafkaError | None, message: Message) -> None:
            told.append((error, message.offset()))

        try:
            for value in values:
                producer.produce(topic, value, partition=partition, on_delivery=hear)
        except KafkaException as error:
            raise self._refused(error.args[0], topic, partition) from error
        producer.flush(self._place.patience_s + 1.0)
        refused = next((error for error, _ in told if error is not None), None)
        if refused is not None or len(told) < len(values):
            raise self._refused(refused or KafkaError(KafkaError._MSG_TIMED_OUT), topic, partition)
        first, last = told[0][1], told[-1][1]
        if first is None or first < 0 or last != first + len(values) - 1:
            where = f"{topic}, partition {partition}"
            raise InternalError(f"an append of {len(values)} records lies from {first} to {last}", where=where)
        return first

    def _refused(self, error: KafkaError, topic: str, partition: int) -> Exception:
        if error.code() in GONE:
            return TopicGoneError()
        return self._place.says(error, f"append to topic {topic!r}, partition {partition} (whether it did is not known)")
