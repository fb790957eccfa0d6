"""What an old bucket has for a new one, where their number changes: the keys and rows that are routed there.

Keys of tables that tell the route belong to one new bucket, and to one old one; those of each old bucket get numbers that follow
one another, in the order they had. Other tables only number values: all of those go along, and what no row holds is let go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.evolution.buckets import noted, telling
from headrace.program.stage import Stage, TableRole
from headrace.state.open_rows import OpenRows
from headrace.state.rows import Rows
from headrace.state.tables import ROUTE_BITS, UNKNOWN, KeyTable, Tables, ValueTable

Owners = Callable[[int], np.ndarray]  # per number of a derived table: the number that it follows from


@dataclass(slots=True)
class Share:
    """By the step of the old bucket: the new number of every key of each table, -1 for those that stay behind."""

    step: Any
    open: OpenRows  # of the old bucket
    home: bool  # whether what belongs to no key goes along
    teller: int  # a table that tells the route
    numbers: list[np.ndarray] = field(default_factory=list)
    places: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # of the open rows among those of the new bucket

    def mine(self, columns: list[np.ndarray]) -> np.ndarray:
        """Which rows go along."""
        return np.asarray(self.numbers[self.teller][columns[self.teller]] >= 0)

    def columns(self, columns: list[np.ndarray]) -> list[np.ndarray]:
        """Columns of rows that go along, with the numbers that their keys have now."""
        n = len(self.numbers)
        return [self.mapped(t, c) for t, c in zip(range(n), columns[:n], strict=True)] + columns[n:]

    def mapped(self, table: int, numbers: np.ndarray) -> np.ndarray:
        """Numbers of a table as they are now; what is not there has been without a meaning."""
        new = self.numbers[table]
        known = (numbers >= 0) & (numbers < len(new))
        out = np.zeros(len(numbers), numbers.dtype)
        out[known] = np.maximum(new[numbers[known]], 0)
        return out

    def rows(self, rows: Rows) -> Rows:
        """Those that go along."""
        mine = rows.take(np.flatnonzero(self.mine(rows.columns)))
        return Rows(mine.keys, self.columns(mine.columns))

    def run(self, table: int) -> tuple[np.ndarray, int, int]:
        """Of a table that tells the route, or follows from one: which numbers go along, and where they begin and end now."""
        kept = np.flatnonzero(self.numbers[table] >= 0)
        first = int(self.numbers[table][kept[0]]) if len(kept) else 0
        return kept, first, first + len(kept)


def number(share: Share, stage: Stage[Any], new: Tables, old: Tables, owners: Owners, bucket: int, buckets: int) -> None:
    """Give the keys of an old bucket their numbers in the new one."""
    own, notes = telling(stage), noted(stage)
    for i, spec in enumerate(stage.tables):
        table, to = old[i], new[i]
        going = table.live[: table.count].copy()
        routes = None
        if spec.derived:
            base = spec.base if spec.role is TableRole.LIFE else spec.life
            assert base is not None
            owner = owners(i)[: table.count]
            going &= (owner >= 0) & (share.numbers[base][np.maximum(owner, 0)] >= 0)
        elif i in own:
            routes = _routes(table, noted=i in notes)
            going &= routes % np.uint32(buckets) == bucket
        kept = np.flatnonzero(going)
        numbers = np.full(table.count, -1, np.int64)
        numbers[kept] = _numbered(to, table, kept, routes if i in notes else None)
        share.numbers.append(numbers)
        if i in own or spec.derived:
            to.references[numbers[kept]] = table.references[kept]


def _routes(table: KeyTable, *, noted: bool) -> np.ndarray:
    """What rows with each key are routed by."""
    if not noted:
        return (table.high[: table.count] >> ROUTE_BITS).astype(np.uint32)
    routes = np.full(table.count, UNKNOWN) if table.routes is None else table.routes[: table.count]
    assert (routes[table.live[: table.count]] != UNKNOWN).all(), "a checkpoint that lacks them was refused before"
    return routes


def _numbered(to: KeyTable, table: KeyTable, kept: np.ndarray, routes: np.ndarray | None) -> np.ndarray:
    note = None if routes is None else lambda: routes[kept]
    if isinstance(to, ValueTable) and isinstance(table, ValueTable):
        return to.number_values(table.high[kept], table.low[kept], table.values.take(pa.array(table.place[kept])), note)
    return to.number(table.high[kept], table.low[kept], note)


def chosen(state: dict[str, Any], kept: np.ndarray, count: int) -> dict[str, Any]:
    """Of what was dumped for `count` keys, that of some: an entry for each, or as many as `sizes` says."""
    sizes = state.get("sizes")
    if sizes is None:
        return {name: part[kept] if isinstance(part, np.ndarray) else part for name, part in state.items()}
    there = np.zeros(count, np.bool_)
    there[kept] = True
    entries = np.flatnonzero(np.repeat(there, sizes))
    total = int(sizes.sum())
    some = {
        name: part.reshape(total, -1)[entries].reshape(-1) if total else part for name, part in state.items() if name != "sizes"
    }
    return {**some, "sizes": sizes[kept]}
