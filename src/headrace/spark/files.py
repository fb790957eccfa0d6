"""File sources: found, peeked at, and read with every row's place."""

from __future__ import annotations

import csv
import glob
import os
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headrace.errors import DataError
from headrace.plan.schema import Schema
from headrace.spark.types import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headrace.plan.stream import FileSource, Stream

RAW = "_raw"
PATH_BITS = 15  # rows of files written in the same millisecond are kept apart by this much of their path's hash
ROW_BITS = 48


def has_scheme(path: str) -> bool:
    """Whether a path names a file system other than the local one."""
    return "://" in path


def existing(path: str, where: str) -> list[str]:
    """The files behind a local path; an error if there is nothing to read now or later."""
    if has_scheme(path):
        return []
    if os.path.isdir(path):
        return sorted(p for p in glob.glob(os.path.join(path, "*")) if _visible(p))
    found = sorted(p for p in glob.glob(path) if _visible(p))
    if not found and not os.path.isdir(os.path.dirname(path) or "."):
        raise DataError(f"there is no file or directory {path!r}", where=where, hint=_looked_from())
    if not found and not glob.has_magic(path):
        raise DataError(f"there is no file {path!r}", where=where, hint=_looked_from())
    return found


def _looked_from() -> str:
    return f"check SOURCE FILE; paths are taken from the folder you are in, {os.getcwd()}"


def _visible(path: str) -> bool:
    return os.path.isfile(path) and not os.path.basename(path).startswith((".", "_"))


def header_of(paths: list[str], source: FileSource, schema: Schema, where: str) -> tuple[str, ...] | None:
    """The names in the first line of a CSV file, if it is a header: its names are those of the schema."""
    if not paths or source.format != "csv" or paths[0].endswith((".gz", ".bz2", ".zst")):
        return None
    with open(paths[0], newline="", encoding="utf-8", errors="replace") as file:
        first = next(csv.reader(file, delimiter=source.delimiter), [])
    names = [n.strip().lstrip("\ufeff") for n in first]
    known = [n for n in names if schema.has(n)]
    if not known or len(known) < len(names) / 2:
        return None
    missing = [n for n in schema.names if n.lower() not in {k.lower() for k in names}]
    if missing:
        raise DataError(
            f"{os.path.basename(paths[0])} has no column {', '.join(map(repr, missing))}; its header says: {', '.join(names)}",
            where=where,
            hint="correct the columns of CREATE STREAM, or the file",
        )
    return tuple(names)


def read_files(spark: SparkSession, stream: Stream, source: FileSource, *, streaming: bool, options: dict[str, str]) -> DataFrame:
    """The declared columns of every row, `_raw` where it could not be read, its file's place, and its place in the file."""
    where = f"stream {stream.name!r}"
    header = header_of(existing(source.path, where), source, stream.schema, where)
    order = header or stream.schema.names
    fields = [f"`{n}` {stream.schema.field(n).type if stream.schema.has(n) else 'STRING'}" for n in order]
    reader = (spark.readStream.name(stream.name) if streaming else spark.read).schema(", ".join([*fields, f"`{RAW}` STRING"]))
    if source.format == "parquet":
        reader = (spark.readStream.name(stream.name) if streaming else spark.read).schema(ddl(stream.schema))
    if source.format == "csv":
        # A quote in a quoted cell is written twice, as everybody does but Spark by default.
        reader = reader.option("sep", source.delimiter).option("escape", '"').option("columnNameOfCorruptRecord", RAW)
    elif source.format == "json":
        reader = reader.option("columnNameOfCorruptRecord", RAW)
    if streaming:
        for key, value in options.items():
            reader = reader.option(key, value)
    place = source.path
    if streaming and not has_scheme(place) and os.path.isfile(place):  # Spark's stream of files wants a directory
        place, name = os.path.split(os.path.abspath(place))
        reader = reader.option("pathGlobFilter", name)
    frame = reader.format(source.format).load(place)
    path = f"(xxhash64(_metadata.file_path) & {2**PATH_BITS - 1})"
    row = "_metadata.row_index" if source.format == "parquet" else "_metadata.file_block_start"
    raw = F.lit(None).cast("string") if source.format == "parquet" else F.col(RAW)
    return frame.select(
        *(F.col(f"`{n}`") for n in stream.schema.names),
        raw.alias(RAW),
        F.expr("unix_millis(_metadata.file_modification_time)").alias("_high"),
        F.expr(f"shiftleft(CAST({path} AS BIGINT), {ROW_BITS}) + {row}").alias("_low"),
    )


def header_line(stream: Stream, source: FileSource) -> str:
    """SQL that is true for a header line read as a row. Only the line itself can say, so it is compared as text."""
    del source
    texts = [f"lower(trim(CAST(`{n}` AS STRING))) <=> {n.lower()!r}" for n in stream.schema.names if _texts(stream, n)]
    raw = f"array_sort(transform(split(lower(`{RAW}`), '[^a-z0-9_]+'), x -> trim(x))) <=> array_sort(array({_names(stream)}))"
    whole = " AND ".join(texts) if len(texts) == len(stream.schema.names) else "false"
    return f"(`{RAW}` IS NOT NULL AND {raw}) OR ({whole})"


def _texts(stream: Stream, name: str) -> bool:
    return stream.schema.field(name).type == "STRING"


def _names(stream: Stream) -> str:
    return ", ".join(f"'{n.lower()}'" for n in stream.schema.names)
