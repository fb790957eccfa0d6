"""A steady trickle of small files, and the micro-batch times of whatever query reads them.

Both sides of a comparison use `measure_batches` with the same `Trickle`; only `build` differs.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from .payments import SPARK_DDL, Payments, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

# (streaming payments, checkpoint directory) -> running query
Build = Callable[["DataFrame", str], "StreamingQuery"]


@dataclass(frozen=True)
class Trickle:
    """How much, how often. One file is one micro-batch as long as a batch is shorter than the interval."""

    events_per_second: float = 500.0
    interval_seconds: float = 0.5
    warmup_seconds: float = 15.0
    measured_seconds: float = 30.0
    cards: int = 100_000

    @property
    def rows_per_file(self) -> int:
        return max(1, round(self.events_per_second * self.interval_seconds))

    @property
    def files(self) -> int:
        return max(1, round((self.warmup_seconds + self.measured_seconds) / self.interval_seconds))


class Feeder(threading.Thread):
    """Drops one file per interval into `directory`, each complete the moment it is seen."""

    def __init__(self, trickle: Trickle, directory: Path) -> None:
        super().__init__(name="feeder", daemon=True)
        self.trickle, self.directory, self.halt = trickle, directory, threading.Event()
        rows = trickle.rows_per_file * trickle.files
        self.rows = table(Payments(rows, cards=trickle.cards, events_per_second=trickle.events_per_second))

    def run(self) -> None:
        start, size = time.monotonic(), self.trickle.rows_per_file
        for number in range(self.trickle.files):
            self.drop(number, self.rows.slice(number * size, size))
            due = start + (number + 1) * self.trickle.interval_seconds
            if self.halt.wait(max(0.0, due - time.monotonic())):
                return

    def drop(self, number: int, rows: pa.Table) -> None:
        hidden = self.directory / f"_{number:06d}"
        pq.write_table(rows, hidden)
        hidden.rename(self.directory / f"{number:06d}.parquet")


@dataclass(frozen=True)
class BatchTimes:
    milliseconds: tuple[float, ...]
    rows: int

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def worst(self) -> float:
        return max(self.milliseconds)


def measure_batches(spark: SparkSession, build: Build, trickle: Trickle) -> BatchTimes:
    """Times of the micro-batches that held rows, those of the warm-up left out.

    The query starts first and the feeder after it, so the long first batch falls into the warm-up.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-trickle-") as place:
        inbox = Path(place) / "in"
        inbox.mkdir()
        query = build(spark.readStream.schema(SPARK_DDL).parquet(str(inbox)), str(Path(place) / "checkpoint"))
        feeder = Feeder(trickle, inbox)
        try:
            seen = _watch(query, feeder)
        finally:
            feeder.halt.set()
            query.stop()
    times = tuple(float(p["durationMs"]["triggerExecution"]) for p in seen)
    if not times:
        raise RuntimeError("no micro-batch ended after the warm-up: raise measured_seconds")
    return BatchTimes(times, sum(p["numInputRows"] for p in seen))


def _watch(query: StreamingQuery, feeder: Feeder) -> list[dict]:
    """Progress by batch id, polled because Spark keeps only the last hundred reports."""
    kept: dict[int, dict] = {}
    skip = -1
    feeder.start()
    warm = time.monotonic() + feeder.trickle.warmup_seconds
    while feeder.is_alive():
        feeder.join(1.0)
        if query.exception() is not None:
            raise RuntimeError(f"the query failed: {query.exception()}")
        kept.update({p["batchId"]: p for p in query.recentProgress if p["numInputRows"] > 0})
        if time.monotonic() < warm:
            skip = max(kept, default=-1)
    query.processAllAvailable()
    kept.update({p["batchId"]: p for p in query.recentProgress if p["numInputRows"] > 0})
    return [p for number, p in sorted(kept.items()) if number > skip]
