"""The rows of both sides of a join as they meet: final ones for good, open ones for as long as a batch lasts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from headrace.kernels import join as kernel
from headrace.plan.time import START_OF_TIME
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow, Window


def window_words(window: Window) -> tuple[int, int, int]:
    """Kind, size and lag, as the kernel has them."""
    match window:
        case RangeWindow(size=size, lag=lag):
            return kernel.RANGE, size, lag
        case RowsWindow(rows=rows, partition_by=by):
            return kernel.ROWS_OF_KEY if by else kernel.ROWS, rows, 0
        case UnboundedWindow():
            return kernel.EVERYTHING, 0, 0


@dataclass(slots=True)
class Linked:
    """Rows of both sides in the total order, as far as it matters for who meets whom."""

    ts: np.ndarray
    side: np.ndarray  # 0: left, 1: right
    key: np.ndarray
    live: np.ndarray  # whether it can meet any: its key is not NULL

    def slice(self, start: int, stop: int) -> Linked:
        return Linked(*(getattr(self, n)[start:stop] for n in ("ts", "side", "key", "live")))


class Side:
    """The rows of one side that some later row may meet, by number."""

    def __init__(self, window: Window) -> None:
        self.window, self.base, self.oldest = window, 0, 0
        self.ts, self.previous = (np.zeros(16, np.int64) for _ in range(2))
        self.met = np.zeros(16, np.bool_)
        self.last = np.zeros(0, np.int64)

    def room(self, count: int, more: int, keys: int) -> None:
        """Have room for `more` rows behind number `count`, and for so many keys; what is gone makes way."""
        if self.oldest - self.base > max(16, (count - self.base) // 2) or count + more - self.base > len(self.ts):
            kept = slice(self.oldest - self.base, count - self.base)
            size = max(16, 2 * (count - self.oldest + more))
            for name in ("ts", "previous", "met"):
                old = getattr(self, name)
                new = np.zeros(size, old.dtype)
                new[: count - self.oldest] = old[kept]
                setattr(self, name, new)
            self.base = self.oldest
        if keys > len(self.last):
            grown = np.full(max(16, keys, 2 * len(self.last)), kernel.NONE, np.int64)
            grown[: len(self.last)] = self.last
            self.last = grown

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.ts, self.previous, self.met, self.last

    def rows(self, count: int) -> slice:
        """Where the rows up to number `count` are in the arrays."""
        return slice(self.oldest - self.base, count - self.base)


class JoinIndex:
    """Both sides, linked by key."""

    def __init__(self, windows: tuple[Window, Window]) -> None:
        self.sides = (Side(windows[0]), Side(windows[1]))
        self.windows = np.array([*window_words(windows[0]), *window_words(windows[1])], np.int64)
        self.count = np.zeros(2, np.int64)  # the number that the next row of each side gets

    def grow(self, rows: np.ndarray, keys: int) -> None:
        """Make room for these rows (their sides), and for so many keys."""
        right = int(np.count_nonzero(rows))
        for side, n, more in zip(self.sides, self.count, (len(rows) - right, right), strict=True):
            side.room(int(n), more, keys)

    def add(self, rows: Linked, ask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put rows behind the others, and give the partners of those that are asked for: (row, number of its partner)."""
        base, oldest = (np.array([getattr(s, name) for s in self.sides], np.int64) for name in ("base", "oldest"))
        left, right = self.sides
        return kernel.meet(  # type: ignore[call-arg]
            rows.ts, rows.side, rows.key, rows.live, ask, *left.arrays, *right.arrays, self.windows, base, oldest, self.count
        )

    def take_back(self, rows: Linked) -> None:
        """These rows, the last that were added, are there no longer."""
        base = np.array([s.base for s in self.sides], np.int64)
        left, right = self.sides
        kernel.part(rows.side, rows.key, rows.live, left.previous, left.last, right.previous, right.last, base, self.count)

    def alone(self, side: int, start: int, stop: int) -> np.ndarray:
        """Numbers of the rows that have met none, of those that leave their window at a time in start..stop."""
        own, count = self.sides[side], int(self.count[side])
        assert isinstance(own.window, RangeWindow), "a row that waits for a partner waits until it leaves its window"
        ts, met = own.ts[own.rows(count)], own.met[own.rows(count)]
        low, high = (int(ts.searchsorted(t - own.window.size)) for t in (max(start, START_OF_TIME), stop))
        return own.oldest + low + np.flatnonzero(~met[low:high])

    def unneeded(self, side: int, frontier: int) -> int:
        """The number of the first row of a side that may still be met, or still waits for a partner."""
        own, count = self.sides[side], int(self.count[side])
        match own.window:
            case RangeWindow(size=size, lag=lag):
                return own.oldest + int(own.ts[own.rows(count)].searchsorted(frontier - size - lag))
            case RowsWindow(rows=rows, partition_by=()):
                return max(own.oldest, count - rows)
        return own.oldest

    def reachable(self, side: int) -> np.ndarray:
        """Which rows of a side are among the last of their key that its window holds."""
        own = self.sides[side]
        assert isinstance(own.window, RowsWindow)
        out = np.zeros(int(self.count[side]) - own.oldest, np.bool_)
        kernel.reachable(own.last, own.previous, own.base, own.oldest, own.window.rows, out)
        return out

    def restart(self, side: int, number: int) -> None:
        """Forget all rows of a side; the next one gets this number."""
        own = self.sides[side]
        own.base = own.oldest = number
        own.last[:] = kernel.NONE
        self.count[side] = number

    def __iter__(self) -> Iterator[Side]:
        return iter(self.sides)
