"""Lifetimes of keys: each has a number of its own, so a key that starts anew, under KEEP or in a new window, has empty tallies.

A life is named by its key and the time of its first row, so a late row that joins two lives, or begins one earlier, simply gives
the open rows other numbers. When a life is over its number is forgotten with all that was kept for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.aggregates.tally import DistinctTally, TallyState
from headrace.changes.keys import Keys
from headrace.kernels.windows.lives import starts
from headrace.plan.time import START_OF_TIME
from headrace.program.windows import WindowStage
from headrace.state.parts import Which, grown
from headrace.state.reservoir import RowRange
from headrace.state.rows import Rows
from headrace.state.tables import Tables
from headrace.steps.windows.looks import Ask, Looks
from headrace.steps.windows.windows import Rings

_SPREAD = (np.uint64(0x9FB21C651E98DF25), np.uint64(0xD6E8FEB86659FD93))


@dataclass(slots=True)
class Lifetimes:
    """The lives of the keys of one table, and the numbers they have in another."""

    stage: WindowStage
    index: int  # the table of lives
    base: int  # the table of keys
    pairs: tuple[int, ...]  # tables of (life, value) pairs
    tables: Tables
    keep: int
    last: np.ndarray  # per key: its last final row
    start: np.ndarray  # per key: when its life began
    seen: np.ndarray  # per life: its last final row
    began: np.ndarray  # per life: the time of its first row
    key: np.ndarray  # per life: whose it is
    owners: dict[int, np.ndarray]  # per table of pairs: the life of each pair

    def grow(self) -> None:
        self.last = grown(self.last, self.tables[self.base].capacity, START_OF_TIME)
        self.start = grown(self.start, self.tables[self.base].capacity, START_OF_TIME)
        for name, fill in (("seen", START_OF_TIME), ("began", START_OF_TIME), ("key", -1)):
            setattr(self, name, grown(getattr(self, name), self.tables[self.index].capacity, fill))
        for pair in self.pairs:
            self.owners[pair] = grown(self.owners[pair], self.tables[pair].capacity, -1)

    def assign(self, rows: Rows) -> None:
        """Number the lives of the open rows, in order, from where the final rows left their keys."""
        self.grow()
        columns = rows.columns
        keys = columns[self.base]
        begun, first = self._begun(rows)
        columns[self.index] = self._number(self.index, self.base, keys, begun)
        self.grow()
        self.began[columns[self.index]], self.key[columns[self.index]] = first, keys
        for pair in self.pairs:
            base = self.stage.tables[pair].base
            assert base is not None
            columns[pair] = self._number(pair, base, columns[base], begun)
            self.grow()
            self.owners[pair][columns[pair]] = columns[self.index]

    def _begun(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """For every row, what names its life, and when that began."""
        keys = rows.columns[self.base]
        last, start = self.last[keys].copy(), self.start[keys].copy()
        begun = np.empty(len(keys), np.int64)
        starts(rows.ts, keys, self.keep, self.last, self.start, begun)
        self.last[keys], self.start[keys] = last, start
        return begun, begun

    def _number(self, table: int, base: int, keys: np.ndarray, begun: np.ndarray) -> np.ndarray:
        names = self.tables[base]
        salt = begun.view(np.uint64)
        high, low = (k[keys] ^ (salt * c) for k, c in zip((names.high, names.low), _SPREAD, strict=True))
        return self.tables[table].number(high, low)

    def settle(self, rows: Rows) -> None:
        """These rows are final."""
        keys = rows.columns[self.base]
        starts(rows.ts, keys, self.keep, self.last, self.start, np.empty(len(rows), np.int64))
        np.maximum.at(self.seen, rows.columns[self.index], rows.ts)

    def ended(self, frontier: int) -> np.ndarray:
        """Which lives are over, whatever comes."""
        return self.seen[: self.tables[self.index].count] < frontier - self.keep

    def silent(self, frontier: int) -> np.ndarray:
        """Which keys can be forgotten once no row holds them."""
        return self.last[: self.tables[self.base].count] < frontier - self.keep

    def looks(self, rows: RowRange, ask: Ask) -> Looks:
        """`[SESSION gap]`: lives that are over when the clock has passed their last row by so much."""
        last = self.seen.copy()
        at = np.zeros(len(last), np.int64)
        lives = rows.columns[self.index]
        np.maximum.at(last, lives, rows.ts)
        at[lives] = np.arange(1, len(lives) + 1)  # later rows win: assignment goes in order
        over = last + self.keep
        there = self.tables[self.index].live[: len(last)] & (last > START_OF_TIME)
        found = np.flatnonzero(there & (over >= ask.start) & (over < ask.stop))
        found = found[np.lexsort((at[found], over[found]))]
        return self._looks(found, over[found], at[found])

    def _looks(self, lives: np.ndarray, time: np.ndarray, entered: np.ndarray, place: Keys | None = None) -> Looks:
        return Looks(
            time, lives.astype(np.int32), entered, np.zeros(len(lives), np.int64), place or Keys.of_clock(time),
            begin=self.began[lives], base=self.key[lives].astype(np.int32),
        )  # fmt: skip

    def purge(
        self,
        frontier: int,
        open_: list[np.ndarray],
        tallies: list[TallyState],
        rings: dict[int, Rings],
    ) -> None:
        """Forget the lives that are over, and keys that no row holds and that have none."""
        over = self._unused(self.index, open_) & self.ended(frontier)
        gone = np.flatnonzero(over).astype(np.int32)
        for spec, tally in zip(self.stage.program.tallies, tallies, strict=True):
            if spec.group == self.index:
                tally.reset(gone)
        for ring in rings.values():
            if ring.partitions == self.index:
                ring.total[gone] = 0
        self._forget(self.index, gone)
        self.seen[gone] = START_OF_TIME
        for pair in self.pairs:
            self._purge_pairs(pair, over, open_, tallies)
        base = self.tables[self.base]
        silent = base.live[: base.count] & (base.references[: base.count] == 0)
        silent &= self.silent(frontier)
        keys = np.flatnonzero(silent).astype(np.int32)
        self._forget(self.base, keys)
        self.last[keys] = START_OF_TIME

    def _purge_pairs(self, pair: int, over: np.ndarray, open_: list[np.ndarray], tallies: list[TallyState]) -> None:
        owners = self.owners[pair][: self.tables[pair].count]
        lost = self._unused(pair, open_) & over[owners]
        gone = np.flatnonzero(lost).astype(np.int32)
        for tally in tallies:
            if isinstance(tally, DistinctTally) and tally.pairs == pair:
                tally.pair_counts[gone] = 0
        self._forget(pair, gone)
        base = self.stage.tables[pair].base
        assert base is not None
        names = self.tables[base]
        free = np.flatnonzero(names.live[: names.count] & (names.references[: names.count] == 0)).astype(np.int32)
        self._forget(base, free)

    def _unused(self, table: int, open_: list[np.ndarray]) -> np.ndarray:
        numbers = self.tables[table]
        unused = numbers.live[: numbers.count].copy()
        unused[open_[table]] = False
        return unused

    def _forget(self, table: int, numbers: np.ndarray) -> None:
        self.tables[table].forget(numbers)
        self.tables.touch_one(table, numbers)

    def whose(self, table: int) -> np.ndarray:
        """Per life the key, or per pair the life."""
        return self.key if table == self.index else self.owners[table]

    def referring(self, table: int) -> dict[str, int]:
        """Of what is dumped for a table: the names of what are numbers, and the tables that these are of."""
        return {} if table == self.base else {"key": self.base} if table == self.index else {"owner": self.index}

    def dump(self, table: int, start: int, stop: int) -> dict[str, Any]:
        """What belongs to a range of numbers of one of the tables."""
        return self.dump_at(table, slice(start, stop))

    def load(self, table: int, start: int, stop: int, page: dict[str, Any]) -> None:
        self.load_at(table, slice(start, stop), page)

    def dump_at(self, table: int, which: Which) -> dict[str, Any]:
        """What belongs to some numbers of one of the tables."""
        if table == self.base:
            return {"last": self.last[which], "start": self.start[which]}
        if table == self.index:
            return {name: getattr(self, name)[which] for name in ("seen", "began", "key")}
        return {"owner": self.owners[table][which]}

    def load_at(self, table: int, which: Which, page: dict[str, Any]) -> None:
        if table == self.base:
            self.last[which], self.start[which] = page["last"], page["start"]
        elif table == self.index:
            for part in ("seen", "began", "key"):
                getattr(self, part)[which] = page[part]
        else:
            self.owners[table][which] = page["owner"]
