"""Who hands events to the front, which takes one at a time: the loop itself, or a thread where an append takes long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from headrace.serve.front import Front, Taken


@dataclass(frozen=True, slots=True)
class Post:
    """A row on its way to the front, as `Front.post` wants it."""

    stream: int
    ts: int | None
    values: Sequence[Any]
    id: str | None = None
    upto: int | None = None


class Posting(Protocol):
    """Both keep the order in which they are asked."""

    async def post(self, row: Post) -> Taken:
        """The event counts once this returns."""

    async def beat(self) -> None:
        """Tell every bucket how far the front is."""

    def close(self) -> None:
        """No more come."""


class OnLoop:
    """An append to a file takes some 40 µs, less than to wake a thread and be woken by it."""

    def __init__(self, front: Front) -> None:
        self.front = front

    async def post(self, row: Post) -> Taken:
        return self.front.post(row.stream, row.ts, row.values, row.id, row.upto)

    async def beat(self) -> None:
        self.front.beat()

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something for the thread to do, and who waits for it."""

    do: Callable[[], Any]
    done: asyncio.Future[Any]


class OnThread:
    """The loop goes on while a broker is waited for, and hears at once of all that was done in one go."""

    def __init__(self, front: Front) -> None:
        self.front, self._loop = front, asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True, name="posting")
        self._thread.start()

    async def post(self, row: Post) -> Taken:
        taken: Taken = await self._ask(lambda: self.front.post(row.stream, row.ts, row.values, row.id, row.upto))
        return taken

    async def beat(self) -> None:
        await self._ask(self.front.beat)

    def close(self) -> None:
        self._jobs.put(None)
        self._thread.join(timeout=5)

    def _ask(self, do: Callable[[], Any]) -> asyncio.Future[Any]:
        done = self._loop.create_future()
        self._jobs.put(Job(do, done))
        return done

    def _work(self) -> None:
        while True:
            jobs = self._waiting()
            some = [job for job in jobs if job is not None]
            results = [(job.done, _result(job.do)) for job in some]
            self._loop.call_soon_threadsafe(_tell, results)
            if len(some) < len(jobs):
                return

    def _waiting(self) -> list[Job | None]:
        """All that wait; the first of them is waited for."""
        jobs = [self._jobs.get()]
        while True:
            try:
                jobs.append(self._jobs.get_nowait())
            except Empty:
                return jobs


def _result(do: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return do(), None
    except Exception as error:
        return None, error


def _tell(results: Iterable[tuple[asyncio.Future[Any], tuple[Any, Exception | None]]]) -> None:
    for done, (result, error) in results:
        if done.done():
            continue
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)
