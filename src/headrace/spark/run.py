"""The life of a script on Spark: started, watched, brought to the end of its input, stopped, resumed."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from headrace.errors import HeadraceError, NotEnded
from headrace.exchange.heads import AFTER_THE_END
from headrace.files.survey import look_at
from headrace.plan.query import Script, named_queries
from headrace.plan.stream import FileSource, Stream
from headrace.runs.events import Event, Progress, RowsEvent
from headrace.runs.losses import too_many
from headrace.spark.borrowed import PARTITIONS, activate, partitions_for, settings
from headrace.spark.ended import end_is_said, finished, refuse_put_together
from headrace.spark.exchange.control import control_frame, only_time_passed, say
from headrace.spark.exchange.levels import Ends
from headrace.spark.failures import Places, explain_failure, explained
from headrace.spark.generations.evolve import Planned, make_generation, plan_generation, tried_before
from headrace.spark.generations.handover import EVOLVES
from headrace.spark.jvm.scratch import Scratch
from headrace.spark.plan import Labels, bucket_count, finish_all, given_buckets, has_op, output_frame
from headrace.spark.progress import counts_of, observations, progress_event, watched
from headrace.spark.session import require_state_store, script_session
from headrace.spark.sinks.batches import Batches, finish_listed
from headrace.spark.sinks.formats import read_arrow
from headrace.spark.sinks.publish import begin, finish, reopen
from headrace.spark.sinks.signs import claim
from headrace.spark.sinks.sink import HeadraceSink, Target, as_option
from headrace.spark.sinks.targets import arrow_schema, check_outputs, refresh_tables, targets_of
from headrace.spark.sources.files import settled
from headrace.spark.sources.growth import refuse_changed, sizes_of, tell_changed
from headrace.spark.sources.spool import Spool, spooled
from headrace.spark.storage.checkpoint import files_of
from headrace.spark.storage.lock import Lock, lock_early
from headrace.spark.storage.storage import absolute, is_local, storage_of
from headrace.spark.types import CatalystTypes
from headrace.spark.workers.shipped import require_workers
from headrace.stages.lower import Lowered, lower

LOOK_S = 1  # seconds between two looks at how many rows were rejected, and whether sources are well
WAIT_S = 0.05  # between two looks whether all is read
GONE = (PySparkException, Py4JError, OSError)  # what a call raises whose query, session or JVM is not there any more
MOST_UNTOLD = 10_000  # micro-batches that are remembered for who polls


def start_script(
    script: Script, checkpoint: str | None = None, follow: bool = False, verbose: bool = False,
    options: dict[str, str] | None = None, overwrite: bool = False, max_rejected: float | None = None,
    buckets: int | None = None, from_now: Sequence[str] = (), backfill: Sequence[str] = (),
) -> Run:  # fmt: skip
    """Run a script whose sources are files, sockets or generators, in a session of its own."""
    look_at(script)  # what can be known of the files is told before Spark starts
    lock = lock_early(checkpoint)
    try:
        check_outputs(script, checkpoint, follow=follow, overwrite=overwrite)
        spark = script_session(quiet=not verbose)
        spark.sparkContext.setLogLevel("WARN" if verbose else "OFF")
        return Run(
            spark, script, {}, checkpoint=checkpoint, follow=follow, options=options, lock=lock, overwrite=overwrite,
            max_rejected=max_rejected, buckets=buckets, from_now=from_now, backfill=backfill,
        )  # fmt: skip
    except BaseException:
        if lock is not None:
            lock.release()
        raise


class Run:
    """A script over sources and DataFrames that runs. Without `follow`, it ends when its input has ended.

    A run of which all rows of a stream were rejected fails; with `max_rejected`, one of which more than this share were. A
    script that has changed goes on with its checkpoint; queries `from_now` may begin with nothing, and for those to
    `backfill` the sources are read again.
    """

    def __init__(
        self, spark: SparkSession, script: Script, frames: dict[str, DataFrame], *, checkpoint: str | None = None,
        follow: bool = False, buckets: int | None = None, trigger_ms: int = 0, options: dict[str, str] | None = None,
        lock: Lock | None = None, overwrite: bool = False, max_rejected: float | None = None, from_now: Sequence[str] = (),
        backfill: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Start it."""
        require_state_store(spark)
        require_workers(spark)
        self.spark, self.follow, self.max_rejected = spark, follow, max_rejected
        self._scratch = Scratch() if checkpoint is None else None
        self.path = absolute(checkpoint or os.path.join(self._scratch.path if self._scratch else "", "checkpoint"))
        self.storage = storage_of(self.path, spark)
        self.error: Exception | None = None
        self._totals = Progress()
        self._untold: deque[Event] = deque(maxlen=MOST_UNTOLD)
        self.query: StreamingQuery | None = None
        self._seen_batches: set[int] = set()
        self._ended, self._looking = threading.Event(), threading.Lock()
        self._stopping = self._at_once = False
        self._places = Places(self.path)
        with explained(self._places):
            self._lock = lock or Lock(self.path, self.storage)
        self._spools: list[Spool] = []
        self._batches: Batches | None = None
        try:
            with explained(self._places):
                planned = self._planned(script, buckets, from_now, backfill)
                lowered, self.facts = planned.lowered, planned.facts
                nothing_to_do = finished(spark, planned, self.storage, follow=follow)
                self.targets: list[Target] = targets_of(spark, lowered, self.facts, follow=follow)
                refuse_put_together(self.facts, self.targets)
                self._places = Places(self.path, tuple(t.path for t in self.targets))
                claim(self.targets, self.facts, overwrite=overwrite, spark=spark)
                self.facts = make_generation(spark, planned, self.storage, named=not frames)
            self._names = {t.query: t.name for t in self.targets}
            if nothing_to_do:
                self._lock.release()
                self._ended.set()
                return
            with explained(self._places):
                self._begin(lowered, frames, trigger_ms, options or {})
        except BaseException:
            self._lock.release()
            self._discard()
            raise

    def _planned(self, script: Script, buckets: int | None, from_now: Sequence[str], backfill: Sequence[str]) -> Planned:
        types = CatalystTypes(self.spark)
        buckets = buckets or given_buckets(self.spark)
        default = buckets or bucket_count(self.spark)
        make = lambda asked, kept: settled(lower(asked, types, kept))  # noqa: E731
        named = (named_queries(script, frozenset(names)) for names in (from_now, backfill))
        return plan_generation(self.path, script, make, buckets, self.storage, default, *named, follow=self.follow)

    def _begin(self, lowered: Lowered, frames: dict[str, DataFrame], trigger_ms: int, options: dict[str, str]) -> None:
        self._asked, self._sizes = lowered, {} if self.follow else sizes_of(lowered.streams)
        self.lowered, self._spools = spooled(lowered, self.facts, self.storage, follow=self.follow)
        if not self.follow:
            refuse_changed(self.facts, self._in_place)
        if self._scratch is None and (self.facts.goes_on or not self.follow):
            self.facts.store(self.storage)
        self._begun = dict(self.facts.sizes)
        self._at_once = self._scratch is not None and not frames and self._all_there(options)
        if self._at_once:
            say(self.storage, self.path, ended=self._lock.token)
        elif self.facts.goes_on:
            say(self.storage, self.path, goes_on=self._lock.token)  # every bucket hears of it, and takes back what it has to
        self._start(frames, trigger_ms, options)
        self._thread = threading.Thread(target=self._watch, name="headrace-run", daemon=True)
        self._thread.start()

    def _all_there(self, options: dict[str, str]) -> bool:
        """Whether the first micro-batch takes all the input there will be, so that its end can come with it, not in one more.

        A run that may be resumed says the end last: files may have come since it was killed.
        """
        files = all(isinstance(s.source, FileSource) for s in self.lowered.streams)
        return files and not self._spools and not self.follow and not options and not self._ticking()

    def _ticking(self) -> bool:
        return any(s.idle is not None or s.end_after is not None for s in self.lowered.streams)

    @property
    def _in_place(self) -> tuple[Stream, ...]:
        """The streams whose files Spark reads where they are."""
        return tuple(s for s in self.lowered.streams if s in self._asked.streams)

    def _start(self, frames: dict[str, DataFrame], trigger_ms: int, options: dict[str, str]) -> None:
        named = not frames
        needed = {PARTITIONS: str(partitions_for(self.spark))}
        if named:
            needed[EVOLVES] = "true"
        with settings(self.spark, needed):
            layout = Labels.of(self.lowered.stages, self.facts.buckets)
            control = control_frame(self.spark, self.path, layout, self._lock.token, tick=self._ticking(), named=named)
            sinks = {f.query.name: f.query.emit for f in self.lowered.finishes}
            wide = output_frame(
                self.spark, self.lowered, frames, control, streaming=True, buckets=self.facts.buckets, options=options,
                watch=watched, ends=Ends(sinks, self.facts.goes_on) if self._scratch is None else None,
            )  # fmt: skip
            out = finish_all(wide.observe("headrace", *observations()), self.lowered)
            activate(self.spark)
            self._schema = out.schema
            writer = (
                self._into(out.observe("headrace_out", F.count(F.lit(1)).alias("rows_out")).writeStream)
                .option("checkpointLocation", self.facts.spark)
                .outputMode("append")
            )
            at_once = {"availableNow": True} if self._at_once else {"processingTime": f"{trigger_ms} milliseconds"}
            self.query = writer.trigger(**at_once).start()

    def _into(self, writer: DataStreamWriter) -> DataStreamWriter:
        """The quick way where all is on a local disk, else the one by which Spark reaches every file system."""
        for target in self.targets:
            if is_local(target.path):
                if self.facts.ending or self.facts.goes_on:
                    reopen(target)
                begin(target)
        if is_local(self.path) and all(is_local(t.path) for t in self.targets):
            self.spark.dataSource.register(HeadraceSink)
            options = {"targets": as_option(self.targets), "checkpoint": self.path, "token": self._lock.token}
            return writer.format("headrace").options(**options, first=str(self.facts.first_batch))
        first = self.facts.first_batch
        anew = tried_before(self.storage, self.facts)
        self._batches = Batches(self.spark, self.targets, self.path, self.storage, self._lock.token, first, anew)
        return writer.foreachBatch(self._batches)

    def _watch(self) -> None:
        """Bring bounded input to its end; keep what went wrong."""
        assert self.query is not None
        try:
            self._bring_to_the_end(self.query)
        except (PySparkException, Py4JError, HeadraceError, OSError) as error:
            self.error = explain_failure(error, self._places)
            with suppress(*GONE):
                self.query.stop()
        for spool in self._spools:
            spool.stop()
            self.error = self.error or spool.error
        self._look()  # what the query counted is told also when its session is gone
        self._lock.release()
        if not any(t.shown for t in self.targets):  # else there may be rows that nobody has asked for yet
            self._discard()
        self._ended.set()

    def _bring_to_the_end(self, query: StreamingQuery) -> None:
        if self.follow or self._at_once:
            while not query.awaitTermination(LOOK_S):
                self._check_losses(ended=False)
                if any(spool.error is not None for spool in self._spools):
                    query.stop()  # what it should bring would be missing silently
            ended = self._at_once and not self._stopping
        else:
            for spool in self._spools:
                spool.wait()
            files = self._read_what_is_there(query)
            ended = query.isActive
            if ended:
                if self._scratch is None:
                    end_is_said(self.facts, self.storage, files, self._sizes_at_end())
                say(self.storage, self.path, ended=self._lock.token)
                with suppress(PySparkException):  # why it failed is asked below
                    self._read_all(query)
        failure = query.exception()
        if failure is not None and not (ended and AFTER_THE_END in str(failure)):
            raise failure
        if ended:
            for target in self.targets:
                self._finish(target)
            refresh_tables(self.spark, self.lowered)
            tell_changed(self._begun, self._in_place)
            self.facts.ended = True
            self.facts.store(self.storage)
            query.stop()
            self._check_losses(ended=True)

    def _read_what_is_there(self, query: StreamingQuery) -> tuple[str, ...]:
        """Whose end it is that is said: of these files. What comes later is more."""
        while True:
            files = files_of(self._asked.streams)
            self._read_all(query)
            if not query.isActive or set(files_of(self._asked.streams)) <= set(files):
                return files

    def _sizes_at_end(self) -> dict[str, int]:
        """Files that are followed are read to where they ended when the run began, others wholly."""
        return {**self._sizes, **sizes_of(self._in_place)}

    def _read_all(self, query: StreamingQuery) -> None:
        """Until everything is read that is there; the time, which Spark takes for input, never ends."""
        if not self._ticking():
            query.processAllAvailable()
            return
        begun = _last_batch(query) + 2  # the first batch that begins after now
        while query.isActive and not (_last_batch(query) >= begun and only_time_passed(query.lastProgress)):
            time.sleep(WAIT_S)

    def _check_losses(self, *, ended: bool) -> None:
        """An error if too many rows were rejected, which ends the run."""
        self._look()
        error = too_many(self._totals.streams, self.max_rejected, ended=ended)
        if error is not None:
            raise error

    def _discard(self) -> None:
        """A checkpoint that has no name is of no use to anybody."""
        for spool in self._spools:
            spool.stop()
        if self._scratch is not None:
            self._scratch.remove()

    def _finish(self, target: Target) -> None:
        schema = arrow_schema(target, self._schema)
        if is_local(target.path):
            finish(target, schema)
        elif not target.shown:
            finish_listed(self.spark, target, schema)

    @property
    def done(self) -> bool:
        return self._ended.is_set()

    @property
    def progress(self) -> Progress:
        """How far it is: all micro-batches together."""
        self._look()
        return self._totals

    def stop(self) -> None:
        """End after the running batch; what was given out stays, and the checkpoint can be resumed."""
        self._stopping = True
        if self.query is not None and not self.done:
            with suppress(*GONE):  # a JVM that is gone has stopped
                self.query.stop()
        self._ended.wait(30)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, error: object, where: object) -> None:
        self.stop()
        self._discard()

    def wait(self, timeout: float | None = None) -> Run:
        if not self._ended.wait(timeout):
            raise NotEnded(f"the run has not ended after {timeout} seconds", hint="wait longer, or stop it")
        if self.error is not None:
            raise self.error
        return self

    def poll(self, timeout_s: float) -> list[Event]:
        deadline = time.monotonic() + timeout_s
        while True:
            ended = self.done
            events = [*self._rows(), *self._told()]
            if events or ended or time.monotonic() >= deadline:
                break
            time.sleep(min(0.05, timeout_s))
        if ended and not events:
            self._discard()
        return events

    def _rows(self) -> list[Event]:
        """What console targets have published. A file is deleted once it is shown."""
        events: list[Event] = []
        while self._batches is not None and self._batches.shown:
            events.append(self._batches.shown.popleft())
        for target in self.targets:
            if not target.shown or not is_local(target.path):
                continue
            for name in sorted(os.listdir(target.path) if os.path.isdir(target.path) else ()):
                if not name.startswith("batch-"):
                    continue
                file = os.path.join(target.path, name)
                for batch in read_arrow(file).combine_chunks().to_batches():
                    number = int(name.split("-")[1])
                    events.append(RowsEvent(self._names[target.query], tuple(batch.schema.names), batch, number))
                os.remove(file)
        return events

    def _told(self) -> list[Event]:
        self._look()
        return [self._untold.popleft() for _ in range(len(self._untold))]

    def _look(self) -> None:
        """Count the micro-batches that are new."""
        if self.query is None or self.done:
            return
        with self._looking, suppress(*GONE):  # whoever polls looks as well
            for progress in self.query.recentProgress:
                batch = int(progress["batchId"])
                observed = progress.get("observedMetrics") or {}
                if batch in self._seen_batches or "headrace" not in observed:
                    continue
                self._seen_batches.add(batch)
                took = float(progress["durationMs"].get("triggerExecution", 0))
                number, counts = self.facts.first_batch + batch, counts_of(self.lowered.streams, observed)
                event = progress_event(number, took, observed, counts, self.lowered)
                self._totals = self._totals.plus(event)
                self._untold.append(event)


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


start_run = Run
__all__ = ["Run", "has_op", "start_run", "start_script"]
