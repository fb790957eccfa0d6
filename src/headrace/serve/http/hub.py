"""Who listens to which queries, over WebSockets."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from headrace.errors import unknown
from headrace.serve.http.answers import Answers
from headrace.serve.http.collecting import Heard
from headrace.serve.http.replies import Refused


class Outbox:
    """What one connection is still to be sent; `most` bytes, and who reads too slowly for that is cut off."""

    def __init__(self, most: int) -> None:
        self._most, self._size = most, 0
        self._messages: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self.overrun = self.closed = False

    def put(self, message: bytes) -> None:
        if self.overrun or self.closed:
            return
        self._size += len(message)
        self.overrun = self._size > self._most
        self._messages.append(message)
        self._wake.set()

    def close(self) -> None:
        """Nobody takes out anything any more."""
        self.closed = True
        self._wake.set()

    async def take(self) -> bytes | None:
        """The next message; None: there will be none."""
        while not (self._messages or self.closed):
            self._wake.clear()
            await self._wake.wait()
        if self.overrun or self.closed:
            return None
        message = self._messages.popleft()
        self._size -= len(message)
        return message


class Hub:
    """All subscriptions of a front end."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._numbers = {name: n for n, name in enumerate(answers.names)}
        self._outboxes: dict[int, set[Outbox]] = {n: set() for n in self._numbers.values()}

    def subscribe(self, outbox: Outbox, names: Iterable[str]) -> None:
        for number in self._found(names):
            self._outboxes[number].add(outbox)

    def unsubscribe(self, outbox: Outbox, names: Iterable[str] | None = None) -> None:
        """From these queries, or from all."""
        for number in self._outboxes if names is None else self._found(names):
            self._outboxes[number].discard(outbox)

    def of(self, outbox: Outbox) -> list[str]:
        """What somebody listens to."""
        return [name for name, number in self._numbers.items() if outbox in self._outboxes[number]]

    def subscribers(self) -> int:
        return len(set().union(*self._outboxes.values()))

    def hear(self, heard: Sequence[Heard]) -> None:
        """A change is written once, whoever hears of it."""
        for one in heard:
            for said in one.reply.said:
                outboxes = self._outboxes[said.query]
                if outboxes:
                    message = b'{"change": %s}' % self._answers.change(said)
                    for outbox in outboxes:
                        outbox.put(message)

    def _found(self, names: Iterable[str]) -> list[int]:
        wanted = list(names)
        for name in wanted:
            if name not in self._numbers:
                raise Refused(404, unknown("query", name, self._numbers))
        return [self._numbers[name] for name in wanted]
