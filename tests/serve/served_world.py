"""A deployment in one process: fronts, a log, units; and all of them may die at any moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from headrace.log.log import At, Log
from headrace.runtime.processor import TaskProcessor
from headrace.runtime.save import load, save
from headrace.serve.assignment import Assignment
from headrace.serve.deployment import Deployment
from headrace.serve.front import Front, Taken
from headrace.serve.records import Reply, Said
from headrace.serve.task import Task
from headrace.serve.unit import Assign, Stop, Unit
from headrace.testing.local import MemoryStore


@dataclass
class Saved:
    """A commit of a task."""

    stores: dict[int, MemoryStore]
    heads: dict[int, bytes]
    offset: int
    epoch: int


@dataclass
class MemoryKeeper:
    """Commits of all tasks, in memory."""

    deployment: Deployment
    saved: dict[tuple[int, int], Saved] = field(default_factory=dict)
    loads: int = 0

    def load(self, topic: int, partition: int, epoch: int) -> Task:
        before = self.saved.get((topic, partition))
        stages = self.deployment.topics[topic].stages
        stores = {s: before.stores[s].copy() if before else MemoryStore() for s in stages}
        processors = {s: TaskProcessor(self.deployment.stage(s), stores[s], chunk_rows=8) for s in stages}
        if before is not None:
            self.loads += 1
            for s, processor in processors.items():
                load(processor, before.heads[s], stores[s])
        return Task(self.deployment, topic, partition, processors, before.offset if before else 0, epoch)

    def save(self, task: Task, before: Callable[[], object]) -> Future[None]:
        at, last, done = (task.topic, task.partition), self.saved.get((task.topic, task.partition)), Future[None]()
        if last is not None and last.epoch > task.epoch:
            raise AssertionError("a stale unit has saved")
        before()
        stores = {s: p.store.store for s, p in task.processors.items()}
        heads = {s: save(p, stores[s]) for s, p in task.processors.items()}
        self.saved[at] = Saved({s: store.copy() for s, store in stores.items()}, heads, task.offset, task.epoch)
        done.set_result(None)
        return done

    def let_go(self, task: Task) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is under way."""


class Served:
    """All of it."""

    def __init__(self, deployment: Deployment, log: Log, units: int = 2) -> None:
        self.deployment, self.log, self.keeper = deployment, log, MemoryKeeper(deployment)
        for topic, partitions in deployment.log_topics().items():
            log.create(topic, partitions)
        self.time = 0
        self.fronts = {n: Front(deployment, log, n, lambda: self.time) for n in range(deployment.fronts)}
        partitions = [
            At(deployment.log_topic(t), p)
            for t, topic in enumerate(deployment.topics)
            for p in range(topic.partitions(deployment.partitions))
        ]
        self.assignment = Assignment(partitions)
        self.orders: dict[int, list[Assign | Stop]] = {}
        self.units: dict[int, Unit] = {}
        self.replies: list[Reply] = []
        for _ in range(units):
            self.add_unit()
        for front in self.fronts.values():
            front.listeners.append(self.replies.append)

    def add_unit(self) -> int:
        number = max(self.units, default=-1) + 1
        self.orders[number] = []
        self.units[number] = Unit(self.deployment, self.log, self.keeper, lambda: self._orders_of(number))
        self._share()
        return number

    def kill_unit(self, number: int) -> None:
        del self.units[number]
        self._share()

    def kill_front(self, number: int) -> None:
        """Another process takes its name."""
        self.fronts[number] = Front(self.deployment, self.log, number, lambda: self.time)
        self.fronts[number].listeners.append(self.replies.append)

    def _orders_of(self, number: int) -> list[Assign | Stop]:
        orders, self.orders[number] = self.orders[number], []
        return orders

    def _share(self) -> None:
        for unit in self.assignment.give(self.units.keys()) | self.units.keys():
            self.orders[unit].append(Assign(self.assignment.of(unit)))

    def work(self) -> None:
        """Until nobody has anything to do."""
        while sum(unit.step(0) for unit in self.units.values()) + sum(f.collect(0) for f in self.fronts.values()):
            pass

    def said(self, taken: Taken) -> Sequence[Said]:
        """The answer to an event, which must be there by now."""
        assert taken.answer is not None
        return taken.answer.result(timeout=0).said
