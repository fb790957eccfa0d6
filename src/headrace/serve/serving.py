"""A deployment as one process drives it: the log and its topics, who has which partition, and a front end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from headrace.errors import SystemFailure
from headrace.log.log import At, Log
from headrace.serve.coordinator import Coordinator
from headrace.serve.deployment import Deployment
from headrace.serve.front import Front
from headrace.serve.hosting import UnitConfig, open_log
from headrace.serve.keeping import epochs_in


class Serving:
    """Everything but the units, which run elsewhere and are told where to find it, and what listens to clients."""

    def __init__(self, deployment: Deployment, log: str, store: str) -> None:
        """`log` and `store` are addresses, as units open them, too."""
        self.deployment, self.log = deployment, open_log(log)
        create_topics(self.log, deployment)
        partitions, secret = event_partitions(deployment), secrets.token_hex(16)
        self.coordinator = Coordinator(partitions, epochs_in(store, partitions), secret)
        self.config = UnitConfig(deployment, log, self.coordinator.address, secret, store)
        self.front = Front(deployment, self.log, 0, now)

    def lacking(self) -> Sequence[str]:
        """What is still waited for before everything is answered, in words."""
        held, all_ = len(self.coordinator.assignment.held), len(event_partitions(self.deployment))
        return [] if held == all_ else [f"{all_ - held} of {all_} partitions have no processor unit"]

    def wait_for_units(self, units: int, seconds: float) -> None:
        if not self.coordinator.wait_for(units, seconds):
            there = len(self.coordinator.members())
            message = f"of {units} processor units {there} have come within {seconds:.0f} s"
            raise SystemFailure(message, hint="look at what Spark says with --verbose")

    def stop(self) -> None:
        """Units are told to save and end."""
        self.coordinator.stop()

    def close(self) -> None:
        self.log.close()


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


def create_topics(log: Log, deployment: Deployment) -> None:
    for topic, partitions in deployment.log_topics().items():
        log.create(topic, partitions)


def event_partitions(deployment: Deployment) -> list[At]:
    """All partitions that units work on."""
    return [
        At(deployment.log_topic(t), partition)
        for t, topic in enumerate(deployment.topics)
        for partition in range(topic.partitions(deployment.partitions))
    ]
