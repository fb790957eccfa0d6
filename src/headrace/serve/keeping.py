"""Tasks in the store: loaded from their newest commit, and saved beside the loop that goes on with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future

from headrace.log.log import At
from headrace.serve.deployment import Deployment
from headrace.serve.store.commits import listed
from headrace.serve.store.partition import Partition
from headrace.serve.store.places import place_of
from headrace.serve.store.saving import Saved
from headrace.serve.store.store import Store
from headrace.serve.task import Task


class StoreKeeper:
    """The tasks of one unit."""

    def __init__(self, deployment: Deployment, path: str) -> None:
        self.deployment, self.store = deployment, Store(path)
        self._partitions: dict[Task, Partition] = {}

    def load(self, topic: int, partition: int, epoch: int) -> Task:
        """As its newest commit left it. Who has it in an earlier epoch cannot save any more."""
        numbers = self.deployment.topics[topic].stages
        at = At(self.deployment.log_topic(topic), partition)
        opened = self.store.open(at, epoch, [self.deployment.stage(s) for s in numbers])
        processors = dict(zip(numbers, opened.processors, strict=True))
        task = Task(self.deployment, topic, partition, processors, opened.offset, epoch)
        self._partitions[task] = opened
        return task

    def save(self, task: Task, before: Callable[[], object]) -> Future[Saved] | None:
        """Have it written; nothing while another save is under way. `before`: what must be durable first."""
        return self._partitions[task].save(task.offset, before)

    def let_go(self, task: Task) -> None:
        self._partitions.pop(task, None)

    def close(self) -> None:
        self.store.close()


def epochs_in(path: str, partitions: Iterable[At]) -> dict[At, int]:
    """The highest epoch that the store knows of each partition: one that is given next has to be higher."""
    root, out = place_of(path), dict[At, int]()
    for at in partitions:
        found = listed(root.below(at.topic, str(at.partition), "commits"))
        out[at] = found[0].epoch if found else 0
    return out
