"""What Spark does without Headrace, on the same files, session and checkpoints."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.feeder import Trickle, measure_batches
from benchmarks.payments import SPARK_DDL
from benchmarks.report import NotMeasured, Result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
DEFAULT_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "6g",
    "spark.driver.extraJavaOptions": "-Xss16m --add-modules=jdk.incubator.vector",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.locality.wait": "0s",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.checkpointFileManagerClass": FILE_MANAGER,
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def session(settings: dict[str, str] | None = None) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take any python3
    builder = SparkSession.builder.appName("headrace-benchmark")
    for key, value in (DEFAULT_SETTINGS if settings is None else settings).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def payments_stream(spark: SparkSession, data: Path, files: int = 1) -> DataFrame:
    """So many files are one micro-batch."""
    return spark.readStream.schema(SPARK_DDL).option("maxFilesPerTrigger", files).parquet(str(data))


def run_to_end(name: str, results: DataFrame, mode: str, limit: float | None = None, **details: Any) -> Result:
    """From `start()` to the last commit, results dropped, state and checkpoints on.

    Past `limit` seconds it is stopped; the result then has what was done so far, and says so.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-rival-") as checkpoint:
        writer = results.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
        begin = time.perf_counter()
        query = writer.option("checkpointLocation", checkpoint).start()
        ended = query.awaitTermination(limit) if limit is not None else (query.awaitTermination(), True)[1]
        seconds = time.perf_counter() - begin
        query.stop()
        reports = query.recentProgress
        batches = [p for p in reports if p["numInputRows"] > 0]
    if reports and reports[0]["batchId"] > 0:
        raise NotMeasured(f"{name}: Spark keeps the last {len(reports)} reports only, and this run had more micro-batches")
    if not ended:
        details = {**details, "unfinished_after": limit}
    rows = sum(p["numInputRows"] for p in batches)
    return Result(name, rows, seconds, {**details, **batch_details(batches)})


def batch_details(batches: list[dict], skip: int = 1) -> dict[str, Any]:
    """Steady: all batches but the first ones, which pay for start-up."""
    times = [p["durationMs"]["triggerExecution"] for p in batches]
    rows = sum(p["numInputRows"] for p in batches[skip:])
    steady = {"steady_events_per_second": 1000.0 * rows / sum(times[skip:])} if times[skip:] else {}
    return {**steady, "batches": len(batches), "batch_ms": times}


def sum_and_count() -> list[Any]:
    return [F.sum("amount").alias("total"), F.count("*").alias("n")]


def group_by(spark: SparkSession, data: Path) -> Result:
    """No window at all: the floor."""
    results = payments_stream(spark, data).groupBy("card").agg(*sum_and_count())
    return run_to_end("spark groupBy", results, "update")


def hopping(
    spark: SparkSession, data: Path, hop_seconds: int = 60, minutes: int = 60, delay_seconds: float = 0.0,
    limit: float | None = None,
) -> Result:  # fmt: skip
    """Spark copies each event once per window it lies in: 60 times at 60 min by 1 min."""
    window = F.window("at", f"{minutes} minutes", f"{hop_seconds} seconds")
    stream = payments_stream(spark, data).withWatermark("at", f"{delay_seconds} seconds")
    results = stream.groupBy("card", window).agg(*sum_and_count())
    return run_to_end(f"spark hop {hop_seconds} s", results, "append", limit, hop_seconds=hop_seconds, minutes=minutes)


def recompute(spark: SparkSession, data: Path, minutes: int = 60) -> Result:
    """Keep every event of a card, and add them all up again for each new one, a row at a time.

    Bytes, because Spark 4.3.0 fails to read a state schema with arrays in the Python worker.
    """
    results = (
        payments_stream(spark, data)
        .groupBy("card")
        .applyInPandasWithState(
            recompute_per_event(minutes * 60_000_000),
            "card BIGINT, at BIGINT, total DOUBLE, n BIGINT",
            "times BINARY, amounts BINARY",
            "append",
            "NoTimeout",
        )
    )
    return run_to_end("recompute per event", results, "append", minutes=minutes)


def recompute_per_event(width: int) -> Callable[..., Iterator[pd.DataFrame]]:
    def update(key: tuple, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        times, amounts = state.get if state.exists else (b"", b"")
        events = list(zip(array("q", times), array("d", amounts), strict=True))
        arrived = pd.concat(frames)
        micros = arrived["at"].astype("datetime64[us]").astype("int64")
        out = []
        for at, amount in sorted(zip(micros.tolist(), arrived["amount"].tolist(), strict=True)):
            events.append((at, amount))
            events = [event for event in events if event[0] > at - width]
            out.append((key[0], at, sum(event[1] for event in events), len(events)))
        kept = list(zip(*events, strict=True))
        state.update((array("q", kept[0]).tobytes(), array("d", kept[1]).tobytes()))
        yield pd.DataFrame(out, columns=["card", "at", "total", "n"])

    return update


def small_batches(spark: SparkSession, trickle: Trickle | None = None) -> Result:
    """Median micro-batch time of Spark's own JVM aggregate under a steady trickle."""
    times = measure_batches(spark, start_aggregate, trickle or Trickle())
    details = {"median_ms": times.median, "worst_ms": times.worst, "batches": len(times.milliseconds)}
    return Result("spark groupBy, small batches", times.rows, sum(times.milliseconds) / 1000.0, details)


def start_aggregate(payments: DataFrame, checkpoint: str) -> StreamingQuery:
    results = payments.groupBy("card").agg(*sum_and_count())
    writer = results.writeStream.format("noop").outputMode("update")
    return writer.option("checkpointLocation", checkpoint).start()
