"""Runs the stages of a script, bucket by bucket, over stores that it is handed; whoever drives it decides when to save.

Drivers: Spark's micro-batches (`spark/`), one process in tests (`testing/`).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from headrace.exchange.cells import feed_segment, join_arrivals, read_cell, read_feed
from headrace.exchange.heads import ControlHead, FeedHead, FollowHead, HandoverHead, RowsHead, read_head
from headrace.runtime.clock import Follows, Header, Segment
from headrace.runtime.processor import Result, TaskProcessor
from headrace.runtime.save import load, save
from headrace.state.codec import decode, encode, fingerprint
from headrace.state.parts import Store
from headrace.state.reservoir import CHUNK_ROWS, ChunkCache

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from headrace.exchange.heads import Cell
    from headrace.program.stage import Stage
    from headrace.runtime.arrivals import Arrivals

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


class Host:
    """The stages of one script. `first` has what buckets are given before anything else: the rows of tables."""

    def __init__(
        self, stages: Sequence[Stage], memory: Memory, owner: Hashable, first: Mapping[At, Sequence[Cell]] | None = None,
        chunk_rows: int = CHUNK_ROWS, previous: Sequence[Stage] = (), previous_buckets: int = 0,
    ) -> None:  # fmt: skip
        """`owner` tells the scripts of a process apart; `previous` are the stages whose state is handed over."""
        self.stages, self.memory, self.owner, self.first, self.chunk_rows = stages, memory, owner, first or {}, chunk_rows
        self.previous, self.previous_buckets = previous, previous_buckets

    def bucket(self, at: At, store: VersionedStore) -> TaskProcessor:
        """A bucket as it was saved last: from memory, from the store, or at its beginning."""
        key = (self.owner, *at)
        version = store.version(sure=self.memory.has(key))
        found = self.memory.take(key, version)
        if found is not None:
            found.attach(store)
            return found
        processor = TaskProcessor(self.stages[at[0]], store, self.memory.chunks, key, self.chunk_rows)
        if version is not None:
            load(processor, store.head(), store)
        elif at in self.first:
            deliver(processor, self.first[at])
        return processor

    def save(self, at: At, processor: TaskProcessor, store: VersionedStore) -> None:
        """Keep a bucket, in the store and in memory."""
        version = os.urandom(12)
        store.put_head(save(processor, store), version)
        self.memory.keep((self.owner, *at), version, processor)

    def hand_over(self, at: At, store: VersionedStore, given: Given) -> None:
        """Put a bucket, of which nothing is stored yet, into the state that those before it were in."""
        assert len(given) == 1, "a bucket goes on with one of its own stage"
        ((stage, _), cells), own = next(iter(given.items())), self.stages[at[0]]
        for name, data in cells.items():
            kind, _, which = name.partition(" ")
            if kind == "chunk":
                store.put(int(which), data)
            elif kind == "page":
                store.put_page(which, data)
        head = decode(cells["head"], "the head of a bucket")
        assert head["fingerprint"] == fingerprint(self.previous[stage]), "state is that of the stage it is said to be of"
        store.put_head(encode({**head, "fingerprint": fingerprint(own)}), os.urandom(12))


def collect(cells: Sequence[Cell]) -> Given:
    """The cells that a bucket is handed, by whom they were of."""
    given: dict[At, dict[str, bytes]] = {}
    for line, body in cells:
        head = read_head(line)
        assert isinstance(head, HandoverHead), f"nothing else comes while state is handed over: {head}"
        given.setdefault((head.stage, head.bucket), {})[head.cell] = body
    return given


def deliver(processor: TaskProcessor, cells: Sequence[Cell]) -> tuple[Header, Result]:
    """Give a bucket all that a batch has for it."""
    header, arrivals = gather(processor.stage, cells)
    return header, processor.process(header, arrivals)


def gather(stage: Stage, cells: Sequence[Cell]) -> tuple[Header, Arrivals | None]:
    """All that a batch has for a bucket: one header, one run of rows."""
    segments: list[Segment] = []
    parts: list[Arrivals] = []
    follows: list[Follows] = []
    now, ended, rows, punctuation = 0, False, 0, 0
    for line, body in cells:
        match read_head(line):
            case RowsHead() as head:
                if body:
                    parts.append(read_cell(stage, head.shape, head.segments, body, len(segments)))
                segments += head.segments
                now, rows, punctuation = max(now, head.now), rows + head.rows, punctuation + head.punctuation
            case FeedHead(source=source):
                parts.append(read_feed(stage, source, body, len(segments)))
                segments.append(feed_segment(source))
            case FollowHead(source=source, standing=standing):
                follows.append(Follows(source, standing))
            case ControlHead() as head:
                now, ended = max(now, head.now), ended or head.ended
            case other:
                raise AssertionError(f"not for a bucket: {other}")
    return Header(now, tuple(segments), ended, tuple(follows), punctuation, rows), join_arrivals(parts)
