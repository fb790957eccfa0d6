"""Files of text as a DataFrame: Spark lists them, exactly once each; we read them, and Spark casts what they say.

Spark's own readers decide by the first file what the columns of all are, do not know lines, and half read an array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from headrace.files.cuts import FOLDED, LINE, LOW, TEXT, WHY, Reading
from headrace.spark.rejects import JSON_MISFIT, MALFORMED, Reason
from headrace.spark.worker import settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

CORRUPT = "__corrupt"


def read_texts(listed: DataFrame, reading: Reading, place: tuple[str, str], *, content: bool) -> DataFrame:
    """The texts of every record of the listed files. With `content`, their bytes come through Spark."""
    files = listed.select(
        "path", F.expr(place[0]).alias("high"), F.expr(place[1]).alias("low"), *(["content"] if content else [])
    )
    texts = ", ".join(f"`{name}` STRING" for name in (*reading.columns, TEXT, WHY))
    return files.mapInArrow(_reader(reading), f"{texts}, {LINE} BIGINT, _high BIGINT, {LOW} BIGINT")


def _reader(reading: Reading):  # type: ignore[no-untyped-def]
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from headrace.files.reading import read_file  # machine code, which only workers need

        for batch in batches:
            for file in batch.to_pylist():
                yield from read_file(reading, file["path"], file["high"], file["low"], file.get("content"))
        settle()

    return read


def typed(frame: DataFrame, reading: Reading) -> DataFrame:
    """The declared columns in their types, NULL where the text does not fit; and what is needed to say why."""
    rest = [F.col(c) for c in (TEXT, WHY, LINE, "_high", LOW)]
    if reading.format == "csv":
        columns = [
            (F.col(c) if f.type == "STRING" else F.expr(f"try_cast({c} AS {f.type})")).alias(f.name)
            for c, f in zip(reading.columns, reading.schema.fields, strict=True)
        ]
        kept = [c for c, f in zip(reading.columns, reading.schema.fields, strict=True) if f.type != "STRING"]
        return frame.select(*columns, *kept, *rest)
    ddl = ", ".join(f"`{f.name}` {f.type}" for f in reading.schema.fields)
    options = {"columnNameOfCorruptRecord": CORRUPT}
    parsed = F.from_json(F.when(F.col(WHY).isNull(), F.coalesce(FOLDED, TEXT)), f"{ddl}, `{CORRUPT}` STRING", options)
    inner = frame.select(parsed.alias("__parsed"), *rest)
    return inner.select(*(F.col(f"__parsed.`{n}`") for n in (*reading.schema.names, CORRUPT)), *rest)


def misfits(reading: Reading) -> list[Reason]:
    """Rows that cannot be read, or do not fit their types; and rows that only name the file."""
    malformed = Reason(F.col(WHY).isNotNull(), MALFORMED, F.col(WHY))
    if reading.format == "json":
        nulls = (F.when(F.col(f"`{n}`").isNull(), F.lit(str(i))) for i, n in enumerate(reading.schema.names))
        return [malformed, Reason(F.col(CORRUPT).isNotNull(), JSON_MISFIT, F.concat_ws(",", *nulls))]
    return [malformed] + [
        Reason(F.col(c).isNotNull() & F.col(f"`{f.name}`").isNull(), f"column {f.name!r} is {f.type}, and here is {{}}", F.col(c))
        for c, f in zip(reading.columns, reading.schema.fields, strict=True)
        if f.type != "STRING"
    ]
