"""The task processors inside Spark's stateful operator: one call per bucket and batch, state in Spark's state store only."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from headrace.changes.changes import Changes
from headrace.plan.arrow import arrow_type
from headrace.plan.schema import Schema
from headrace.runtime.clock import Header, Segment
from headrace.runtime.processor import Arrivals, Result, TaskProcessor
from headrace.runtime.reservoir import ChunkCache
from headrace.runtime.save import load, save
from headrace.spark.pack import REJECTED, unpack
from headrace.spark.types import physical
from headrace.stages.program import Stage

METRICS_ROW = -1
FIXED = "q INT, sign TINYINT, ts BIGINT, high BIGINT, low BIGINT"
_FIXED_ARROW = [pa.int32(), pa.int8(), pa.int64(), pa.int64(), pa.int64()]


@dataclass(frozen=True, slots=True)
class Slots:
    """Where the columns of every query lie in the one wide row that leaves the operator."""

    queries: tuple[str, ...]
    columns: tuple[Schema, ...]  # per query
    rejected: tuple[tuple[int, str], ...]  # queries that read the rejected rows of a stream

    @property
    def ddl(self) -> str:
        """The schema of the wide row."""
        wide = [f"q{q}c{i} {physical(f.type)}" for q, s in enumerate(self.columns) for i, f in enumerate(s.fields)]
        return ", ".join([FIXED, *wide])

    @property
    def types(self) -> list[pa.DataType]:
        """The Arrow types of the wide row."""
        return _FIXED_ARROW + [arrow_type(physical(f.type)) for s in self.columns for f in s.fields]

    def offset(self, query: int) -> int:
        """Where the columns of a query begin."""
        return len(_FIXED_ARROW) + sum(len(s.fields) for s in self.columns[:query])


class Kept:
    """Processors that this worker has already loaded, by bucket; good only for the very version they were saved as."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.chunks = ChunkCache(int(os.environ.get("HEADRACE_CACHE_CHUNKS", "256")))
        self.most = int(os.environ.get("HEADRACE_CACHE_BUCKETS", "256"))
        self._kept: OrderedDict[tuple[str, int], tuple[bytes, TaskProcessor]] = OrderedDict()

    def find(self, run: str, label: int, version: bytes) -> TaskProcessor | None:
        """The processor of a bucket, if it stands exactly where the stored state stands."""
        found = self._kept.pop((run, label), None)
        return found[1] if found is not None and found[0] == version else None

    def keep(self, run: str, label: int, version: bytes, processor: TaskProcessor) -> None:
        """Remember a processor that was just saved under this version."""
        self._kept[run, label] = (version, processor)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)


KEPT: Kept | None = None  # one per Python worker process


def kept() -> Kept:
    """What this worker process has loaded."""
    global KEPT
    if KEPT is None:
        KEPT = Kept()
    return KEPT


class SparkStore:
    """Chunks and pages of the bucket that is being processed, in Spark's state store."""

    def __init__(self, pages: Any, chunks: Any) -> None:
        """Over two map states, which follow the current key by themselves."""
        self.pages, self.chunks = pages, chunks

    def get(self, chunk: int) -> bytes | None:
        """A chunk."""
        row = self.chunks.getValue((chunk,))
        return None if row is None else bytes(row[0])

    def put(self, chunk: int, data: bytes) -> None:
        """Keep a chunk."""
        self.chunks.updateValue((chunk,), (data,))

    def delete(self, chunk: int) -> None:
        """Let a chunk go."""
        self.chunks.removeKey((chunk,))

    def get_page(self, name: str) -> bytes:
        """A page."""
        return bytes(self.pages.getValue((name,))[0])

    def put_page(self, name: str, data: bytes) -> None:
        """Keep a page."""
        self.pages.updateValue((name,), (data,))


class BucketProcessor(StatefulProcessor):
    """What Spark calls for every (stage, bucket)."""

    def __init__(
        self, stages: tuple[Stage, ...], buckets: dict[int, tuple[int, int]], slots: Slots, rejected_label: int, run: str
    ) -> None:
        """`buckets`: label -> (stage, bucket)."""
        self.stages, self.buckets, self.slots, self.rejected_label, self.run = stages, buckets, slots, rejected_label, run

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.version = handle.getValueState("version", "v BINARY")
        self.head = handle.getValueState("head", "v BINARY")
        self.store = SparkStore(
            handle.getMapState("pages", "name STRING", "v BINARY"), handle.getMapState("chunks", "id BIGINT", "v BINARY")
        )

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        """One bucket, one batch."""
        label = int(key[0])
        cells = [(str(h), bytes(b)) for frame in rows for h, b in zip(frame["head"], frame["body"], strict=True)]
        if label == self.rejected_label:
            yield from self._rejected(cells)
            return
        number, bucket = self.buckets[label]
        stage = self.stages[number]
        header, arrivals = gather(stage, cells)
        processor = self._processor(stage, label)
        hits, misses = processor.cache.hits, processor.cache.misses
        result = processor.process(header, arrivals)
        self._save(label, processor)
        for query, changes in result.changes:
            yield self._wide(self.slots.queries.index(query), changes)
        counted = [result.late if number == 0 else 0, result.admitted if number == 0 else 0]
        yield self._metrics(processor, bucket, result, counted, processor.cache.hits - hits, processor.cache.misses - misses)

    def _processor(self, stage: Stage, label: int) -> TaskProcessor:
        version = self.version.get() if self.version.exists() else None
        if version is not None:
            found = kept().find(self.run, label, bytes(version[0]))
            if found is not None:
                found.reservoir.store = self.store
                return found
        processor = TaskProcessor(stage, self.store, kept().chunks, (self.run, label))
        if version is not None:
            head = self.head.get()
            assert head is not None, "a version is stored with its head"
            load(processor, bytes(head[0]), self.store)
        return processor

    def _save(self, label: int, processor: TaskProcessor) -> None:
        version = os.urandom(12)
        self.head.update((save(processor, self.store),))
        self.version.update((version,))
        kept().keep(self.run, label, version, processor)

    def _wide(self, query: int, changes: Changes) -> pd.DataFrame:
        n = len(changes)
        columns: list[pa.Array | None] = [None] * len(self.slots.types)
        columns[:5] = [
            pa.array(np.full(n, query, np.int32)), pa.array(changes.sign), pa.array(changes.ts), pa.array(changes.high),
            pa.array(changes.low),
        ]  # fmt: skip
        start = self.slots.offset(query)
        for i, column in enumerate(changes.rows.columns):
            kind = self.slots.types[start + i]
            columns[start + i] = column if column.type == kind else _to_physical(column, kind)
        return wide_frame(columns, self.slots.types, n)

    def _metrics(
        self, processor: TaskProcessor, bucket: int, result: Result, counted: list[int], hits: int, misses: int
    ) -> pd.DataFrame:
        """One row of numbers per bucket, for progress: kind 0 late, 1 admitted, 2 frontier, 3 cache hits, 4 misses."""
        del result
        clock = processor.clock
        newest = max(clock.highest.values(), default=None)
        numbers = [*counted, clock.frontier if bucket == 0 else None, hits, misses, None, newest if bucket == 0 else None]
        chosen = [(i, v) for i, v in enumerate(numbers) if v]
        columns: list[pa.Array | None] = [None] * len(self.slots.types)
        n = len(chosen)
        columns[0] = pa.array(np.full(n, METRICS_ROW, np.int32))
        columns[2] = pa.array([v for _, v in chosen], pa.int64())
        columns[3] = pa.array([i for i, _ in chosen], pa.int64())
        return wide_frame(columns, self.slots.types, n)

    def _rejected(self, cells: list[tuple[str, bytes]]) -> Iterator[pd.DataFrame]:
        for head, body in cells:
            about = json.loads(head)
            batch = pa.ipc.read_record_batch(pa.py_buffer(body), REJECTED)
            n = batch.num_rows
            zeros = np.zeros(n, np.int64)
            for query, stream in self.slots.rejected:
                if stream == about["stream"]:
                    yield self._wide(query, Changes(np.ones(n, np.int8), zeros, zeros, zeros, batch))
            columns: list[pa.Array | None] = [None] * len(self.slots.types)
            columns[0], columns[2], columns[3] = pa.array([METRICS_ROW], pa.int32()), pa.array([n]), pa.array([5])
            yield wide_frame(columns, self.slots.types, 1)

    def close(self) -> None:
        """Nothing is held open."""


def _to_physical(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        return column.cast(kind)
    return column.cast(kind)


def wide_frame(columns: list[pa.Array | None], types: list[pa.DataType], rows: int) -> pd.DataFrame:
    """Arrow columns as a pandas frame that Spark turns back into the same Arrow columns without looking at the values."""
    data = {
        i: pd.Series(pd.arrays.ArrowExtensionArray(pa.nulls(rows, kind) if column is None else column))
        for i, (column, kind) in enumerate(zip(columns, types, strict=True))
    }
    return pd.DataFrame(data, copy=False)


def gather(stage: Stage, cells: list[tuple[str, bytes]]) -> tuple[Header, Arrivals | None]:
    """All that a batch has for a bucket: one header, one run of rows."""
    segments: list[Segment] = []
    now, ended = 0, False
    parts: list[Arrivals] = []
    for head, body in cells:
        about = json.loads(head)
        now = max(now, about.get("now", 0))
        ended = ended or about.get("ended", False)
        if body:
            parts.append(unpack(stage, body, len(segments)))
        segments += [Segment(p, (high, low), highest, rows) for p, high, low, highest, rows in about.get("segments", ())]
    return Header(now, tuple(segments), ended), join_arrivals(parts)


def join_arrivals(parts: list[Arrivals]) -> Arrivals | None:
    """Runs of rows as one."""
    if len(parts) < 2:
        return parts[0] if parts else None
    table = pa.Table.from_batches([p.inputs for p in parts]).combine_chunks()
    total = sum(len(p) for p in parts)
    inputs = (
        table.to_batches()[0] if table.num_columns else pa.RecordBatch.from_struct_array(pa.array([{}] * total, pa.struct([])))
    )
    return Arrivals(
        np.concatenate([p.ts for p in parts]),
        np.concatenate([p.high for p in parts]),
        np.concatenate([p.low for p in parts]),
        np.concatenate([p.segment for p in parts]),
        np.concatenate([p.behind for p in parts]),
        inputs,
    )
