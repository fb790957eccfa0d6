"""One bucket of what several hold, where their number changes: the same program, the keys and rows that are routed to it.

Old buckets are read as they were; what comes of it is a bucket like they were, from which the new program then takes over.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.changes.keys import CLOCK_PLACE, SOURCE_BITS
from headrace.evolution.buckets import telling
from headrace.program.stage import Anywhere, Stage
from headrace.runtime.processor import TaskProcessor
from headrace.state.chunk import Chunk
from headrace.state.reservoir import ChunkCache
from headrace.state.rows import Rows
from headrace.state.share import Share, number

_BELOW_CLOCK = np.int64(CLOCK_PLACE - 1)


@dataclass(slots=True)
class Chunks:
    """A store in memory, for a bucket that is never saved."""

    chunks: dict[int, Chunk] = field(default_factory=dict)

    def get(self, chunk: int) -> Chunk | None:
        """A chunk."""
        return self.chunks.get(chunk)

    def put(self, chunk: int, rows: Chunk) -> None:
        """Keep a chunk."""
        self.chunks[chunk] = rows

    def delete(self, chunk: int) -> None:
        """Let a chunk go."""
        self.chunks.pop(chunk, None)


def gather(
    stage: Stage[Any], olds: Mapping[int, TaskProcessor], bucket: int, buckets: int, owner: Hashable, chunk_rows: int
) -> TaskProcessor:
    """Of the old buckets, by number, all that is of a new one, of so many."""
    store: Any = Chunks()
    new = TaskProcessor(stage, store, ChunkCache(), owner, chunk_rows)
    first = next(iter(olds.values()))
    assert all(old.clock.dump() == first.clock.dump() for old in olds.values()), "every bucket has seen the same of its sources"
    new.clock.load(first.clock.dump())
    new.begun, new.since, new.fresh = dict(first.begun), first.since, first.fresh
    for old in olds.values():
        old.catch_up()  # they may stand at different places
    shares = []
    teller = min(telling(stage), default=-1)
    for at, old in olds.items():
        share = Share(old.step, old.open.rows, at % buckets == bucket, teller)
        number(share, stage, new.tables, old.tables, old.step.owners, bucket, buckets)
        shares.append(share)
    new.step.grow()
    _open(new, olds, shares, bucket, buckets)
    uniques = new.open.uniques
    if uniques is not None:
        uniques.grow(uniques.table.capacity)
        for share, old in zip(shares, olds.values(), strict=True):
            kept, start, stop = share.run(uniques.index)
            uniques.last[start:stop] = old.open.uniques.last[kept]  # type: ignore[union-attr]
    held = [*new.step.gather(shares, new.open.rows), new.open.rows.rows.columns]
    values = [i for i, t in enumerate(stage.tables) if i not in telling(stage) and not t.derived]
    for columns in held:
        for table in values:
            new.tables[table].hold(columns[table])
    new.tables.sweep()
    return new


def _open(new: TaskProcessor, olds: Mapping[int, TaskProcessor], shares: list[Share], bucket: int, buckets: int) -> None:
    """The open rows, in the total order, and which of them count."""
    opening = new.open
    rows, counts, taken = opening.rows, [opening.counts], [0]
    going = []
    for share, old in zip(shares, olds.values(), strict=True):
        mine = np.flatnonzero(_mine(new.stage, share, old.open.rows.rows, bucket, buckets))
        part = old.open.rows.take(mine)
        part.rows = Rows(part.rows.keys, share.columns(part.rows.columns))
        rows = rows.append(part)
        counts.append(old.open.counts[mine] if new.open.uniques is not None else opening.counts)
        going.append(mine)
        taken.append(len(rows))
    order = np.lexsort(rows.rows.keys.columns[::-1])
    place = np.argsort(order)
    for share, mine, start, stop in zip(shares, going, taken[:-1], taken[1:], strict=True):
        share.places = np.full(len(share.open), -1, np.int64)
        share.places[mine] = place[start:stop]
    new.open.rows = rows.take(order) if len(rows) else rows
    count = np.concatenate(counts)
    new.open.counts = count[order] if len(count) else count


def _mine(stage: Stage[Any], share: Share, rows: Rows, bucket: int, buckets: int) -> np.ndarray:
    """Which rows are routed to a bucket."""
    if not isinstance(stage.route, Anywhere):
        return share.mine(rows.columns)
    high = rows.keys.high
    rank = (high & _BELOW_CLOCK) >> SOURCE_BITS
    ranks = np.array([s.rank for s in stage.sources], np.int64)  # ascending; a feed has ranks of its own below its own
    high = high - (ranks[np.maximum(ranks.searchsorted(rank, side="right") - 1, 0)] << SOURCE_BITS)
    mine: np.ndarray = (rows.keys.low ^ high) % buckets == bucket
    return mine
