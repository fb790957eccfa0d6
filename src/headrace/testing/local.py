"""The runtime in one process, without Spark: the same stages and task processors, scalar expressions by DuckDB."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.changes.changes import Changes
from headrace.changes.keys import Keys
from headrace.exchange.cells import batch_of, feed_segment, join_arrivals, read_cell, read_feed, write_cells, write_feed
from headrace.exchange.pack import Placed, segments_of
from headrace.kernels.keys.segments import NO_PROMISE
from headrace.oracle.admission import Batch, Punctuation, read_times
from headrace.oracle.rows import batch_of_rows, rows_of_batch
from headrace.oracle.scalar import evaluate_batch
from headrace.plan.arrow import arrow_type
from headrace.plan.expr import all_of
from headrace.plan.query import Script
from headrace.plan.stream import Stream
from headrace.program.stage import Stage
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Follows, Header, Segment
from headrace.runtime.processor import Result, TaskProcessor
from headrace.runtime.save import load, save
from headrace.stages.lower import Finish, lower
from headrace.state.reservoir import ChunkCache
from headrace.testing.engine import Change, Outputs


@dataclass(slots=True)
class MemoryStore:
    """Chunks and pages in memory."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    pages: dict[str, bytes] = field(default_factory=dict)

    def get(self, chunk: int) -> bytes | None:
        """A chunk."""
        return self.chunks.get(chunk)

    def put(self, chunk: int, data: bytes) -> None:
        """Keep a chunk."""
        self.chunks[chunk] = data

    def delete(self, chunk: int) -> None:
        """Let a chunk go."""
        del self.chunks[chunk]

    def get_page(self, name: str) -> bytes:
        """A page."""
        return self.pages[name]

    def put_page(self, name: str, data: bytes) -> None:
        """Keep a page."""
        self.pages[name] = data

    def drop_page(self, name: str) -> None:
        """Let a page go."""
        del self.pages[name]

    def copy(self) -> MemoryStore:
        """The same bytes in a store of its own."""
        return MemoryStore(dict(self.chunks), dict(self.pages))

    @property
    def size(self) -> int:
        """Bytes kept."""
        return sum(map(len, self.chunks.values())) + sum(map(len, self.pages.values()))


@dataclass(frozen=True, slots=True)
class _Saved:
    """The state of every bucket, by stage and number, and how many rows came of each partition."""

    heads: dict[tuple[int, int], bytes]
    stores: dict[tuple[int, int], MemoryStore]
    positions: dict[tuple[str, int], int]


@dataclass(slots=True)
class _Packed:
    """What a batch brings to one stage."""

    segments: list[Segment] = field(default_factory=list)
    rows: list[tuple[int, Arrivals]] = field(default_factory=list)  # (bucket, rows)
    follows: list[Follows] = field(default_factory=list)

    def header(self, now: int, ended: bool) -> Header:
        """What every bucket is told."""
        return Header(now, tuple(self.segments), ended, tuple(self.follows))


class LocalEngine:
    """Runs a script batch by batch. `chunk_rows` is small, so that tests of a few rows meet sealed chunks too."""

    def __init__(self, script: Script, buckets: int = 4, saved: object | None = None, chunk_rows: int = 8) -> None:
        """From the beginning, or from what `save` gave."""
        self.lowered = _lowered(script)
        self.buckets = buckets
        self._finishes = {f.query.name: f for f in self.lowered.finishes}
        self._feeds = {f.query.name: f for f in self.lowered.feeds}
        self._cache = ChunkCache(size=16)
        self._positions: dict[tuple[str, int], int] = defaultdict(int)
        self._stores: dict[tuple[int, int], MemoryStore] = {}
        self._processors: dict[tuple[int, int], TaskProcessor] = {}
        assert saved is None or isinstance(saved, _Saved)
        if saved is not None:
            self._positions.update(saved.positions)
        for s, stage in enumerate(self.lowered.stages):
            for b in range(stage.buckets(buckets)):
                store = self._stores[s, b] = saved.stores[s, b].copy() if saved else MemoryStore()
                processor = self._processors[s, b] = TaskProcessor(stage, store, self._cache, (id(self), s, b), chunk_rows)
                if saved:
                    load(processor, saved.heads[s, b], store)

    def push(self, batch: Batch) -> Outputs:
        """Take one batch."""
        out: Outputs = {name: [] for name in self._finishes}
        packed: dict[int, _Packed] = {s: _Packed() for s in range(len(self.lowered.stages))}
        for stream in self.lowered.streams:
            self._pack(stream, batch, packed, out)
        return self._run(packed, batch.now, False, out)

    def finish(self, now: int) -> Outputs:
        """The end of all input."""
        out: Outputs = {name: [] for name in self._finishes}
        return self._run({s: _Packed() for s in range(len(self.lowered.stages))}, now, True, out)

    def _run(self, packed: dict[int, _Packed], now: int, ended: bool, out: Outputs) -> Outputs:
        """All buckets, level by level."""
        for (s, b), processor in sorted(self._processors.items(), key=lambda item: self.lowered.stages[item[0][0]].level):
            parts = [rows for bucket, rows in packed[s].rows if bucket == b]
            result = processor.process(packed[s].header(now, ended), join_arrivals(parts))
            self._collect(result, out)
            self._feed(result, packed)
            if b == 0:
                self._stand(s, processor, packed)
        return self._ordered(out)

    def _feed(self, result: Result, packed: dict[int, _Packed]) -> None:
        """Bring results to the stages that read them."""
        for name, changes in result.changes:
            feed = self._feeds.get(name)
            for s, source in self._readers(name) if feed is not None else ():
                assert feed is not None
                stage = self.lowered.stages[s]
                exprs = [i.exprs[source] for i in stage.inputs]
                inputs = _typed(stage, evaluate_batch(exprs, feed.columns, changes.rows), len(changes))
                given = Changes(changes.sign, changes.keys, inputs)
                cells = write_feed(stage, given, stage.buckets(self.buckets))
                segment = len(packed[s].segments)
                packed[s].rows += ((b, read_feed(stage, source, bytes(c), segment)) for b, c in enumerate(cells) if len(c))
                packed[s].segments.append(feed_segment(source))

    def _stand(self, number: int, processor: TaskProcessor, packed: dict[int, _Packed]) -> None:
        """Tell the stages that read the results of this one how far it is."""
        for name in set(self.lowered.stages[number].queries):
            for s, source in self._readers(name):
                packed[s].follows.append(Follows(source, processor.standing(name)))

    def _readers(self, feed: str) -> list[tuple[int, int]]:
        stages = self.lowered.stages
        return [(s, i) for s, stage in enumerate(stages) for i, source in enumerate(stage.sources) if source.name == feed]

    def save(self) -> object:
        """The state of every bucket, as bytes."""
        heads = {key: save(p, self._stores[key]) for key, p in self._processors.items()}
        return _Saved(heads, {key: store.copy() for key, store in self._stores.items()}, dict(self._positions))

    def state_size(self) -> int:
        """Bytes of state."""
        heads = {key: save(p, self._stores[key]) for key, p in self._processors.items()}
        return sum(map(len, heads.values())) + sum(s.size for s in self._stores.values())

    def _pack(self, stream: Stream, batch: Batch, packed: dict[int, _Packed], out: Outputs) -> None:
        """Bring the rows of a stream to the stages that it is a source of."""
        arrivals = batch.rows.get(stream.rows_of, ())
        if not arrivals:
            return
        whole = batch_of_rows(stream.schema, [a.values for a in arrivals])
        rows = rows_of_batch(whole)
        times = read_times(stream, rows, batch.now)
        partition = np.array([a.partition for a in arrivals], np.int64)
        low = np.array([self._next_position(stream.name, p) for p in partition.tolist()], np.int64)
        good = [i for i, t in enumerate(times) if not isinstance(t, str)]
        self._reject(stream, rows, times, partition, low, out)
        names, segment = np.unique(partition, return_inverse=True)
        promised = [t.upto if isinstance(t, Punctuation) else NO_PROMISE for t in times]
        ts = np.array([0 if isinstance(times[i], Punctuation) else times[i] for i in good], np.int64)
        placed = Placed(
            Keys(ts, partition[good], low[good]), segment[good].astype(np.int32), names,
            [(0, int(low[segment == s][0])) for s in range(len(names))], batch.now,
            partitioned=True, promise=np.array([promised[i] for i in good], np.int64) if stream.punctuation is not None else None,
        )  # fmt: skip
        events, kept = placed.events()
        values = whole.take(pa.array(good, pa.int64()).take(pa.array(kept)) if kept is not None else pa.array(good, pa.int64()))
        for s, stage in enumerate(self.lowered.stages):
            for source, spec in enumerate(stage.sources):
                if spec.name != stream.name:
                    continue
                found, behind = segments_of(placed, spec.disorder)
                behind = behind if kept is None else behind[kept]
                rows_in = [int((segment == i).sum()) for i in range(len(found))]  # rejected ones too
                segments = [replace(g, rows=n, source=source) for g, n in zip(found, rows_in, strict=True)]
                exprs = [i.exprs[source] for i in stage.inputs]
                inputs = evaluate_batch(exprs, stream.schema, values)
                kinds = [i.type for i in stage.inputs]
                same = tuple(i for i, e in enumerate(exprs) if e == stream.timestamp and kinds[i] == "TIMESTAMP")
                shape, cells = write_cells(stage, inputs, same, events, behind, stage.buckets(self.buckets))
                shift = len(packed[s].segments)
                rows_of = ((b, read_cell(stage, shape, segments, bytes(c), shift)) for b, c in enumerate(cells) if len(c))
                packed[s].rows += rows_of
                packed[s].segments += segments

    def _next_position(self, stream: str, partition: int) -> int:
        self._positions[stream, partition] += 1
        return self._positions[stream, partition] - 1

    def _reject(
        self, stream: Stream, rows: list[Any], times: list[Any], partition: np.ndarray, low: np.ndarray, out: Outputs
    ) -> None:
        readers = [f for f in self.lowered.finishes if f.rejected == stream.name]
        for i, reason in enumerate(times):
            if not isinstance(reason, str):
                continue
            row = (repr(rows[i]), reason, stream.name, f"{partition[i]}:{low[i]}", None, None)
            for reader in readers:
                batch = batch_of_rows(reader.columns, [row])
                keys = Keys(*(np.array([part], np.int64) for part in (0, partition[i], low[i])))
                self._give(reader, Changes.of(1, keys, batch), out)

    def _collect(self, result: Result, out: Outputs) -> None:
        for query, changes in result.changes:
            if query in self._finishes:
                self._give(self._finishes[query], changes, out)

    def _give(self, finish: Finish, changes: Changes, out: Outputs) -> None:
        """What is left to do: HAVING, then the columns of the SELECT."""
        if not len(changes):
            return
        kept = np.arange(len(changes))
        predicate = all_of(finish.predicates)
        if predicate is not None:
            truth = evaluate_batch([predicate], finish.columns, changes.rows).column(0)
            kept = np.flatnonzero(np.array(truth.fill_null(False), np.bool_))
        names = [n for n, _ in finish.items]
        shown = evaluate_batch([e for _, e in finish.items], finish.columns, changes.rows, names).take(pa.array(kept))
        for i, row in zip(kept.tolist(), rows_of_batch(shown), strict=True):
            key = [int(part[i]) for part in changes.keys.columns]
            while len(key) > 3 and key[-1] == 0:
                key.pop()
            out[finish.query.name].append(Change(int(changes.sign[i]), tuple(key), row))

    def _ordered(self, out: Outputs) -> Outputs:
        """One batch of an ordered sink is sorted over all buckets."""
        for name, finish in self._finishes.items():
            if finish.query.emit.ordered:
                out[name].sort(key=lambda c: c.key)
        return out


def _typed(stage: Stage, inputs: pa.RecordBatch, rows: int) -> pa.RecordBatch:
    """Inputs in the types that the stage has for them."""
    kinds = [arrow_type(i.type) for i in stage.inputs]
    return batch_of([c if c.type == k else c.cast(k) for c, k in zip(inputs.columns, kinds, strict=True)], rows)


_lowered = lru_cache(maxsize=16)(lower)  # the same script is run with other buckets, and after restarts


def local_engine(script: Script, buckets: int, saved: object | None) -> LocalEngine:
    """An `EngineFactory` for the conformance suite."""
    return LocalEngine(script, buckets, saved)
