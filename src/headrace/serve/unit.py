"""A processor unit: one thread with the loop of algorithm 1 (003, 3.3): operational tasks, poll, the tasks, replies."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.errors import StaleError
from headrace.log.log import At, Log
from headrace.serve.deployment import Deployment
from headrace.serve.task import Task

SAVE_S = 5.0
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

    def save(self, task: Task, before: Callable[[], object]) -> Future[Any] | None:
        """Have it kept as it stands, but not before this is done; nothing while another save is under way."""

    def let_go(self, task: Task) -> None:
        """It is another's now."""

    def close(self) -> None:
        """What is being saved is done."""


class Unit:
    """The tasks of some partitions."""

    def __init__(
        self, deployment: Deployment, log: Log, keeper: Keeper, orders: Callable[[], list[Assign | Stop]], save_s: float = SAVE_S
    ) -> None:
        """`orders`: operational tasks that have come; `save_s`: how long after a save a task is saved again."""
        self.deployment, self.log, self.keeper, self.orders, self._save_s = deployment, log, keeper, orders, save_s
        self.tasks: dict[At, Task] = {}
        self.running = True
        self._topics = {deployment.log_topic(t): t for t in range(len(deployment.topics))}
        self._saved: dict[At, tuple[float, int]] = {}  # when, and at which offset
        self._saving: tuple[At, Future[Any]] | None = None

    def run(self, timeout: float = 0.5) -> None:
        while self.running:
            self.step(timeout)
        self.keeper.close()

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
        records = self.log.poll({at: task.offset for at, task in self.tasks.items()}, timeout, MOST_AT_ONCE)
        replies: dict[int, list[bytes]] = {}
        for record in records:
            answer = self.tasks[record.at].take(record.value)
            if answer is not None:
                replies.setdefault(answer[0], []).append(answer[1])
        for front, some in replies.items():
            self.log.append(At(self.deployment.replies, front), some)
        self._save_one()
        return len(records)

    def _assign(self, epochs: Mapping[At, int]) -> None:
        """Let go of what is another's now, without a word: whoever has it goes on from the log."""
        for at in [at for at, task in self.tasks.items() if epochs.get(at) != task.epoch]:
            self.keeper.let_go(self.tasks.pop(at))
        for at in sorted(epochs.keys() - self.tasks.keys()):
            with suppress(StaleError):  # another has been given it by now, and this unit is about to be told
                self.tasks[at] = self.keeper.load(self._topics[at.topic], at.partition, epochs[at])
                self._saved[at] = time.monotonic(), self.tasks[at].offset

    # ---- saves ----------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """All tasks, now."""
        self._settle(wait=True)
        for at, task in self.tasks.items():
            saving = self.keeper.save(task, self._durable(at))
            if saving is not None:
                saving.result()
                self._saved[at] = time.monotonic(), task.offset

    def _save_one(self) -> None:
        """The one whose turn it is, while the loop goes on."""
        self._settle()
        if self._saving is not None or not self.tasks:
            return
        at = min(self.tasks, key=lambda at: self._saved[at])
        (when, offset), task = self._saved[at], self.tasks[at]
        if time.monotonic() - when < self._save_s:
            return
        self._saved[at] = time.monotonic(), task.offset
        if task.offset > offset and (saving := self.keeper.save(task, self._durable(at))) is not None:
            self._saving = at, saving

    def _settle(self, *, wait: bool = False) -> None:
        """A task that could not be saved is begun anew from its last commit; whose it is not any more, nobody's here."""
        if self._saving is None or not (wait or self._saving[1].done()):
            return
        (at, saving), self._saving = self._saving, None
        error = saving.exception()
        task = self.tasks.get(at)
        if error is None or task is None:
            return
        self.keeper.let_go(self.tasks.pop(at))
        if not isinstance(error, StaleError):
            self.tasks[at] = self.keeper.load(task.topic, task.partition, task.epoch)

    def _durable(self, at: At) -> Callable[[], object]:
        """What a commit stands on: the records it has taken in, and what was answered."""
        replies = [At(self.deployment.replies, front) for front in range(self.deployment.fronts)]
        return lambda: self.log.sync([at, *replies])
