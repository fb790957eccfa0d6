"""A DataFrame that reads files has the order of its files, whatever tasks Spark packs them into; one that has none says so."""

from __future__ import annotations

import warnings

import pytest
from case_driver import FIRST_WRITTEN, read_sink, write_file
from pyspark.sql import functions as F

import headrace as hr
from headrace.notices import HeadraceWarning
from headrace.oracle.rows import from_micros
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.runs.events import ProgressEvent
from headrace.spark.sources.orders import file_order
from headrace.spark.sources.prepare import _from_frame

SCHEMA = Schema.of(at="TIMESTAMP", id="INT", text="STRING")
DDL = "at TIMESTAMP, id INT, text STRING"


def write(folder, kind: str) -> int:
    """Files of which the later are the larger: Spark takes the largest first. Tells how many rows there are."""
    folder.mkdir()
    total = 0
    for number in range(12):
        rows = [(from_micros((total + i) * SECOND), total + i, "x" * 50) for i in range(1 + 40 * number)]
        total += len(rows)
        write_file(folder / f"{number:02d}.{kind}", SCHEMA, rows, FIRST_WRITTEN + number)
    return total


def test_no_row_of_files_is_late_that_is_in_order(spark, tmp_path):
    """Each format as a stream of its own, all in one run; the stream that is shuffled shows what they would be without."""
    total = write(tmp_path / "csv", "csv")
    write(tmp_path / "parquet", "parquet")
    frames = {
        "csv": spark.readStream.schema(DDL).csv(str(tmp_path / "csv")).where("id >= 0").withColumn("more", F.upper("text")),
        "parquet": spark.readStream.schema(DDL).parquet(str(tmp_path / "parquet")),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeadraceWarning)
        streams = {name: hr.stream(frame, "at", "1 second", name=name) for name, frame in frames.items()}
        outputs = {}
        for name, stream in streams.items():
            outputs[str(tmp_path / f"{name}_late")] = stream.late()
            outputs[str(tmp_path / f"{name}_out")] = stream.select("id").emit("final in order")
        run = hr.start(outputs, checkpoint=str(tmp_path / "checkpoint"), buckets=2)
    run.wait(300)
    for name in frames:
        assert read_sink(tmp_path / f"{name}_late") == []
        assert read_sink(tmp_path / f"{name}_out") == [(n,) for n in range(total)]
    events = [event for event in run.poll(0.1) if isinstance(event, ProgressEvent)]
    assert sum(event.late for event in events) == 0
    assert sum(event.rows_in for event in events) == 2 * total


def test_which_frames_can_tell(spark, tmp_path):
    write(tmp_path / "in", "parquet")
    (tmp_path / "csv").mkdir()
    parquet = spark.readStream.schema(DDL).parquet(str(tmp_path / "in"))
    csv = spark.readStream.schema(DDL).csv(str(tmp_path / "csv"))

    def kind(frame) -> str | None:
        found = file_order(frame)
        return None if found is None else found[0]

    assert kind(parquet) == "rows"
    assert kind(csv) == kind(csv.select("id", "at").where("id > 3").withWatermark("at", "1 minute")) == "lines"
    assert kind(spark.readStream.schema(DDL).json(str(tmp_path / "csv"))) == "lines"
    assert kind(spark.read.parquet(str(tmp_path / "in"))) == "rows"
    assert kind(csv.repartition(2)) is None
    assert kind(csv.union(csv)) is None
    assert kind(csv.selectExpr("id", "explode(array(1, 2)) AS x")) is None
    assert kind(csv.mapInPandas(lambda batches: batches, DDL)) is None
    assert kind(spark.readStream.format("rate").load()) is None
    assert kind(csv.selectExpr("id", "struct(1 AS file_path) AS _metadata")) is None


def test_a_frame_without_an_order_says_so(spark, tmp_path):
    rate = spark.readStream.format("rate").load()
    stream = hr.stream(rate, "timestamp", "1 second", name="ticks").node.stream
    with pytest.warns(HeadraceWarning, match="stream 'ticks': the order of the rows of this DataFrame is not known.*position="):
        _from_frame(stream, stream.source, rate)
    static = spark.range(3).selectExpr("id", "timestamp_micros(id) AS at")  # complete: nothing of it can be late
    with warnings.catch_warnings():
        warnings.simplefilter("error", HeadraceWarning)
        stream = hr.stream(static, "at", "1 second").node.stream
        assert _from_frame(stream, stream.source, static).places == "arrival"
        kafka = rate.selectExpr("timestamp", "CAST(value % 2 AS INT) AS partition", "value AS offset")
        stream = hr.stream(kafka, "timestamp", "1 second").node.stream
        assert _from_frame(stream, stream.source, kafka).places == "given"
    assert stream.source.position == ("partition", "offset")
