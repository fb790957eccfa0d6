"""Folders of our own in the temporary directory. Whatever a run or a session leaves behind lies in one, and goes with it.

Each is locked by the process it belongs to. What a process that was killed has left, the next one finds unlocked, and removes.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress

PREFIX = "headrace-"
LOCK = ".headrace-lock"
MOST_PATH = 60  # a socket's path has at most 104 characters, of which Spark needs 43 behind that of the folder


class Scratch:
    """A folder, for as long as it is needed."""

    def __init__(self) -> None:
        """Make it, after those that nobody has any more are gone."""
        base = _base()
        sweep(base)
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=base)
        hidden = os.path.join(self.path, f"{LOCK}.new")
        self.lock = os.open(hidden, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        os.rename(hidden, os.path.join(self.path, LOCK))  # who looks for it under this name finds it locked
        atexit.register(self.remove)

    def remove(self) -> None:
        if self.lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self.lock)
            self.lock = -1
            atexit.unregister(self.remove)


def sweep(base: str) -> None:
    for entry in os.scandir(base):
        if not entry.name.startswith(PREFIX):
            continue
        try:
            lock = os.open(os.path.join(entry.path, LOCK), os.O_RDWR)
        except OSError:
            continue  # not one of these, being made, or another user's
        with suppress(OSError):  # in use
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(entry.path, ignore_errors=True)
        os.close(lock)


def _base() -> str:
    """The temporary directory, or one with a shorter path where sockets could not be made below it."""
    base = tempfile.gettempdir()
    return base if len(os.path.abspath(base)) + len(PREFIX) + 9 <= MOST_PATH or not os.access("/tmp", os.W_OK) else "/tmp"
