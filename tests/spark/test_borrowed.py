"""A session that is the user's own: few tasks, and his settings are as they were."""

from __future__ import annotations

import datetime
import os

import pytest

import headrace as hr
from headrace.runs.events import RowsEvent
from headrace.spark.borrowed import PARTITIONS, partitions_for, settings
from headrace.spark.run import start_run
from headrace.sql import parse_script

AT = datetime.datetime(2026, 3, 2, 12, 0, tzinfo=datetime.UTC)


@pytest.fixture
def ordinary(spark, monkeypatch):
    """As if nobody had said how many partitions there are to be."""
    session = spark.newSession()
    session.conf.set(PARTITIONS, "200")
    monkeypatch.setattr("headrace.spark.borrowed._chosen", lambda session, key: False)
    return session


def frame(session):
    rows = [(n, "ab"[n % 2], AT + datetime.timedelta(minutes=n)) for n in range(8)]
    return session.createDataFrame(rows, "id BIGINT, card STRING, at TIMESTAMP").coalesce(1)


def counts(session):
    payments = hr.stream(frame(session), timestamp="at", delay="2 minutes", name="payments")
    return payments.window(hr.range("5 minutes")).group_by("card").agg("id", n=hr.count()).emit("final")


def test_as_many_partitions_as_cores(ordinary, spark):
    assert partitions_for(ordinary) == max(2, spark.sparkContext.defaultParallelism)


def test_how_many_the_user_says(spark):
    assert partitions_for(spark) == int(spark.conf.get(PARTITIONS))


def test_settings_are_given_back(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "7")
    with settings(session, {PARTITIONS: "3", "spark.sql.x": "y"}):
        assert (session.conf.get(PARTITIONS), session.conf.get("spark.sql.x")) == ("3", "y")
    assert session.conf.get(PARTITIONS) == "7"
    assert session.conf.get("spark.sql.x", None) is None


def test_a_frame_of_results_has_few_partitions_and_belongs_to_the_session(ordinary):
    results = counts(ordinary).to_df()
    assert results.rdd.getNumPartitions() == partitions_for(ordinary)
    results.createOrReplaceTempView("results")
    found = {tuple(row) for row in ordinary.sql("SELECT id, n FROM results").collect()}
    assert found == {(n, min(n // 2 + 1, 3)) for n in range(8)}
    assert ordinary.conf.get(PARTITIONS) == "200"


def test_a_run_has_few_partitions(ordinary, tmp_path):
    with hr.start({str(tmp_path / "out"): counts(ordinary)}) as run:
        assert isinstance(run, hr.Run)
        run.wait(10)
    assert run.done
    assert run.error is None
    assert (run.progress.batches, run.progress.rows_in, run.progress.rows_out) == (1, 8, 8)
    assert ordinary.conf.get(PARTITIONS) == "200"


def test_the_end_of_files_that_are_all_there_comes_with_their_rows(spark, tmp_path):
    (tmp_path / "s.csv").write_text("id,at\n1,2026-03-02 12:00:40Z\n2,2026-03-02 12:00:50Z\n")
    script = parse_script(
        f"CREATE STREAM s (id BIGINT, at TIMESTAMP) SOURCE FILE('{tmp_path}/s.csv') TIMESTAMP BY at DELAY 1 MINUTE; "
        "SELECT id, COUNT(*) AS n FROM s [RANGE 5 MINUTES] EMIT FINAL IN ORDER;"
    )
    run = start_run(spark, script, {}).wait(240)
    assert (run.progress.batches, run.progress.rows_in, run.progress.rows_out) == (1, 2, 2)
    assert [event.rows.to_pylist() for event in run.poll(0) if isinstance(event, RowsEvent)] == [
        [{"id": 1, "n": 1}, {"id": 2, "n": 2}]
    ]
    folder = os.path.dirname(run.path)
    assert os.path.exists(folder)
    assert run.poll(0) == []
    assert not os.path.exists(folder)
