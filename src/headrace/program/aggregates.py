"""Aggregates, as data: what is kept per key, and how result columns are read from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.plan.aggregates.function import Reads, TallyKind

RESULT = -1  # in the place of the group of a tally: every result of a pattern has rows of its own


@dataclass(frozen=True, slots=True)
class Tally:
    """An aggregate state per key of table `group`, over one window. If the group is RESULT, there is neither table nor window."""

    kind: TallyKind
    window: int
    group: int
    vector: int
    pairs: int | None = None  # DISTINCT: the table of (key, value) pairs
    mode: str = ""  # QUEUE: least, greatest, oldest, newest
    shown: int | None = None  # QUEUE: the vector of what is read, where it is not the one that is compared
    count: int | None = None  # the tally of how many values there are, which stands before this one


@dataclass(frozen=True, slots=True)
class Metric:
    """A result column: a function of one tally, and of the count of values beside it where it needs one."""

    name: str
    function: str
    type: str
    tally: int
    count: int | None = None
    reads: Reads = field(default_factory=Reads)


def vectors_of(tally: Tally) -> tuple[int, ...]:
    """All that it reads of a row."""
    return (tally.vector,) if tally.shown is None else (tally.vector, tally.shown)


def parts_read(metrics: Iterable[Metric]) -> dict[int, frozenset[str]]:
    """By tally, the parts that anybody reads of it."""
    out: dict[int, frozenset[str]] = {}
    for metric in metrics:
        out[metric.tally] = out.get(metric.tally, frozenset()) | {metric.reads.part}
    return out
