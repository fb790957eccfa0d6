"""What the Flink scripts share: arguments, a table environment, the source table, the timed run.

Runs inside Flink's own virtual environment, so it imports nothing of this project.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

STARTED = time.perf_counter()


def parser(description: str) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--data", required=True, help="directory of parquet files, one per reader, each in order")
    options.add_argument("--jars", required=True, help="comma-separated jars for parquet")
    options.add_argument("--delay-seconds", type=float, default=0.0, help="bound on disorder")
    options.add_argument("--parallelism", type=int, default=2)
    options.add_argument("--backend", choices=("hashmap", "rocksdb"), default="hashmap")
    options.add_argument("--checkpoint-seconds", type=float, default=10.0)
    options.add_argument("--repeat", type=int, default=1, help="submit the job so often in this JVM: the first is cold")
    options.add_argument("--output", default="", help="write results here as parquet instead of dropping them")
    return options


def table_environment(options: argparse.Namespace, checkpoints: str) -> Any:
    from pyflink.common import Configuration
    from pyflink.table import EnvironmentSettings, TableEnvironment

    settings = Configuration()
    for key, value in {
        "parallelism.default": str(options.parallelism),
        "state.backend.type": options.backend,
        "execution.checkpointing.interval": f"{int(options.checkpoint_seconds * 1000)} ms",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": Path(checkpoints).as_uri(),
        "execution.checkpointing.incremental": "true",
        "pipeline.object-reuse": "true",
        "pipeline.jars": ";".join(Path(jar).as_uri() for jar in options.jars.split(",")),
        "table.local-time-zone": "UTC",
    }.items():
        settings.set_string(key, value)
    mode = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings)
    return TableEnvironment.create(mode.build())


def parquet_at(path: str) -> str:
    return f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{Path(path).resolve().as_uri()}'"


def source_ddl(options: argparse.Namespace) -> str:
    """`at` is read as the microseconds it is stored as; Flink's event time has milliseconds."""
    return f"""CREATE TABLE payments (
        id BIGINT, card BIGINT, merchant BIGINT, amount DOUBLE, `at` BIGINT,
        ts AS TO_TIMESTAMP_LTZ(`at` / 1000, 3),
        WATERMARK FOR ts AS ts - INTERVAL '{options.delay_seconds:.3f}' SECOND
    ) WITH ({parquet_at(options.data)})"""


def sink_ddl(columns: str, output: str) -> str:
    target = parquet_at(output) if output else "'connector' = 'blackhole'"
    return f"CREATE TABLE results ({columns}) WITH ({target})"


def count_rows(data: str) -> int:
    import pyarrow.parquet as pq

    return sum(pq.ParquetFile(path).metadata.num_rows for path in Path(data).glob("*.parquet"))


def timed(options: argparse.Namespace, columns: str, query: str) -> dict[str, object]:
    """Run to the end of input. `seconds` starts when the job has been submitted: no JVM, no planning.

    They are those of the first job, in a JVM that has done nothing before; `warm_seconds` are those of the jobs behind it.
    """
    with tempfile.TemporaryDirectory(prefix="flink-checkpoints-") as checkpoints:
        tables = table_environment(options, checkpoints)
        tables.execute_sql(source_ddl(options))
        tables.execute_sql(sink_ddl(columns, options.output))
        called, submitted, done = once(tables, query)
        again = [once(tables, query) for _ in range(options.repeat - 1)]
    rows = count_rows(options.data)
    return {
        "rows": rows,
        "seconds": done - submitted,
        "query_seconds": done - called,
        "total_seconds": done - STARTED,
        "warm_seconds": [end - begin for _, begin, end in again],
        "events_per_second": rows / (done - submitted),
        "events_per_second_total": rows / (done - STARTED),
        "backend": options.backend,
        "checkpoint_seconds": options.checkpoint_seconds,
        "delay_seconds": options.delay_seconds,
        "parallelism": options.parallelism,
    }


def once(tables: Any, query: str) -> tuple[float, float, float]:
    """When a job was called for, when it was submitted, when it was done."""
    called = time.perf_counter()
    job = tables.execute_sql(f"INSERT INTO results {query}")
    submitted = time.perf_counter()
    job.wait()
    return called, submitted, time.perf_counter()


def report(result: dict[str, object]) -> None:
    print(json.dumps(result), flush=True)
