"""From one level of stages to the next: results that other stages read, and everything that only passes by.

A stateful frame must not be read twice, so what leaves a level is one stream of rows of two kinds. Cells go on as they are, to
the bucket on their label: inputs of later stages, results that sinks wait for, and how far a stage is. Results that a stage of
the next level reads are plain rows, because Catalyst computes its inputs from them; then they are packed like those of a source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.exchange.heads import FeedHead, FollowHead, NumbersHead, ResultHead, write_head
from headrace.plan.arrow import arrow_type
from headrace.plan.schema import Schema
from headrace.program.stage import Stage
from headrace.spark.types import physical

if TYPE_CHECKING:  # the driver imports this file too, and none of these
    import pandas as pd

    from headrace.changes.changes import Changes
    from headrace.exchange.heads import Cell
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
        """The schema of the rows between two levels."""
        wide = [f"f{i}c{j} {physical(f.type)}" for i, feed in enumerate(self.feeds) for j, f in enumerate(feed.columns.fields)]
        return ", ".join([LEAD, *wide])

    @property
    def types(self) -> list[pa.DataType]:
        """The Arrow types of those rows."""
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
        for i, column in enumerate(changes.rows.columns):
            kind = self.types[start + i]
            columns[start + i] = column if column.type == kind else column.cast(kind)
        return columns

    def frame(self, parts: list[Columns]) -> pd.DataFrame:
        """All rows of a bucket as one frame."""
        columns = []
        lengths = [next(len(c) for c in part if c is not None) for part in parts]
        for i, kind in enumerate(self.types):
            pieces = [pa.nulls(n, kind) if part[i] is None else part[i] for part, n in zip(parts, lengths, strict=True)]
            columns.append(pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces))
        return wide_frame(columns)


def wide_frame(columns: list[pa.Array]) -> pd.DataFrame:
    """Arrow columns as a pandas frame that Spark turns back into the same Arrow columns without looking at the values."""
    import pandas as pd

    return pd.DataFrame({i: _series(column) for i, column in enumerate(columns)}, copy=False)


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
    stage: Stage
    labels: tuple[int, ...]
    names: tuple[str, ...]


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
    from headrace.exchange.cells import batch_of, write_feed

    inputs = []
    for name, spec in zip(part.names, part.stage.inputs, strict=True):
        column, kind = batch.column(name), arrow_type(spec.type)
        inputs.append(column if column.type == kind else column.cast(kind))
    keys = from_arrow([batch.column(name) for name in ("ts", "high", "low", "sub")])
    changes = Changes(batch.column("sign").to_numpy(zero_copy_only=False), keys, batch_of(inputs, batch.num_rows))
    bodies = write_feed(part.stage, changes, len(part.labels))
    filled = [(label, body) for label, body in zip(part.labels, bodies, strict=True) if len(body)]
    heads = [write_head(FeedHead(part.source, ended))] * len(filled)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([label for label, _ in filled], pa.int32()),
            pa.array(heads, pa.string()),
            pa.array([bytes(body) for _, body in filled], pa.binary()),
        ],
        schema=CELL,
    )
