"""The event reservoir (003, 3.3.1): final rows in the total order, in immutable compressed chunks outside memory.

Rows are numbered from 0 as they become final. Sealed chunks are written once and read at most once by each edge of a window as
it passes; only the open chunk is rewritten. Decoded chunks sit in a bounded cache, and the one an edge needs next is loaded
ahead.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import StateError
from headrace.state.chunk import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from headrace.state.parts import ChunkStore
    from headrace.state.rows import Layout, Rows

CHUNK_ROWS = 2048
LARGEST = 8  # a chunk has at most so many times the rows that make one


@dataclass(slots=True)
class RowRange:
    """Consecutive rows of the reservoir: number of the first, times, columns."""

    first: int
    ts: np.ndarray
    columns: list[np.ndarray]

    def cut(self, start: int, stop: int) -> RowRange:
        """The rows start..stop of these, without a copy."""
        return RowRange(self.first + start, self.ts[start:stop], [c[start:stop] for c in self.columns])

    @property
    def stop(self) -> int:
        return self.first + len(self.ts)

    @property
    def numbers(self) -> np.ndarray:
        return np.arange(self.first, self.stop, dtype=np.int64)


class ChunkCache:
    """The most recently used decoded chunks of all buckets of a process; `size` bounds their number.

    A miss is a chunk that the batch waits for while it is read and decoded, a hit one that it asks for and need not wait for.
    A chunk is loaded ahead in the batch itself, so that is waited for too: a miss, and who then asks first is not counted again.
    """

    further = False  # whether there is use in loading the chunk behind one that is half read

    def __init__(self, size: int = 256) -> None:
        self.size, self.hits, self.misses = size, 0, 0
        self._chunks: OrderedDict[Hashable, Chunk] = OrderedDict()
        self._ahead: set[Hashable] = set()  # loaded before anybody asked for them

    def get(self, key: Hashable, load: Callable[[], Chunk]) -> Chunk:
        """A decoded chunk; it is counted whether it was there."""
        found = self._chunks.get(key)
        if found is None:
            self.misses += 1
            return self.keep(key, load())
        self._chunks.move_to_end(key)
        self.hits += key not in self._ahead
        self._ahead.discard(key)
        return found

    def ahead(self, key: Hashable, load: Callable[[], Chunk]) -> None:
        """Have a chunk there when it is asked for."""
        if key in self._chunks:
            self._chunks.move_to_end(key)
        else:
            self.misses += 1
            self._ahead.add(key)
            self.keep(key, load())

    def keep(self, key: Hashable, chunk: Chunk) -> Chunk:
        """Add a decoded chunk; the least recently used one makes room."""
        if self.size > 0:
            self._chunks[key] = chunk
            while len(self._chunks) > self.size:
                self._ahead.discard(self._chunks.popitem(last=False)[0])
        return chunk

    def forget(self, key: Hashable) -> None:
        self._chunks.pop(key, None)
        self._ahead.discard(key)


class Reservoir:
    """The final rows of a bucket."""

    def __init__(
        self, layout: Layout, store: ChunkStore, cache: ChunkCache, owner: Hashable, chunk_rows: int = CHUNK_ROWS,
        largest: int = LARGEST,
    ) -> None:  # fmt: skip
        """Empty; `owner` tells the chunks of this bucket from those of others in the cache."""
        self.layout, self.store, self.cache, self.owner, self.chunk_rows = layout, store, cache, owner, chunk_rows
        self.largest = largest
        self.first = np.zeros(0, np.int64)  # per sealed chunk: number of its first row
        self.last_ts = np.zeros(0, np.int64)  # and time of its last row
        self.first_chunk = 0  # id of the oldest sealed chunk
        self.reopen(join([], 0, layout))

    @property
    def count(self) -> int:
        """The number that the next row will have."""
        return self.open.stop

    @property
    def oldest(self) -> int:
        """The number of the oldest row still here."""
        return int(self.first[0]) if len(self.first) else self.open.first

    def append(self, rows: Rows) -> None:
        """Add final rows; seal what fills a chunk."""
        if len(rows) == 0:
            return
        if len(self.open.ts) + len(rows) < self.chunk_rows:
            self._write_behind(rows)
            return
        all_ = join([self.open, RowRange(self.count, rows.ts, rows.columns)], self.open.first, self.layout)
        at, size = 0, len(all_.ts)
        while size - at >= self.chunk_rows:
            stop = min(size, at + self.largest * self.chunk_rows)  # a large batch makes few large chunks
            self._seal(all_.cut(at, stop))
            at = stop
        self.reopen(all_.cut(at, size))

    def reopen(self, rows: RowRange, room: RowRange | None = None) -> None:
        """These rows are the open chunk, and have room for no others, but what stands behind them in `room`."""
        self.open, self._room = rows, rows if room is None else room

    def seal_open(self) -> None:
        """Seal the open chunk as it is."""
        self._seal(self.open)
        self.reopen(join([], self.count, self.layout))

    def _write_behind(self, rows: Rows) -> None:
        """Single rows are written behind those of the open chunk: a copy of it for each would be dear."""
        n, stop = len(self.open.ts), len(self.open.ts) + len(rows)
        if stop > len(self._room.ts):
            parts = (self.open.ts, *self.open.columns)
            room = [np.concatenate((part, np.empty(stop, part.dtype))) for part in parts]  # twice as much, and a row
            self._room = RowRange(self.open.first, room[0], room[1:])
        for part, more in zip((self._room.ts, *self._room.columns), (rows.ts, *rows.columns), strict=True):
            part[n:stop] = more
        self.open = self._room.cut(0, stop)

    def _seal(self, rows: RowRange) -> None:
        self.store.put(self.first_chunk + len(self.first), Chunk(rows.ts, rows.columns))
        self.first = np.append(self.first, rows.first)
        self.last_ts = np.append(self.last_ts, rows.ts[-1])

    def chunk(self, index: int) -> Chunk:
        chunk = self.first_chunk + index
        found = self.cache.get((self.owner, chunk), partial(self._read, chunk))
        if len(found.columns) < len(self.layout.types):
            found.columns.extend(np.zeros(len(found.ts), kind) for kind in self.layout.types[len(found.columns) :])
        return found

    def _read(self, chunk: int) -> Chunk:
        found = self.store.get(chunk)
        if found is None:
            raise StateError(f"chunk {chunk} of the reservoir is gone", hint="the checkpoint is damaged")
        return found

    def widen(self, layout: Layout) -> None:
        """From now on rows have more columns. In those that are here they are 0."""
        more = layout.types[len(self.layout.types) :]
        self.layout, open_ = layout, self.open
        self.reopen(RowRange(open_.first, open_.ts, [*open_.columns, *(np.zeros(len(open_.ts), kind) for kind in more)]))

    def load_ahead(self, row: int) -> None:
        """Have the chunk that holds this row in the cache when it is asked for."""
        if row < self.open.first and len(self.first) and self.cache.size > 0:
            index = int(self.first.searchsorted(row, side="right")) - 1
            self._ahead(index)
            if self.cache.further and index + 1 < len(self.first) and 2 * row > self.first[index] + self.first[index + 1]:
                self._ahead(index + 1)

    def _ahead(self, index: int) -> None:
        chunk = self.first_chunk + index
        self.cache.ahead((self.owner, chunk), partial(self._read, chunk))

    def until(self, row: int, bound: int) -> list[RowRange]:
        """Rows from number `row` on, as long as their time is at most `bound`."""
        runs: list[RowRange] = []
        while row < self.count:
            run = self.around(row)
            stop = int(run.ts.searchsorted(bound, side="right"))
            if run.first + stop > row:
                runs.append(run.cut(row - run.first, stop))
            if stop < len(run.ts):
                break
            row = run.stop
        return runs

    def between(self, row: int, stop: int) -> list[RowRange]:
        """Rows by number, row..stop (those that are here)."""
        runs = []
        while row < min(stop, self.count):
            run = self.around(row)
            runs.append(run.cut(row - run.first, min(stop, run.stop) - run.first))
            row = run.stop
        return runs

    def around(self, row: int) -> RowRange:
        """The chunk that holds this row."""
        if row >= self.open.first:
            return self.open
        index = int(self.first.searchsorted(row, side="right")) - 1
        chunk = self.chunk(index)
        return RowRange(int(self.first[index]), chunk.ts, chunk.columns)

    def drop_before(self, row: int) -> None:
        """Let go of chunks whose rows all lie before this one. The open chunk is cut too."""
        if row < (self.open.first if len(self.first) < 2 else self.first[1]):
            return
        gone = int(np.append(self.first[1:], self.open.first).searchsorted(row, side="right")) if len(self.first) else 0
        for chunk in range(self.first_chunk, self.first_chunk + gone):
            self.store.delete(chunk)
            self.cache.forget((self.owner, chunk))
        self.first, self.last_ts = self.first[gone:], self.last_ts[gone:]
        self.first_chunk += gone
        cut = row - self.open.first
        if cut > 0 and len(self.first) == 0:
            self.reopen(RowRange(row, self.open.ts[cut:].copy(), [c[cut:].copy() for c in self.open.columns]))

    def dump(self) -> dict[str, Any]:
        """The index and the open chunk."""
        state: dict[str, Any] = {
            "first": self.first, "last_ts": self.last_ts, "first_chunk": self.first_chunk,
            "open_first": self.open.first, "open_ts": self.open.ts,
        }  # fmt: skip
        return {**state, **{f"open_{i}": c for i, c in enumerate(self.open.columns)}}

    def load(self, state: dict[str, Any]) -> None:
        self.first, self.last_ts, self.first_chunk = state["first"], state["last_ts"], state["first_chunk"]
        columns = [state[f"open_{i}"] for i in range(len(self.layout.types))]
        self.reopen(RowRange(state["open_first"], state["open_ts"], columns))


def join(runs: list[RowRange], first: int, layout: Layout) -> RowRange:
    """Consecutive runs as one; `first` numbers the next row where there is none."""
    if not runs:
        return RowRange(first, np.empty(0, np.int64), layout.empty())
    if len(runs) == 1:
        return runs[0]
    columns = [np.concatenate(parts) for parts in zip(*(r.columns for r in runs), strict=True)]
    return RowRange(runs[0].first, np.concatenate([r.ts for r in runs]), columns)
