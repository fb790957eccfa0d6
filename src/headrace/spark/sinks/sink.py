"""One sink for all queries of a script: staged by tasks, published by batch id, an earlier try of a batch removed first.

It writes to local file systems; `batches.py` writes to all others.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headrace.spark.sinks.formats import FORMATS, shape, write_table
from headrace.spark.sinks.publish import publish, staging
from headrace.spark.storage.lock import require
from headrace.spark.storage.storage import LOCAL


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rows of one query go. `columns` are the names shown, `places` where in the wide row; `op` puts `_op` first."""

    query: int
    path: str
    format: str
    columns: tuple[str, ...]
    places: tuple[int, ...]
    op: bool
    ordered: bool
    name: str = ""  # of the query
    owner: str = ""  # the checkpoint that it belongs to; nobody's if it is only shown
    single: bool = False  # one file, not a directory of them
    compression: str | None = None  # of a single file

    @property
    def grows(self) -> bool:
        """Whether batches are put one behind the other in one file."""
        return self.single and FORMATS[self.format].join is None

    @property
    def shown(self) -> bool:
        return self.format == "arrow"


@dataclass
class Staged(WriterCommitMessage):
    """Files that a task has written but nobody sees yet: (query, path)."""

    files: list[tuple[int, str]]


class HeadraceSink(DataSource):
    """Spark's name for the sink."""

    @classmethod
    def name(cls) -> str:
        return "headrace"

    def streamWriter(self, schema: StructType, overwrite: bool) -> Writer:
        return Writer(
            [Target(**t) for t in json.loads(self.options["targets"])], self.options["checkpoint"], self.options["token"],
            int(self.options["first"]),
        )  # fmt: skip


def as_option(targets: list[Target]) -> str:
    return json.dumps([asdict(t) for t in targets])


class Writer(DataSourceStreamArrowWriter):
    """Writes wide rows to the files of their queries."""

    def __init__(self, targets: list[Target], checkpoint: str = "", token: str = "", first: int = 0) -> None:
        """One target per query; the checkpoint whose lock the run holds, and by which token; the number of its first batch."""
        self.targets = {t.query: t for t in targets}
        self.checkpoint, self.token, self.first = checkpoint, token, first

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        parts: dict[int, list[pa.RecordBatch]] = {}
        for batch in iterator:
            # The rows of a query come in few runs, so that cutting is cheaper than choosing.
            queries = batch.column("q").to_numpy()
            starts = np.flatnonzero(np.diff(queries, prepend=queries[:1] - 1)).tolist()
            for start, end in pairwise([*starts, len(queries)]):
                parts.setdefault(int(queries[start]), []).append(batch.slice(start, end - start))
        return Staged([(q, self._stage(self.targets[q], rows)) for q, rows in parts.items() if q in self.targets])

    def _stage(self, target: Target, batches: list[pa.RecordBatch]) -> str:
        table = pa.Table.from_batches(batches)
        folder = staging(target)
        os.makedirs(folder, exist_ok=True)
        task = TaskContext.get()
        # By partition first: a batch that is tried again puts its rows in the same order.
        path = os.path.join(folder, f"{task.partitionId() if task else 0:06d}-{uuid.uuid4().hex}")
        # An ordered target is put in order when all tasks are known, so its staged files keep the order key.
        if target.ordered:
            write_table(path, table, "arrow")
        else:
            write_table(path, shape(target, table), target.format, header=not target.single, compression=target.compression)
        return path

    def commit(self, messages: list[Any], batchId: int) -> None:
        if self.token:
            require(LOCAL, self.checkpoint, self.token)
        staged: dict[int, list[str]] = {q: [] for q in self.targets}
        for message in messages:
            for query, path in message.files if message is not None else ():
                staged[query].append(path)
        for query, paths in staged.items():
            publish(self.targets[query], paths, self.first + batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:
        for message in messages:
            for _, path in message.files if message is not None else ():
                LOCAL.delete(path)


STAGED = pa.schema([("q", pa.int32()), ("path", pa.string())])


def stage(writer: Writer, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stage the rows of a task, and tell its files."""
    yield pa.RecordBatch.from_pylist([{"q": query, "path": path} for query, path in writer.write(batches).files], STAGED)


def staged(rows: DataFrame, targets: list[Target]) -> dict[int, list[str]]:
    """The files that tasks stage of these rows, by query."""
    files: dict[int, list[str]] = {target.query: [] for target in targets}
    for row in rows.mapInArrow(partial(stage, Writer(targets)), "q INT, path STRING").collect():
        files[row["q"]].append(row["path"])
    return files
