"""Looking at a window by the clock: at which times, at which keys, and how far its rows have moved by then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.aggregates.tally import CountTally, Moves
from headrace.changes.keys import Keys
from headrace.kernels.keys.sortable import SIGN
from headrace.kernels.windows import reports
from headrace.plan.triggers import EveryTime
from headrace.plan.windows import RangeWindow
from headrace.state.reservoir import RowRange


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a report in one pass: the looks in start <= u < stop, at some keys (None: at all).

    What rows let happen is asked for by the numbers of those rows, and `only` is then about partitions.
    """

    start: int
    stop: int
    only: np.ndarray | None = None


@dataclass(slots=True)
class Looks:
    """Looks at single keys, in the order of time.

    Those that rows let happen stand at the place of a row, others behind all rows of their time; `mark` tells several at one
    place apart. `begin` is where windows begin that have no fixed length.
    """

    time: np.ndarray
    key: np.ndarray
    entered: np.ndarray
    left: np.ndarray
    place: Keys | None = None
    mark: np.ndarray | None = None
    begin: np.ndarray | None = None
    base: np.ndarray | None = None  # where keys are lives: whose they are

    @staticmethod
    def none() -> Looks:
        empty = np.empty(0, np.int64)
        return Looks(empty, np.empty(0, np.int32), empty, empty)

    def __len__(self) -> int:
        return len(self.time)

    def append(self, other: Looks) -> Looks:
        if not len(self) or not len(other):
            return other if not len(self) else self
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__slots__)
        return Looks(*(_both(a, b) for a, b in pairs))

    def take(self, index: np.ndarray) -> Looks:
        parts = (getattr(self, name) for name in self.__slots__)
        return Looks(*(None if a is None else a.take(index) for a in parts))  # type: ignore[arg-type]

    @property
    def keys(self) -> Keys:
        """Where they stand."""
        place = Keys.of_clock(self.time) if self.place is None else self.place
        return place if self.mark is None else place.under(self.mark.view(np.uint64)[:, None] ^ SIGN)


def _both(a: Any, b: Any) -> Any:
    if a is None:
        return None
    return a.append(b) if isinstance(a, Keys) else np.concatenate((a, b))


def look(
    trigger: EveryTime, window: RangeWindow, presence: CountTally, rows: RowRange, edges: dict[int, RowRange], ask: Ask
) -> Looks:
    """The looks that are asked for, from where the presence tally stands, while rows move through the window."""
    enter = rows if window.lag == 0 else edges[window.lag]
    leave = edges[window.lag + window.size]
    at, counts = presence.at, presence.counts
    found = reports.looks(
        enter.ts + window.lag, at.keys(enter.columns), at.code(enter.columns),
        leave.ts + (window.lag + window.size), at.keys(leave.columns), at.code(leave.columns),
        counts, np.ones(len(counts), np.bool_) if ask.only is None else ask.only,
        ask.start, ask.stop, trigger.every, trigger.origin,
    )  # fmt: skip
    return Looks(*found)


@dataclass(slots=True)
class Reads:
    """Where a tally is read in one pass: at events and at looks of reports, merged in the order of time."""

    key: np.ndarray
    entered: np.ndarray
    left: np.ndarray
    events: np.ndarray  # where the reads of the events are
    parts: dict[int, np.ndarray]  # and those of every report

    @staticmethod
    def of(moves: Moves, keys: np.ndarray, looks: dict[int, Looks]) -> Reads:
        """The events of these moves, and the looks of the reports that read there."""
        sizes = [len(keys), *map(len, looks.values())]
        key = np.concatenate([keys, *(p.key for p in looks.values())])
        entered = np.concatenate([moves.enter_end, *(p.entered for p in looks.values())])
        left = np.concatenate([moves.leave_end, *(p.left for p in looks.values())])
        # Rows only ever move on, so both counts order the reads alike.
        order = np.lexsort((left, entered))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        events, *parts = np.split(place, np.cumsum(sizes)[:-1])
        return Reads(key[order], entered[order], left[order], events, dict(zip(looks, parts, strict=True)))
