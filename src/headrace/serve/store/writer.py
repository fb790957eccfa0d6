"""One thread that writes the saves of all partitions of a process, one at a time, while the others go on answering."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

R = TypeVar("R")


class Writer:
    """At most one save is under way."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-save")
        self._last: Future[Any] | None = None

    @property
    def busy(self) -> bool:
        return self._last is not None and not self._last.done()

    def begin(self, write: Callable[[], R]) -> Future[R]:
        """Have it written. The caller has seen that no other save is under way."""
        assert not self.busy, "one save at a time"
        done = self._thread.submit(write)
        self._last = done
        return done

    def close(self) -> None:
        """What is under way is written; then the thread ends."""
        self._thread.shutdown()
