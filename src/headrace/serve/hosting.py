"""What a processor unit is told when it starts, wherever it runs: a Spark task, or a process of its own."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from headrace.log.files import FileLog
from headrace.log.log import Log
from headrace.serve.coordinator import Link
from headrace.serve.deployment import Deployment
from headrace.serve.keeping import StoreKeeper
from headrace.serve.unit import Unit

SWITCH_S = 0.0005  # the thread that writes saves lets the loop go on after this; by default it takes ten times as long


@dataclass(frozen=True, slots=True)
class UnitConfig:
    """Travels to whoever runs the unit."""

    deployment: Deployment
    log: str
    coordinator: tuple[str, int]
    secret: str
    store: str


def open_log(address: str) -> Log:
    """Files in a folder, or Kafka."""
    if address.startswith("kafka://"):
        from headrace.log.kafka import KafkaLog

        return KafkaLog(address.removeprefix("kafka://"))
    return FileLog(address)


def run_unit(number: int, config: UnitConfig) -> None:
    """Until it is told to stop, or nobody is there any more who could tell."""
    with closing(open_log(config.log)) as log:
        link = Link(config.coordinator, number, os.getpid(), config.secret)
        unit = Unit(config.deployment, log, StoreKeeper(config.deployment, config.store), link.orders)
        sys.setswitchinterval(SWITCH_S)
        with no_sudden_garbage():
            unit.run()
        link.close()


@contextmanager
def no_sudden_garbage() -> Iterator[None]:
    """What is there stays, and is not looked through again and again: a look takes as long as several events."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def in_partition(config: UnitConfig) -> Callable[[int, Iterable[int]], Iterable[int]]:
    """As Spark calls it."""

    def of(number: int, _: Iterable[int]) -> Iterable[int]:
        run_unit(number, config)
        yield number

    return of
