"""The task processors inside Spark's stateful operator: one call per bucket and batch, state in Spark's state store only."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headrace.changes.changes import Changes, read_changes
from headrace.changes.keys import Keys, to_arrow
from headrace.errors import StateError
from headrace.evolution.filling import MOST_TOLD, reaches
from headrace.exchange.ended import nothing_more, parted
from headrace.exchange.heads import NumbersHead, RejectedHead, ResultHead, read_head
from headrace.exchange.host import Before, Cells, Host, Memory, collect, deliver
from headrace.plan.time import START_OF_TIME
from headrace.spark.exchange.levels import Columns, in_type, length_of, wide_frame
from headrace.spark.exchange.slots import METRICS_ROW
from headrace.spark.progress import METRICS
from headrace.spark.sources.rejects import REJECTED
from headrace.spark.workers.worker import settle
from headrace.state.chunk import Chunk

if TYPE_CHECKING:
    import pandas as pd

    from headrace.exchange.heads import Cell
    from headrace.exchange.host import At
    from headrace.program.stage import AnyStage
    from headrace.runtime.clock import Header
    from headrace.runtime.processor import Result, TaskProcessor
    from headrace.spark.exchange.levels import LevelProgram


@lru_cache(maxsize=1)
def memory() -> Memory:
    """What this worker process has loaded."""
    sizes = (int(os.environ.get(f"HEADRACE_CACHE_{what}", "256")) for what in ("CHUNKS", "BUCKETS"))
    return Memory(*sizes)


class SparkStore:
    """The cells of the bucket that is being processed, in Spark's state store: version, head, pages and chunks in one map."""

    def __init__(self, cells: Any) -> None:
        """Over a map state, which follows the current key by itself."""
        self.cells = cells

    def read(self, name: str) -> bytes | None:
        row = self.cells.getValue((name,))
        return None if row is None else bytes(row[0])

    def has(self, name: str) -> bool:
        """Whether a cell is there. To read one that is not costs a line in Spark's log."""
        return bool(self.cells.containsKey((name,)))

    def write(self, name: str, data: bytes) -> None:
        self.cells.updateValue((name,), (data,))

    def version(self, *, sure: bool) -> bytes | None:
        return self.read("version") if sure or self.has("version") else None

    def head(self) -> bytes:
        head = self.read("head")
        assert head is not None, "a version is stored with its head"
        return head

    def put_head(self, head: bytes, version: bytes) -> None:
        self.write("head", head)
        self.write("version", version)

    def get(self, chunk: int) -> Chunk | None:
        data = self.read(f"chunk {chunk}")
        return None if data is None else Chunk.read(data, f"chunk {chunk}")

    def put(self, chunk: int, rows: Chunk) -> None:
        self.write(f"chunk {chunk}", rows.write())

    def delete(self, chunk: int) -> None:
        self.cells.removeKey((f"chunk {chunk}",))

    def get_page(self, name: str) -> bytes:
        data = self.read(f"page {name}")
        if data is None:
            raise StateError(f"page {name} of a bucket is gone", hint="the checkpoint is damaged")
        return data

    def put_page(self, name: str, data: bytes) -> None:
        self.write(f"page {name}", data)

    def drop_page(self, name: str) -> None:
        self.cells.removeKey((f"page {name}",))


@lru_cache(maxsize=32)
def buckets_of(run: str, program: bytes) -> Buckets:
    """The program of a run, loaded once per worker."""
    return Buckets(run, pickle.loads(program))


class Buckets:
    """The buckets of one query that this worker is given, one after the other."""

    def __init__(self, run: str, program: LevelProgram) -> None:
        """`run` tells the queries of a session apart."""
        self.slots, self.rejected_label = program.slots, program.rejected_label
        self.types, self.queries = program.slots.types, {name: i for i, name in enumerate(program.slots.queries)}
        self.buckets, self.onward, self.passing = program.buckets, program.onward, program.passing
        first = {at: program.tables[label] for label, at in self.buckets.items() if label in program.tables}
        self.before, self.ends = program.before, program.ends
        goes_on = self.ends is not None and self.ends.goes_on
        self.host = Host(program.stages, memory(), run, first, goes_on=goes_on)
        self.counting, self.reaches = _counting(program.stages), reaches(program.stages)

    def process(self, label: int, rows: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        cells = [(str(h), bytes(b)) for frame in rows for h, b in zip(frame["head"], frame["body"], strict=True)]
        if label not in self.buckets:
            yield from self._elsewhere(label, cells)
            return
        at, store = self.buckets[label], SparkStore(state)
        if self.before is not None:
            givers = {of: Cells(found) for of, found in collect(cells).items()}
            self.host.hand_over(at, store, Before(self.before[0], givers, self.before[1]))
            return
        processor, back = self.host.bucket(at, store)
        if processor is None:
            nothing_more(cells)
            return
        hits, misses = processor.cache.hits, processor.cache.misses
        cells, of_the_end = parted(cells) if self.ends is not None else (cells, [])
        parts, counted = self._given(at, processor, back) if back else [], Counter[str]()
        if cells:
            header, result = deliver(processor, cells)
            counted.update(self._counted(at, header, result))
            parts += self._given(at, processor, result.changes)
        if of_the_end:
            assert self.ends is not None
            header, result = self.host.end(at, processor, store, of_the_end, self.ends.sinks)
            counted.update(self._counted(at, header, result))
            parts += self._given(at, processor, result.changes, ended=True)
        else:
            self._save(at, processor, store)
        numbers = {**counted, **self._numbers(at, processor)}
        numbers |= {"cache_hits": processor.cache.hits - hits, "cache_misses": processor.cache.misses - misses}
        if self.onward is None:
            yield from self._frames([*parts, self._metrics(numbers)])
        else:
            yield wide_frame([*parts, self.onward.count(at[1], numbers)], self.onward.types)
        settle()

    def _given(
        self, at: At, processor: TaskProcessor, results: Sequence[tuple[str, Changes]], *, ended: bool = False
    ) -> list[Columns]:
        """What leaves a bucket: to the sinks, or to later levels."""
        if self.onward is None:
            return [self._wide(self.queries[query], changes) for query, changes in results]
        return self.onward.send(processor, at[1], results, ended=ended)

    def _save(self, at: At, processor: TaskProcessor, store: SparkStore) -> None:
        self.host.save(at, processor, store)

    def _elsewhere(self, label: int, cells: list[Cell]) -> Iterator[pd.DataFrame]:
        if self.onward is not None:
            yield wide_frame([self.onward.relay(label, cells)], self.onward.types)
        elif label == self.rejected_label or label in self.passing:
            yield from self._frames([part for head, body in cells for part in self._passed(head, body)])

    def _passed(self, line: str, body: bytes) -> Iterator[Columns]:
        match read_head(line):
            case ResultHead(query=query):
                yield self._wide(self.queries[query], read_changes(body))
            case NumbersHead(numbers=numbers):
                yield self._metrics(numbers)
            case RejectedHead(rows=rows, punctuation=punctuation) if not body:
                yield self._metrics({"rows": rows, "punctuation": punctuation})
            case RejectedHead(stream=of, told=told):
                batch = pa.ipc.read_record_batch(pa.py_buffer(body), REJECTED)
                zeros = np.zeros(batch.num_rows, np.int64)
                changes = Changes.of(1, Keys(zeros, zeros, zeros), batch)
                yield from (self._wide(query, changes) for query, stream in self.slots.rejected if stream == of)
                yield self._metrics({"rejected": batch.num_rows if told else 0})

    def _wide(self, query: int, changes: Changes) -> Columns:
        columns: Columns = [None] * len(self.types)
        signs = pa.array(changes.sign.astype(np.int8, copy=False))
        queries = pa.array(np.full(len(changes), query, np.int32))
        columns[:2] = [queries, signs]
        if self.slots.ordered:
            columns[3:7] = to_arrow(changes.keys)
        for place, column in zip(self.slots.places[query], changes.rows.columns, strict=True):
            at = self.slots.lead + place
            columns[at] = in_type(column, self.types[at])
        return columns

    def _counted(self, at: At, header: Header, result: Result) -> dict[str, int]:
        """What a pass has counted, by name."""
        stage, _ = at
        late = sum(result.late_of.get(source, 0) for source in self.counting.get(stage, ()))
        missed = result.missed if self.host.stages[stage].program.queries else 0  # `late(s)` says again what a pattern has missed
        return {"late": late, "rows": header.rows, "punctuation": header.punctuation, "missed": missed}

    def _numbers(self, at: At, processor: TaskProcessor) -> dict[str, int]:
        """How a bucket stands, for progress."""
        (stage, bucket), clock = at, processor.clock
        numbers = processor.step.numbers()
        if bucket != 0:
            return numbers
        fills = processor.since > START_OF_TIME and clock.frontier < processor.since + self.reaches[stage]
        numbers["filling"] = 1 << stage if fills and stage < MOST_TOLD else 0
        return numbers | {"frontier": clock.frontier, "newest": clock.latest}

    def _metrics(self, numbers: dict[str, int]) -> Columns:
        """Numbers as rows that no query sees: how much in `number`, of what in `sign`."""
        chosen = [(METRICS.index(name), value) for name, value in numbers.items() if value]
        columns: Columns = [None] * len(self.types)
        columns[0] = pa.array(np.full(len(chosen), METRICS_ROW, np.int32))
        columns[1] = pa.array([kind for kind, _ in chosen], pa.int8())
        columns[2] = pa.array([value for _, value in chosen], pa.int64())
        return columns

    def _frames(self, parts: list[Columns]) -> Iterator[pd.DataFrame]:
        """All rows of a bucket as one frame: turning frames back into Arrow costs Spark a millisecond each."""
        if filled := [part for part in parts if length_of(part)]:
            yield wide_frame(filled, self.types)


def _counting(stages: tuple[AnyStage, ...]) -> dict[int, set[int]]:
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
