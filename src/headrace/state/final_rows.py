"""Final rows by number, with their order keys, in a reservoir of their own; whoever keeps them lets them go by its own rule."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.changes.keys import Keys
from headrace.state.parts import ChunkStore, Handle
from headrace.state.reservoir import LARGEST, ChunkCache, Reservoir, RowRange, join
from headrace.state.rows import Layout, Rows


class FinalRows:
    """Rows by number. Behind the columns of the layout each has its place, and as many words of its key as any has needed."""

    def __init__(
        self, layout: Layout, store: ChunkStore, cache: ChunkCache, owner: Hashable, chunk_rows: int, side: int,
        largest: int = LARGEST,
    ) -> None:  # fmt: skip
        self.layout, self.words = layout, 0
        self.store = Handle(store, 2, side)
        self.reservoir = Reservoir(self._with_keys(0), self.store, cache, owner, chunk_rows, largest)
        self.oldest = 0
        self.compacted = 0  # how many rows were left when it was last written anew

    def _with_keys(self, words: int) -> Layout:
        return replace(self.layout, types=(*self.layout.types, np.int64, np.int64, *(np.uint64,) * words))

    def widen(self, words: int) -> None:
        """From now on keys have so many words."""
        self.words = words
        self.reservoir.widen(self._with_keys(words))

    def append(self, rows: Rows, chosen: np.ndarray) -> None:
        if not len(chosen):
            return
        some = rows.take(chosen)
        keys, more = some.keys, some.keys.words.shape[1] - self.words
        if more > 0:
            self.widen(self.words + more)
        nothing = np.zeros((len(chosen), max(0, -more)), np.uint64)
        words = np.ascontiguousarray(np.column_stack((keys.words, nothing)).T)
        self.reservoir.append(Rows(keys, [*some.columns, keys.high, keys.low, *words]))

    def _rows(self, ts: np.ndarray, columns: list[np.ndarray]) -> Rows:
        n = len(self.layout.types)
        high, low, *words = columns[n:]
        return Rows(Keys(ts, high, low, np.column_stack(words) if words else None), columns[:n])

    def rows(self, first: int | None = None, stop: int | None = None) -> Rows:
        """Rows by number, or all that are still wanted."""
        first = self.oldest if first is None else first
        run = join(self.reservoir.between(first, self.reservoir.count if stop is None else stop), first, self.reservoir.layout)
        return self._rows(run.ts, run.columns)

    def gather(self, number: np.ndarray, wanted: list[int], open_: Rows, places: np.ndarray) -> list[np.ndarray]:
        """Columns of rows by number; those that are not here yet are open rows at `places`, in their order."""
        out: list[np.ndarray] = [np.empty(len(number), self.layout.types[w]) for w in wanted]
        count = self.reservoir.count
        near = np.flatnonzero(number >= count)
        for column, w in zip(out, wanted, strict=True):
            column[near] = open_.columns[w][places[number[near] - count]]
        for here, run in self._far(number, np.flatnonzero(number < count)):
            for column, w in zip(out, wanted, strict=True):
                column[here] = run.columns[w][number[here] - run.first]
        return out

    def keys(self, number: np.ndarray) -> Keys:
        n = len(self.layout.types)
        out: list[np.ndarray] = [np.empty(len(number), kind) for kind in (np.int64, *self.reservoir.layout.types[n:])]
        for here, run in self._far(number, np.arange(len(number))):
            for values, column in zip(out, (run.ts, *run.columns[n:]), strict=True):
                values[here] = column[number[here] - run.first]
        ts, high, low, *words = out
        return Keys(ts, high, low, np.column_stack(words) if words else None)

    def _far(self, number: np.ndarray, which: np.ndarray) -> Iterator[tuple[np.ndarray, RowRange]]:
        """Some rows by number: where they are asked for, with the chunk they are in; each chunk once."""
        which = which[np.argsort(number[which], kind="stable")]
        at = 0
        while at < len(which):
            run = self.reservoir.around(int(number[which[at]]))
            stop = int(number[which].searchsorted(run.first + len(run.ts)))
            yield which[at:stop], run
            at = stop

    def drop_before(self, row: int) -> list[list[np.ndarray]]:
        """Let go of the rows before this one. Gives their columns."""
        if row <= self.oldest:
            return []
        gone = [run.columns for run in self.reservoir.between(self.oldest, row)]
        self.oldest = row
        self.reservoir.drop_before(row)
        return gone

    @property
    def is_full(self) -> bool:
        """Whether there are twice as many rows as were left last time, and some."""
        return self.reservoir.count - self.oldest > 2 * self.compacted + self.reservoir.chunk_rows

    def compact(self, needed: np.ndarray) -> list[list[np.ndarray]]:
        """Write the rows that are still needed anew, behind all others. Gives the columns of those that are not."""
        rows = self.rows()
        self.oldest = self.reservoir.count
        self.reservoir.drop_before(self.oldest)
        left = np.flatnonzero(needed)
        self.append(rows, left)
        self.compacted = len(left)
        return [rows.take(np.flatnonzero(~needed)).columns]

    def dump(self) -> dict[str, Any]:
        return self.reservoir.dump() | {"oldest": self.oldest, "compacted": self.compacted, "words": self.words}

    def load(self, state: dict[str, Any]) -> None:
        self.oldest, self.compacted = state.pop("oldest"), state.pop("compacted")
        self.widen(state.pop("words"))
        self.reservoir.load(state)
