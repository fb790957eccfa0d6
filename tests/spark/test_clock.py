"""Time that passes without rows, on a source that is followed: IDLE, END AFTER, and going on after a stop."""

from __future__ import annotations

import time
from pathlib import Path

from case_driver import read_sink, write_file

from headrace.oracle.rows import from_micros
from headrace.plan.schema import Schema
from headrace.spark.run import start_run
from headrace.sql import parse_script

SCHEMA = Schema.of(at="TIMESTAMP", id="INT")
SCRIPT = """
CREATE STREAM idle (at TIMESTAMP, id INT) SOURCE FILE('{}/idle', 'parquet') TIMESTAMP BY at DELAY 2 SECONDS IDLE 2 SECONDS;
CREATE STREAM ends (at TIMESTAMP, id INT) SOURCE FILE('{}/ends', 'parquet') TIMESTAMP BY at DELAY 1 HOUR END AFTER 3 SECONDS;
SELECT id, COUNT(*) AS n FROM idle [RANGE 10 SECONDS] EMIT FINAL INTO FILE('{}/idle_out');
SELECT id FROM late(idle) INTO FILE('{}/idle_late');
SELECT id, COUNT(*) AS n FROM ends [RANGE 10 SECONDS] EMIT FINAL INTO FILE('{}/ends_out');
SELECT id FROM late(ends) INTO FILE('{}/ends_late');
"""


def write(folder: Path, *rows: tuple[float, int], written: float | None = None) -> None:
    folder.mkdir(exist_ok=True)
    name = f"{len(list(folder.glob('*.parquet'))):04d}.parquet"
    write_file(folder / name, SCHEMA, [(from_micros(int(t * 1_000_000)), i) for t, i in rows], written)


def wait_for(folder: Path, rows: list[tuple], run) -> None:
    """Until a sink has these rows."""
    deadline = time.monotonic() + 150
    while sorted(read_sink(folder)) != rows and time.monotonic() < deadline and run.error is None:
        time.sleep(0.1)
    assert run.error is None
    assert sorted(read_sink(folder)) == rows


def test_silence_makes_results_final_and_later_rows_late(spark, tmp_path):
    write(tmp_path / "idle", (10, 1), (12, 2))
    write(tmp_path / "ends", (10, 1), (5, 2))
    script = parse_script(SCRIPT.replace("{}", str(tmp_path)))

    def start():
        return start_run(spark, script, {}, checkpoint=str(tmp_path / "checkpoint"), follow=True, buckets=1, trigger_ms=200)

    run = start()
    try:
        wait_for(tmp_path / "idle_out", [(1, 1), (2, 2)], run)
        wait_for(tmp_path / "ends_out", [(1, 2), (2, 1)], run)
        write(tmp_path / "idle", (12, 3), (4000, 4))
        write(tmp_path / "ends", (4000, 3))
        wait_for(tmp_path / "idle_late", [(3,)], run)
        wait_for(tmp_path / "ends_late", [(3,)], run)
        wait_for(tmp_path / "idle_out", [(1, 1), (2, 2), (4, 1)], run)
    finally:
        run.stop()
    assert run.done
    assert run.error is None
    run = start()  # goes on where it was
    try:
        write(tmp_path / "idle", (10_000, 5), (10_005, 6))
        wait_for(tmp_path / "idle_out", [(1, 1), (2, 2), (4, 1), (5, 1), (6, 2)], run)
    finally:
        run.stop()
    assert read_sink(tmp_path / "ends_late") == [(3,)]
    assert sorted(read_sink(tmp_path / "ends_out")) == [(1, 2), (2, 1)]


SYSTEM = """
CREATE STREAM s (at TIMESTAMP, id INT) SOURCE FILE('{}/in', 'parquet') TIMESTAMP BY at DELAY 1 HOUR;
SELECT id, SUM(id) AS total FROM s [ROWS 2] EMIT FINAL IN ORDER INTO FILE('{}/by_time');
SELECT id, SUM(id) AS total FROM s [ROWS 2] WITH (order = 'arrival') EMIT FINAL IN ORDER INTO FILE('{}/by_arrival');
SELECT SUM(id) AS total FROM s [SIZE 2] WITH (profile = 'flink') EMIT FINAL IN ORDER INTO FILE('{}/flink');
SELECT COUNT(*) AS n, MAX(id) AS newest FROM s [SIZE 1 DAY SYSTEM] EMIT FINAL INTO FILE('{}/today');
"""


def test_system_time_is_that_of_arrival(spark, tmp_path):
    now = time.time()  # Spark takes files by age, and those of one millisecond in any order
    write(tmp_path / "in", (40, 1), (30, 2), written=now - 1)
    write(tmp_path / "in", (20, 4), (10, 8), written=now)
    run = start_run(spark, parse_script(SYSTEM.replace("{}", str(tmp_path))), {}, buckets=2).wait(120)
    assert run.done
    assert read_sink(tmp_path / "by_time") == [(8, 8), (4, 12), (2, 6), (1, 3)]
    assert read_sink(tmp_path / "by_arrival") == [(1, 1), (2, 3), (4, 6), (8, 12)]
    assert read_sink(tmp_path / "flink") == [(3,), (12,)]
    today = read_sink(tmp_path / "today")  # two days, if midnight passes
    assert (sum(n for n, _ in today), max(newest for _, newest in today)) == (4, 8)
