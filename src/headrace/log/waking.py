"""How those who wait for records hear of them: a named pipe in the folder of the partition, for each who waits.

Pipes are made and opened under the lock of the partition, and appenders look for them under it: one that nobody has open is
that of a dead reader, and is removed. Whether there are new ones, the folder's time of change says. A byte that does not come,
or comes in vain, costs time and nothing else: who waits looks again now and then.
"""

from __future__ import annotations

import errno
import math
import os
import select
import time
import uuid
from collections.abc import Mapping, Set
from contextlib import suppress

from headrace.log.log import At
from headrace.log.segments import Folder

PIPE = "waiting-"
SETTLED_NS = 50_000_000  # file systems may give two changes that are closer than a tick the same time


class Waiters:
    """Those who wait at a partition, as somebody knows them who appends."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._pipes: dict[str, int] = {}
        self._changed = -1

    def look(self, changed: int) -> None:
        """Find them, if the folder has changed: in nanoseconds, when. The caller has the lock of the partition."""
        if changed == self._changed:
            return
        names = {name for name in os.listdir(self.path) if name.startswith(PIPE)}
        for name in self._pipes.keys() - names:
            os.close(self._pipes.pop(name))
        for name in names - self._pipes.keys():
            try:
                self._pipes[name] = os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno == errno.ENXIO:  # nobody reads it
                    self._remove(name)
        self._changed = changed if time.time_ns() - changed > SETTLED_NS else -1

    def wake(self) -> None:
        dead = []
        for name, pipe in self._pipes.items():
            try:
                os.write(pipe, b".")
            except BlockingIOError:
                pass  # it was woken often enough, and has not looked yet
            except BrokenPipeError:
                dead.append(name)
        for name in dead:
            os.close(self._pipes.pop(name))
            self._remove(name)

    def close(self) -> None:
        while self._pipes:
            os.close(self._pipes.popitem()[1])

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(f"{self.path}/{name}")


class Waiting:
    """The pipes of one who waits, and waiting at all of them at once."""

    def __init__(self) -> None:
        self._pipes: dict[At, tuple[int, str]] = {}
        self._at: dict[int, At] = {}
        self._poll = select.poll()

    def is_at(self, ats: Set[At]) -> bool:
        """Whether it is at these partitions, and no others, that one is woken."""
        return self._pipes.keys() == ats

    def at(self, folders: Mapping[At, Folder]) -> bool:
        """Be woken at these partitions and no others. Whether some are new: what came before is to be looked for once more."""
        for at in self._pipes.keys() - folders.keys():
            self.leave(at)
        return any([self._enter(folders[at]) for at in folders.keys() - self._pipes.keys()])

    def wait(self, seconds: float) -> list[At]:
        """The partitions at which somebody has appended, or nothing if the time is over first."""
        ready = self._poll.poll(math.ceil(seconds * 1000))
        for pipe, _ in ready:
            with suppress(BlockingIOError):
                os.read(pipe, 1 << 16)
        return [self._at[pipe] for pipe, _ in ready]

    def leave(self, at: At) -> None:
        if at not in self._pipes:
            return
        pipe, path = self._pipes.pop(at)
        del self._at[pipe]
        self._poll.unregister(pipe)
        os.close(pipe)
        with suppress(OSError):
            os.unlink(path)

    def close(self) -> None:
        for at in list(self._pipes):
            self.leave(at)

    def _enter(self, folder: Folder) -> bool:
        """Make a pipe. Where there is no room for one, who waits is not woken, and finds what is new when he looks again."""
        path = f"{folder.path}/{PIPE}{os.getpid()}-{uuid.uuid4().hex}"  # a name means one pipe: appenders have it open
        try:
            with folder.locked():
                os.mkfifo(path)
                pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # with a writer of its own it never ends
        except OSError:
            return False
        self._pipes[folder.at] = pipe, path
        self._at[pipe] = folder.at
        self._poll.register(pipe, select.POLLIN)
        return True
