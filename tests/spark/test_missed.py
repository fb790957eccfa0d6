"""Rows that come behind what a K-slack query has taken are in `late(s)`, and counted, on Spark."""

from __future__ import annotations

from case_driver import read_sink, write_files

from headrace.oracle.rows import from_micros
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.runs.events import ProgressEvent
from headrace.spark.run import start_run
from headrace.sql import parse_script

SCHEMA = Schema.of(at="TIMESTAMP", id="STRING")
SQL = """
CREATE STREAM a (at TIMESTAMP, id STRING) SOURCE FILE('{at}/a/*.parquet') TIMESTAMP BY at DELAY 1 SECOND;
CREATE STREAM b (at TIMESTAMP, id STRING) SOURCE FILE('{at}/b/*.parquet') TIMESTAMP BY at DELAY 10 SECONDS;
SELECT id, _time FROM late(b) INTO FILE('{at}/late/');
SELECT id FROM late(a) INTO FILE('{at}/late_a/');
EVENT SEQ(a x, b y) WHERE x.id = y.id WITHIN 1 HOUR RETURN x.id EMIT FINAL IN ORDER USING KSLACK INTO FILE('{at}/pairs/');
"""
# The b of second 50 comes when a is at 100, and that of second 30 behind the frontier of b as well.
FILES = {"a": [[(1, "p")], [(100, "q")], [(101, "r")]], "b": [[(2, "p")], [(20, "q")], [(50, "q"), (30, "p"), (100, "q")]]}


def test_what_slack_has_missed_is_late(spark, tmp_path):
    for name, batches in FILES.items():
        rows = [[(from_micros(ts * SECOND), key) for ts, key in batch] for batch in batches]
        write_files(tmp_path / name, SCHEMA, "parquet", rows)
    run = start_run(
        spark, parse_script(SQL.format(at=tmp_path)), {}, checkpoint=str(tmp_path / "state"), buckets=2,
        options={"maxFilesPerTrigger": "1"},
    )  # fmt: skip
    run.wait(120)
    progress = [event for event in run.poll(0.1) if isinstance(event, ProgressEvent)]
    late = sorted(read_sink(tmp_path / "late"), key=lambda row: row[1])
    assert [key for key, _ in late] == ["p", "q"]
    assert [ts for _, ts in late] == [from_micros(30 * SECOND), from_micros(50 * SECOND)]
    assert read_sink(tmp_path / "late_a") == []
    assert sorted(read_sink(tmp_path / "pairs")) == [("p",), ("q",)]
    assert sum(e.late for e in progress) == 2
    assert sum(e.rows_in for e in progress) == 8
