"""Tables as files: parquet, CSV, JSON lines, and Arrow for what is read again at once."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as pa_csv
from pyarrow import ipc
from pyarrow import parquet as pq

from headrace.runs.text import json_text

if TYPE_CHECKING:
    from headrace.spark.sinks.sink import Target


@dataclass(frozen=True, slots=True)
class Format:
    """How tables are written: by Arrow on a local disk, elsewhere by a writer of Spark's."""

    ending: str
    write: Callable[[pa.Table, Any, bool], object]  # into an open file, with a header or without
    join: Callable[[list[str], pa.Schema, str], None] | None = None  # files into one; None: they are put one behind the other
    spark: str = ""  # below its package of data sources
    options: Mapping[str, str] = field(default_factory=dict)  # of it


def shape(target: Target, table: pa.Table) -> pa.Table:
    columns = [table.column(f"o{i}") for i in target.places]
    names = list(target.columns)
    if target.op:
        columns.insert(0, pc.if_else(pc.greater(table.column("sign"), 0), "+", "-"))
        names.insert(0, "_op")
    return pa.table(columns, names=names)


def write_table(path: str, table: pa.Table, kind: str, *, header: bool = True, compression: str | None = None) -> None:
    with pa.OSFile(path, "wb") as file:
        if compression is None:
            FORMATS[kind].write(table, file, header)
        else:
            with pa.CompressedOutputStream(file, compression) as out:
                FORMATS[kind].write(table, out, header)


def _write_arrow(table: pa.Table, out: Any, header: bool) -> None:
    with ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)


def _write_json(table: pa.Table, out: Any, header: bool) -> None:
    for row in table.to_pylist():
        out.write((json_text(row) + "\n").encode())


def _join_parquet(paths: list[str], schema: pa.Schema, whole: str) -> None:
    with pq.ParquetWriter(whole, schema) as writer:
        for path in paths:
            for batch in pq.ParquetFile(path).iter_batches():
                writer.write_table(pa.Table.from_batches([batch]).cast(schema))


# Options: as near to what is written here as Spark's writers come: instants to the microsecond in UTC, NULL told from nothing.
CSV = {"escape": '"', "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS'Z'", "timeZone": "UTC"}
JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'", "timeZone": "UTC"}
FORMATS = {
    "parquet": Format("parquet", lambda table, out, _: pq.write_table(table, out), _join_parquet, "parquet.ParquetFileFormat"),
    "csv": Format(
        "csv", lambda table, out, header: pa_csv.write_csv(table, out, pa_csv.WriteOptions(include_header=header)),
        spark="csv.CSVFileFormat", options=CSV,
    ),
    "json": Format("jsonl", _write_json, spark="json.JsonFileFormat", options=JSON),
    "arrow": Format("arrow", _write_arrow),
}  # fmt: skip


def header_of(target: Target) -> bytes:
    """What stands above the rows of a single file: the names of the columns in CSV, nothing in JSON lines."""
    if target.format != "csv":
        return b""
    names = ["_op", *target.columns] if target.op else list(target.columns)
    text, empty = io.BytesIO(), pa.table({f"c{i}": pa.array([], pa.string()) for i in range(len(names))}).rename_columns(names)
    pa_csv.write_csv(empty, text)
    if target.compression is None:
        return text.getvalue()
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, target.compression) as out:
        out.write(text.getvalue())
    return bytes(packed.getvalue())


def assemble(target: Target, paths: list[str], schema: pa.Schema, whole: str) -> None:
    if (join := FORMATS[target.format].join) is not None:
        join(paths, schema, whole)
        return
    with open(whole, "wb") as out:
        out.write(header_of(target))
        for path in paths:
            with open(path, "rb") as part:
                shutil.copyfileobj(part, out, 1 << 20)


def read_arrow(path: str) -> pa.Table:
    with pa.OSFile(path) as source:
        return ipc.open_file(source).read_all()
