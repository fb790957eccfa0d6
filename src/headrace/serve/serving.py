"""A deployment as one process drives it: the log and its topics, who has which partition, and a front end."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping

from headrace.errors import SystemFailure
from headrace.log.log import At, Log
from headrace.serve.coordinator import Coordinator
from headrace.serve.deployment import Deployment
from headrace.serve.front import Front
from headrace.serve.hosting import UnitConfig, open_log
from headrace.serve.unit import Keeper

BEAT_S = 1.0  # between two times that every bucket hears how far the front end is


class Serving:
    """Everything but the units, which run elsewhere and are told where to find it."""

    def __init__(
        self, deployment: Deployment, log: str, keeper: Callable[[Deployment], Keeper], epochs: Mapping[At, int] | None = None
    ) -> None:
        """`epochs`: the highest that any partition has been given so far."""
        self.deployment, self.log = deployment, open_log(log)
        create_topics(self.log, deployment)
        secret = secrets.token_hex(16)
        self.coordinator = Coordinator(event_partitions(deployment), epochs or {}, secret)
        self.config = UnitConfig(deployment, log, self.coordinator.address, secret, keeper)
        self.front = Front(deployment, open_log(log), 0, now)
        self.posting = threading.Lock()  # one thread posts at a time, or beats
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._collect, self._beat)]
        for thread in self._threads:
            thread.start()

    @property
    def ready(self) -> bool:
        """Whether somebody works on every partition."""
        return bool(self.coordinator.members()) and len(self.coordinator.assignment.held) == len(event_partitions(self.deployment))

    def wait_until_ready(self, seconds: float) -> None:
        if not self.coordinator.wait_for(1, seconds):
            message = f"no processor unit has come within {seconds:.0f} s"
            raise SystemFailure(message, hint="look at what Spark says with --verbose")

    def stop(self) -> None:
        self._stopped.set()
        self.coordinator.stop()
        for thread in self._threads:
            thread.join(5)
        self.front.log.close()
        self.log.close()

    def _collect(self) -> None:
        while not self._stopped.is_set():
            self.front.collect(0.2)

    def _beat(self) -> None:
        while not self._stopped.wait(BEAT_S):
            with self.posting:
                self.front.beat()


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
