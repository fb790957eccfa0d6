"""Final rows of a pattern, or of one side of a join, in a reservoir of their own: each lets go of its rows by its own rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.state.reservoir import LARGEST, Reservoir, join
from headrace.state.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from headrace.state.reservoir import ChunkCache, ChunkStore, Run
    from headrace.state.rows import Layout


@dataclass(slots=True)
class Striped:
    """Every second chunk of a store."""

    store: ChunkStore
    side: int

    def get(self, chunk: int) -> bytes | None:
        """The bytes of a chunk."""
        return self.store.get(2 * chunk + self.side)

    def put(self, chunk: int, data: bytes) -> None:
        """Keep a chunk."""
        self.store.put(2 * chunk + self.side, data)

    def delete(self, chunk: int) -> None:
        """Let a chunk go."""
        self.store.delete(2 * chunk + self.side)


class Kept:
    """Rows by number. Beside the columns of the layout, each has what stands for its order key: 63 bits, or more words."""

    def __init__(
        self, layout: Layout, store: ChunkStore, cache: ChunkCache, owner: Hashable, chunk_rows: int, side: int, places: int = 1,
        largest: int = LARGEST,
    ) -> None:  # fmt: skip
        """None yet."""
        self.layout = replace(layout, types=(*layout.types, *(np.int64,) * places))
        self.store = Striped(store, side)
        self.reservoir = Reservoir(self.layout, self.store, cache, owner, chunk_rows, largest)
        self.oldest, self.places = 0, places
        self.compacted = 0  # how many rows were left when it was last written anew

    def append(self, rows: Rows, chosen: np.ndarray, *places: np.ndarray) -> None:
        """Add some of these rows."""
        if len(chosen):
            none, columns = np.empty(0, np.int64), (*rows.columns, *places)
            self.reservoir.append(Rows(rows.ts[chosen], none, none, [c[chosen] for c in columns]))

    def rows(self, first: int | None = None, stop: int | None = None) -> tuple[np.ndarray, list[np.ndarray]]:
        """Rows by number, or all that are still wanted: times and columns."""
        first = self.oldest if first is None else first
        run = join(self.reservoir.between(first, self.reservoir.count if stop is None else stop), first, self.layout)
        return run.ts, run.columns

    def gather(self, number: np.ndarray, wanted: list[int], zone: Rows, places: np.ndarray) -> list[np.ndarray]:
        """Columns of rows by number; those that are not here yet lie in the zone at `places`, in their order."""
        out: list[np.ndarray] = [np.empty(len(number), self.layout.types[w]) for w in wanted]
        count = self.reservoir.count
        near = np.flatnonzero(number >= count)
        for column, w in zip(out, wanted, strict=True):
            column[near] = zone.columns[w][places[number[near] - count]]
        for here, run in self._far(number, np.flatnonzero(number < count)):
            for column, w in zip(out, wanted, strict=True):
                column[here] = run.columns[w][number[here] - run.first]
        return out

    def keys(self, number: np.ndarray) -> list[np.ndarray]:
        """The times and the places of rows by number."""
        out = [np.empty(len(number), np.int64) for _ in range(1 + self.places)]
        for here, run in self._far(number, np.arange(len(number))):
            for values, column in zip(out, (run.ts, *run.columns[len(run.columns) - self.places :]), strict=True):
                values[here] = column[number[here] - run.first]
        return out

    def _far(self, number: np.ndarray, which: np.ndarray) -> Iterator[tuple[np.ndarray, Run]]:
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
        ts, columns = self.rows()
        self.oldest = self.reservoir.count
        self.reservoir.drop_before(self.oldest)
        left, gone = np.flatnonzero(needed), np.flatnonzero(~needed)
        none = np.empty(0, np.int64)
        self.reservoir.append(Rows(ts[left], none, none, [c[left] for c in columns]))
        self.compacted = len(left)
        return [[c[gone] for c in columns]]

    def dump(self) -> dict[str, Any]:
        """The state, as arrays."""
        return self.reservoir.dump() | {"oldest": self.oldest, "compacted": self.compacted}

    def load(self, state: dict[str, Any]) -> None:
        """What was dumped."""
        self.oldest, self.compacted = state.pop("oldest"), state.pop("compacted")
        self.reservoir.load(state)
