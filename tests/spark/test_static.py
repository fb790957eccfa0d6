"""The Python API on DataFrames: static ones give the answer of streams; `to_df` for a writeStream of one's own; `hr.start`."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from case_driver import read_sink, write_files

import headrace as hr
from headrace.oracle.evaluate import expected_after_each_batch
from headrace.oracle.rows import canonical_row, from_micros
from headrace.plan.query import Query
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.testing.disorder import disordered
from headrace.testing.engine import Arrival, Batch

SCHEMA = Schema.of(at="TIMESTAMP", id="INT", card="STRING", shop="INT", amount="DOUBLE")
DDL = "at TIMESTAMP, id INT, card STRING, shop INT, amount DOUBLE"


def payments():
    rng = Random(5)
    events = [
        (
            i * SECOND,
            (from_micros(i * SECOND), i, rng.choice("abc"), rng.randint(1, 2), rng.choice((0.1, 0.2, 1e16, -1e16, None))),
        )
        for i in range(40)
    ]
    return disordered("payments", events, seed=1, share=0.4, up_to=5 * SECOND, batches=4)


BATCHES = payments()
ROWS = [a.values for batch in BATCHES for a in batch.rows["payments"]]


@pytest.fixture
def files(tmp_path):
    write_files(tmp_path / "in", SCHEMA, "parquet", [[a.values for a in b.rows["payments"]] for b in BATCHES])
    return tmp_path / "in"


@pytest.fixture
def static(spark, files):
    return spark.read.schema(DDL).parquet(str(files))


@pytest.fixture
def streaming(spark, files):
    return spark.readStream.schema(DDL).option("maxFilesPerTrigger", "1").parquet(str(files))


def profile_of(frame):
    stream = hr.stream(frame, timestamp="at", delay="5 seconds", name="payments")
    return stream.window(hr.range("10 seconds")).group_by("card").agg(
        "id", total=hr.sum("amount"), n=hr.count(), shops=hr.count_distinct("shop"), last=hr.last("id"), lo=hr.min("amount")
    )  # fmt: skip


def answer(node):
    """What the oracle says in the end."""
    return Counter(canonical_row(row, node.schema) for _, row in expected_after_each_batch(Query("q", node), BATCHES)[-1].final)


def bag(node, rows):
    return Counter(canonical_row(tuple(row), node.schema) for row in rows)


def consolidated(node, rows):
    total = Counter()
    for op, *row in rows:
        total[canonical_row(tuple(row), node.schema)] += 1 if op == "+" else -1
    assert min(total.values()) >= 0
    return +total


def test_a_static_frame_gives_the_final_answer(static):
    profile = profile_of(static)
    found = profile.emit("final").to_df()
    assert not found.isStreaming
    assert found.columns == ["card", "id", "total", "n", "shops", "last", "lo"]
    assert bag(profile.node, found.collect()) == answer(profile.node)


def test_a_static_frame_is_complete_however_spark_reads_it(static):
    """Nothing in it is late: its order and its partitions change nothing."""
    stream = hr.stream(static.orderBy("id", ascending=False).repartition(3), timestamp="at", delay=0, name="payments")
    profile = stream.window(hr.range("10 seconds")).group_by("card").agg("id", n=hr.count(), hi=hr.max("amount"))
    whole = profile_answer(profile.node)
    assert consolidated(profile.node, profile.to_df().collect()) == whole
    assert bag(profile.node, profile.emit("final").to_df().collect()) == whole


def profile_answer(node):
    """What the oracle says of all rows in the order of time."""
    in_order = [Batch(0, {"payments": sorted((Arrival(row) for row in ROWS), key=lambda a: a.values[0])})]
    found = expected_after_each_batch(Query("q", node), in_order)[-1].final
    return Counter(canonical_row(row, node.schema) for _, row in found)


def test_metrics_over_different_keys_in_one_row(static):
    scored = hr.stream(static, timestamp="at", delay="5 seconds", name="payments").score(
        "id",
        by_card=hr.sum("amount").over("card", hr.range("10 seconds")),
        by_shop=hr.count().filter("amount > 0").over("shop", hr.range("5 seconds", lag="5 seconds")),
        recent=hr.avg("amount").over(["card", "shop"], hr.rows(3, partition_by=["card", "shop"])),
    )
    assert bag(scored.node, scored.emit("final").to_df().collect()) == answer(scored.node)


def test_a_stream_goes_into_a_write_stream_of_ones_own(spark, streaming, tmp_path):
    profile = profile_of(streaming)
    changes = profile.emit("changes").to_df()
    assert changes.isStreaming
    query = (
        changes.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "own")).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(200)
    found = spark.read.schema(changes.schema).parquet(str(tmp_path / "out"))
    assert found.columns[0] == "_op"
    assert consolidated(profile.node, found.collect()) == answer(profile.node)


def test_start_writes_results_late_and_rejected_rows(streaming, tmp_path):
    stream = hr.stream(streaming, timestamp="nullif(at, timestamp_seconds(7))", delay="2 seconds", name="payments")
    profile = stream.window(hr.range("10 seconds")).group_by("card").agg("id", total=hr.sum("amount"))
    run = hr.start(
        {
            str(tmp_path / "profiles"): profile.emit("final"),
            str(tmp_path / "late"): stream.late().select("id"),
            hr.file(str(tmp_path / "rejected"), "json"): stream.rejected(),
        },
        checkpoint=str(tmp_path / "checkpoint"),
        buckets=2,
    )
    run.wait(200)
    outcome = [e.outcomes[0] for e in _expected(profile.node)]
    assert bag(profile.node, read_sink(tmp_path / "profiles")) == answer(profile.node)
    late = [e.row[1] for o in outcome for e in o.late]
    assert late
    assert sorted(i for (i,) in read_sink(tmp_path / "late")) == sorted(late)
    rejected = read_sink(tmp_path / "rejected")
    assert len(rejected) == 1
    assert "is NULL" in rejected[0][1]


def _expected(node):
    return expected_after_each_batch(Query("q", node), BATCHES)


def test_start_on_a_static_frame(static, tmp_path):
    profile = profile_of(static)
    hr.start({str(tmp_path / "out"): profile.emit("final")}, checkpoint=str(tmp_path / "checkpoint"), buckets=2).wait(200)
    assert bag(profile.node, read_sink(tmp_path / "out")) == answer(profile.node)


def test_partitions_and_offsets_of_the_source_place_the_rows(spark):
    """Two partitions of which one is far behind: it holds the frontier, so nothing is late; ties go by partition, then offset."""
    rows = [
        (from_micros(t * SECOND), p, o, x)
        for t, p, o, x in ((50, 0, 0, 1), (60, 0, 1, 2), (10, 1, 0, 4), (50, 1, 1, 8), (60, 1, 2, 16))
    ]
    frame = spark.createDataFrame(rows, "at TIMESTAMP, p INT, o BIGINT, x INT")
    stream = hr.stream(frame, timestamp="at", delay=0, name="parts", position=("p", "o"))
    sums = stream.window(hr.range("5 seconds")).agg("x", s=hr.sum("x"), first=hr.first("x"))
    assert sorted(map(tuple, sums.emit("final").to_df().collect())) == [(1, 1, 1), (2, 2, 2), (4, 4, 4), (8, 9, 1), (16, 18, 2)]


def test_dates_are_those_of_the_session(spark):
    """An instant near midnight is on the day that the session's time zone says, as in Spark SQL."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.sql(
            "SELECT timestamp_seconds(t) AS at, t AS x FROM VALUES (1704085200 - 1), (1704085200), (1704085200 + 1) AS v(t)"
        )
        stream = hr.stream(frame.coalesce(1), timestamp="at", delay=0, name="days")
        days = stream.window(hr.unbounded()).group_by("CAST(at AS DATE)").agg("x", n=hr.count())
        assert [(str(day), n) for day, _, n in sorted(map(tuple, days.emit("final").to_df().collect()))] == [
            ("2023-12-31", 1), ("2024-01-01", 1), ("2024-01-01", 2),
        ]  # fmt: skip
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
