"""Rows into the exchange: a few large cells, one per stage and bucket, with what every bucket must know beside them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.errors import DataError
from headrace.exchange.heads import Counted, RejectedHead, RowsHead, write_head
from headrace.program.stage import AnyStage, Disorder
from headrace.spark.exchange.levels import CELL, inputs_of
from headrace.spark.sources.prepare import NOW, PROMISE, TIME
from headrace.spark.sources.rejects import REJECTED, Rejects, Words
from headrace.spark.workers.worker import settle

if TYPE_CHECKING:  # the driver imports this file too, and has no use for what packs
    from pyspark.sql import DataFrame

    from headrace.exchange.pack import Placed

EXCHANGE = "label INT, head STRING, body BINARY"
FLUSH_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class StagePart:
    """One source of a stage: its number, the program, and the names of the inputs."""

    number: int
    source: int
    stage: AnyStage
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """What a task needs to know to pack rows of one stream. Travels to the workers as it is."""

    stream: str
    disorder: Disorder
    places: str
    parts: tuple[StagePart, ...]
    labels: tuple[tuple[int, ...], ...]  # per stage, per bucket
    rejected_label: int
    words: Words
    counted: bool = True  # not if the rows of the stream are read a second time, by arrival


def pack_rows(packing: Packing, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    numbering, rejects = Numbering(packing.places), Rejects(packing.stream, packing.words)
    rows = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            rows += batch.num_rows
        if rows >= FLUSH_ROWS:
            yield _flush(packing, numbering, rejects, held)
            held, rows = [], 0
    if held:
        yield _flush(packing, numbering, rejects, held)
    settle()


class Numbering:
    """Finds the place of rows, also of those that have only that of their block, or none but when they came."""

    def __init__(self, kind: str) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        self.kind = kind
        self.task = context.partitionId() if context else 0
        self.batch = int((context.getLocalProperty("streaming.sql.batchId") if context else None) or 0)
        self._last = (0, -1)
        self._next = 0

    def place(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        if self.kind == "arrival":
            start, rows = self._next, batch.num_rows
            self._next += rows
            return np.full(rows, self.batch, np.int64), (self.task << 33) + np.arange(start, self._next, dtype=np.int64)
        high, low = _numbers(batch, "_high"), _numbers(batch, "_low")
        return (high, low + self._in_block(high, low)) if self.kind == "lines" else (high, low)

    def _in_block(self, high: np.ndarray, low: np.ndarray) -> np.ndarray:
        """The number of each row in its block, counting on over the pieces a block comes in."""
        starts = np.flatnonzero(np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1])))
        sizes = np.diff(np.append(starts, len(high)))
        first = np.zeros(len(starts), np.int64)
        if (int(high[0]), int(low[0])) == self._last:
            first[0] = self._next
        number = np.arange(len(high)) - np.repeat(starts, sizes) + np.repeat(first, sizes)
        self._last, self._next = (int(high[-1]), int(low[-1])), int(number[-1]) + 1
        return number


def _flush(packing: Packing, numbering: Numbering, rejects: Rejects, held: list[pa.RecordBatch]) -> pa.RecordBatch:
    table = pa.Table.from_batches(held).combine_chunks()
    batch = table.to_batches()[0]
    why = batch.column("_bad")
    every = high, low = numbering.place(batch)
    now = int(_numbers(batch, NOW)[0]) if NOW in batch.schema.names else 0
    labels: list[int] = []
    heads: list[str] = []
    bodies: list[pa.Buffer | bytes] = []
    counted = Counted(batch.num_rows)
    lost: list[dict[str, object]] = []
    if why.null_count < len(why):
        bad = np.flatnonzero(~why.is_null().to_numpy(zero_copy_only=False))
        good = np.flatnonzero(why.is_null().to_numpy(zero_copy_only=False))
        lost = rejects.rows(why.take(pa.array(bad)).to_pylist(), [f"{high[i]}:{low[i]}" for i in bad.tolist()])
        counted = Counted(batch.num_rows - len(bad) + len(lost), len(lost), _example(lost))
        if lost:
            labels.append(packing.rejected_label)
            heads.append(write_head(RejectedHead(packing.stream, packing.counted), counted))
            bodies.append(pa.RecordBatch.from_pylist(lost, REJECTED).serialize().to_pybytes())
        batch, high, low = batch.take(pa.array(good)), high[good], low[good]
    placed = _placed(packing, numbering, batch, high, low, now, every)
    from headrace.exchange.cells import write_cells
    from headrace.exchange.pack import segments_of

    segments, behind = segments_of(placed, packing.disorder)
    read = len(placed.keys)
    placed, events = placed.events()
    if events is not None:
        batch, behind = batch.take(pa.array(events)), behind[events]
    there = tuple(replace(s, rows=max(s.rows, 1)) for s in segments)
    # Rows are counted before any is dropped, and told once: to the first bucket of the first stage, or with the rejected ones.
    counts = (read + len(lost), read - len(placed.keys)) if packing.counted else (0, 0)
    told = None if heads else counted
    if not packing.parts:
        labels.append(packing.rejected_label)
        heads.append(write_head(RejectedHead(packing.stream, packing.counted, *counts), told))
        bodies.append(b"")
    for part in packing.parts:
        inputs, times = inputs_of(part.stage, part.names, batch), tuple(i for i, name in enumerate(part.names) if name == TIME)
        shape, cells = write_cells(part.stage, inputs, times, placed, behind, len(packing.labels[part.number]))
        labels += packing.labels[part.number]
        head = RowsHead(part.source, now, there, shape)
        first = replace(head, rows=counts[0], punctuation=counts[1])
        heads += [write_head(first, told), *([write_head(head)] * (len(cells) - 1))]
        bodies += cells
        counts, told = (0, 0), None
    return pa.RecordBatch.from_arrays([pa.array(labels, pa.int32()), pa.array(heads, pa.string()), _binary(bodies)], schema=CELL)


def _binary(values: list[pa.Buffer | bytes]) -> pa.Array:
    """Buffers as one column, copied once."""
    ends = np.cumsum([0, *(len(v) for v in values)])
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(values))]
    )


def _numbers(batch: pa.RecordBatch, name: str) -> np.ndarray:
    numbers: np.ndarray = batch.column(name).to_numpy(zero_copy_only=False)
    return numbers


def _placed(
    packing: Packing, numbering: Numbering, batch: pa.RecordBatch, high: np.ndarray, low: np.ndarray, now: int,
    every: tuple[np.ndarray, np.ndarray],
) -> Placed:  # fmt: skip
    """Rows with their segments. Rejected rows are no rows, but a partition they came from is not idle."""
    from headrace.changes.keys import Keys
    from headrace.exchange.pack import Placed

    ts = _numbers(batch, TIME).astype(np.int64, copy=False)
    promise = _numbers(batch, PROMISE).astype(np.int64, copy=False) if PROMISE in batch.schema.names else None
    if packing.places == "given":
        names, every_segment = np.unique(every[0], return_inverse=True)
        firsts = [int(every[1][every_segment == s].min()) for s in range(len(names))]
        segment = names.searchsorted(high).astype(np.int32)
        return Placed(Keys(ts, high, low), segment, names, [(0, f) for f in firsts], now, partitioned=True, promise=promise)
    if len(high) == 0:
        return Placed(
            Keys(ts, high, low), np.zeros(0, np.int32), np.zeros(1, np.int64), [(int(every[0][0]), int(every[1][0]))], now
        )
    file = low >> 48 if numbering.kind != "arrival" else np.zeros(len(low), np.int64)
    # Parts of one file may come out of order, too: where places go back, a new run begins.
    starts = np.flatnonzero(np.append(True, (high[1:] != high[:-1]) | (file[1:] != file[:-1]) | (low[1:] < low[:-1])))
    segment = np.repeat(np.arange(len(starts), dtype=np.int32), np.diff(np.append(starts, len(high))))
    places = [(int(high[s]), int(low[s])) for s in starts]
    return Placed(Keys(ts, high, low), segment, np.zeros(len(starts), np.int64), places, now, promise=promise)


def _example(lost: list[dict[str, object]]) -> str:
    if not lost:
        return ""
    first = lost[0]
    where = "" if first["file"] is None else f"{os.path.basename(str(first['file']))}, line {first['line']}: "
    return f"{where}{first['reason']}"


def read_table(packing: Packing, packed: DataFrame, cells: dict[int, list[tuple[str, bytes]]]) -> None:
    """Add the cells of a table, which is read whole before a query starts, and given to every bucket before its first batch.

    A row that cannot be read is an error: nobody would look for it among what is rejected later.
    """
    for row in packed.collect():
        body = bytes(row["body"])
        if row["label"] == packing.rejected_label:
            batch = pa.ipc.read_record_batch(pa.py_buffer(body), REJECTED)
            message = f"a row of table {packing.stream!r} cannot be read: {batch.column('reason')[0]}"
            raise DataError(message, where=str(batch.column("row")[0]))
        cells.setdefault(row["label"], []).append((row["head"], body))
