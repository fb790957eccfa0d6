"""The runtime in one process, without Spark: the same stages and task processors, scalar expressions by DuckDB."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.changes.changes import Changes
from headrace.changes.keys import Keys
from headrace.evolution.compare import compare
from headrace.exchange.cells import batch_of, write_cells, write_feed
from headrace.exchange.ended import RELEASED, read_released, refuse_final
from headrace.exchange.heads import Cell, ControlHead, FeedHead, FollowHead, RowsHead, write_head
from headrace.exchange.host import At, Before, Host, Memory, deliver
from headrace.exchange.pack import Placed, segments_of
from headrace.kernels.keys.segments import NO_PROMISE
from headrace.oracle.admission import Batch, Punctuation, read_times
from headrace.oracle.rows import batch_of_rows, rows_of_batch
from headrace.oracle.scalar import evaluate_batch
from headrace.plan.arrow import arrow_type
from headrace.plan.expr import all_of
from headrace.plan.query import Script
from headrace.plan.stream import Stream
from headrace.program.stage import Stage, StepProgram
from headrace.runtime.clock import Header
from headrace.runtime.processor import Result, TaskProcessor
from headrace.stages.alone import part_of, stages_of
from headrace.stages.kept import kept_of
from headrace.stages.lower import Finish, Lowered, lower
from headrace.stages.meaning import program_of
from headrace.state.chunk import Chunk
from headrace.testing.engine import Change, Outputs


@dataclass(slots=True)
class MemoryStore:
    """Chunks and pages in memory."""

    chunks: dict[int, bytes] = field(default_factory=dict)
    pages: dict[str, bytes] = field(default_factory=dict)
    saved: tuple[bytes, bytes] | None = None  # head, version

    def version(self, *, sure: bool) -> bytes | None:
        return None if self.saved is None else self.saved[1]

    def head(self) -> bytes:
        assert self.saved is not None
        return self.saved[0]

    def put_head(self, head: bytes, version: bytes) -> None:
        self.saved = (head, version)

    def get(self, chunk: int) -> Chunk | None:
        return Chunk.read(self.chunks[chunk], f"chunk {chunk}") if chunk in self.chunks else None

    def put(self, chunk: int, rows: Chunk) -> None:
        self.chunks[chunk] = rows.write()

    def delete(self, chunk: int) -> None:
        del self.chunks[chunk]

    def get_page(self, name: str) -> bytes:
        return self.pages[name]

    def put_page(self, name: str, data: bytes) -> None:
        self.pages[name] = data

    def drop_page(self, name: str) -> None:
        del self.pages[name]

    def copy(self) -> MemoryStore:
        return MemoryStore(dict(self.chunks), dict(self.pages), self.saved)

    @property
    def size(self) -> int:
        head = 0 if self.saved is None else len(self.saved[0])
        return head + sum(map(len, self.chunks.values())) + sum(map(len, self.pages.values()))


@dataclass(frozen=True, slots=True)
class _Saved:
    """The state of every bucket, by stage and number, and how many rows came of each partition."""

    stores: dict[At, MemoryStore]
    positions: dict[tuple[str, int], int]
    lowered: Lowered
    buckets: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Queries that a changed script has more than the old one, for which all that had come is read again."""

    queries: frozenset[str] = frozenset()
    batches: Sequence[Batch] = ()


_engines = count()
Cells = dict["At", list["Cell"]]  # by stage and bucket


class LocalEngine:
    """Runs a script batch by batch. `chunk_rows` is small, so that tests of a few rows meet sealed chunks too."""

    def __init__(
        self, script: Script, buckets: int = 4, saved: object | None = None, chunk_rows: int = 8, fill: Fill = Fill()
    ) -> None:
        assert saved is None or isinstance(saved, _Saved)
        if saved is None:
            self.lowered = _lowered(script)
        elif saved.lowered.script is script or saved.lowered.script == script:
            self.lowered = saved.lowered
        else:
            alone = dict.fromkeys(fill.queries, "filled")
            self.lowered = lower(script, kept=kept_of(program_of(saved.lowered), script, alone))
        self.buckets = buckets
        self._finishes = {f.query.name: f for f in self.lowered.finishes}
        self._feeds = {f.query.name: f for f in self.lowered.feeds}
        self._positions: dict[tuple[str, int], int] = defaultdict(int)
        if saved is not None:
            self._positions.update(saved.positions)
        stages = self.lowered.stages
        places = [(s, b) for s in sorted(range(len(stages)), key=lambda s: stages[s].level) for b in self._all(s)]
        self._host = Host(stages, Memory(16, len(places)), next(_engines), chunk_rows=chunk_rows)
        if saved is None or (saved.lowered is self.lowered and saved.buckets == buckets):
            self._stores = {at: saved.stores[at].copy() if saved else MemoryStore() for at in places}
        else:
            self._stores = {at: MemoryStore() for at in places}
            self._take_over(saved, fill)
        self._refuse_final()
        self._saved = self._snapshot() if saved is not None else None  # until anything happens
        opened = {at: self._host.bucket(at, store) for at, store in self._stores.items()}
        self._processors = {at: processor for at, (processor, _) in opened.items() if processor is not None}
        self._back = {at: back for at, (_, back) in opened.items()}  # what is taken back of an end

    def _refuse_final(self) -> None:
        """What an end has released cannot be taken back under FINAL."""
        gone: Outputs = {name: [] for name in self._finishes}
        for store in self._stores.values():
            for one in read_released(store.get_page(RELEASED)) if RELEASED in store.pages else ():
                if not one.emit.early:
                    self._give(self._finishes[one.query], one.changes, gone)
        for name, changes in gone.items():
            if changes:
                refuse_final(name, len(changes), [c.row for c in changes])

    def _take_over(self, saved: _Saved, fill: Fill) -> None:
        """Go on with what another script left."""
        was = replace(program_of(saved.lowered), buckets=saved.buckets)
        filled = stages_of(self.lowered, fill.queries)
        comparison = compare(was, replace(program_of(self.lowered), buckets=self.buckets), filled)
        comparison.refuse()
        stages, stores = saved.lowered.stages, {at: store.copy() for at, store in saved.stores.items()}
        if filled:
            part = part_of(self.lowered, filled)
            again = LocalEngine(part.script, self.buckets, _Saved(defaultdict(MemoryStore), {}, part, self.buckets))
            for batch in fill.batches:
                again.push(batch)
            again.save()
            stores |= {(len(stages) + s, b): store for (s, b), store in again._stores.items()}
            stages = (*stages, *part.stages)
        before = Before(stages, stores, comparison)
        for at, store in self._stores.items():
            self._host.hand_over(at, store, before)

    def _all(self, stage: int) -> range:
        return range(self.lowered.stages[stage].buckets(self.buckets))

    def push(self, batch: Batch) -> Outputs:
        out: Outputs = {name: [] for name in self._finishes}
        cells: Cells = {at: [(write_head(ControlHead(batch.now)), b"")] for at in self._stores}
        for stream in self.lowered.streams:
            self._pack(stream, batch, cells, out)
        return self._run(cells, out)

    def finish(self, now: int) -> Outputs:
        """The end of all input. What is saved after it can be gone on with, if there is more."""
        cells: Cells = {at: [(write_head(ControlHead(now, ended=True)), b"")] for at in self._stores}
        out = self._run(cells, {name: [] for name in self._finishes}, ended=True)
        self._saved = self._snapshot()
        return out

    def _run(self, cells: Cells, out: Outputs, *, ended: bool = False) -> Outputs:
        """All buckets, level by level."""
        self._saved, sinks = None, {name: f.query.emit for name, f in self._finishes.items()}
        for at, processor in self._processors.items():
            (s, b), store = at, self._stores[at]
            give = self._host.end(at, processor, store, cells[at], sinks) if ended else self._deliver(processor, cells[at])
            for query, changes in [*self._back.pop(at, ()), *give[1].changes]:
                if query in self._finishes:
                    self._give(self._finishes[query], changes, out)
                elif query in self._feeds:
                    self._feed(query, changes, cells)
            for name in set(self.lowered.stages[s].queries) if b == 0 else ():
                for reader, source in self._readers(name):
                    for bucket in self._all(reader):
                        cells[reader, bucket].append((write_head(FollowHead(source, processor.standing(name))), b""))
        return self._ordered(out)

    def _deliver(self, processor: TaskProcessor, cells: list[Cell]) -> tuple[Header, Result]:
        """Bring a batch to a bucket."""
        return deliver(processor, cells)

    def _feed(self, name: str, changes: Changes, cells: Cells) -> None:
        """Bring results to the stages that read them."""
        for s, source in self._readers(name):
            stage = self.lowered.stages[s]
            exprs = [i.exprs[source] for i in stage.inputs]
            inputs = _typed(stage, evaluate_batch(exprs, self._feeds[name].columns, changes.rows), len(changes))
            bodies = write_feed(stage, Changes(changes.sign, changes.keys, inputs), len(self._all(s)))
            for b, body in enumerate(bodies):
                if len(body):
                    cells[s, b].append((write_head(FeedHead(source)), bytes(body)))

    def _readers(self, feed: str) -> list[tuple[int, int]]:
        stages = self.lowered.stages
        return [(s, i) for s, stage in enumerate(stages) for i, source in enumerate(stage.sources) if source.name == feed]

    def save(self) -> object:
        if self._saved is not None:
            return self._saved
        for at, processor in self._processors.items():
            self._host.save(at, processor, self._stores[at])
        return self._snapshot()

    def _snapshot(self) -> _Saved:
        return _Saved({at: store.copy() for at, store in self._stores.items()}, dict(self._positions), self.lowered, self.buckets)

    def state_size(self) -> int:
        """Bytes of state."""
        self.save()
        return sum(store.size for store in self._stores.values())

    def _pack(self, stream: Stream, batch: Batch, cells: Cells, out: Outputs) -> None:
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
                shape, bodies = write_cells(stage, inputs, same, events, behind, len(self._all(s)))
                head = write_head(RowsHead(source, batch.now, tuple(segments), shape))
                for b, body in enumerate(bodies):
                    cells[s, b].append((head, bytes(body)))

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


def _typed(stage: Stage[StepProgram], inputs: pa.RecordBatch, rows: int) -> pa.RecordBatch:
    """Inputs in the types that the stage has for them."""
    kinds = [arrow_type(i.type) for i in stage.inputs]
    return batch_of([c if c.type == k else c.cast(k) for c, k in zip(inputs.columns, kinds, strict=True)], rows)


_recent: deque[tuple[Script, Lowered]] = deque(maxlen=16)


def _lowered(script: Script) -> Lowered:
    """The same script is run with other buckets, and after restarts; finding an equal one takes longer than most batches."""
    for known, lowered in _recent:
        if known is script:
            return lowered
    _recent.append((script, lower(script)))
    return _recent[-1][1]


def local_engine(script: Script, buckets: int, saved: object | None) -> LocalEngine:
    """An `EngineFactory` for the conformance suite."""
    return LocalEngine(script, buckets, saved)
