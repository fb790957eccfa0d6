"""One thread takes answers out of the log; the loop is woken once for all that came together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from headrace.serve.front import Answer, Front
from headrace.serve.records import Reply

POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Heard:
    """Some of a deployment's replies, and when they came."""

    reply: Reply
    at: float


class Collecting:
    """From when it is made until it is stopped."""

    def __init__(self, front: Front, hear: Callable[[Sequence[Heard]], None], failed: Callable[[Exception], None]) -> None:
        """`hear` and `failed` are called on the loop."""
        self.front, self._hear, self._failed = front, hear, failed
        self._loop, self._stopped = asyncio.get_running_loop(), False
        self._heard: list[Heard] = []
        self._whole: list[tuple[asyncio.Future[Answer | None], Answer]] = []
        self._last: dict[tuple[int, int], int] = {}
        front.listeners.append(self._listen)
        self._thread = threading.Thread(target=self._run, daemon=True, name="collecting")
        self._thread.start()

    def wait(self, answer: Future[Answer]) -> asyncio.Future[Answer | None]:
        """The answer, for the loop."""
        waiting: asyncio.Future[Answer | None] = self._loop.create_future()
        answer.add_done_callback(lambda done: self._done(waiting, done.result()))
        return waiting

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(timeout=5)
        self.front.listeners.remove(self._listen)

    def _listen(self, reply: Reply) -> None:
        """Units that take over say again what was said: of each bucket, only what is new is heard."""
        bucket = (reply.topic, reply.partition)
        if reply.offset > self._last.get(bucket, -1):
            self._last[bucket] = reply.offset
            self._heard.append(Heard(reply, time.monotonic()))

    def _done(self, waiting: asyncio.Future[Answer | None], answer: Answer) -> None:
        if threading.current_thread() is self._thread:
            self._whole.append((waiting, answer))
        else:
            _settle(waiting, answer)  # it was there before it was asked for, and this is the loop

    def _run(self) -> None:
        try:
            while not self._stopped:
                self.front.collect(POLL_S)
                if self._heard or self._whole:
                    heard, whole, self._heard, self._whole = self._heard, self._whole, [], []
                    self._loop.call_soon_threadsafe(self._tell, heard, whole)
        except Exception as error:
            self._loop.call_soon_threadsafe(self._failed, error)

    def _tell(self, heard: Sequence[Heard], whole: Sequence[tuple[asyncio.Future[Answer | None], Answer]]) -> None:
        for waiting, answer in whole:
            _settle(waiting, answer)
        self._hear(heard)


def _settle(waiting: asyncio.Future[Answer | None], answer: Answer) -> None:
    if not waiting.done():
        waiting.set_result(answer)
