"""A processor unit: one thread with the loop of algorithm 1 (003, 3.3). Operational tasks, poll, the task of the partition, reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from headrace.log.log import At, Log
from headrace.serve.deployment import Deployment
from headrace.serve.task import Task

MOST_AT_ONCE = 256  # records of one poll: an answer waits for no more than these


@dataclass(frozen=True, slots=True)
class Assign:
    """An operational task: these partitions, each with its epoch, and no others."""

    epochs: Mapping[At, int]


@dataclass(frozen=True, slots=True)
class Stop:
    """An operational task: save, and be done."""


class Keeper(Protocol):
    """Where tasks are loaded from, and saved to."""

    def load(self, topic: int, partition: int, epoch: int) -> Task:
        """A task as it was saved last, or at its beginning."""

    def save(self, task: Task) -> None:
        """Keep it as it stands; all that it said is in the log."""


class Unit:
    """The tasks of some partitions."""

    def __init__(self, deployment: Deployment, log: Log, keeper: Keeper, orders: Callable[[], list[Assign | Stop]]) -> None:
        """`orders`: operational tasks that have come."""
        self.deployment, self.log, self.keeper, self.orders = deployment, log, keeper, orders
        self.tasks: dict[At, Task] = {}
        self.running = True
        self._topics = {deployment.log_topic(t): t for t in range(len(deployment.topics))}

    def run(self, timeout: float = 0.5) -> None:
        while self.running:
            self.step(timeout)

    def step(self, timeout: float) -> int:
        """Once round the loop. How many records it took."""
        for order in self.orders():
            match order:
                case Assign(epochs=epochs):
                    self._assign(epochs)
                case Stop():
                    self.save()
                    self.running = False
        if not self.running:
            return 0
        records = self.log.poll({at: task.progress.offset for at, task in self.tasks.items()}, timeout, MOST_AT_ONCE)
        replies: dict[int, list[bytes]] = {}
        for record in records:
            answer = self.tasks[record.at].take(record.value)
            if answer is not None:
                replies.setdefault(answer[0], []).append(answer[1])
        for front, some in replies.items():
            self.log.append(At(self.deployment.replies, front), some)
        return len(records)

    def _assign(self, epochs: Mapping[At, int]) -> None:
        """Let go of what is another's now, without a word: whoever has it goes on from the log."""
        mine = {at: task for at, task in self.tasks.items() if epochs.get(at) == task.epoch}
        for at in epochs.keys() - mine.keys():
            mine[at] = self.keeper.load(self._topics[at.topic], at.partition, epochs[at])
        self.tasks = mine

    def save(self) -> None:
        """All tasks. What they said is on the disk first."""
        if self.tasks:
            self.log.sync([At(self.deployment.replies, front) for front in range(self.deployment.fronts)])
            self.log.sync(self.tasks)
        for task in self.tasks.values():
            self.keeper.save(task)
