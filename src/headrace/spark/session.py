"""A Spark session tuned for streams on one machine. A user's own session does without it."""

from __future__ import annotations

import os
import signal
import threading

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.spark.failures import explained
from headrace.spark.interpreter import choose_interpreter
from headrace.spark.quiet import quiet_context

# Each line was measured; see spark-notes in decisions/0003.
STREAMING = {
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}
LOCAL = {
    # Workers that are loaded before they are forked, and stay with their partitions.
    "spark.python.daemon.module": "headrace.spark.daemon",
    # By default packing and state have daemons of their own, which differ in this only: everything would be loaded twice.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.locality.wait": "0s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # ParallelGC: rows travel in arrays of megabytes, for which G1 marks the heap in the background, and a core is gone.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Xss16m --add-modules=jdk.incubator.vector -Dlog4j2.level=error "
    # Rows pass through Arrow twice; Spark writes within bounds, so they need not be checked for every value.
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.streaming.metricsEnabled": "false",
    # What passes between tasks stays on this machine, in the page cache.
    "spark.shuffle.compress": "false",
    # A file is split evenly among the cores; by default opening one counts as much as reading 4 MiB.
    "spark.sql.files.openCostInBytes": "65536",
}


def local_session(name: str = "headrace", cores: int | None = None, quiet: bool = False, **settings: str) -> SparkSession:
    """A session in this process, with the settings that make small micro-batches quick; the one there is, if there is one.

    With `quiet`, nothing that the JVM or the Python workers say reaches the terminal.
    """
    cores = cores or min(os.cpu_count() or 2, 8)
    choose_interpreter()
    named = {"spark.master": f"local[{cores}]", "spark.app.name": name, "spark.sql.shuffle.partitions": str(cores)}
    memory = os.environ.get("HEADRACE_DRIVER_MEMORY")
    every = {**STREAMING, **LOCAL, **named, **({"spark.driver.memory": memory} if memory else {}), **settings}
    interrupt = signal.getsignal(signal.SIGINT)
    if quiet and SparkContext._active_spark_context is None and SparkContext._gateway is None:
        with explained():
            quiet_context(every)  # the session below finds it
    builder = SparkSession.builder
    for key, value in every.items():
        builder = builder.config(key, value)
    with explained():
        spark = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread() and interrupt is not None:
        # PySpark would cancel all jobs on Ctrl-C, in the midst of another call to the JVM: a stream would fail, not stop.
        signal.signal(signal.SIGINT, interrupt)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def require_state_store(spark: SparkSession) -> None:
    """The setting without which a stateful Python operator cannot run, for a session that is not ours."""
    key = "spark.sql.streaming.stateStore.providerClass"
    spark.conf.set(key, STREAMING[key])
