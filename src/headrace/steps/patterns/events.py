"""The events of a pattern in memory: room for rows, and the chains that link them (kernels/patterns/stacks)."""

from __future__ import annotations

import numpy as np

from headrace.changes.keys import Keys
from headrace.kernels.keys.sortable import SIGN
from headrace.kernels.patterns import stacks
from headrace.kernels.patterns.purging import purgeable
from headrace.plan.time import START_OF_TIME
from headrace.steps.patterns.search import Search

NO_WORD = np.int64(-(2**63))  # of a key: words are kept as integers of the same order


class Events:
    """Rows by number. A number is given again once its row is gone."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.live = 0
        self._first_word = stacks.WORDS + len(search.plan.vectors)  # of keys
        self._rows = np.zeros((16, self._first_word), np.int64)
        self._links = np.full((16, search.links), stacks.NONE, np.int64)
        self._skips = np.full((16, len(search.slopes)), stacks.NONE, np.int64)
        self._last = np.full((len(search.indexes), 32), stacks.NONE, np.int64)
        self._free = np.arange(15, -1, -1, dtype=np.int64)
        self.there = np.zeros(16, np.bool_)

    @property
    def rows(self) -> np.ndarray:
        """One line per number: order key, key, places, which words are NULL, words."""
        return self._rows

    @property
    def state(self) -> stacks.Stacks:
        """As the kernels take it."""
        return stacks.Stacks(self._rows, self._links, self._last, self.search.indexes, self._skips, self.search.slopes)

    def add(self, lines: np.ndarray) -> np.ndarray:
        """Make room for rows and give their numbers. They are not linked yet. The words of their keys may be more than before."""
        n, more = len(lines), lines.shape[1] - self._rows.shape[1]
        if more > 0:
            self._rows = np.column_stack((self._rows, np.full((len(self._rows), more), NO_WORD)))
        self._grow(n)
        chosen, self._free = self._free[len(self._free) - n :][::-1].copy(), self._free[: len(self._free) - n]
        self._rows[chosen] = lines
        self.there[chosen] = True
        self.live += n
        return chosen

    def _grow(self, more: int) -> None:
        if more > len(self._free):
            size = len(self._rows)
            new = max(2 * size, size + more)
            self._rows = np.concatenate((self._rows, np.zeros((new - size, self._rows.shape[1]), np.int64)))
            self._links, self._skips = (_longer(grid, new - size) for grid in (self._links, self._skips))
            self.there = np.concatenate((self.there, np.zeros(new - size, np.bool_)))
            self._free = np.concatenate((np.arange(new - 1, size - 1, -1, dtype=np.int64), self._free))
        if self.live + more > self._last.shape[1]:
            size = self._last.shape[1]
            while size < 2 * (self.live + more):
                size *= 2
            self._last = np.full((len(self._last), size), stacks.NONE, np.int64)
            self.link(np.flatnonzero(self.there))

    def link(self, chosen: np.ndarray) -> None:
        places = (stacks.TS, stacks.HIGH, stacks.LOW, *range(self._first_word, self._rows.shape[1]))
        order = np.lexsort([self._rows[chosen, place] for place in places[::-1]])
        stacks.link_all(self.state, chosen[order])

    def keys(self, chosen: np.ndarray) -> Keys:
        rows = self._rows[chosen]
        words = rows[:, self._first_word :].view(np.uint64) ^ SIGN
        return Keys(rows[:, stacks.TS], rows[:, stacks.HIGH], rows[:, stacks.LOW], words if words.shape[1] else None)

    def free(self, chosen: np.ndarray) -> None:
        """Rows that are no longer linked are gone."""
        self.there[chosen] = False
        self.live -= len(chosen)
        self._free = np.concatenate((self._free, chosen))

    def expire(self, oldest: int) -> None:
        self.let_oldest_go(np.flatnonzero(self.there & (self._rows[:, stacks.TS] < oldest)))

    def let_oldest_go(self, chosen: np.ndarray) -> None:
        """Let go of rows before which no others stand."""
        stacks.let_oldest_go(self.state, chosen, self.there)
        self.free(chosen)

    def purge(self, frontier: np.ndarray, oldest: int, outside: int = START_OF_TIME) -> np.ndarray:
        """Let go of all that can be in no sequence, nor forbid one, any more. `frontier` is that of every place.

        Events up to the time `outside` are not in memory.
        """
        search, out = self.search, np.empty(self.live, np.int64)
        negations = search.program.negations[: search.program.forbidding]
        count = purgeable(
            self.state, search.base, search.program.positive, negations, frontier, search.spec.within, oldest, outside,
            search.first_ends, np.zeros(len(self._rows), np.bool_), out,
        )  # fmt: skip
        gone = out[:count]
        stacks.let_go(self.state, gone)
        self.free(gone)
        return gone


def linked(search: Search, lines: np.ndarray, others: np.ndarray) -> stacks.Stacks:
    """Rows in their order, linked by themselves, and behind them others that are in no chain."""
    size = 32
    while size < 2 * len(lines):
        size *= 2
    links, skips = (np.full((len(lines), width), stacks.NONE, np.int64) for width in (search.links, len(search.slopes)))
    last = np.full((len(search.indexes), size), stacks.NONE, np.int64)
    state = stacks.Stacks(np.concatenate((lines, others)), links, last, search.indexes, skips, search.slopes)
    stacks.link_all(state, np.arange(len(lines)))
    return state


def _longer(grid: np.ndarray, more: int) -> np.ndarray:
    return np.concatenate((grid, np.full((more, grid.shape[1]), stacks.NONE, np.int64)))
