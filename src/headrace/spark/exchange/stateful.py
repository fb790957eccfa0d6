"""The task processors inside Spark's stateful operator: one call per bucket and batch, state in Spark's state store only."""

from __future__ import annotations

import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from headrace.changes.changes import Changes, read_changes
from headrace.changes.keys import Keys, to_arrow
from headrace.errors import StateError
from headrace.exchange.cells import Shape, feed_segment, join_arrivals, read_cell, read_feed
from headrace.program.stage import Stage
from headrace.runtime.arrivals import Arrivals
from headrace.runtime.clock import Follows, Header, Segment
from headrace.runtime.processor import Result, TaskProcessor
from headrace.runtime.save import load, save
from headrace.spark.exchange.onward import Columns, wide_frame
from headrace.spark.exchange.program import Program
from headrace.spark.exchange.slots import METRICS_ROW
from headrace.spark.sources.rejects import REJECTED
from headrace.spark.workers.worker import settle
from headrace.state.reservoir import ChunkCache
from headrace.steps.step import Standing


class Kept:
    """Processors that this worker has already loaded, by bucket; good only for the very version they were saved as."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.chunks = ChunkCache(int(os.environ.get("HEADRACE_CACHE_CHUNKS", "256")))
        self.most = int(os.environ.get("HEADRACE_CACHE_BUCKETS", "256"))
        self._kept: OrderedDict[tuple[str, int], tuple[bytes, TaskProcessor]] = OrderedDict()

    def has(self, run: str, label: int) -> bool:
        """Whether there is a processor of a bucket, of whichever version."""
        return (run, label) in self._kept

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
    """The cells of the bucket that is being processed, in Spark's state store: version, head, pages and chunks in one map."""

    def __init__(self, cells: Any) -> None:
        """Over a map state, which follows the current key by itself."""
        self.cells = cells

    def read(self, name: str) -> bytes | None:
        """A cell."""
        row = self.cells.getValue((name,))
        return None if row is None else bytes(row[0])

    def has(self, name: str) -> bool:
        """Whether a cell is there. To read one that is not costs a line in Spark's log."""
        return self.cells.containsKey((name,))

    def write(self, name: str, data: bytes) -> None:
        """Keep a cell."""
        self.cells.updateValue((name,), (data,))

    def get(self, chunk: int) -> bytes | None:
        """A chunk."""
        return self.read(f"chunk {chunk}")

    def put(self, chunk: int, data: bytes) -> None:
        """Keep a chunk."""
        self.write(f"chunk {chunk}", data)

    def delete(self, chunk: int) -> None:
        """Let a chunk go."""
        self.cells.removeKey((f"chunk {chunk}",))

    def get_page(self, name: str) -> bytes:
        """A page."""
        data = self.read(f"page {name}")
        if data is None:
            raise StateError(f"page {name} of a bucket is gone", hint="the checkpoint is damaged")
        return data

    def put_page(self, name: str, data: bytes) -> None:
        """Keep a page."""
        self.write(f"page {name}", data)

    def drop_page(self, name: str) -> None:
        """Let a page go."""
        self.cells.removeKey((f"page {name}",))


@lru_cache(maxsize=32)
def buckets_of(run: str, program: bytes) -> Buckets:
    """The program of a run, loaded once per worker."""
    return Buckets(run, pickle.loads(program))


class Buckets:
    """The buckets of one query that this worker is given, one after the other."""

    def __init__(self, run: str, program: Program) -> None:
        """`run` tells the queries of a session apart."""
        self.run, self.slots, self.rejected_label = run, program.slots, program.rejected_label
        self.types, self.numbers = program.slots.types, {name: i for i, name in enumerate(program.slots.queries)}
        self.stages, self.buckets = program.stages, program.buckets
        self.onward, self.passing, self.tables = program.onward, program.passing, program.tables
        self.counting = _counting(program.stages)

    def process(self, label: int, rows: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        """One bucket, one batch."""
        store = SparkStore(state)
        cells = [(str(h), bytes(b)) for frame in rows for h, b in zip(frame["head"], frame["body"], strict=True)]
        if label not in self.buckets:
            yield from self._elsewhere(label, cells)
            return
        number, bucket = self.buckets[label]
        stage = self.stages[number]
        header, arrivals = gather(stage, cells)
        processor = self._processor(stage, label, store)
        hits, misses = processor.cache.hits, processor.cache.misses
        result = processor.process(header, arrivals)
        self._save(label, processor, store)
        numbers = self._numbers(processor, result, self.counting.get(number, set()), first_bucket=bucket == 0)
        numbers[1], numbers[8] = header.rows, header.punctuation
        numbers[3], numbers[4] = processor.cache.hits - hits, processor.cache.misses - misses
        if self.onward is None:
            yield from self._frames([*self._results(result), self._metrics(numbers)])
        else:
            yield self.onward.frame(self.onward.send(processor, bucket, result.changes, numbers))
        settle()

    def _results(self, result: Result) -> list[Columns]:
        return [self._wide(self.numbers[query], changes) for query, changes in result.changes]

    def _elsewhere(self, label: int, cells: list[tuple[str, bytes]]) -> Iterator[pd.DataFrame]:
        """Cells that are for no bucket of this level: on to a later one, or, on the last, to the sinks."""
        if self.onward is not None:
            yield self.onward.frame([self.onward.relay(label, cells)])
        elif label == self.rejected_label:
            yield from self._rejected(cells)
        elif label in self.passing:
            parts = []
            for head, body in cells:
                about = json.loads(head)
                if body:
                    parts.append(self._wide(self.numbers[about["query"]], read_changes(body)))
                parts.append(self._metrics({int(k): v for k, v in about.get("numbers", {}).items()}))
            yield from self._frames(parts)

    def _processor(self, stage: Stage, label: int, store: SparkStore) -> TaskProcessor:
        version = None
        if kept().has(self.run, label) or store.has("version"):
            version = store.read("version")
            found = None if version is None else kept().find(self.run, label, version)
            if found is not None:
                found.attach(store)
                return found
        processor = TaskProcessor(stage, store, kept().chunks, (self.run, label))
        if version is not None:
            head = store.read("head")
            assert head is not None, "a version is stored with its head"
            load(processor, head, store)
        elif label in self.tables:
            processor.process(*gather(stage, self.tables[label]))
        return processor

    def _save(self, label: int, processor: TaskProcessor, store: SparkStore) -> None:
        version = os.urandom(12)
        store.write("head", save(processor, store))
        store.write("version", version)
        kept().keep(self.run, label, version, processor)

    def _wide(self, query: int, changes: Changes) -> Columns:
        columns: Columns = [None] * len(self.types)
        signs = pa.array(changes.sign.astype(np.int8, copy=False))
        queries = pa.array(np.full(len(changes), query, np.int32))
        columns[:2] = [queries, signs]
        if self.slots.ordered:
            columns[3:7] = to_arrow(changes.keys)
        for place, column in zip(self.slots.places[query], changes.rows.columns, strict=True):
            kind = self.types[self.slots.lead + place]
            columns[self.slots.lead + place] = column if column.type == kind else column.cast(kind)
        return columns

    def _numbers(
        self, processor: TaskProcessor, result: Result, counted: set[int], *, first_bucket: bool
    ) -> dict[int, int | None]:
        """Numbers for progress, by their place in `spark.progress.METRICS`; `counted` are sources that count late rows."""
        clock = processor.clock
        numbers: dict[int, int | None] = {0: sum(result.late_of.get(source, 0) for source in counted)}
        numbers[7], numbers[9] = result.missed, processor.step.numbers().get("waiting", 0)
        if first_bucket:
            numbers[2], numbers[6] = clock.frontier, clock.latest
        return numbers

    def _metrics(self, numbers: dict[int, int | None]) -> Columns:
        """Numbers as rows that no query sees: how much in `number`, of what in `sign`."""
        chosen = [(kind, value) for kind, value in numbers.items() if value]
        columns: Columns = [None] * len(self.types)
        columns[0] = pa.array(np.full(len(chosen), METRICS_ROW, np.int32))
        columns[1] = pa.array([kind for kind, _ in chosen], pa.int8())
        columns[2] = pa.array([value for _, value in chosen], pa.int64())
        return columns

    def _rejected(self, cells: list[tuple[str, bytes]]) -> Iterator[pd.DataFrame]:
        for head, body in cells:
            about = json.loads(head)
            if not body:
                yield from self._frames([self._metrics({1: about.get("rows", 0), 8: about.get("punctuation", 0)})])
                continue
            batch = pa.ipc.read_record_batch(pa.py_buffer(body), REJECTED)
            zeros = np.zeros(batch.num_rows, np.int64)
            changes = Changes.of(1, Keys(zeros, zeros, zeros), batch)
            parts = [self._wide(query, changes) for query, stream in self.slots.rejected if stream == about["stream"]]
            yield from self._frames([*parts, self._metrics({5: batch.num_rows if about["counted"] else 0})])

    def _frames(self, parts: list[Columns]) -> Iterator[pd.DataFrame]:
        """All rows of a bucket as one frame: turning frames back into Arrow costs Spark a millisecond each."""
        filled = [part for part in parts if _length(part)]
        if not filled:
            return
        columns = []
        for i, kind in enumerate(self.types):
            pieces = [pa.nulls(_length(part), kind) if part[i] is None else part[i] for part in filled]
            columns.append(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces))
        yield wide_frame(columns)


def _counting(stages: tuple[Stage, ...]) -> dict[int, set[int]]:
    """For stages their sources that count late rows: between them every stream once, where the fewest rows are dropped before.

    `late(s)` may see no rows but those of s.
    """
    seen: set[str] = set()
    out: dict[int, set[int]] = {}
    for number, stage in sorted(enumerate(stages), key=lambda at: bool(at[1].keep)):
        if stage.doors and stage.late:
            continue
        for place, source in enumerate(stage.sources):
            if not source.follows and source.name not in seen:
                seen.add(source.name)
                out.setdefault(number, set()).add(place)
    return out


def _length(part: Columns) -> int:
    assert part[0] is not None, "every row says whose it is"
    return len(part[0])


def gather(stage: Stage, cells: list[tuple[str, bytes]]) -> tuple[Header, Arrivals | None]:
    """All that a batch has for a bucket: one header, one run of rows."""
    segments: list[Segment] = []
    now, ended, punctuation, read = 0, False, 0, 0
    parts: list[Arrivals] = []
    follows: list[Follows] = []
    for head, body in cells:
        about = json.loads(head)
        if "follow" in about:
            source, *standing = about["follow"]
            follows.append(Follows(source, Standing(*standing)))
            continue
        if "feed" in about:
            parts.append(read_feed(stage, about["feed"], body, len(segments)))
            segments.append(feed_segment(about["feed"]))
            continue
        now = max(now, about.get("now", 0))
        ended = ended or about.get("ended", False)
        source = about.get("source", 0)
        punctuation += about.get("punctuation", 0)
        read += about.get("rows", 0)
        given = about.get("segments", ())
        some = [Segment(p, (high, low), highest, rows, source, promised) for p, high, low, highest, rows, promised in given]
        if body:
            parts.append(read_cell(stage, Shape.load(about["shape"]), some, body, len(segments)))
        segments += some
    return Header(now, tuple(segments), ended, tuple(follows), punctuation, read), join_arrivals(parts)
