"""Lives of keys under KEEP: each life has a number of its own, so a key that starts anew starts with empty tallies.

A life is named by its key and the time of its first row, so a late row that joins two lives, or begins one earlier, simply gives
the open rows other numbers. When a life is over its number is forgotten with all that was kept for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.lives import starts
from headrace.operators.tally import DistinctTally
from headrace.plan.time import START_OF_TIME
from headrace.stages.program import Stage, TableRole

if TYPE_CHECKING:
    from headrace.operators.tally import TallyState
    from headrace.operators.windows import Rings
    from headrace.runtime.tables import KeyTable

_SPREAD = (np.uint64(0x9FB21C651E98DF25), np.uint64(0xD6E8FEB86659FD93))


@dataclass(slots=True)
class Lives:
    """The lives of the keys of one table, and the numbers they have in another."""

    stage: Stage
    index: int  # the table of lives
    base: int  # the table of keys
    pairs: tuple[int, ...]  # tables of (life, value) pairs
    tables: list[KeyTable]
    keep: int
    last: np.ndarray  # per key: its last final row
    start: np.ndarray  # per key: when its life began
    seen: np.ndarray  # per life: its last final row
    owners: dict[int, np.ndarray]  # per table of pairs: the life of each pair

    @staticmethod
    def of(stage: Stage, tables: list[KeyTable]) -> list[Lives]:
        """One for every table of lives."""
        out = []
        for i, table in enumerate(stage.tables):
            if table.role is TableRole.LIFE:
                assert stage.keeps_for is not None
                assert table.base is not None
                pairs = tuple(j for j, p in enumerate(stage.tables) if p.role is TableRole.LIFE_PAIR and p.life == i)
                none = np.full(0, START_OF_TIME, np.int64)
                owners = {p: np.full(0, -1, np.int32) for p in pairs}
                out.append(Lives(stage, i, table.base, pairs, tables, stage.keeps_for, none, none, none, owners))
        return out

    def grow(self) -> None:
        """Make room for keys and lives."""
        self.last = _room(self.last, self.tables[self.base].capacity, START_OF_TIME)
        self.start = _room(self.start, self.tables[self.base].capacity, START_OF_TIME)
        self.seen = _room(self.seen, self.tables[self.index].capacity, START_OF_TIME)
        for pair in self.pairs:
            self.owners[pair] = _room(self.owners[pair], self.tables[pair].capacity, -1)

    def assign(self, ts: np.ndarray, columns: list[np.ndarray]) -> None:
        """Number the lives of the open rows, in order, from where the final rows left their keys."""
        self.grow()
        keys = columns[self.base]
        last, start = self.last[keys].copy(), self.start[keys].copy()
        begun = np.empty(len(ts), np.int64)
        starts(ts, keys, self.keep, self.last, self.start, begun)
        self.last[keys], self.start[keys] = last, start
        columns[self.index] = self._number(self.index, self.base, keys, begun)
        self.grow()
        for pair in self.pairs:
            base = self.stage.tables[pair].base
            assert base is not None
            columns[pair] = self._number(pair, base, columns[base], begun)
            self.grow()
            self.owners[pair][columns[pair]] = columns[self.index]

    def _number(self, table: int, base: int, keys: np.ndarray, begun: np.ndarray) -> np.ndarray:
        names = self.tables[base]
        salt = begun.view(np.uint64)
        high, low = (k[keys] ^ (salt * c) for k, c in zip((names.high, names.low), _SPREAD, strict=True))
        return self.tables[table].number(high, low)

    def settle(self, ts: np.ndarray, columns: list[np.ndarray]) -> None:
        """These rows are final."""
        keys = columns[self.base]
        starts(ts, keys, self.keep, self.last, self.start, np.empty(len(ts), np.int64))
        np.maximum.at(self.seen, columns[self.index], ts)

    def purge(
        self,
        frontier: int,
        zone: list[np.ndarray],
        tallies: list[TallyState],
        rings: dict[int, Rings],
        touched: list[list[np.ndarray]],
    ) -> None:
        """Forget the lives that are over, and keys that no row holds and that have none."""
        over = self._unused(self.index, zone) & (self.seen[: self.tables[self.index].count] < frontier - self.keep)
        gone = np.flatnonzero(over).astype(np.int32)
        for spec, tally in zip(self.stage.tallies, tallies, strict=True):
            if spec.group == self.index:
                tally.reset(gone)
        for ring in rings.values():
            if ring.partitions == self.index:
                ring.total[gone] = 0
        self._forget(self.index, gone, touched)
        self.seen[gone] = START_OF_TIME
        for pair in self.pairs:
            self._purge_pairs(pair, over, zone, tallies, touched)
        base = self.tables[self.base]
        silent = base.live[: base.count] & (base.references[: base.count] == 0)
        silent &= self.last[: base.count] < frontier - self.keep
        keys = np.flatnonzero(silent).astype(np.int32)
        self._forget(self.base, keys, touched)
        self.last[keys] = START_OF_TIME

    def _purge_pairs(
        self, pair: int, over: np.ndarray, zone: list[np.ndarray], tallies: list[TallyState], touched: list[list[np.ndarray]]
    ) -> None:
        owners = self.owners[pair][: self.tables[pair].count]
        lost = self._unused(pair, zone) & over[owners]
        gone = np.flatnonzero(lost).astype(np.int32)
        for tally in tallies:
            if isinstance(tally, DistinctTally) and tally.pairs == pair:
                tally.pair_counts[gone] = 0
        self._forget(pair, gone, touched)
        base = self.stage.tables[pair].base
        assert base is not None
        names = self.tables[base]
        free = np.flatnonzero(names.live[: names.count] & (names.references[: names.count] == 0)).astype(np.int32)
        self._forget(base, free, touched)

    def _unused(self, table: int, zone: list[np.ndarray]) -> np.ndarray:
        numbers = self.tables[table]
        unused = numbers.live[: numbers.count].copy()
        unused[zone[table]] = False
        return unused

    def _forget(self, table: int, numbers: np.ndarray, touched: list[list[np.ndarray]]) -> None:
        self.tables[table].forget(numbers)
        touched[table].append(numbers)

    def dump(self, table: int, start: int, stop: int) -> dict[str, Any]:
        """What belongs to a range of numbers of one of the tables."""
        if table == self.base:
            return {f"life{self.index}.last": self.last[start:stop], f"life{self.index}.start": self.start[start:stop]}
        if table == self.index:
            return {f"life{self.index}.seen": self.seen[start:stop]}
        return {f"life{self.index}.owner": self.owners[table][start:stop]} if table in self.owners else {}

    def load(self, table: int, start: int, stop: int, page: dict[str, Any]) -> None:
        """Put it back."""
        name = f"life{self.index}."
        if table == self.base:
            self.last[start:stop], self.start[start:stop] = page[name + "last"], page[name + "start"]
        elif table == self.index:
            self.seen[start:stop] = page[name + "seen"]
        elif table in self.owners:
            self.owners[table][start:stop] = page[name + "owner"]


def _room(array: np.ndarray, size: int, fill: int) -> np.ndarray:
    more = size - len(array)
    return array if more <= 0 else np.concatenate((array, np.full(more, fill, array.dtype)))
