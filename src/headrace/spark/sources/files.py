"""File sources: looked at, listed by Spark, and read with every row's place."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headrace.files.cuts import LINE, TEXT, Reading
from headrace.files.listing import is_pattern, literal, passed_by
from headrace.files.opening import has_scheme, local_path, remote
from headrace.files.survey import Survey, survey
from headrace.plan.stream import FileSource
from headrace.spark.sources.rejects import Reason, Rows
from headrace.spark.sources.texts import misfits, read_texts, typed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from headrace.plan.schema import Field
    from headrace.plan.stream import Stream
    from headrace.stages.lower import Lowered

    Reader = DataFrameReader | DataStreamReader

PATH_BITS = 15  # rows of files written in the same millisecond are kept apart by this much of their path's hash
ROW_BITS = 48
FILES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"
MARK = re.compile(r"[ -/:-@\[-`{-~]")  # neither letter nor digit
NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"


def read_files(spark: SparkSession, stream: Stream, source: FileSource, *, streaming: bool, options: dict[str, str]) -> Rows:
    """The declared columns of every row of a file source, its place, and why it cannot be read."""
    found = Survey(source.format, (), source.headed) if source.spooled else survey(stream, source)
    reader = spark.readStream.name(stream.name).options(**options) if streaming else spark.read
    if found.format == "parquet":
        return _parquet(spark, stream, source, found, reader)
    listed = _load(reader, source, "binaryFile", FILES)
    listed = listed if source.spooled else _of_its_own(listed, source.path, "path")
    reading = Reading(stream.schema, found.format, source.delimiter, found.headed)
    elsewhere = has_scheme(source.path) and not source.path.startswith("file:") and remote(source.path) is None
    frame = read_texts(listed, reading, place_in_file("path", "modificationTime", "0"), content=elsewhere)
    return Rows(typed(frame, reading), "rows", tuple(misfits(reading)), F.col(TEXT), F.col(LINE))


def settled(lowered: Lowered) -> Lowered:
    """The script with what its files are looked up, where nothing says it: before they are copied, or Spark reads them."""

    def looked_at(stream: Stream) -> Stream:
        if not isinstance(stream.source, FileSource):
            return stream
        found = survey(stream, stream.source)
        return replace(stream, source=replace(stream.source, format=found.format, headed=found.headed))

    return replace(lowered, streams=tuple(map(looked_at, lowered.streams)))


def _load(reader: Reader, source: FileSource, kind: str, columns: str) -> DataFrame:
    reader = reader.schema(columns).format(kind)
    local = local_path(source.path)
    if source.spooled:  # chunks that are made again lie beside the spool, where Spark would not look for columns in their paths
        return reader.option("recursiveFileLookup", "true").load(source.path)
    if local is None:
        return reader.load(source.path)
    # Spark takes folders called key=value for columns, and then passes by what lies beside them, or gives up.
    place, name = _place_and_name(os.path.abspath(local))
    reader = reader.option("recursiveFileLookup", "true")
    return (reader.option("pathGlobFilter", name) if name else reader).load(place)


def _place_and_name(path: str) -> tuple[str, str | None]:
    """Where Spark looks for the files of a local path, and which names they have there; None: any.

    A name is looked for in its folder only where it must be: all that lies in a folder is listed, whatever its depth. A pattern
    fails on whatever has a colon in its name.
    """
    folder, name = os.path.split(path)
    if os.path.isdir(path):
        return literal(path), None
    if is_pattern(path):
        return (path, None) if is_pattern(folder) else (literal(folder), name)
    # Spark's stream of files wants a directory or a pattern, if only one that fits a single name. A sign with a backslash before
    # it makes one; a letter would mean something else then.
    pattern = MARK.sub(r"\\\g<0>", name)
    if ":" in path or pattern == name:
        return literal(folder), literal(name)
    return os.path.join(literal(folder), pattern), None


def _has_folders(path: str) -> bool:
    local = local_path(path)
    if local is None:
        return False
    folder = local if os.path.isdir(local) or is_pattern(os.path.dirname(local)) else os.path.dirname(os.path.abspath(local))
    return any(map(os.path.isdir, passed_by(folder)))


def _of_its_own(frame: DataFrame, path: str, column: str) -> DataFrame:
    """Without the files in folders below: those of a path all lie as deep as it says."""
    local = local_path(path)
    if local is None:
        return frame
    depth = os.path.abspath(local).count("/") + os.path.isdir(local)
    found = f"replace({column}, 'file:///', 'file:/')"
    return frame.where(f"length({found}) - length(replace({found}, '/', '')) = {depth}")


def place_in_file(path: str, modified: str, row: str) -> tuple[str, str]:
    """SQL for the two halves of a place: when the file was written; its path, and the place in it."""
    bits = f"CAST(xxhash64({path}) & {2**PATH_BITS - 1} AS BIGINT)"
    return f"unix_millis({modified})", f"shiftleft({bits}, {ROW_BITS}) + {row}"


def _parquet(spark: SparkSession, stream: Stream, source: FileSource, found: Survey, reader: Reader) -> Rows:
    nanoseconds = found.nanoseconds
    if nanoseconds:
        spark.conf.set(NANOSECONDS, "true")  # without it Spark refuses the file
    kinds = {f.name: "BIGINT" if f.name.lower() in nanoseconds else f.type for f in stream.schema.fields}
    columns = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
    frame = _load(reader, source, "parquet", columns)
    if not source.spooled and _has_folders(source.path):  # else each row would have to be looked at for nothing
        frame = _of_its_own(frame, source.path, "_metadata.file_path")
    high, low = place_in_file("_metadata.file_path", "_metadata.file_modification_time", "_metadata.row_index")
    rows = frame.select(
        *(_micros(f).alias(f.name) if f.name.lower() in nanoseconds else F.col(f"`{f.name}`") for f in stream.schema.fields),
        F.expr(high).alias("_high"), F.expr(low).alias("_low"), F.expr("_metadata.file_path").alias("__file"),
    )  # fmt: skip
    line = F.col("_low").bitwiseAND(2**ROW_BITS - 1) + 1
    doubted = [name for name in stream.schema.names if name in found.unmarked]
    why = "column {!r} is STRING, and its bytes are no UTF-8"
    reasons = tuple(Reason(~F.is_valid_utf8(f"`{name}`"), why.format(name)) for name in doubted)
    return Rows(rows, "rows", reasons, line=line, file=F.col("__file"))


def _micros(field: Field) -> Column:
    name = f"`{field.name}`"
    micros = f"({name} DIV 1000 - CASE WHEN {name} % 1000 < 0 THEN 1 ELSE 0 END)"
    if field.type == "TIMESTAMP_NTZ":
        return F.expr(f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ '1970-01-01 00:00:00')")
    return F.expr(f"timestamp_micros({micros})")
