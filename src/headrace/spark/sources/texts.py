"""Files of text as a DataFrame: Spark lists them, exactly once each; we read them, and Spark casts what they say.

Spark's own readers decide by the first file what the columns of all are, do not know lines, and half read an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headrace.files.cuts import FOLDED, LINE, LOW, TEXT, WHY, Reading
from headrace.spark.sources.rejects import JSON_MISFIT, MALFORMED, Reason
from headrace.spark.workers.worker import settle

CORRUPT = "__corrupt"
TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ")


def read_texts(listed: DataFrame, reading: Reading, place: tuple[str, str], *, content: bool) -> DataFrame:
    """The texts of every record of the listed files. With `content`, their bytes come through Spark."""
    high, low = F.expr(place[0]).alias("high"), F.expr(place[1]).alias("low")
    files = listed.select("path", high, low, *(["content"] if content else []))
    texts = ", ".join(f"`{name}` STRING" for name in (*reading.columns, TEXT, WHY))
    return files.mapInArrow(partial(_read_all, reading), f"{texts}, {LINE} BIGINT, _high BIGINT, {LOW} BIGINT")


def _read_all(reading: Reading, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from headrace.files.reading import read_file  # machine code, which only workers need

    for batch in batches:
        for file in batch.to_pylist():
            yield from read_file(reading, file["path"], file["high"], file["low"], file.get("content"))
    settle()


def typed(frame: DataFrame, reading: Reading) -> DataFrame:
    """The declared columns in their types, NULL where the text does not fit; and what is needed to say why."""
    rest = [F.col(c) for c in (TEXT, WHY, LINE, "_high", LOW)]
    if reading.format == "csv":
        columns = [
            (F.col(c) if f.type == "STRING" else F.expr(_read(c, f.type))).alias(f.name)
            for c, f in zip(reading.columns, reading.schema.fields, strict=True)
        ]
        kept = [c for c, f in zip(reading.columns, reading.schema.fields, strict=True) if f.type != "STRING"]
        return frame.select(*columns, *kept, *rest)
    return _typed_json(frame, reading, rest)


def _typed_json(frame: DataFrame, reading: Reading, rest: list[Column]) -> DataFrame:
    times = _times(reading)
    ddl = ", ".join(f"`{f.name}` {'STRING' if f.name in times else f.type}" for f in reading.schema.fields)
    options = {"columnNameOfCorruptRecord": CORRUPT}
    parsed = F.from_json(F.when(F.col(WHY).isNull(), F.coalesce(FOLDED, TEXT)), f"{ddl}, `{CORRUPT}` STRING", options)
    inner = frame.select(parsed.alias("__parsed"), *rest)
    columns = [
        F.expr(_read(f"__parsed.`{f.name}`", f.type)).alias(f.name) if f.name in times else F.col(f"__parsed.`{f.name}`")
        for f in reading.schema.fields
    ]
    kept = [F.col(f"__parsed.`{name}`").alias(text) for name, text in times.items()]
    return inner.select(*columns, f"__parsed.{CORRUPT}", *kept, *rest)


def _times(reading: Reading) -> dict[str, str]:
    """Columns of JSON whose times are read as those of CSV are, and where their texts are kept.

    Spark would take a number for seconds.
    """
    return {f.name: f"__time{i}" for i, f in enumerate(reading.schema.fields) if f.type in TIMES}


def _read(text: str, kind: str) -> str:
    """SQL for the value that a text stands for. For Spark an hour without a date is one of the day on which it is read."""
    value = f"try_cast({text} AS {kind})"
    return f"CASE WHEN locate(':', ltrim({text})) BETWEEN 1 AND 4 THEN NULL ELSE {value} END" if kind in TIMES else value


def misfits(reading: Reading) -> list[Reason]:
    """Rows that cannot be read, or do not fit their types; and rows that only name the file."""
    malformed = Reason(F.col(WHY).isNotNull(), MALFORMED, F.col(WHY))
    if reading.format == "json":
        nulls = (F.when(F.col(f"`{n}`").isNull(), F.lit(str(i))) for i, n in enumerate(reading.schema.names))
        corrupt = Reason(F.col(CORRUPT).isNotNull(), JSON_MISFIT, F.concat_ws(",", *nulls))
        return [malformed, corrupt, *(_unread(text, name, reading) for name, text in _times(reading).items())]
    kept = zip(reading.columns, reading.schema.fields, strict=True)
    return [malformed, *(_unread(text, f.name, reading) for text, f in kept if f.type != "STRING")]


def _unread(text: str, name: str, reading: Reading) -> Reason:
    kind = reading.schema.field(name).type
    missing = F.col(text).isNotNull() & F.col(f"`{name}`").isNull()
    return Reason(missing, f"column {name!r} is {kind}, and here is {{}}", F.col(text))
