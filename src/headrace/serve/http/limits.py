"""Who sends too much at once is told so, before it costs memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headrace.serve.http.options import Limits
from headrace.serve.http.replies import Refused
from headrace.serve.http.tokens import Token

SOON_S = 1.0


@dataclass(slots=True)
class Bucket:
    """What a token may still send. Below nothing it waits; so a batch may take more than there is, and pays afterwards."""

    level: float
    at: float


class Limiter:
    """Counts what is going on. Used by the loop's thread alone."""

    def __init__(self, limits: Limits, unanswered: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self.limits, self._unanswered, self._clock = limits, unanswered, clock
        self.in_flight = self.bodies = 0
        self._each: Counter[str] = Counter()
        self._buckets: dict[str, Bucket] = {}

    @contextmanager
    def body(self, size: int) -> Iterator[None]:
        """Room for a body that is going to be read."""
        if self.bodies + size > self.limits.bodies:
            raise Refused(429, "too many bodies are being read", retry_after=SOON_S)
        self.bodies += size
        try:
            yield
        finally:
            self.bodies -= size

    @contextmanager
    def events(self, token: Token, count: int) -> Iterator[None]:
        """Room for events whose answers are waited for."""
        self._check(token, count)
        self.in_flight += count
        self._each[token.name] += count
        try:
            yield
        finally:
            self.in_flight -= count
            self._each[token.name] -= count

    def _check(self, token: Token, count: int) -> None:
        limits = self.limits
        most = min(limits.batch, limits.in_flight_each, limits.in_flight)
        if count > most:
            raise Refused(413, f"{count} events in one request, and {most} is the most", hint="send several requests")
        if self._each[token.name] + count > limits.in_flight_each or self.in_flight + count > limits.in_flight:
            raise Refused(429, "too many events wait for their answers", hint="wait for some of them", retry_after=SOON_S)
        if self._unanswered() + count > limits.unanswered:
            message = f"{limits.unanswered} events wait for units to answer them, and no more are taken"
            raise Refused(503, message, retry_after=SOON_S)
        if limits.rate is not None:
            self._charge(token.name, count, limits.rate)

    def _charge(self, name: str, count: int, rate: float) -> None:
        now = self._clock()
        bucket = self._buckets.setdefault(name, Bucket(rate, now))
        bucket.level = min(max(rate, 1.0), bucket.level + (now - bucket.at) * rate)
        bucket.at = now
        if bucket.level <= 0:
            message = f"more than {rate:g} events a second"
            raise Refused(429, message, hint="send more slowly", retry_after=(1 - bucket.level) / rate)
        bucket.level -= count
