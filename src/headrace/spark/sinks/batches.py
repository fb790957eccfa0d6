"""Publishing from the driver, for outputs and checkpoints that are not on a local disk (decisions/0019).

Rows are written by Spark's own writers, in the JVM of the executors, to any file system that Spark can write to, under names that
nobody else has. Then the driver writes one small file that lists them, in the log that Spark's file sink keeps: a batch counts if
and only if it is there, and whoever reads the directory with Spark reads what the log lists. No file with rows is renamed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections import deque
from operator import attrgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headrace.errors import OutputError
from headrace.runs.events import Event, RowsEvent
from headrace.spark.sinks.formats import FORMATS, assemble
from headrace.spark.sinks.publish import PARTS, publish
from headrace.spark.sinks.signs import home, signed_by
from headrace.spark.sinks.sink import Target, staged
from headrace.spark.storage.lock import require
from headrace.spark.storage.storage import Storage, is_local, join, storage_of

LOG = "_spark_metadata"
DATA = re.compile(r"part-\d{5,}-[0-9a-f-]{36}(-c\d+)?\.[\w.]+")
CODECS = {"gzip": "gzip", "bz2": "bzip2", "zstd": "zstd"}


class Batches:
    """Called with every batch, in the driver."""

    def __init__(
        self, spark: SparkSession, targets: list[Target], checkpoint: str, storage: Storage, token: str, first: int = 0,
        anew: int | None = None,
    ) -> None:  # fmt: skip
        """For these outputs, as long as the run has the lock of its checkpoint; what Spark calls batch 0 is number `first`.

        What was published from batch `anew` on goes: another program tried it, and this one's rows may be others.
        """
        self.targets, self.shown, self.first = targets, deque[Event](), first
        self._checkpoint, self._storage, self._token = checkpoint, storage, token
        for target in targets:
            if not target.shown and not is_local(target.path):
                if anew is not None:
                    Listed(spark, target).withdraw(anew)
                Listed(spark, target).sweep()

    def __call__(self, batch: DataFrame, spark_number: int) -> None:
        """Publish a batch. What an earlier try of it has published stays as it is: its rows are the same."""
        number = self.first + spark_number
        require(self._storage, self._checkpoint, self._token)
        batch.persist()  # computed once, whatever is written
        try:
            counts = {row["q"]: row["count"] for row in batch.groupBy("q").count().collect()}
            local = [t for t in self.targets if not t.shown and is_local(t.path)]
            if local:
                self._publish_local(batch, local, number)
            for target in self.targets:
                if target.shown:
                    self._show(batch, target, number, counts.get(target.query, 0))
                elif target not in local:
                    self._check_sign(batch.sparkSession, target)
                    Listed(batch.sparkSession, target).add(batch, number, counts.get(target.query, 0))
        finally:
            batch.unpersist()

    def _publish_local(self, batch: DataFrame, local: list[Target], number: int) -> None:
        mine = batch.where(F.col("q").isin([t.query for t in local]))
        files = staged(mine, local)
        for target in local:
            publish(target, files[target.query], number)

    def _show(self, batch: DataFrame, target: Target, number: int, rows: int) -> None:
        if rows:
            table = shaped(batch, target).toArrow()
            self.shown += [RowsEvent(target.name, tuple(b.schema.names), b, number) for b in table.combine_chunks().to_batches()]

    def _check_sign(self, spark: SparkSession, target: Target) -> None:
        if not signed_by(target, storage_of(target.path, spark)):
            raise OutputError(f"{target.path!r} has been taken over by another run", hint="give every run an output of its own")


def shaped(batch: DataFrame, target: Target) -> DataFrame:
    """The rows of one query, under the names that are shown, in order where that was asked for."""
    rows = batch.where(F.col("q") == target.query)
    if target.ordered:
        rows = rows.repartition(1).sortWithinPartitions("ts", "high", "low", "sub")
    columns = [F.when(F.col("sign") > 0, "+").otherwise("-").alias("_op")] if target.op else []
    return rows.select(*columns, *(F.col(f"o{p}").alias(n) for n, p in zip(target.columns, target.places, strict=True)))


class Listed:
    """A directory of files, those of which count that Spark's log of them lists."""

    def __init__(self, spark: SparkSession, target: Target) -> None:
        """The log is read anew: nothing is known from the batch before."""
        self._spark, self._target = spark, target
        jvm: Any = spark.sparkContext._jvm
        self._jvm = jvm
        self._sinks = jvm.org.apache.spark.sql.execution.streaming.sinks
        self.folder = join(home(target), PARTS) if target.single else target.path
        session = spark._jsparkSession
        self._log = self._sinks.FileStreamSinkLog(1, session, join(self.folder, LOG), jvm.scala.Option.empty())

    def add(self, batch: DataFrame, number: int, rows: int) -> None:
        """Write the rows of a batch, then list their files; neither if it is listed already."""
        latest = self._log.getLatestBatchId()
        last = int(latest.get()) if latest.isDefined() else -1
        if last < 0:
            last = self._begin(number)
        for missed in range(last + 1, number):  # the log has no gaps; a directory that was emptied begins with some
            self._log.add(missed, self._nothing())
        if rows == 0:
            self._log.add(number, self._nothing())
        elif number > last:
            self._sink().addBatch(number, shaped(batch, self._target)._jdf)

    def _begin(self, number: int) -> int:
        """An output that comes late has nothing of all batches up to one at which Spark puts those before together: which it is.

        Spark tells by the number of such a batch how many it puts together, so it is one that it would have chosen itself.
        """
        every = int(self._spark.conf.get("spark.sql.streaming.fileSink.log.compactInterval") or 10)
        last = number // every * every - 1
        if last >= every:
            storage_of(self.folder, self._spark).add(join(self.folder, LOG, f"{last}.compact"), b"v1")
            return last
        return -1

    def _nothing(self) -> Any:
        gateway = self._spark.sparkContext._gateway
        assert gateway is not None
        return gateway.new_array(self._sinks.SinkFileStatus, 0)

    def _sink(self) -> Any:
        target, formats = self._target, self._jvm.org.apache.spark.sql.execution.datasources
        form = FORMATS[target.format]
        kind: Any = attrgetter(form.spark)(formats)
        options = dict(form.options)
        if target.format == "csv":
            options["header"] = "false" if target.single else "true"
        if target.compression is not None:
            options["compression"] = CODECS[target.compression]
        utils = self._jvm.org.apache.spark.api.python.PythonUtils
        session = self._spark._jsparkSession
        return self._sinks.FileStreamSink(session, self.folder, kind(), utils.toSeq([]), utils.toScalaMap(options))

    def files(self) -> list[str]:
        return [self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(f.path())).toString() for f in self._log.allFiles()]

    def withdraw(self, batch: int) -> None:
        """Have no batch count from this one on. Spark keeps what was before a batch that it put together with those before."""
        storage, folder = storage_of(self.folder, self._spark), join(self.folder, LOG)
        for name in storage.names(folder):
            number = name.split(".")[0]
            if number.isdigit() and int(number) >= batch:
                storage.delete(join(folder, name))

    def sweep(self) -> None:
        """Remove what tries that were killed have left."""
        storage, listed = storage_of(self.folder, self._spark), {path.rpartition("/")[2] for path in self.files()}
        for name in storage.names(self.folder):
            if DATA.fullmatch(name) and name not in listed:
                storage.delete(join(self.folder, name))


def finish_listed(spark: SparkSession, target: Target, schema: pa.Schema) -> None:
    """The input has ended: put a single file together from its batches. Tried again after a kill, it is written again."""
    if not target.single:
        return
    storage = storage_of(target.path, spark)
    listed = Listed(spark, target)
    here = tempfile.mkdtemp(prefix="headrace-")
    try:
        paths = []
        for number, path in enumerate(listed.files()):
            paths.append(os.path.join(here, f"{number:08d}"))
            storage.fetch(path, paths[-1])
        whole = os.path.join(here, "whole")
        assemble(target, paths, schema, whole)
        storage.send(whole, target.path)
        storage.delete(listed.folder)
    finally:
        shutil.rmtree(here, ignore_errors=True)


def published(spark: SparkSession, path: str) -> list[str]:
    """The files of a directory that count, for readers other than Spark."""
    target = Target(0, path.rstrip("/"), "parquet", (), (), False, False)
    return Listed(spark, target).files()
