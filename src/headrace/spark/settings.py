"""The settings of a session tuned for streams on one machine, known without PySpark: the JVM starts before that is imported."""

from __future__ import annotations

import os

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
    "spark.python.daemon.module": "headrace.spark.workers.daemon",
    # By default packing and state have daemons of their own, which differ in this only: everything would be loaded twice.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Else each call that builds a plan asks the JVM three more times, to be able to say where in the program it stands.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.locality.wait": "0s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # ParallelGC: rows travel in arrays of megabytes, for which G1 marks the heap in the background, and a core is gone.
    # No PerfData: a file in the temporary directory that outlives a JVM which is killed.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:-UsePerfData -Xss16m "
    "--add-modules=jdk.incubator.vector -Dlog4j2.level=error "
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


def settings_of(name: str = "headrace", cores: int | None = None, **settings: str) -> dict[str, str]:
    """All settings of a session; those given here before those of the profile."""
    cores = cores or min(os.cpu_count() or 2, 8)
    named = {"spark.master": f"local[{cores}]", "spark.app.name": name, "spark.sql.shuffle.partitions": str(cores)}
    memory = os.environ.get("HEADRACE_DRIVER_MEMORY")
    return {**STREAMING, **LOCAL, **named, **({"spark.driver.memory": memory} if memory else {}), **settings}
