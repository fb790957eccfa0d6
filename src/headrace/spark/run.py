"""The life of a script on Spark: started, watched, brought to the end of its input, stopped, resumed."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from headrace.errors import HeadraceError, NotEnded, StateError
from headrace.plan.nodes import base_streams
from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.runtime.events import Event, ProgressEvent, RowsEvent
from headrace.spark.checkpoint import Checkpoint, files_of, open_checkpoint
from headrace.spark.control import control_frame, say
from headrace.spark.failures import Places, explain_failure, explained
from headrace.spark.lock import Lock, lock_early
from headrace.spark.plan import Layout, bucket_count, finish_all, has_op, output_frame
from headrace.spark.publish import begin, finish
from headrace.spark.session import local_session, require_state_store
from headrace.spark.shipped import require_workers
from headrace.spark.signs import claim
from headrace.spark.sink import HeadraceSink, Target, as_option
from headrace.spark.slots import METRICS_ROW
from headrace.spark.spool import Spool, spooled
from headrace.spark.storage import absolute, join, storage_of
from headrace.spark.targets import arrow_schema, check_outputs, refresh_tables, targets_of
from headrace.spark.types import CatalystTypes
from headrace.stages.lower import Lowered, lower

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headrace.plan.query import Script

METRICS = ("late", "admitted", "frontier", "cache_hits", "cache_misses", "rejected", "newest", "missed", "punctuation", "waiting")


def start_script(
    script: Script,
    checkpoint: str | None = None,
    follow: bool = False,
    verbose: bool = False,
    options: dict[str, str] | None = None,
    overwrite: bool = False,
) -> Run:
    """Run a script whose sources are files, sockets or generators, in a session of its own."""
    files_of(
        tuple(s for query in script.queries for s in base_streams(query.node))
    )  # a path that leads nowhere is told before Spark starts
    lock = lock_early(checkpoint)
    try:
        check_outputs(script, checkpoint, follow=follow, overwrite=overwrite)
        spark = local_session(quiet=not verbose)
        spark.sparkContext.setLogLevel("WARN" if verbose else "OFF")
        return start_run(spark, script, {}, checkpoint=checkpoint, follow=follow, options=options, lock=lock, overwrite=overwrite)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def start_run(
    spark: SparkSession, script: Script, frames: dict[str, DataFrame], *, checkpoint: str | None = None, follow: bool = False,
    buckets: int | None = None, trigger_ms: int = 0, options: dict[str, str] | None = None, lock: Lock | None = None,
    overwrite: bool = False,
) -> Run:  # fmt: skip
    """Start a script over sources and DataFrames. Without `follow`, it ends when its input has ended."""
    require_state_store(spark)
    require_workers(spark)
    lowered = lower(script, CatalystTypes(spark))
    return Run(
        spark, lowered, frames, checkpoint, follow, buckets or bucket_count(spark), trigger_ms, options or {}, lock, overwrite
    )


class Run:
    """A script that runs."""

    def __init__(
        self, spark: SparkSession, lowered: Lowered, frames: dict[str, DataFrame], checkpoint: str | None, follow: bool,
        buckets: int, trigger_ms: int, options: dict[str, str], lock: Lock | None = None, overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Start it."""
        self.spark, self.follow = spark, follow
        self._own = checkpoint is None
        self.path = absolute(checkpoint or tempfile.mkdtemp(prefix="headrace-"))
        self.storage = storage_of(self.path, spark)
        self._lock = lock or Lock(self.path, self.storage)
        self.error: Exception | None = None
        self.query: StreamingQuery | None = None
        self._seen_batches: set[int] = set()
        self._ended = threading.Event()
        self._places = Places(self.path)
        self._spools: list[Spool] = []
        try:
            with explained(self._places):
                self.facts: Checkpoint = open_checkpoint(self.path, lowered, buckets, self.storage)
                self.targets: list[Target] = targets_of(spark, lowered, self.facts, follow=follow)
                self._places = Places(self.path, tuple(t.path for t in self.targets))
                claim(self.targets, self.facts, overwrite=overwrite, spark=spark)
            with explained(self._places):
                self._begin(lowered, frames, trigger_ms, options)
        except BaseException:
            self._lock.release()
            if self._own:
                shutil.rmtree(self.path, ignore_errors=True)
            raise

    def _begin(self, lowered: Lowered, frames: dict[str, DataFrame], trigger_ms: int, options: dict[str, str]) -> None:
        self._names = {t.query: lowered.finishes[t.query].query.name for t in self.targets}
        if self._finished_before(lowered):
            self._lock.release()
            self._ended.set()
            return
        self.lowered, self._spools = spooled(lowered, self.path, follow=self.follow)
        self._start(frames, trigger_ms, options)
        self._thread = threading.Thread(target=self._watch, name="headrace-run", daemon=True)
        self._thread.start()

    def _finished_before(self, lowered: Lowered) -> bool:
        """Whether the stored end of input makes this run one with nothing to do."""
        if not self.facts.ended:
            return False
        if self.follow or files_of(lowered.streams) != self.facts.files:
            raise StateError(
                f"the run in {self.path!r} has ended: its input was taken to be complete, and now there is more",
                hint="name a new checkpoint directory; to go on with a source that grows, run with --follow from the start",
            )
        return True

    def _start(self, frames: dict[str, DataFrame], trigger_ms: int, options: dict[str, str]) -> None:
        named = not frames
        key = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
        if named:
            self.spark.conf.set(key, "true")
        try:
            layout = Layout.of(self.lowered, self.facts.buckets)
            tick = any(s.idle is not None or s.end_after is not None for s in self.lowered.streams)
            control = control_frame(self.spark, self.path, layout, tick=tick, named=named)
            wide = output_frame(
                self.spark, self.lowered, frames, control, streaming=True, buckets=self.facts.buckets, options=options
            )
            finished = finish_all(wide.observe("headrace", *_observations()), self.lowered)
            self.spark.dataSource.register(HeadraceSink)
            self._schema = finished.schema
            for target in self.targets:
                begin(target)
            writer = (
                finished.observe("headrace_out", F.count(F.lit(1)).alias("rows_out"))
                .writeStream.format("headrace")
                .option("targets", as_option(self.targets))
                .option("checkpoint", self.path)
                .option("token", self._lock.token)
                .option("checkpointLocation", join(self.path, "spark"))
                .outputMode("append")
                .trigger(processingTime=f"{trigger_ms} milliseconds")
            )
            self.query = writer.start()
        finally:
            if named:
                self.spark.conf.unset(key)

    def _watch(self) -> None:
        """Bring bounded input to its end; keep what went wrong."""
        assert self.query is not None
        try:
            if self.follow:
                self.query.awaitTermination()
            else:
                for spool in self._spools:
                    spool.wait()
                self.query.processAllAvailable()
                if self.query.isActive:
                    say(self.storage, self.path, ended=True)
                    self.query.processAllAvailable()
                    for target in self.targets:
                        finish(target, arrow_schema(target, self._schema))
                    refresh_tables(self.spark, self.lowered)
                    self.facts.ended, self.facts.files = True, files_of(self.lowered.streams)
                    self.facts.store(self.storage)
                    self.query.stop()
        except (PySparkException, Py4JError, HeadraceError, OSError) as error:
            self.error = explain_failure(error, self._places)
        failure = self.query.exception()
        if failure is not None:
            self.error = explain_failure(failure, self._places)
        for spool in self._spools:
            spool.stop()
            self.error = self.error or spool.error
        self._lock.release()
        self._ended.set()

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._ended.is_set()

    def stop(self) -> None:
        """End after the running batch; what was given out stays, and the checkpoint can be resumed."""
        if self.query is not None and self.query.isActive:
            self.query.stop()
        self._ended.wait(30)

    def wait(self, timeout: float | None = None) -> Run:
        """Until it has ended; raises what went wrong."""
        if not self._ended.wait(timeout):
            raise NotEnded(f"the run has not ended after {timeout} seconds", hint="wait longer, or stop it")
        if self.error is not None:
            raise self.error
        return self

    def poll(self, timeout_s: float) -> list[Event]:
        """Rows to show and batches done since the last call."""
        deadline = time.monotonic() + timeout_s
        while True:
            ended = self.done
            events = [*self._rows(), *self._progress()]
            if events or ended or time.monotonic() >= deadline:
                break
            time.sleep(min(0.05, timeout_s))
        if ended and not events and self._own:
            shutil.rmtree(self.path, ignore_errors=True)
        return events

    def _rows(self) -> list[Event]:
        """What console targets have published. A file is deleted once it is shown."""
        events: list[Event] = []
        for target in self.targets:
            if not target.shown:
                continue
            for name in sorted(os.listdir(target.path) if os.path.isdir(target.path) else ()):
                if not name.startswith("batch-"):
                    continue
                file = os.path.join(target.path, name)
                with pa.OSFile(file) as source:
                    table = pa.ipc.open_file(source).read_all()
                for batch in table.combine_chunks().to_batches():
                    number = int(name.split("-")[1])
                    events.append(RowsEvent(self._names[target.query], tuple(batch.schema.names), batch, number))
                os.remove(file)
        return events

    def _progress(self) -> list[Event]:
        if self.query is None:
            return []
        events: list[Event] = []
        for progress in self.query.recentProgress:
            batch = int(progress["batchId"])
            observed = progress.get("observedMetrics") or {}
            if batch in self._seen_batches or "headrace" not in observed:
                continue
            self._seen_batches.add(batch)
            events.append(_progress_event(progress, observed["headrace"], observed["headrace_out"]["rows_out"]))
        return events


def _observations() -> list[Any]:
    out = []
    for kind, name in enumerate(METRICS):
        value = F.when((F.col("q") == METRICS_ROW) & (F.col("sign") == kind), F.col("number"))
        most = name in ("frontier", "newest")
        out.append((F.max(value) if most else F.sum(value)).alias(name))
    return out


def _progress_event(progress: Any, observed: Any, rows_out: int) -> ProgressEvent:
    seen = {name: observed[name] for name in METRICS}
    frontier, newest = seen["frontier"], seen["newest"]
    known = frontier is not None and newest is not None and START_OF_TIME < frontier < END_OF_TIME
    return ProgressEvent(
        batch_id=int(progress["batchId"]),
        rows_in=sum(seen[name] or 0 for name in ("admitted", "late", "rejected", "punctuation")),
        rows_out=rows_out,
        late=(seen["late"] or 0) + (seen["missed"] or 0),
        rejected=seen["rejected"] or 0,
        frontier_lag_s=max(0.0, (newest - frontier) / 1e6) if known else None,
        batch_ms=float(progress["durationMs"].get("triggerExecution", 0)),
        cache_hits=seen["cache_hits"] or 0,
        cache_misses=seen["cache_misses"] or 0,
        punctuation=seen["punctuation"] or 0,
        waiting=seen["waiting"] or 0,
    )


__all__ = ["Run", "has_op", "start_run", "start_script"]
