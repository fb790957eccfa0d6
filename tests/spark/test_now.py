"""The time of a micro-batch: for streams without a time of their own, and without compiling the plan anew for every batch."""

from __future__ import annotations

import os
from pathlib import Path

from case_driver import read_sink, write_file

from headrace.plan.schema import Schema
from headrace.spark.run import start_run
from headrace.sql import parse_script

SCHEMA = Schema.of(id="INT", v="DOUBLE")
ARRIVAL = """
CREATE STREAM s (id INT, v DOUBLE) SOURCE FILE('{}/in', 'parquet') DELAY 0 SECONDS;
SELECT id, COUNT(*) AS n, SUM(v) AS total FROM s [ROWS 2] EMIT FINAL INTO FILE('{}/rows');
SELECT id, COUNT(*) AS n FROM s [RANGE 1 HOUR] EMIT FINAL INTO FILE('{}/hour');
SELECT id FROM late(s) INTO FILE('{}/late');
"""


def write(folder: Path, number: int, *rows: tuple[int, float]) -> None:
    folder.mkdir(exist_ok=True)
    file = folder / f"{number:04d}.parquet"
    write_file(file, SCHEMA, list(rows))
    os.utime(file, (1e9 + number, 1e9 + number))  # Spark takes files by age, and those of one millisecond in any order


def run(spark, script: str, place: Path, **options) -> None:
    start_run(spark, parse_script(script.replace("{}", str(place))), {}, buckets=2, trigger_ms=10, **options).wait(150)


def test_a_stream_without_a_time_goes_by_arrival(spark, tmp_path):
    write(tmp_path / "in", 0, (3, 1.0), (1, 2.0))
    write(tmp_path / "in", 1, (2, 4.0))
    run(spark, ARRIVAL, tmp_path, options={"maxFilesPerTrigger": "1"})
    assert sorted(read_sink(tmp_path / "rows")) == [(1, 2, 3.0), (2, 2, 6.0), (3, 1, 1.0)]
    assert sorted(read_sink(tmp_path / "hour")) == [(1, 2), (2, 3), (3, 1)]
    assert read_sink(tmp_path / "late") == []


def test_only_the_first_batches_compile(compiled, spark, tmp_path):
    """Spark writes the time of a batch into generated code; a plan that has it there is compiled for every batch."""
    count = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    script = ARRIVAL.replace("DELAY 0 SECONDS", "DELAY 0 SECONDS IDLE 1 HOUR AHEAD 1 HOUR END AFTER 1 DAY")
    compiled = []
    for name, files in (("warm", 2), ("few", 2), ("many", 6)):
        place = tmp_path / name
        place.mkdir()
        for number in range(files):
            write(place / "in", number, (number, 1.0))
        before = count.getCount()
        run(spark, script, place, options={"maxFilesPerTrigger": "1"})
        compiled.append(count.getCount() - before)
    assert compiled[2] <= compiled[1] + 2, compiled
