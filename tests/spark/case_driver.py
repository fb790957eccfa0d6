"""Runs cases on Spark: many in one script, each batch of a stream as one file, one file of every stream in each micro-batch.

A stream of a socket has its rows served, in order; how they fall into batches is up to Spark. A run can be stopped after any
number of batches and started again from its checkpoint; what was published is compared batch by batch.
"""

from __future__ import annotations

import csv
import io
import json
import os
import socket
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from headrace.oracle.evaluate import expected_after_each_batch
from headrace.oracle.rows import Row, batch_of_rows, rows_of_batch
from headrace.plan.arrival import by_arrival
from headrace.plan.joins import Join
from headrace.plan.nodes import Late, Merge, Node, Rejected, Scan
from headrace.plan.patterns import Pattern
from headrace.plan.query import FileSink, Query, Script, Using
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, HostSource, Stream
from headrace.testing.cases import QueryCase, check_end, has_op
from headrace.testing.conformance import tables_first
from headrace.testing.engine import Arrival, Batch
from headrace.testing.published import check_published
from headrace.testing.tables import format_cell, read_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_S = 150  # for the cases that run together
FIRST_WRITTEN = 1_700_000_000  # seconds: files are as old as their number, so that Spark reads them in this order


def over(node: Node, streams: dict[str, Stream]) -> Node:
    """The same plan over other streams."""
    match node:
        case Scan(stream=stream) if stream.reads is not None:
            return by_arrival(Scan(streams[stream.reads]))
        case Scan(stream=stream):
            return Scan(streams[stream.name])
        case Late(stream=stream):
            return Late(streams[stream.name])
        case Rejected(stream=stream):
            return Rejected(streams[stream.name])
        case Merge(inputs=inputs):
            return Merge(tuple(over(child, streams) for child in inputs))
        case Join(left=left, right=right):
            return replace(node, left=over(left, streams), right=over(right, streams))
        case Pattern(places=places):
            return replace(node, places=tuple(replace(p, input=over(p.input, streams)) for p in places))
    return replace(node, input=over(node.input, streams))


def write_files(
    folder: Path, schema: Schema, kind: str, batches: list[list[Row]], delimiter: str = ",", *, empty: bool = False
) -> None:
    """Each batch as a file, in the order of their ages; those without rows only if `empty`."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(batches):
        if rows or empty:
            write_file(folder / f"{number:04d}.{kind}", schema, rows, FIRST_WRITTEN + number, delimiter)


def serve(rows: list[Row], delimiter: str) -> int:
    """Give these rows to the first that asks. Tells the port."""
    server = socket.create_server(("127.0.0.1", 0))
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(as_text(rows))

    def answer() -> None:
        with server, server.accept()[0] as connection:
            connection.sendall(text.getvalue().encode())

    threading.Thread(target=answer, daemon=True).start()
    return int(server.getsockname()[1])


def as_text(rows: list[Row]) -> list[list[str | None]]:
    """Cells of a text file."""
    return [[None if v is None else v if isinstance(v, str) else format_cell(v) for v in row] for row in rows]


def write_file(path: Path, schema: Schema, rows: list[Row], written: float | None = None, delimiter: str = ",") -> None:
    """One file of rows, moved into place whole."""
    hidden = path.with_name(f".{path.name}")
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.Table.from_batches([batch_of_rows(schema, rows)]), hidden)
        case ".csv":
            with hidden.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, delimiter=delimiter).writerows(as_text(rows))
        case ".json":
            lines = [{n: v for n, v in zip(schema.names, row, strict=True) if v is not None} for row in rows]
            hidden.write_text("".join(json.dumps(line, default=format_cell) + "\n" for line in lines), encoding="utf-8")
    if written is not None:
        os.utime(hidden, (written, written))
    hidden.rename(path)


def ticks(stream: Stream) -> bool:
    """Whether the clock decides something, so that Spark runs batches for the passing of time."""
    return stream.idle is not None or stream.end_after is not None


def fewer(batches: list[list[Arrival]], most: int) -> list[list[Arrival]]:
    """The same rows in at most so many batches."""
    count = min(len(batches), most)
    cuts = [i * len(batches) // count for i in range(count + 1)] if count else []
    return [[row for rows in batches[i:j] for row in rows] for i, j in pairwise(cuts)]


@dataclass(frozen=True)
class Placed:
    """A case with its streams and queries in folders of their own, under names of their own."""

    case: QueryCase
    script: Script
    sinks: dict[str, str]  # query of the case -> folder
    names: dict[str, str]  # stream of the script -> stream of the case
    batches: list[Batch]  # as they come on Spark: the next file of every stream
    folders: list[Path]

    @staticmethod
    def of(case: QueryCase, root: Path, prefix: str, most: int = sys.maxsize) -> Placed:
        """Write the input, in at most so many files for a stream, and point the plan to it."""
        folders: list[Path] = []
        parts: dict[str, list[list[Arrival]]] = {}
        streams: dict[str, Stream] = {}
        # What K-slack misses depends on which rows of several streams come together: then a file is a batch of the case.
        together = any(q.using is Using.KSLACK for q in case.script.queries)
        for stream in case.script.streams:
            read = case.batches if together else read_batches(stream.name, stream.schema, case.inputs[stream.name])
            arrived = [list(b.rows.get(stream.name, ())) for b in read]
            arrived = arrived if together else fewer([rows for rows in arrived if rows], most)
            parts[stream.name] = arrived
            batches = [[a.values for a in rows] for rows in arrived]
            source: FileSource | HostSource
            if isinstance(stream.source, HostSource):
                port = serve([row for rows in batches for row in rows], stream.source.delimiter)
                source = replace(stream.source, host="127.0.0.1", port=port)
            else:
                assert isinstance(stream.source, FileSource)
                folder = root / prefix / "in" / stream.name
                write_files(folder, stream.schema, stream.source.format, batches, stream.source.delimiter, empty=together)
                source = replace(stream.source, path=str(folder))
                folders += [] if stream.static else [folder]
            streams[stream.name] = replace(stream, name=f"{prefix}_{stream.name}", source=source)
        sinks = {q.name: str(root / prefix / "out" / q.name) for q in case.script.queries}
        queries = tuple(
            Query(sinks[q.name], over(q.node, streams), q.emit, FileSink(sinks[q.name]), q.using) for q in case.script.queries
        )
        longest = max(map(len, parts.values()))
        aligned = [Batch(i, {n: rows[i] if i < len(rows) else [] for n, rows in parts.items()}) for i in range(longest)]
        names = {s.name: old for old, s in streams.items()}
        together_first = tables_first(case.script, aligned)
        return Placed(case, Script(queries, tuple(streams.values())), sinks, names, together_first, folders)

    @property
    def by_the_clock(self) -> bool:
        """Whether what comes out of a batch depends on when it ran, or which rows came together: then only the end is known."""
        streams = self.case.script.streams
        return any(ticks(s) or s.ahead is not None or isinstance(s.source, HostSource) for s in streams)

    def rows(self, query: Query) -> list[tuple[int, Row]]:
        """What a query has written, in the order of batches."""
        return [change for changes in self.by_batch(query).values() for change in changes]

    def by_batch(self, query: Query) -> dict[int, list[tuple[int, Row]]]:
        """What a query has written, by the number of the micro-batch."""
        op = has_op(query)
        out: dict[int, list[tuple[int, Row]]] = {}
        for path in sorted(Path(self.sinks[query.name]).glob("batch-*")):
            changes = out.setdefault(int(path.name.split("-")[1].split(".")[0]), [])
            for row in rows_of_batch(read_published(path)):
                values = tuple(self.names.get(v, v) if isinstance(v, str) else v for v in row)
                changes.append((-1 if op and values[0] == "-" else 1, values[1:] if op else values))
        return out

    def check(self) -> None:
        """What has left every query, after every batch and in the end."""
        for query in self.case.script.queries:
            if not self.by_the_clock:
                written = self.by_batch(query)
                expected = expected_after_each_batch(query, self.batches)
                silent = len(expected)  # batches after the last that published anything
                outputs = [written.get(number, []) for number in range(max(written, default=0) + 1 + silent)]
                check_published(query, outputs, expected, f"in case {self.case.name}")
            check_end(self.case, query, self.rows(query))


def read_sink(folder: str | Path, kind: str = "parquet") -> list[Row]:
    """The rows of all published files, in the order of their names."""
    rows: list[Row] = []
    for path in sorted(Path(folder).glob("batch-*")):
        rows += rows_of_batch(read_published(path))
    return rows


def read_published(path: Path) -> pa.Table:
    """One published file."""
    match path.suffix:
        case ".parquet":
            return pq.read_table(path)
        case ".csv":
            return pa_csv.read_csv(path)
        case ".jsonl":
            return pa_json.read_json(path)
    raise ValueError(path)


def hide_files(placed: Iterable[Placed], seen: int) -> None:
    """Let the first files of every stream be seen, and hide the others from Spark."""
    for folder in (folder for p in placed for folder in p.folders):
        files = sorted(folder.glob("[0-9.]*.*"), key=lambda f: f.name.lstrip("."))
        for number, file in enumerate(files):
            name = file.name.lstrip(".")
            file.rename(folder / (name if number < seen else f".{name}"))


def run_cases(
    spark: SparkSession, cases: dict[str, QueryCase], root: Path, buckets: int = 4, restarts: Iterable[int] = (),
    most: int = sys.maxsize, **options: Any,
) -> dict[str, Placed]:  # fmt: skip
    """Run all cases as one script, to the end of their input; stopped after so many batches, and started again."""
    from headrace.spark.run import start_run

    placed = {name: Placed.of(case, root, f"c{i}", most) for i, (name, case) in enumerate(cases.items())}
    script = Script(
        tuple(q for p in placed.values() for q in p.script.queries), tuple(s for p in placed.values() for s in p.script.streams)
    )
    settings = {"checkpoint": str(root / "checkpoint"), "buckets": buckets, "options": {"maxFilesPerTrigger": "1"}, **options}
    for place in restarts:
        hide_files(placed.values(), place)
        run = start_run(spark, script, {}, follow=True, **settings)
        assert run.query is not None
        run.query.processAllAvailable()
        run.stop()
    hide_files(placed.values(), sys.maxsize)
    start_run(spark, script, {}, **settings).wait(PATIENCE_S)
    return placed
