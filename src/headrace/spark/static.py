"""A script over static DataFrames: one pass, complete, with the same final answer as a stream of the same rows."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.runtime.events import Event, RowsEvent
from headrace.spark.failures import Places, explained
from headrace.spark.plan import finish_all, output_frame
from headrace.spark.sink import Writer, publish
from headrace.spark.targets import targets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from headrace.spark.sink import Target
    from headrace.stages.lower import Lowered


class StaticRun:
    """A run that is done when it returns. It has the shape of `headrace.spark.run.Run`."""

    done = True
    error: Exception | None = None

    def __init__(self, spark: SparkSession, lowered: Lowered, frames: dict[str, DataFrame], buckets: int | None) -> None:
        """Compute all queries together, staged by tasks and published as the one batch that there is."""
        scratch = tempfile.mkdtemp(prefix="headrace-")
        self._rows: list[Event] = []
        try:
            targets = targets_of(spark, lowered, scratch)
            with explained(Places(scratch, tuple(t.path for t in targets))):
                self._compute(spark, lowered, frames, targets, buckets)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _compute(
        self, spark: SparkSession, lowered: Lowered, frames: dict[str, DataFrame], targets: list[Target], buckets: int | None
    ) -> None:
        wide = output_frame(spark, lowered, frames, None, streaming=False, buckets=buckets, ended=True)
        staged = finish_all(wide, lowered).mapInArrow(_stager(Writer(targets)), "q INT, path STRING").collect()
        for target in targets:
            publish(target, [row["path"] for row in staged if row["q"] == target.query], 0)
        for target in targets:
            if target.format == "arrow":  # no place of its own: shown
                name = lowered.finishes[target.query].query.name
                self._rows += [RowsEvent(name, tuple(b.schema.names), b) for b in read_published(target)]

    def wait(self, timeout: float | None = None) -> StaticRun:
        """Nothing to wait for."""
        del timeout
        return self

    def poll(self, timeout_s: float) -> list[Event]:
        """The rows of queries that have no place of their own, once."""
        del timeout_s
        rows, self._rows = self._rows, []
        return rows

    def stop(self) -> None:
        """It has stopped already."""


def _stager(writer: Writer) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = writer.write(batches).files
        yield pa.RecordBatch.from_arrays(
            [pa.array([q for q, _ in files], pa.int32()), pa.array([p for _, p in files], pa.string())], ["q", "path"]
        )

    return stage


def read_published(target: Target) -> list[pa.RecordBatch]:
    """The rows of a target that is shown."""
    batches: list[pa.RecordBatch] = []
    for name in sorted(os.listdir(target.path)):
        if name.startswith("batch-"):
            with pa.OSFile(os.path.join(target.path, name)) as source:
                batches += pa.ipc.open_file(source).read_all().combine_chunks().to_batches()
    return batches
