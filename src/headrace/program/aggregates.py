"""Aggregates, as data: what is kept per key, and how result columns are read from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

RESULT = -1  # in the place of the group of a tally: every result of a pattern has rows of its own


class TallyKind(Enum):
    """What is kept per key."""

    COUNT = "count"
    SUM = "sum"
    MOMENTS = "moments"
    DISTINCT = "distinct"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class Tally:
    """An aggregate state per key of table `group`, over one window. If the group is RESULT, there is neither table nor window."""

    kind: TallyKind
    window: int
    group: int
    vector: int
    pairs: int | None = None  # DISTINCT: the table of (key, value) pairs
    mode: str = ""  # QUEUE: MIN, MAX, FIRST, LAST


@dataclass(frozen=True, slots=True)
class Metric:
    """A result column: a function of one tally, and of the count of values beside it where it needs one."""

    name: str
    function: str
    type: str
    tally: int
    count: int | None = None
