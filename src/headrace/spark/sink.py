"""One sink for all queries of a script: staged by tasks, published by batch id, an earlier try of a batch removed first."""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pa_csv
from pyarrow import fs, ipc
from pyarrow import parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from headrace.changes.text import json_text

STAGING = "_staging"
ENDINGS = {"parquet": "parquet", "csv": "csv", "json": "jsonl", "arrow": "arrow"}


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


@dataclass
class Staged(WriterCommitMessage):
    """Files that a task has written but nobody sees yet: (query, path)."""

    files: list[tuple[int, str]]


class HeadraceSink(DataSource):
    """Spark's name for the sink."""

    @classmethod
    def name(cls) -> str:
        """As in `writeStream.format`."""
        return "headrace"

    def streamWriter(self, schema: StructType, overwrite: bool) -> Writer:
        """The writer for a stream."""
        return Writer([Target(**t) for t in json.loads(self.options["targets"])])


def as_option(targets: list[Target]) -> str:
    """Targets as text that fits a writer option."""
    return json.dumps([asdict(t) for t in targets])


def open_fs(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path, and the path in it."""
    if "://" in path:
        return fs.FileSystem.from_uri(path)
    import os

    return fs.LocalFileSystem(), os.path.abspath(path)


class Writer(DataSourceStreamArrowWriter):
    """Writes wide rows to the files of their queries."""

    def __init__(self, targets: list[Target]) -> None:
        """One target per query."""
        self.targets = {t.query: t for t in targets}

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of one task."""
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
        system, root = open_fs(target.path)
        folder = posixpath.join(root, STAGING)
        system.create_dir(folder, recursive=True)
        path = posixpath.join(folder, uuid.uuid4().hex)
        # An ordered target is put in order when all tasks are known, so its staged files keep the order key.
        shown = table if target.ordered else shape(target, table)
        write_table(system, path, shown, "arrow" if target.ordered else target.format)
        return path

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Publish a batch."""
        staged: dict[int, list[str]] = {q: [] for q in self.targets}
        for message in messages:
            for query, path in message.files if message is not None else ():
                staged[query].append(path)
        for query, paths in staged.items():
            publish(self.targets[query], paths, batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Forget what was staged."""
        for message in messages:
            for query, path in message.files if message is not None else ():
                system, _ = open_fs(self.targets[query].path)
                if system.get_file_info(path).type is not fs.FileType.NotFound:
                    system.delete_file(path)


def shape(target: Target, table: pa.Table) -> pa.Table:
    """The columns that are shown, under their names."""
    columns = [table.column(f"o{i}") for i in target.places]
    names = list(target.columns)
    if target.op:
        columns.insert(0, pc.if_else(pc.greater(table.column("sign"), 0), "+", "-"))
        names.insert(0, "_op")
    return pa.table(columns, names=names)


def publish(target: Target, staged: list[str], batch: int) -> None:
    """Make the files of a batch visible; what an earlier try of this batch published goes first."""
    system, root = open_fs(target.path)
    system.create_dir(root, recursive=True)
    ending = ENDINGS[target.format]
    prefix = f"batch-{batch:010d}-"
    for info in system.get_file_info(fs.FileSelector(root)):
        if info.base_name.startswith(prefix):
            system.delete_file(info.path)
    if target.ordered and staged:
        tables = []
        for path in staged:
            with system.open_input_file(path) as source:
                tables.append(ipc.open_file(source).read_all())
        table = pa.concat_tables(tables).sort_by([(part, "ascending") for part in ("ts", "high", "low", "sub")])
        merged = posixpath.join(root, STAGING, uuid.uuid4().hex)
        write_table(system, merged, shape(target, table), target.format)
        for path in staged:
            system.delete_file(path)
        staged = [merged]
    for number, path in enumerate(sorted(staged)):
        system.move(path, posixpath.join(root, f"{prefix}{number:04d}.{ending}"))


def write_table(system: fs.FileSystem, path: str, table: pa.Table, kind: str) -> None:
    """Write a table in one of the formats."""
    with system.open_output_stream(path) as out:
        match kind:
            case "parquet":
                pq.write_table(table, out)
            case "arrow":
                with ipc.new_file(out, table.schema) as writer:
                    writer.write_table(table)
            case "csv":
                pa_csv.write_csv(table, out)
            case "json":
                for row in table.to_pylist():
                    out.write((json_text(row) + "\n").encode())
