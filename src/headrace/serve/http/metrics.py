"""What Prometheus asks for: counters and histograms, and their text (its exposition format 0.0.4)."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from headrace.serve.deployment import Deployment
from headrace.serve.http.collecting import Heard

CONTENT_TYPE = "text/plain"
BOUNDS = (0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
COUNTED = {  # by stream
    "events": "Events that were accepted.",
    "late": "Events that were accepted, and late.",
    "punctuation": "Rows that were promises about time.",
    "rejected": "Events that did not fit their stream.",
    "unanswered": "Events whose answer did not come in time.",
}
MOST_OVER = 4_096


@dataclass(slots=True)
class Histogram:
    """How many took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def lines(self, name: str, label: str) -> Iterable[str]:
        running = 0
        for bound, count in zip((*BOUNDS, None), self.counts, strict=True):
            running += count
            yield f'{name}_bucket{{{label},le="{"+Inf" if bound is None else bound}"}} {running}'
        yield f"{name}_sum{{{label}}} {self.total!r}"
        yield f"{name}_count{{{label}}} {running}"


class Metrics:
    """Of one front end. Used by the loop's thread alone."""

    def __init__(self, deployment: Deployment) -> None:
        self._streams = [s.name for s in deployment.streams]
        self._topics = [t.name for t in deployment.topics]
        self._counts: dict[str, Counter[int]] = {what: Counter() for what in COUNTED}
        self._statuses: Counter[int] = Counter()
        self._replies = [Histogram() for _ in self._streams]
        self._answers = [Histogram() for _ in self._topics]
        self._since: dict[int, float] = {}
        self._over: dict[int, float] = {}  # of events that were replied to; what was answered may be heard a moment later
        self._gauges: list[tuple[str, str, Callable[[], int]]] = []

    def gauge(self, name: str, help: str, value: Callable[[], int]) -> None:
        """Something that is looked at when it is asked for."""
        self._gauges.append((name, help, value))

    def count(self, what: str, stream: int) -> None:
        self._counts[what][stream] += 1

    def answered(self, status: int) -> None:
        """A request, by its status."""
        self._statuses[status] += 1

    def posted(self, place: int, began: float) -> None:
        self._since[place] = began

    def replied(self, stream: int, place: int, whole: bool) -> None:
        """Nobody waits for this event any more."""
        began = self._since.pop(place, None)
        if began is None:
            return
        self._over[place] = began
        if len(self._over) > MOST_OVER:
            del self._over[next(iter(self._over))]
        if whole:
            self._replies[stream].add(time.monotonic() - began)

    def hear(self, heard: Sequence[Heard]) -> None:
        """Answers of topics, each for itself."""
        for one in heard:
            began = self._since.get(one.reply.place, self._over.get(one.reply.place))
            if began is not None:
                self._answers[one.reply.topic].add(one.at - began)

    def text(self) -> bytes:
        lines = [line for block in self._blocks() for line in block]
        return ("\n".join(lines) + "\n").encode()

    def _blocks(self) -> Iterable[Iterable[str]]:
        for what, help in COUNTED.items():
            name, counts = f"headrace_{what}_total", self._counts[what]
            yield _head(name, "counter", help)
            yield (f'{name}{{stream="{_label(s)}"}} {counts[i]}' for i, s in enumerate(self._streams))
        yield _head("headrace_requests_total", "counter", "Requests, by the status of their answers.")
        yield (f'headrace_requests_total{{status="{s}"}} {n}' for s, n in sorted(self._statuses.items()))
        yield from self._histograms("headrace_reply_seconds", "stream", self._streams, self._replies, "From post to reply.")
        yield from self._histograms(
            "headrace_answer_seconds", "topic", self._topics, self._answers, "From post to a topic's answer."
        )
        for name, help, value in self._gauges:
            yield _head(name, "gauge", help)
            yield (f"{name} {value()}",)

    def _histograms(
        self, name: str, label: str, names: Sequence[str], found: Sequence[Histogram], help: str
    ) -> Iterable[Iterable[str]]:
        yield _head(name, "histogram", help)
        for one, histogram in zip(names, found, strict=True):
            yield histogram.lines(name, f'{label}="{_label(one)}"')


def _head(name: str, kind: str, help: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
