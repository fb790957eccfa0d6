"""One run at a time on a checkpoint. What a kill leaves behind does not stand in the way of the next.

On a local file system the lock is the system's (flock), which goes with its process. On others it is a lease: a small file that
says who has it, renewed while he lives. Either has a token of the run, which is asked for again before a batch is published: one
that was taken for dead, or whose JVM outlives its driver for a moment, publishes nothing any more.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from typing import IO, Any

from headrace.errors import InUseError, StateError
from headrace.spark.storage.storage import LOCAL, Storage, absolute, is_local, join, read_facts, write_facts

NAME = "headrace.json"  # what a checkpoint says about itself
LOCK = "headrace.lock"
RENEW_S = 10.0
EXPIRES_S = 60.0
_held: set[str] = set()  # tokens of this process


class Lock:
    """The right to work on a checkpoint, until it is released."""

    def __init__(self, path: str, storage: Storage) -> None:
        """Take it; an `InUseError` at once if somebody has it."""
        self.path, self._storage = path, storage
        self.token = uuid.uuid4().hex
        self._file: IO[str] | None = None
        self._released = threading.Event()
        refuse_other_things(storage, path)
        if is_local(path):
            self._flock()
        else:
            self._lease()

    @property
    def place(self) -> str:
        return join(self.path, LOCK)

    def _facts(self) -> dict[str, Any]:
        return {"host": socket.gethostname(), "pid": os.getpid(), "token": self.token, "renewed": time.time()}

    def _flock(self) -> None:
        self._storage.make(self.path)
        file = open(self.place, "a+", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            with file:
                file.seek(0)
                raise in_use(self.path, _parsed(file.read())) from None
        file.truncate(0)
        file.write(json.dumps(self._facts()) + "\n")
        file.flush()
        self._file = file

    def _lease(self) -> None:
        holder = read_facts(self._storage, self.place)
        if holder is not None and _alive(holder):
            raise in_use(self.path, holder, lease=True)
        write_facts(self._storage, self.place, self._facts())
        if not self._stored():  # two that begin in one moment: the one that wrote last has it
            raise in_use(self.path, read_facts(self._storage, self.place), lease=True)
        _held.add(self.token)
        threading.Thread(target=self._renew, name="headrace-lease", daemon=True).start()

    def _renew(self) -> None:
        while not self._released.wait(RENEW_S):
            # A file system that does not answer now is asked again; who takes the lease over meanwhile keeps it.
            with suppress(Exception):
                if not self._stored():
                    return
                write_facts(self._storage, self.place, self._facts())

    def _stored(self) -> bool:
        return (read_facts(self._storage, self.place) or {}).get("token") == self.token

    def release(self) -> None:
        if self._released.is_set():
            return
        self._released.set()
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
        _held.discard(self.token)
        if self._file is None:
            with suppress(Exception):  # a file system that does not answer: the lease runs out
                if self._stored():
                    self._storage.delete(self.place)


def refuse_other_things(storage: Storage, path: str) -> None:
    """A directory that is neither empty nor a checkpoint is somebody's, and nothing is written there."""
    if storage.exists(path) and not storage.is_folder(path):
        hint = "name an empty or a new directory with --checkpoint"
        raise StateError(f"{path!r} is a file, and a checkpoint is a directory", hint=hint)
    names = storage.names(path)
    # A kill may have left half-written facts of ours, or a lock.
    if NAME not in names and any(not name.lstrip(".").startswith((NAME, LOCK)) for name in names):
        hint = "name an empty or a new directory with --checkpoint"
        raise StateError(f"{path!r} is not empty and not a checkpoint of Headrace", hint=hint)


def lock_early(checkpoint: str | None) -> Lock | None:
    """The lock of a local checkpoint, taken before Spark starts: who is refused is refused at once."""
    return Lock(absolute(checkpoint), LOCAL) if checkpoint is not None and is_local(checkpoint) else None


def holds(storage: Storage, path: str, token: str) -> bool:
    """Whether the run with this token has the right to a checkpoint."""
    holder = _parsed((storage.read(join(path, LOCK)) or b"").decode())
    return bool(holder.get("token", token) == token)  # with nobody's name on it, nobody has taken it over


def holder_of(storage: Storage, path: str) -> dict[str, Any] | None:
    place = join(path, LOCK)
    if not is_local(path):
        holder = read_facts(storage, place)
        return holder if holder is not None and _alive(holder) else None
    with suppress(FileNotFoundError), open(place, encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _parsed(file.read())
    return None


def require(storage: Storage, path: str, token: str) -> None:
    """Before a batch is published: an error if another run has taken over."""
    if not holds(storage, path, token):
        hint = "leave the work to it, or stop it and start again"
        raise StateError(f"another run has taken over the checkpoint {path!r}", hint=hint)


def in_use(path: str, holder: dict[str, Any] | None, *, lease: bool = False) -> InUseError:
    """Who has it, and what to do."""
    who = f"process {holder['pid']} on {holder['host']}" if holder and "pid" in holder else "another process"
    hint = "stop that run first, or name another directory with --checkpoint"
    if lease:
        hint += f"; if its machine is gone, wait {EXPIRES_S:.0f} seconds"
    return InUseError(f"{who} is running on the checkpoint {path!r}", hint=hint)


def _alive(holder: dict[str, Any]) -> bool:
    """Whether a lease counts: it was renewed of late, and its process, if it is one of this machine, is there."""
    if time.time() - float(holder.get("renewed", 0)) >= EXPIRES_S:
        return False
    if holder.get("host") != socket.gethostname():
        return True
    if holder.get("pid") == os.getpid():
        return holder.get("token") in _held
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
