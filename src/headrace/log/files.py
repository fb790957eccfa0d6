"""The log in files of this machine: nothing to install, and no process of its own.

Who appends takes the lock of a partition, which goes with his process, writes one frame, and wakes who waits there. Records
that are there when `sync` is called are on the disk when it returns. The folder has to be on a disk of this machine.

Any number of threads append through one of these, and one at a time polls. It belongs to the process that made it, not to forks
of that: they would share its locks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from itertools import pairwise
from typing import ParamSpec, TypeVar

from headrace.errors import SystemFailure
from headrace.log.appending import Appender
from headrace.log.frames import MOST_BYTES, Body
from headrace.log.log import At, Record
from headrace.log.polling import Poller
from headrace.log.segments import Cursor, Folder, TopicGoneError, at_end
from headrace.log.topics import Topic, Topics, sync_folder
from headrace.log.words import too_many_bytes

SEGMENT_BYTES = 64 << 20
P = ParamSpec("P")
R = TypeVar("R")


def told(method: Callable[P, R]) -> Callable[P, R]:
    """What the system refuses (permission, too many open files) is said as our errors are."""

    @wraps(method)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            where = error.filename if isinstance(error.filename, str) else None
            raise SystemFailure(f"the log cannot work there: {error.strerror}", where=where) from error

    return asked


class FileLog:
    """A `Log` in a folder."""

    @told
    def __init__(self, folder: str, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Begin one, or go on with the one that is there. A segment has so many bytes at most, or one append."""
        self._all = Topics(folder)
        self._segment_bytes = segment_bytes
        self._guard = threading.Lock()  # of these tables
        self._topics: dict[str, Topic] = {}
        self._appenders: dict[At, Appender] = {}
        self._ends: dict[At, Cursor] = {}
        self._synced: dict[At, int] = {}  # up to which segment the folder is on the disk
        self._poller = Poller(self._all)

    @told
    def create(self, topic: str, partitions: int) -> None:
        self._all.create(topic, partitions)

    @told
    def delete(self, topic: str) -> None:
        self._all.delete(topic)

    @told
    def topics(self) -> dict[str, int]:
        return self._all.all()

    @told
    def append(self, at: At, values: Sequence[bytes]) -> int:
        size = sum(map(len, values))
        if size > MOST_BYTES:
            raise too_many_bytes(at, size, MOST_BYTES)
        body = Body.of(values)
        while True:
            try:
                return (self._appenders.get(at) or self._appender(at)).append(body)
            except TopicGoneError:
                self._topic(at.topic)  # an error, or another one of this name

    @told
    def poll(self, offsets: Mapping[At, int], timeout: float, most: int = 1000) -> list[Record]:
        return self._poller.poll(offsets, timeout, most)

    @told
    def begin(self, at: At) -> int:
        while True:
            with suppress(TopicGoneError):
                return self._folder(at).bases()[0]

    @told
    def end(self, at: At) -> int:
        while True:
            folder = self._folder(at)
            with suppress(TopicGoneError), self._guard:
                cursor = self._ends[at] = at_end(self._ends.get(at), folder)
                return cursor.offset

    @told
    def sync(self, ats: Iterable[At]) -> None:
        for at in ats:
            while not self._sync(at):
                pass

    @told
    def commit(self, group: str, offsets: Mapping[At, int]) -> None:
        self._all.commit(group, offsets)

    @told
    def committed(self, group: str) -> dict[At, int]:
        return self._all.committed(group)

    @told
    def trim(self, at: At, offset: int) -> None:
        folder = self._folder(at)
        with suppress(TopicGoneError):
            for base, following in pairwise(folder.bases()):  # the oldest first: what is left has no hole at any moment
                if following <= offset:
                    for path in (folder.index(base), folder.segment(base)):
                        with suppress(FileNotFoundError):
                            os.unlink(path)

    @told
    def close(self) -> None:
        self._poller.close()
        with self._guard:
            for topic in list(self._topics):
                self._forget(topic)

    def _sync(self, at: At) -> bool:
        """The last segment; those before it are on the disk. Whether it was there long enough."""
        folder = self._folder(at)
        try:
            last = folder.bases()[-1]
            file = folder.open(last, os.O_RDONLY)
        except (FileNotFoundError, TopicGoneError):
            return False
        try:
            os.fsync(file)
        finally:
            os.close(file)
        if self._synced.get(at) != last:
            sync_folder(folder.path)
            self._synced[at] = last
        return True

    def _folder(self, at: At) -> Folder:
        return self._topic(at.topic).folder(at)

    def _topic(self, name: str) -> Topic:
        with self._guard:
            topic = self._topics.get(name)
            if topic is None or not topic.is_there():
                self._forget(name)
                topic = self._topics[name] = self._all.open(name)
            return topic

    def _appender(self, at: At) -> Appender:
        topic = self._topic(at.topic)
        with self._guard:
            if at not in self._appenders:
                self._appenders[at] = Appender(topic, topic.folder(at), self._segment_bytes)
            return self._appenders[at]

    def _forget(self, name: str) -> None:
        """Let go of a topic. The caller has the guard."""
        for table in (self._appenders, self._ends):
            for at in [at for at in table if at.topic == name]:
                table.pop(at).close()
        for at in [at for at in self._synced if at.topic == name]:
            del self._synced[at]
        if name in self._topics:
            self._topics.pop(name).close()
