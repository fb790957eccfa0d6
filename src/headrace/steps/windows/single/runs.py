"""Rows where a kernel finds them: the open rows in arrays with room, the open chunk, and the sealed chunks that edges are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.changes.keys import Keys
from headrace.changes.values import batch_of_rows, rows_of
from headrace.kernels.single import record as r
from headrace.plan.arrow import arrow_type
from headrace.state.open_rows import OpenRows
from headrace.state.reservoir import RowRange
from headrace.state.rows import Rows

if TYPE_CHECKING:
    from headrace.state.reservoir import Reservoir
    from headrace.steps.windows.single.record import Record

LEAST_ROOM = 256  # open rows


class Runs:
    """A line for every run of rows; the first is of the open rows, the second of the open chunk."""

    def __init__(self, record: Record, reservoir: Reservoir) -> None:
        self.record, self.reservoir, self.types = record, reservoir, record.layout.types
        self.lines = np.zeros((8, int(record.at[r.RUN_SIZE])), np.int64)
        self._here: dict[int, int] = {}  # which run a sealed chunk is
        self._last: list[np.ndarray] = []
        self.most = 8 + 4 * int(record.at[r.N_EDGES])  # sealed chunks to hold on to between two events
        self.loads = 0
        self._lay()

    def _lay(self) -> None:
        self.record.at[r.RUNS] = self.record.hold("runs", 0, self.lines)[0]

    def write(self, run: int, base: int, count: int, arrays: list[np.ndarray]) -> None:
        """Say where the rows of a run are: their times, then their columns."""
        self.lines[run, : r.R_TS] = base, count
        self.lines[run, r.R_TS :] = self.record.hold("run", run, *arrays)

    def begin(self) -> None:
        """The reservoir is as it is."""
        open_, n = self.reservoir.open, len(self.reservoir.open.ts)
        size = max(n, self.reservoir.chunk_rows)
        self._last = [np.zeros(size, kind) for kind in (np.int64, *self.types)]
        for room, rows in zip(self._last, (open_.ts, *open_.columns), strict=True):
            room[:n] = rows
        self.write(r.LAST_RUN, open_.first, n, self._last)
        self.record.at[r.CHUNK_ROWS] = size
        self._index()

    def _index(self) -> None:
        first, oldest, record = self.reservoir.first, self.reservoir.first_chunk, self.record
        runs = np.full(len(first), -1, np.int32)
        self._here = {chunk: run for chunk, run in self._here.items() if 0 <= chunk - oldest < len(first)}
        for chunk, run in self._here.items():
            runs[chunk - oldest] = run
        self._runs = runs
        first = np.ascontiguousarray(first, np.int64)
        record.at[r.SEALED], record.at[r.SEALED_RUNS] = record.hold("sealed", 0, first, runs)
        record.at[r.N_SEALED] = len(first)
        # From this row on there are chunks that nothing needs; an open chunk alone is cut when it is full.
        self.needless = int(first[1]) if len(first) > 1 else self.reservoir.open.first if len(first) else np.iinfo(np.int64).max

    def load(self, row: int) -> None:
        """Have the sealed chunk with this row."""
        index = int(self.reservoir.first.searchsorted(row, side="right")) - 1
        chunk = self.reservoir.chunk(index)
        run = next(i for i in range(2, len(self.lines) + 1) if i not in set(self._here.values()))
        if run == len(self.lines):
            self.lines = np.concatenate((self.lines, np.zeros_like(self.lines)))
            self._lay()
        arrays = [np.require(array, requirements=["C", "A"]) for array in (chunk.ts, *chunk.columns)]
        self.write(run, int(self.reservoir.first[index]), len(chunk.ts), arrays)
        self._here[self.reservoir.first_chunk + index] = run
        self._runs[index] = run
        self.loads += 1

    @property
    def crowded(self) -> bool:
        return len(self._here) > self.most

    def let_go(self, rows: list[int]) -> None:
        """Between two events: hold on to no other sealed chunks than those with these rows."""
        kept = {self.reservoir.first_chunk + int(self.reservoir.first.searchsorted(row, side="right")) - 1 for row in rows}
        self._here = {chunk: run for chunk, run in self._here.items() if chunk in kept}
        self._index()

    def put_back(self) -> None:
        """The reservoir has the open chunk as it is here."""
        base, count = (int(word) for word in self.lines[r.LAST_RUN, : r.R_TS])
        room = RowRange(base, self._last[0], self._last[1:])
        self.reservoir.reopen(room.cut(0, count), room)

    def seal(self, needed: int) -> None:
        """The open chunk is full: seal it, if nothing of it can be let go."""
        self.put_back()
        self.reservoir.drop_before(needed)
        if len(self.reservoir.open.ts) >= self.reservoir.chunk_rows:
            self.reservoir.seal_open()
        self.begin()

    def drop(self, needed: int) -> None:
        """Let go of chunks that no edge needs."""
        self.put_back()
        self.reservoir.drop_before(needed)
        self.begin()


class OpenBuffers:
    """The open rows in arrays with room behind them, and what they carry, as Python values."""

    def __init__(self, record: Record, runs: Runs, carried: tuple[int, ...]) -> None:
        stage = record.stage
        self.record, self.runs, self.types = record, runs, record.layout.types
        self.kinds = [arrow_type(stage.inputs[i].type) for i in carried]
        self.names = [f"i{i}" for i in carried]
        self._masked = [bool(o.masks) for o in stage.program.outputs]
        self.arrays: list[np.ndarray] = []  # times, high and low halves of places, for which outputs; then the columns
        self.carry: list[tuple[Any, ...]] = []

    def begin(self, rows: OpenRows) -> None:
        """Take over the open rows."""
        wants = np.zeros(len(rows), np.int64)
        for i, flags in enumerate(rows.wanted):
            wants |= np.int64(1 << i) if flags is None else flags.astype(np.int64) << i
        keys = rows.rows.keys
        self._lay([keys.ts, keys.high, keys.low, wants, *rows.rows.columns])
        self.carry = rows_of(rows.carry)

    def _lay(self, parts: list[np.ndarray]) -> None:
        """Put rows at the beginning of arrays with as much room again."""
        at, n = self.record.at, len(parts[0])
        room = max(LEAST_ROOM, 2 * n)
        self.arrays = [np.zeros(room, kind) for kind in (*(np.int64,) * 4, *self.types)]
        for own, part in zip(self.arrays, parts, strict=True):
            own[:n] = part
        at[r.START], at[r.STOP], at[r.ROOM] = 0, n, room
        at[r.OPEN_TS : r.OPEN_WANTS + 1] = self.record.hold("open", 0, *self.arrays[:4])
        self.runs.write(r.OPEN_RUN, int(at[r.FIRST]), n, [self.arrays[0], *self.arrays[4:]])

    def grow(self) -> None:
        """The arrays are full: what is open moves to the beginning of others."""
        self._lay(self._parts())

    def _parts(self) -> list[np.ndarray]:
        start, stop = int(self.record.at[r.START]), int(self.record.at[r.STOP])
        return [array[start:stop] for array in self.arrays]

    def rows(self) -> OpenRows:
        """The open rows, apart from these arrays."""
        ts, high, low, wants, *columns = (part.copy() for part in self._parts())
        flags = [(wants >> i & 1).astype(np.bool_) if masked else None for i, masked in enumerate(self._masked)]
        return OpenRows(Rows(Keys(ts, high, low), columns), batch_of_rows(self.kinds, self.names, self.carry), flags)
