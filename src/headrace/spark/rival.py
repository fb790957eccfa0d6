"""What Spark itself makes of the same rows: its hopping window, for the demo to stand beside."""

from __future__ import annotations

from pyspark.sql import functions as F

from headrace.plan.schema import Schema
from headrace.spark.session import local_session
from headrace.spark.types import ddl


def hopping_counts(pattern: str, schema: Schema, window_us: int, hop_us: int, key: str) -> list[tuple[int, str, int]]:
    """Rows per window and key, as (start of the window in microseconds, key, rows), by Spark's own `window`.

    A batch read of CSV files with a header. The time is the last TIMESTAMP column. Windows are Spark's: aligned to
    1970-01-01 UTC, closed below and open above.
    """
    at = next(f.name for f in reversed(schema.fields) if f.type == "TIMESTAMP")
    rows = local_session().read.csv(pattern, header=True, schema=ddl(schema))
    windows = F.window(F.col(at), f"{window_us} microseconds", f"{hop_us} microseconds")
    counted = rows.groupBy(windows, F.col(key)).agg(F.count("*").alias("n"))
    start = F.unix_micros(F.col("window.start")).alias("start")
    found = counted.select(start, F.col(key), F.col("n")).orderBy("start", key).collect()
    return [(int(row[0]), str(row[1]), int(row[2])) for row in found]
