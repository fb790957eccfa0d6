"""From one level of stages to the next: results that other stages read, and everything that only passes by.

A stateful frame must not be read twice, so what leaves a level is one stream of rows of two kinds. Cells go on as they are, to
the bucket on their label: inputs of later stages, results that sinks wait for, and how far a stage is. Results that a stage of
the next level reads are plain rows, because Catalyst computes its inputs from them; then they are packed like those of a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.exchange.heads import FeedHead, FollowHead, NumbersHead, ResultHead, write_head
from headrace.plan.arrow import arrow_type
from headrace.plan.schema import Schema
from headrace.program.stage import AnyStage
from headrace.spark.exchange.slots import Slots
from headrace.spark.types import physical

if TYPE_CHECKING:  # the driver imports this file too, and none of these
    import pandas as pd

    from headrace.changes.changes import Changes
    from headrace.evolution.compare import Comparison
    from headrace.exchange.heads import Cell
    from headrace.plan.query import Emit
    from headrace.runtime.processor import TaskProcessor

Columns = list[pa.Array | None]  # of a wide row; None where a row has no such column
LEAD = "label INT, head STRING, body BINARY, f INT, sign TINYINT, ts BIGINT, high BIGINT, low BIGINT, sub BINARY, ended BOOLEAN"
_LEAD_ARROW = [pa.int32(), pa.string(), pa.binary(), pa.int32(), pa.int8(), *[pa.int64()] * 3, pa.binary(), pa.bool_()]
CELL = pa.schema([("label", pa.int32()), ("head", pa.string()), ("body", pa.binary())])


@dataclass(frozen=True, slots=True)
class Feed:
    """Results of a stage of this level that later ones read."""

    query: str
    columns: Schema
    readers: tuple[tuple[int, tuple[int, ...]], ...]  # (source, labels) of every stage that reads them


@dataclass(frozen=True, slots=True)
class NextLevel:
    """What leaves a level that is not the last."""

    feeds: tuple[Feed, ...]
    passing: tuple[int, ...]  # labels for what only sinks read

    @property
    def ddl(self) -> str:
        wide = [f"f{i}c{j} {physical(f.type)}" for i, feed in enumerate(self.feeds) for j, f in enumerate(feed.columns.fields)]
        return ", ".join([LEAD, *wide])

    @property
    def types(self) -> list[pa.DataType]:
        return _LEAD_ARROW + [arrow_type(physical(f.type)) for feed in self.feeds for f in feed.columns.fields]

    def send(
        self, processor: TaskProcessor, bucket: int, results: Sequence[tuple[str, Changes]], *, ended: bool = False
    ) -> list[Columns]:
        """All that a bucket has for later levels and for the sinks; `ended`: because the input has ended."""
        from headrace.changes.changes import write_changes

        names = [feed.query for feed in self.feeds]
        own = set(processor.stage.queries)
        parts = [self._fed(names.index(query), changes, ended) for query, changes in results if query in names]
        cells: list[Cell] = [(write_head(ResultHead(q)), write_changes(c)) for q, c in results if q not in names]
        parts += [self.relay(self._passing(bucket), cells)] if cells else []
        for feed in self.feeds if bucket == 0 else ():
            for source, labels in feed.readers if feed.query in own else ():
                head = write_head(FollowHead(source, processor.standing(feed.query), ended))
                parts += [self.relay(label, [(head, b"")]) for label in labels]
        return parts

    def count(self, bucket: int, numbers: dict[str, int]) -> Columns:
        """Numbers for progress."""
        return self.relay(self._passing(bucket), [(write_head(NumbersHead(numbers)), b"")])

    def _passing(self, bucket: int) -> int:
        return self.passing[bucket % len(self.passing)]

    def relay(self, label: int, cells: list[Cell]) -> Columns:
        """Cells that go on as they are."""
        heads, bodies = [h for h, _ in cells], [b for _, b in cells]
        lead = [pa.array(np.full(len(cells), label, np.int32)), pa.array(heads, pa.string()), pa.array(bodies, pa.binary())]
        return [*lead, *[None] * (len(self.types) - 3)]

    def _fed(self, number: int, changes: Changes, ended: bool) -> Columns:
        from headrace.changes.keys import to_arrow

        columns: Columns = [None] * len(self.types)
        columns[3] = pa.array(np.full(len(changes), number, np.int32))
        columns[4] = pa.array(changes.sign.astype(np.int8, copy=False))
        columns[5:9] = to_arrow(changes.keys)
        columns[9] = pa.array(np.full(len(changes), ended))
        start = len(_LEAD_ARROW) + sum(len(f.columns.fields) for f in self.feeds[:number])
        end = start + len(changes.rows.columns)
        columns[start:end] = map(in_type, changes.rows.columns, self.types[start:end])
        return columns


@dataclass(frozen=True, slots=True)
class Ends:
    """Of a run whose end may not be the last word: the queries that sinks wait for, and whether an earlier end is taken back."""

    sinks: dict[str, Emit]
    goes_on: bool


@dataclass(frozen=True, slots=True)
class LevelProgram:
    """What a worker must know to process the buckets of one level of a query. Travels from the driver, which runs none of it."""

    stages: tuple[AnyStage, ...]
    buckets: dict[int, tuple[int, int]]  # label -> (stage, bucket), of the stages of this level
    slots: Slots
    rejected_label: int
    onward: NextLevel | None = None  # None: this is the last level
    passing: tuple[int, ...] = ()  # labels of results that earlier levels have for the sinks
    tables: dict[int, list[tuple[str, bytes]]] = field(default_factory=dict)  # label -> what is there before the first batch
    before: tuple[tuple[AnyStage, ...], Comparison] | None = None  # whose state is handed over, instead of rows, and how it fits
    ends: Ends | None = None  # None: nobody will go on when the input has ended


def in_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def wide_frame(parts: list[Columns], types: list[pa.DataType]) -> pd.DataFrame:
    """Rows as a pandas frame that Spark turns back into the same Arrow columns without looking at the values."""
    import pandas as pd

    columns = []
    for i, kind in enumerate(types):
        pieces = [pa.nulls(length_of(part), kind) if part[i] is None else part[i] for part in parts]
        columns.append(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces))
    return pd.DataFrame({i: _series(column) for i, column in enumerate(columns)}, copy=False)


def length_of(part: Columns) -> int:
    return next(len(column) for column in part if column is not None)


def _series(column: pa.Array) -> pd.Series:
    import pandas as pd

    if pa.types.is_nested(column.type):  # Spark does look into these, and wants Python's own lists and dicts
        return pd.Series(column.to_pylist(maps_as_pydicts="strict"), dtype=object)
    return pd.Series(pd.arrays.ArrowExtensionArray(column))


@dataclass(frozen=True, slots=True)
class FeedPart:
    """One stage that reads a feed: which source of it, the program, its labels, and the columns that are its inputs."""

    feed: int
    source: int
    stage: AnyStage
    labels: tuple[int, ...]
    names: tuple[str, ...]


def inputs_of(stage: AnyStage, names: tuple[str, ...], batch: pa.RecordBatch) -> pa.RecordBatch:
    """The inputs of a stage, which are columns of these names, in their types."""
    from headrace.exchange.cells import batch_of

    columns = [in_type(batch.column(name), arrow_type(spec.type)) for name, spec in zip(names, stage.inputs, strict=True)]
    return batch_of(columns, batch.num_rows)


def pack_feeds(parts: tuple[FeedPart, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of feeds into cells for their readers; cells stay as they are."""
    for batch in batches:
        fed = batch.column("f")
        numbers = fed.to_numpy(zero_copy_only=False)
        cell = np.flatnonzero(fed.is_null().to_numpy(zero_copy_only=False))
        if len(cell):
            yield batch.select(["label", "head", "body"]).take(pa.array(cell)).cast(CELL)
        ended = batch.column("ended").fill_null(False).to_numpy(zero_copy_only=False)
        for part in parts:
            for which in (False, True):
                chosen = np.flatnonzero((numbers == part.feed) & (ended == which))
                if len(chosen):
                    yield _cells(part, batch.take(pa.array(chosen)), which)


def _cells(part: FeedPart, batch: pa.RecordBatch, ended: bool) -> pa.RecordBatch:
    from headrace.changes.changes import Changes
    from headrace.changes.keys import from_arrow
    from headrace.exchange.cells import write_feed

    keys = from_arrow([batch.column(name) for name in ("ts", "high", "low", "sub")])
    changes = Changes(batch.column("sign").to_numpy(zero_copy_only=False), keys, inputs_of(part.stage, part.names, batch))
    bodies = write_feed(part.stage, changes, len(part.labels))
    filled = [(label, body) for label, body in zip(part.labels, bodies, strict=True) if len(body)]
    head = write_head(FeedHead(part.source, ended))
    return pa.RecordBatch.from_pylist([{"label": label, "head": head, "body": bytes(body)} for label, body in filled], CELL)
