"""A script over static DataFrames: one pass, complete, with the same final answer as a stream of the same rows."""

from __future__ import annotations

import os

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headrace.runs.events import Event, Progress, RowsEvent
from headrace.runs.losses import StreamRows, too_many
from headrace.spark.borrowed import PARTITIONS, partitions_for, settings
from headrace.spark.failures import Places, explained
from headrace.spark.jvm.scratch import Scratch
from headrace.spark.plan import bucket_count, finish_all, output_frame
from headrace.spark.progress import counts_of, observations, progress_event, watched
from headrace.spark.sinks.formats import read_arrow
from headrace.spark.sinks.publish import begin, finish, publish
from headrace.spark.sinks.signs import claim
from headrace.spark.sinks.sink import Target, staged
from headrace.spark.sinks.targets import arrow_schema, refresh_tables, targets_of
from headrace.spark.storage.checkpoint import open_checkpoint
from headrace.spark.storage.lock import Lock
from headrace.spark.storage.storage import LOCAL, absolute, join, storage_of
from headrace.stages.lower import Lowered


class StaticRun:
    """A run that is done when it returns. It has the shape of `headrace.spark.run.Run`."""

    done = True
    error: Exception | None = None

    def __init__(
        self, spark: SparkSession, lowered: Lowered, frames: dict[str, DataFrame], checkpoint: str | None = None, *,
        buckets: int | None = None, overwrite: bool = False, max_rejected: float | None = None,
    ) -> None:  # fmt: skip
        """Compute all queries together. With a checkpoint it can be done again: its one batch takes the place of the last."""
        self.progress = Progress()
        self._rows: list[Event] = []
        scratch = Scratch()
        path = absolute(checkpoint or os.path.join(scratch.path, "checkpoint"))
        storage = storage_of(path, spark)
        lock = Lock(path, storage)
        try:
            facts = open_checkpoint(path, lowered, buckets or bucket_count(spark), storage)
            targets = targets_of(spark, lowered, facts, follow=False)
            with explained(Places(path, tuple(t.path for t in targets))):
                claim(targets, facts, overwrite=overwrite, spark=spark)
                counts = self._compute(spark, lowered, frames, targets, facts.buckets)
                self.error = too_many(counts, max_rejected, ended=True)
        finally:
            lock.release()
            scratch.remove()

    def _compute(
        self, spark: SparkSession, lowered: Lowered, frames: dict[str, DataFrame], targets: list[Target], buckets: int
    ) -> tuple[StreamRows, ...]:
        """Staged by tasks, and published as the one batch that there is; how many rows were read."""
        seen = {s.name: Observation(watched(s.name)) for s in lowered.streams if not s.static}
        wide = output_frame(spark, lowered, frames, None, streaming=False, buckets=buckets, ended=True, watch=seen.__getitem__)
        counted, out = Observation("headrace"), Observation("headrace_out")
        finished = finish_all(wide.observe(counted, *observations()), lowered).observe(out, F.count(F.lit(1)).alias("rows_out"))
        with settings(spark, {PARTITIONS: str(partitions_for(spark))}):
            files = staged(finished, targets)
        for target in targets:
            begin(target)
            publish(target, files[target.query], 0)
            if target.shown:
                self._rows += [RowsEvent(target.name, tuple(b.schema.names), b) for b in read_published(target)]
            else:
                finish(target, arrow_schema(target, finished.schema))
        refresh_tables(spark, lowered)
        observed = {"headrace": counted.get, "headrace_out": out.get, **{watched(n): seen[n].get for n in seen}}
        counts = counts_of(lowered.streams, observed)
        self.progress = self.progress.plus(progress_event(0, 0.0, observed, counts, lowered))
        return counts

    def wait(self, timeout: float | None = None) -> StaticRun:
        del timeout
        if self.error is not None:
            raise self.error
        return self

    def poll(self, timeout_s: float) -> list[Event]:
        """The rows of queries that have no place of their own, once."""
        del timeout_s
        rows, self._rows = self._rows, []
        return rows

    def stop(self) -> None:
        """It has stopped already."""

    def __enter__(self) -> StaticRun:
        return self

    def __exit__(self, kind: object, error: object, where: object) -> None:
        """Nothing to stop."""


def read_published(target: Target) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = []
    for name in LOCAL.names(target.path):
        if name.startswith("batch-"):
            batches += read_arrow(join(target.path, name)).combine_chunks().to_batches()
    return batches
