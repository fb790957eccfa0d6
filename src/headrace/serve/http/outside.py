"""Everything a front end needs to talk to others, put together on its loop, and how it comes to an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from headrace.serve.front import Front
from headrace.serve.http.collecting import Collecting, Heard
from headrace.serve.http.connections import Connections
from headrace.serve.http.gateway import Gateway
from headrace.serve.http.hub import Hub
from headrace.serve.http.limits import Limiter
from headrace.serve.http.metrics import Metrics
from headrace.serve.http.options import Options
from headrace.serve.http.posting import OnLoop, OnThread, Posting
from headrace.serve.http.site import Site
from headrace.serve.http.texts import Texts
from headrace.serve.http.tokens import Doorkeeper

LOOK_S = 0.02
SHUTDOWN_S = 0.5  # for replies that are being sent


class Outside:
    """From when it is made, on a loop, until `end`."""

    def __init__(
        self, front: Front, texts: Texts, door: Doorkeeper, options: Options, ready: Callable[[], Sequence[str]],
        say: Callable[[str], None], broke: Callable[[Exception], None],
    ) -> None:  # fmt: skip
        self._options, self._broke = options, broke
        self.limiter, self.metrics = Limiter(options.limits, front.unanswered), Metrics(front.deployment)
        self._posting: Posting = OnThread(front) if options.post_on_thread else OnLoop(front)
        self._collecting = Collecting(front, self._hear, broke)
        self._gateway = Gateway(
            front, texts, self._posting, self._collecting, self.limiter, self.metrics, options.answer_s, broke
        )  # fmt: skip
        self._hub = Hub(self._gateway.answers)
        self._site = Site(self._gateway, self._hub, door, self.limiter, self.metrics, options, ready, say)
        self.connections = Connections(self._site.answer, options)
        self._beating = asyncio.create_task(self._beat())
        self._measure(front)

    async def end(self, hurry: Callable[[], bool]) -> None:
        """Let those who wait have their answers, as long as there is time and no `hurry`; tell the others."""
        self._site.draining = True
        until = asyncio.get_running_loop().time() + self._options.grace_s
        while self.limiter.in_flight and not hurry() and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(LOOK_S)
        self._beating.cancel()
        self._gateway.give_up()
        await self._site.hang_up()
        self.connections.pre_shutdown()
        await self.connections.shutdown(timeout=SHUTDOWN_S)
        self._posting.close()
        self._collecting.stop()

    def _hear(self, heard: Sequence[Heard]) -> None:
        self.metrics.hear(heard)
        self._hub.hear(heard)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._options.beat_s)
            try:
                await self._posting.beat()
            except Exception as error:
                self._broke(error)
                return

    def _measure(self, front: Front) -> None:
        gauge = self.metrics.gauge
        gauge("headrace_in_flight", "Events whose senders wait.", lambda: self.limiter.in_flight)
        gauge("headrace_unanswered", "Events that no unit has answered yet.", front.unanswered)
        gauge("headrace_connections", "Open connections.", lambda: len(self.connections.connections))
        gauge("headrace_subscribers", "Who listens to queries.", self._hub.subscribers)
