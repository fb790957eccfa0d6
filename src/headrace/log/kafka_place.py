"""Which brokers a log lies on, how their clients are set, and what they refuse, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError

from headrace.errors import HeadraceError, LogError, SystemFailure

# They pass by themselves: a broker is starting, or another one takes over.
PASSING = frozenset((
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._WAIT_COORD, KafkaError._WAIT_CACHE,
    KafkaError.NETWORK_EXCEPTION, KafkaError.BROKER_NOT_AVAILABLE, KafkaError.REQUEST_TIMED_OUT, KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
))  # fmt: skip
SILENT = PASSING | {KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT_QUEUE, KafkaError._RESOLVE}
UNKNOWN = frozenset((
    KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_ID, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION,
))  # fmt: skip
REFUSED = frozenset((
    KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._AUTHENTICATION, KafkaError._SSL,
))  # fmt: skip
TOO_LARGE = frozenset((KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE))
SHORTLY_MS = 20  # until a client tries again


@dataclass(frozen=True, slots=True)
class Place:
    """Brokers, and those of their topics and groups whose names begin with a prefix."""

    brokers: str
    prefix: str
    patience_s: float  # with a broker that does not answer
    others: Mapping[str, Any] = field(default_factory=dict, repr=False)  # passwords among them

    def __str__(self) -> str:
        return f"Kafka at {self.brokers}" + (f", {self.prefix}*" if self.prefix else "")

    def theirs(self, name: str) -> str:
        """What a topic or a group is called there."""
        return self.prefix + name

    def ours(self, name: str) -> str | None:
        """What it is called here; None for what is somebody else's, or Kafka's own."""
        mine = name.startswith(self.prefix) and not name.startswith("__")
        return name[len(self.prefix) :] if mine else None

    def client(self, **settings: Any) -> dict[str, Any]:
        """Settings of a client; what the user set goes before ours."""
        common = {
            "bootstrap.servers": self.brokers, "client.id": "headrace", "log_level": 0, "socket.nagle.disable": True,
            "reconnect.backoff.ms": SHORTLY_MS, "reconnect.backoff.max.ms": 500,
            "retry.backoff.ms": SHORTLY_MS, "retry.backoff.max.ms": 500,
        }  # fmt: skip
        return {**common, **{name.replace("_", "."): value for name, value in settings.items()}, **self.others}

    def says(self, error: KafkaError, what: str) -> HeadraceError:
        """An error of Kafka's, and what was asked."""
        code, where = error.code(), str(self)
        if code in SILENT:
            hint = "see whether a broker runs there (`make kafka` starts one on this machine), and try again"
            return SystemFailure(f"could not {what}: it does not answer ({error.str()})", where=where, hint=hint)
        if code in REFUSED:
            hint = "see who may do that there, and what is set for whom this is"
            return SystemFailure(f"could not {what}: it refuses that ({error.str()})", where=where, hint=hint)
        if code in TOO_LARGE:
            hint = "append in several calls, or raise max.message.bytes of the topic"
            return LogError(f"could not {what}: that is too large for it ({error.str()})", where=where, hint=hint)
        return SystemFailure(f"could not {what}: Kafka says: {error.str()}", where=where, hint="look into the broker's own log")
