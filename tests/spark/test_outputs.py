"""Outputs of whole runs: a single file where one was asked for, and what another run wrote is neither mixed with nor lost."""

from __future__ import annotations

import csv
import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from case_driver import read_sink

import headrace as hr
from headrace.errors import InUseError, OutputError, QueryError
from headrace.spark.run import start_run, start_script
from headrace.sql import parse_script

SCRIPT = """
CREATE STREAM p (id INT, card STRING, at TIMESTAMP) SOURCE FILE('{0}/in/') TIMESTAMP BY at DELAY 1 SECOND;
SELECT id, card, COUNT(*) AS n FROM p [RANGE 1 MINUTE] GROUP BY card EMIT FINAL IN ORDER INTO FILE('{0}/out.csv');
SELECT id, card FROM p EMIT FINAL INTO FILE('{0}/out.json.gz');
SELECT id, card FROM p EMIT FINAL INTO FILE('{0}/out.parquet');
SELECT id FROM late(p) INTO FILE('{0}/late.csv');
SELECT id FROM late(p) INTO FILE('{0}/late.parquet');
SELECT id, card FROM p EMIT FINAL INTO FILE('{0}/folder/', 'csv');
SELECT id, card FROM p EMIT FINAL INTO TABLE {1};
"""
START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS = 40


@pytest.fixture(scope="module")
def done(spark, tmp_path_factory):
    """A run to its end, in ten batches."""
    root = tmp_path_factory.mktemp("outputs")
    (root / "in").mkdir()
    for number in range(10):
        lines = [f'{i},"c,{i % 3}",{START + timedelta(seconds=i)}' for i in range(number * 4, number * 4 + 4)]
        (root / "in" / f"{number:02d}.csv").write_text("id,card,at\n" + "\n".join(lines) + "\n")
        os.utime(root / "in" / f"{number:02d}.csv", (1_700_000_000 + number,) * 2)
    table = f"outputs_{os.getpid()}"
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    script = parse_script(SCRIPT.format(root, table))
    start_run(
        spark, script, {}, checkpoint=str(root / "state"), buckets=2, options={"maxFilesPerTrigger": "1"}
    ).wait(240)  # fmt: skip
    yield root, script, table
    spark.sql(f"DROP TABLE IF EXISTS {table}")


def test_single_files(done, spark):
    root, _, table = done
    with (root / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(int(r["id"]), r["card"], int(r["n"])) for r in rows] == [(i, f"c,{i % 3}", i // 3 + 1) for i in range(ROWS)]
    lines = gzip.decompress((root / "out.json.gz").read_bytes()).decode().splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == list(range(ROWS))
    assert sorted(pq.read_table(root / "out.parquet").column("id").to_pylist()) == list(range(ROWS))
    assert (root / "late.csv").read_text() == '"id"\n', "no rows, but a file that says so"
    assert pq.read_table(root / "late.parquet").num_rows == 0
    assert sorted(r.id for r in spark.table(table).collect()) == list(range(ROWS))
    assert len(list((root / "folder").glob("batch-*.csv"))) >= 5, (
        "a path that ends in / is a directory, with files for every batch"
    )
    assert sorted(row[0] for row in read_sink(root / "folder")) == list(range(ROWS))


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(p): p.read_bytes()
        for p in root.rglob("*")
        if p.is_file() and not {"state", "state2"} & {*p.parts} and "lock" not in p.name
    }


def test_another_run_into_the_same_outputs_is_refused(done, spark):
    root, script, _ = done
    before = contents(root)
    for checkpoint in (None, str(root / "state2")):
        with pytest.raises(OutputError, match="holds the output of another run, of the checkpoint") as refused:
            start_run(spark, script, {}, checkpoint=checkpoint, buckets=2)
        assert "--overwrite" in refused.value.hint
    assert contents(root) == before
    start_run(spark, script, {}, checkpoint=str(root / "state"), buckets=2, overwrite=True).wait(60)
    assert contents(root) == before, "its own run has ended, and has nothing to do"


@pytest.mark.parametrize("number", range(6))
def test_every_kind_of_sink_is_refused(done, spark, number):
    """One query at a time: each of them by itself."""
    _, script, _ = done
    alone = type(script)((script.queries[number],), script.streams)
    with pytest.raises(OutputError, match="holds the output of another run"):
        start_run(spark, alone, {}, buckets=2)


def test_a_refusal_comes_before_spark_starts(done, monkeypatch):
    root, script, _ = done
    monkeypatch.setattr("headrace.spark.run.script_session", lambda *a, **k: pytest.fail("Spark was started"))
    with pytest.raises(OutputError, match="--overwrite"):
        start_script(script)
    follows = parse_script(SCRIPT.split(";")[0].format(root) + f"; SELECT id FROM p INTO FILE('{root}/new.parquet')")
    with pytest.raises(QueryError, match="a parquet file cannot grow"):
        start_script(follows, follow=True)


def test_two_runs_on_one_checkpoint(done, spark, tmp_path):
    root, _, _ = done
    text = SCRIPT.split(";")[0].format(root) + f"; SELECT id FROM p EMIT FINAL INTO FILE('{tmp_path}/ids.csv')"
    script = parse_script(text)
    first = start_run(spark, script, {}, checkpoint=str(tmp_path / "state"), follow=True, buckets=2)
    try:
        for _ in range(2):
            with pytest.raises(InUseError, match=f"process {os.getpid()} on .* is running on the checkpoint"):
                start_run(spark, script, {}, checkpoint=str(tmp_path / "state"), follow=True, buckets=2)
        with pytest.raises(OutputError, match=f"process {os.getpid()} on .* is writing into"):
            start_run(spark, script, {}, checkpoint=str(tmp_path / "other"), buckets=2, overwrite=True)
        assert first.query is not None
        first.query.processAllAvailable()
        assert not first.done, "the first, healthy one goes on"
    finally:
        first.stop()
    assert first.error is None
    assert len((tmp_path / "ids.csv").read_text().splitlines()) > 30


def test_static_frames_sign_their_outputs_too(spark, tmp_path):
    def start(rows: int, **more):
        df = spark.createDataFrame([(i, START + timedelta(seconds=i)) for i in range(rows)], "id INT, at TIMESTAMP")
        stream = hr.stream(df, timestamp="at", delay="1 second", name="s")
        return hr.start({f"{tmp_path}/ids.csv": stream.emit("final")}, buckets=2, **more)

    def ids() -> list[int]:
        return sorted(int(line.split(",")[0]) for line in (tmp_path / "ids.csv").read_text().splitlines()[1:])

    start(5)
    with pytest.raises(OutputError, match="holds the output of another run"):
        start(3)
    assert ids() == list(range(5))
    start(3, overwrite=True)
    assert ids() == list(range(3))
    start(4, overwrite=True, checkpoint=str(tmp_path / "state"))
    start(6, checkpoint=str(tmp_path / "state"))
    assert ids() == list(range(6)), "with its checkpoint, a run may be done again"
