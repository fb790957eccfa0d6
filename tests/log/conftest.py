"""A new, empty log of every kind, for each test that asks for one."""

from __future__ import annotations

import os
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headrace.log.files import FileLog
from headrace.log.log import Log

sys.path.insert(0, str(Path(__file__).parent))  # child.py and kinds.py are processes' too
from kinds import open_log


@dataclass
class World:
    """A log, and everybody's handles on it."""

    kind: str
    address: str
    reset: Callable[[], None]
    moment: float = 0.01  # seconds in which somebody appends a few records
    share: float = 1.0  # of the random histories of files
    _open: list[Log] = field(default_factory=list)

    def open(self, *, small: bool = False) -> Log:
        log = open_log(self.kind, self.address, small=small)
        self._open.append(log)
        return log

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    def begin_anew(self) -> None:
        """For properties, which try many logs in one test."""
        self.close()
        self.reset()


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """No test pulls the plug: what has to be synced when, the one says that stands in for a disk (`Disk`). Children do sync."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def files(tmp_path) -> Iterator[World]:
    folder = tmp_path / "log"
    world = World("files", str(folder), lambda: shutil.rmtree(folder, ignore_errors=True))
    yield world
    world.close()


@pytest.fixture
def kafka(broker) -> Iterator[World]:
    """Topics of a prefix of its own, which nobody else has: nothing has to be deleted."""

    def reset() -> None:
        world.address = f"{broker.address}/{uuid.uuid4().hex[:8]}-"

    world = World("kafka", "", reset, moment=0.1, share=0.25)
    reset()
    yield world
    world.close()


@pytest.fixture(params=["files", pytest.param("kafka", marks=pytest.mark.kafka)])
def world(request) -> World:
    """Every implementation: the fixture of its name makes a log of it."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def log(files) -> FileLog:
    """One in files, of small segments, with a topic of one partition."""
    log = files.open(small=True)
    log.create("t", 1)
    return log
