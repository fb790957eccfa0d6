"""The folder of a log: topics, which are there or not, and how far groups are.

log.json                     what this folder is
topics/<topic>/topic.json    a topic is there while this file is
topics/<topic>/<partition>/  segments (`segments.py`), pipes of those who wait (`waking.py`)
groups/<group>.json          what was committed
aside/                       what is being made or removed
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from headrace.errors import LogError, SystemFailure
from headrace.log.log import At, checked_name
from headrace.log.segments import ANEW, TOPIC, Folder
from headrace.log.waking import Waiters
from headrace.log.words import no_partition, no_partitions, no_topic, other_partitions

FORMAT = 1
ABOUT = "log.json"


class Topic:
    """A topic as it was when it was opened. One that is made anew under its name is another."""

    def __init__(self, path: str, name: str) -> None:
        """A FileNotFoundError if it is not there."""
        self.name, self._path = name, path
        self._file = os.open(f"{path}/{TOPIC}", os.O_RDONLY)
        try:
            facts = json.loads(os.pread(self._file, 1 << 16, 0))
            self.identity, self.partitions = str(facts["identity"]), int(facts["partitions"])
        except (ValueError, KeyError, TypeError):
            self.close()
            raise LogError("damaged: it does not say what the topic is", where=f"{path}/{TOPIC}", hint=ANEW) from None

    def is_there(self) -> bool:
        return self._file >= 0 and os.fstat(self._file).st_nlink > 0

    def folder(self, at: At) -> Folder:
        if not 0 <= at.partition < self.partitions:
            raise no_partition(at, self.partitions, self._path)
        return Folder(at, f"{self._path}/{at.partition}")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Topics:
    """All topics of a folder, and its groups."""

    def __init__(self, root: str) -> None:
        """Begin a log there, or go on with the one that is there."""
        self.root = os.path.abspath(root)
        self._topics, self._groups, self._aside = (f"{self.root}/{name}" for name in ("topics", "groups", "aside"))
        _refuse_other_things(self.root)
        for folder in (self._topics, self._groups, self._aside):
            os.makedirs(folder, exist_ok=True)
        with self._alone():
            if not os.path.exists(f"{self.root}/{ABOUT}"):
                self._replace(f"{self.root}/{ABOUT}", {"format": FORMAT}, durable=True)

    def create(self, name: str, partitions: int) -> None:
        checked_name("topic", name)
        if partitions < 1:
            raise no_partitions(name, partitions)
        with self._alone():
            there = self.partitions(name)
            if there is not None and there != partitions:
                raise other_partitions(name, there, partitions)
            if there is None:
                self._make(name, partitions)

    def delete(self, name: str) -> None:
        with self._alone():
            path = f"{self._topics}/{checked_name('topic', name)}"
            with suppress(FileNotFoundError):
                os.unlink(f"{path}/{TOPIC}")  # from here on it is gone, for everybody
                sync_folder(path)
            self._sweep(name)

    def partitions(self, name: str) -> int | None:
        """How many a topic has; None if there is none."""
        try:
            topic = Topic(f"{self._topics}/{name}", name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        topic.close()
        return topic.partitions

    def all(self) -> dict[str, int]:
        found = ((name, self.partitions(name)) for name in sorted(os.listdir(self._topics)))
        return {name: partitions for name, partitions in found if partitions is not None}

    def open(self, name: str) -> Topic:
        try:
            return Topic(f"{self._topics}/{checked_name('topic', name)}", name)
        except FileNotFoundError:
            raise no_topic(name, self.all(), self.root) from None

    def commit(self, group: str, offsets: Mapping[At, int]) -> None:
        path = self._group(group)
        with self._alone():
            noted = _read(path)
            topics = {name: self.open(name) for name in sorted({at.topic for at in offsets})}
            for topic in topics.values():
                topic.close()
            for at, offset in offsets.items():
                topic = topics[at.topic]
                topic.folder(at)
                mine = noted.get(at.topic)
                if mine is None or mine["identity"] != topic.identity:
                    mine = noted[at.topic] = {"identity": topic.identity, "offsets": {}}
                mine["offsets"][str(at.partition)] = offset
            self._replace(path, noted)

    def committed(self, group: str) -> dict[At, int]:
        """What was noted of topics that are still there. A note that the loss of a machine has torn is none."""
        found: dict[At, int] = {}
        for name, noted in _read(self._group(group)).items():
            with suppress(FileNotFoundError):
                topic = Topic(f"{self._topics}/{name}", name)
                topic.close()
                if topic.identity == noted["identity"]:
                    found |= {At(name, int(partition)): offset for partition, offset in noted["offsets"].items()}
        return found

    def _group(self, group: str) -> str:
        return f"{self._groups}/{checked_name('group', group)}.json"

    def _make(self, name: str, partitions: int) -> None:
        """Aside, and then into its place: it is there with all its partitions, or not at all."""
        self._sweep(name)
        path = f"{self._aside}/{uuid.uuid4().hex}"
        folders = [Folder(At(name, number), f"{path}/{number}") for number in range(partitions)]
        try:
            for folder in folders:
                os.makedirs(folder.path)
                os.close(os.open(folder.segment(0), os.O_CREAT | os.O_WRONLY, 0o666))
            self._replace(f"{path}/{TOPIC}", {"identity": uuid.uuid4().hex, "partitions": partitions}, durable=True)
            for below in (*(folder.path for folder in folders), path):
                sync_folder(below)
            os.rename(path, f"{self._topics}/{name}")
            sync_folder(self._topics)
        except OSError as error:
            shutil.rmtree(path, ignore_errors=True)
            hint = "make room there, or see who may write there, and try again"
            raise SystemFailure(f"topic {name!r} was not created: {error.strerror}", where=self.root, hint=hint) from error

    def _sweep(self, name: str) -> None:
        """Remove what is left of a deleted topic, and whatever somebody left who was killed; those who wait there hear of it."""
        path, aside = f"{self._topics}/{name}", f"{self._aside}/{uuid.uuid4().hex}"
        waiters = []
        if os.path.isdir(path):
            os.rename(path, aside)
            waiters = [Waiters(entry.path) for entry in os.scandir(aside) if entry.is_dir()]
            for some in waiters:
                some.look(0)
        for left in os.listdir(self._aside):
            shutil.rmtree(f"{self._aside}/{left}", ignore_errors=True)
        for some in waiters:
            some.wake()
            some.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Topics and groups are changed by one process at a time."""
        lock = os.open(self._aside, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, path: str, facts: Mapping[str, Any], *, durable: bool = False) -> None:
        hidden = f"{self._aside}/{uuid.uuid4().hex}"
        with open(hidden, "w", encoding="utf-8") as file:
            json.dump(facts, file)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(hidden, path)
        if durable:
            sync_folder(os.path.dirname(path))


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def sync_folder(folder: str) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _refuse_other_things(root: str) -> None:
    """A folder that is neither empty nor a log is somebody's."""
    os.makedirs(root, exist_ok=True)
    about = _read(f"{root}/{ABOUT}")
    if about.get("format", FORMAT) > FORMAT:
        hint = "install the version of Headrace that wrote it, or a later one"
        raise LogError(f"its format is {about['format']}, and this version knows formats up to {FORMAT}", where=root, hint=hint)
    if not about and not set(os.listdir(root)) <= {"topics", "groups", "aside", ABOUT}:
        raise LogError("this folder is not empty, and not a log of Headrace", where=root, hint="name an empty or a new folder")
