"""Runs the stages of a script, bucket by bucket, over stores that it is handed; whoever drives it decides when to save.

Drivers: Spark's micro-batches (`spark/`), one process in tests (`testing/`).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.changes.changes import Changes
from headrace.evolution.compare import Comparison
from headrace.exchange.cells import feed_segment, join_arrivals, read_cell, read_feed
from headrace.exchange.ended import (
    ENDED,
    RELEASED,
    Aside,
    Sinks,
    carry_over,
    read_released,
    released_of,
    taken_back,
    write_released,
)
from headrace.exchange.heads import Cell, ControlHead, FeedHead, FollowHead, HandoverHead, RowsHead, read_head
from headrace.program.stage import Stage
from headrace.runtime.adopt import adopt, adopt_clocks
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Follows, Header, Segment
from headrace.runtime.gather import gather as gather_bucket
from headrace.runtime.processor import Result, TaskProcessor
from headrace.runtime.save import load, save
from headrace.state.chunk import Chunk
from headrace.state.parts import Store
from headrace.state.reservoir import CHUNK_ROWS, ChunkCache
from headrace.steps.step import Results

At = tuple[int, int]  # stage, bucket
Given = dict[At, dict[str, bytes]]  # all cells of some buckets of an earlier generation, by their names


class VersionedStore(Store, Protocol):
    """A store that knows which version of a bucket it has: a name that is given to every save."""

    def version(self, *, sure: bool) -> bytes | None:
        """Of what is stored; None: nothing is. `sure`: something is, for certain."""

    def head(self) -> bytes:
        """The head of a bucket that was saved."""

    def put_head(self, head: bytes, version: bytes) -> None:
        """Keep it."""


class Memory:
    """What a process has loaded: decoded chunks, and processors, good only for the very version they were saved as."""

    def __init__(self, chunks: int = 256, buckets: int = 256) -> None:
        """Nothing yet; room for so many of either."""
        self.chunks, self.most = ChunkCache(chunks), buckets
        self._kept: OrderedDict[Hashable, tuple[bytes, TaskProcessor]] = OrderedDict()

    def has(self, key: Hashable) -> bool:
        """Whether there is a processor, of whichever version."""
        return key in self._kept

    def take(self, key: Hashable, version: bytes | None) -> TaskProcessor | None:
        """A processor, if it stands exactly where the stored state stands. Nobody else gets it until it is kept again."""
        found = self._kept.pop(key, None)
        return found[1] if found is not None and found[0] == version else None

    def keep(self, key: Hashable, version: bytes, processor: TaskProcessor) -> None:
        """Remember a processor that was just saved under this version."""
        self._kept[key] = (version, processor)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Cells:
    """A store that can only be read: all cells of a bucket, by name."""

    cells: Mapping[str, bytes]

    def version(self, *, sure: bool) -> bytes | None:
        """None: nothing was ever saved."""
        return self.cells.get("version")

    def head(self) -> bytes:
        return self.cells["head"]

    def get(self, chunk: int) -> Chunk | None:
        data = self.cells.get(f"chunk {chunk}")
        return None if data is None else Chunk.read(data, f"chunk {chunk}")

    def get_page(self, name: str) -> bytes:
        return self.cells[f"page {name}"]


@dataclass(frozen=True, slots=True)
class Before:
    """What the buckets of the old script left, and how the scripts compare. Behind its stages are those that were filled."""

    stages: Sequence[Stage[Any]]
    stores: Mapping[At, Any]
    comparison: Comparison

    def bucket(self, at: At, chunk_rows: int) -> TaskProcessor | None:
        """One of them, if anything ever came to it."""
        store = self.stores.get(at)
        if store is None or store.version(sure=False) is None:
            return None
        processor = TaskProcessor(self.stages[at[0]], store, ChunkCache(1), at, chunk_rows)
        load(processor, store.head(), store)
        return processor

    def share(self, giver: int, number: int, stage: Stage[Any], bucket: int, chunk_rows: int) -> TaskProcessor | None:
        """What is of a bucket of a new stage: the old one of that number, or, if there are others now, its share of several."""
        was, now = self.comparison.buckets
        if number in self.comparison.filled or self.stages[giver].buckets(was) == stage.buckets(now):
            return self.bucket((giver, bucket), chunk_rows)
        found = {old: self.bucket((giver, old), chunk_rows) for old in self.comparison.givers(number, stage, bucket)}
        olds = {old: processor for old, processor in found.items() if processor is not None}
        return gather_bucket(self.stages[giver], olds, bucket, now, (giver, bucket), chunk_rows) if olds else None


class Host:
    """The stages of one script. `first` has what buckets are given before anything else: the rows of tables.

    `goes_on`: the input ended in an earlier run, and does not any more.
    """

    def __init__(
        self, stages: Sequence[Stage[Any]], memory: Memory, owner: Hashable, first: Mapping[At, Sequence[Cell]] | None = None,
        chunk_rows: int = CHUNK_ROWS, *, goes_on: bool = True,
    ) -> None:  # fmt: skip
        """`owner` tells the scripts of a process apart."""
        self.stages, self.memory, self.owner, self.first, self.chunk_rows = stages, memory, owner, first or {}, chunk_rows
        self.goes_on, self._ended = goes_on, ENDED + str(owner).encode()

    def bucket(self, at: At, store: VersionedStore) -> tuple[TaskProcessor | None, Results]:
        """A bucket as it was saved last: from memory, from the store, or at its beginning; and what it takes back first.

        None: its input has ended, and does not go on.
        """
        key, back = (self.owner, *at), list[tuple[str, Changes]]()
        version = store.version(sure=self.memory.has(key))
        found = self.memory.take(key, version)
        if found is not None:
            found.attach(store)
            return found, back
        if version is not None and version.startswith(ENDED):
            if version == self._ended or not self.goes_on:
                return None, back
            back = taken_back(read_released(store.get_page(RELEASED)))
            store.drop_page(RELEASED)
        processor = TaskProcessor(self.stages[at[0]], store, self.memory.chunks, key, self.chunk_rows)
        if version is not None:
            load(processor, store.head(), store)
        if at in self.first and (version is None or processor.fresh):
            deliver(processor, self.first[at])
        processor.fresh = False
        return processor, back

    def end(
        self, at: At, processor: TaskProcessor, store: VersionedStore, cells: Sequence[Cell], sinks: Sinks
    ) -> tuple[Header, Result]:
        """Keep a bucket as it stands, then give it the end. The processor is of no more use."""
        head = save(processor, store)
        processor.attach(Aside(store))
        header, result = deliver(processor, cells)
        store.put_page(RELEASED, write_released(released_of(result.changes, sinks)))
        store.put_head(head, self._ended)
        return header, result

    def hand_over(self, at: At, store: VersionedStore, before: Before) -> None:
        """Make a bucket of a changed script from those of the old one."""
        stage, bucket = at
        processor = TaskProcessor(self.stages[stage], store, self.memory.chunks, (self.owner, *at), self.chunk_rows)
        processor.fresh = True
        names, giver = before.comparison.names, before.comparison.takes[stage]
        if giver is not None:
            old = before.share(giver, stage, self.stages[stage], bucket, self.chunk_rows)
            if old is not None:
                adopt(processor, old, (names[0][stage], names[1][giver]), before.comparison.continued)
        for other in range(len(before.stages)) if giver is None else ():
            old = before.bucket((other, 0), self.chunk_rows)
            if old is not None:
                adopt_clocks(processor, old, (names[0][stage], names[1][other]))
        if giver is None:
            processor.since = processor.clock.last
        self.save(at, processor, store)
        if giver is not None:
            count = self.stages[stage].buckets(before.comparison.buckets[1])
            mine = [old for (of, number), old in before.stores.items() if of == giver and number % count == bucket]
            carry_over(mine, store, before.comparison.continued)

    def save(self, at: At, processor: TaskProcessor, store: VersionedStore) -> None:
        version = os.urandom(12)
        store.put_head(save(processor, store), version)
        self.memory.keep((self.owner, *at), version, processor)


def collect(cells: Sequence[Cell]) -> Given:
    """The cells that a bucket is handed, by whom they were of."""
    given: dict[At, dict[str, bytes]] = {}
    for line, body in cells:
        head = read_head(line)
        assert isinstance(head, HandoverHead), f"nothing else comes while state is handed over: {head}"
        given.setdefault((head.stage, head.bucket), {})[head.cell] = body
    return given


def deliver(processor: TaskProcessor, cells: Sequence[Cell]) -> tuple[Header, Result]:
    header, arrivals = gather(processor.stage, cells)
    return header, processor.process(header, arrivals)


def gather(stage: Stage[Any], cells: Sequence[Cell]) -> tuple[Header, Arrivals | None]:
    """All that a batch has for a bucket: one header, one run of rows."""
    segments: list[Segment] = []
    parts: list[Arrivals] = []
    follows: list[Follows] = []
    ended, rows, punctuation = False, 0, 0
    told: list[int] = []  # how late it is; a control cell that is not asked for the time says 0
    for line, body in cells:
        match read_head(line):
            case RowsHead() as head:
                if body:
                    parts.append(read_cell(stage, head.shape, head.segments, body, len(segments)))
                segments += head.segments
                told.append(head.now)
                rows, punctuation = rows + head.rows, punctuation + head.punctuation
            case FeedHead(source=source):
                parts.append(read_feed(stage, source, body, len(segments)))
                segments.append(feed_segment(source))
            case FollowHead(source=source, standing=standing):
                follows.append(Follows(source, standing))
            case ControlHead() as head:
                told += [head.now] if head.now else []
                ended = ended or head.ended
            case other:
                raise AssertionError(f"not for a bucket: {other}")
    return Header(max(told, default=0), tuple(segments), ended, tuple(follows), punctuation, rows), join_arrivals(parts)
