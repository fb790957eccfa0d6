"""Punctuation on Spark: several partitions of a DataFrame, a static one, and rows whose punctuation cannot be computed."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_driver import read_sink, write_files

import headrace as hr
from headrace.oracle.evaluate import expected_after_each_batch
from headrace.oracle.rows import canonical_row, from_micros
from headrace.plan.query import Query
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.runs.events import ProgressEvent
from headrace.testing.engine import Arrival, Batch

SCHEMA = Schema.of(at="TIMESTAMP", id="INT", by="INT", upto="BIGINT", p="INT", o="BIGINT")
DDL = "at TIMESTAMP, id INT, by INT, upto BIGINT, p INT, o BIGINT"
# Per batch: the time and number of an event, or None and what is promised; and the partition. The punctuation is 60 * upto / by.
CAME = (
    ((10, 1, 0), (12, 2, 1), (9, 3, 0)),
    ((None, 9, 0), (9, 4, 0), (11, 5, 0), (9, 6, 1)),
    ((None, 8, 1), (8, 7, 1), (10, 8, 0)),
    ((None, 20, 0), (None, 15, 0), (None, 16, 1), (16, 9, 1), (18, 10, 1), (20, 11, 0), (21, 12, 0)),
    ((None, 30, 1), (22, 13, 0), (30, 14, 1), (31, 15, 1)),
)


def batches():
    """As rows: punctuation has nothing but what it promises."""
    count: Counter[int] = Counter()
    out = []
    for number, batch in enumerate(CAME):
        rows = []
        for ts, what, p in batch:
            event = ts is not None
            values = (from_micros(ts * SECOND), what, None, None) if event else (None, None, 60, what)
            rows.append(Arrival((*values, p, count[p]), p))
            count[p] += 1
        out.append(Batch(number, {"shelf": rows}))
    return out


BATCHES = batches()


@pytest.fixture
def files(tmp_path):
    write_files(tmp_path / "in", SCHEMA, "parquet", [[a.values for a in b.rows["shelf"]] for b in BATCHES])
    return str(tmp_path / "in")


def counted(frame):
    stream = hr.stream(
        frame, timestamp="at", timestamp_unit="seconds", punctuated_by="CAST(60 / by * upto AS BIGINT)", name="shelf",
        position=("p", "o"),
    )  # fmt: skip
    return stream, stream.window(hr.range("5 seconds")).agg("id", n=hr.count(), s=hr.sum("10 / id"))


def bag(node, rows):
    return Counter(canonical_row(tuple(row), node.schema) for row in rows)


def test_what_is_promised_counts_when_all_partitions_have_promised_it(spark, files, tmp_path):
    stream, node = counted(spark.readStream.schema(DDL).option("maxFilesPerTrigger", "1").parquet(files))
    run = hr.start(
        {
            str(tmp_path / "counts"): node.emit("final in order"),
            str(tmp_path / "late"): stream.late().select("id"),
            str(tmp_path / "rejected"): stream.rejected(),
        },
        checkpoint=str(tmp_path / "checkpoint"),
        buckets=2,
    )
    run.wait(200)
    progress = [event for event in run.poll(0.1) if isinstance(event, ProgressEvent)]
    said = sum(ts is None for batch in CAME for ts, _, _ in batch)
    assert sum(e.punctuation for e in progress) == said
    assert sum(e.rows_in for e in progress) == sum(map(len, CAME))
    expected = expected_after_each_batch(Query("q", node.node), BATCHES)
    assert [tuple(row) for row in read_sink(tmp_path / "counts")] == [row for _, row in expected[-1].final]
    late = [e.row[1] for x in expected for e in x.outcomes[0].late]
    assert late == [4, 7, 9, 11, 14]
    assert sorted(i for (i,) in read_sink(tmp_path / "late")) == late
    assert read_sink(tmp_path / "rejected") == []
    published = {path.name for path in (tmp_path / "counts").glob("batch-*")}
    assert len(published) > 2, "rows left as punctuation came, not at the end only"


def test_in_a_static_frame_punctuation_is_no_event_and_nothing_is_late(spark, files):
    _, node = counted(spark.read.schema(DDL).parquet(files))
    events = [[a for a in b.rows["shelf"] if a.values[0] is not None] for b in BATCHES]
    everything = sorted((a for batch in events for a in batch), key=lambda a: a.values[0])
    in_order = [Batch(0, {"shelf": everything})]
    want = bag(node.node, [row for _, row in expected_after_each_batch(Query("q", node.node), in_order)[-1].final])
    assert bag(node.node, node.emit("final").to_df().collect()) == want


def test_punctuation_that_fails_is_rejected_and_what_fails_on_punctuation_is_not(spark, tmp_path):
    second = from_micros(SECOND)
    rows = [
        (second, 1, None, None, 0, 0),
        (second, 0, None, None, 0, 1),  # 10 / id fails on an event
        (None, 0, 60, 5, 0, 2),  # and on punctuation, which is none
        (second, 3, None, None, 0, 3),  # late
        (None, 4, 0, 7, 0, 4),  # 60 / by fails
        (from_micros(6 * SECOND), 5, None, None, 0, 5),
        (None, 6, 1, 2**40, 0, 6),  # beyond the calendar
        (from_micros(5 * SECOND), 7, None, None, 0, 7),  # late
    ]
    columns = [pa.array(c) for c in zip(*rows, strict=True)]
    kinds = [pa.timestamp("us", "UTC"), pa.int32(), pa.int32(), pa.int64(), pa.int32(), pa.int64()]
    (tmp_path / "in").mkdir()
    table = pa.Table.from_arrays([c.cast(k) for c, k in zip(columns, kinds, strict=True)], list(SCHEMA.names))
    pq.write_table(table, tmp_path / "in" / "a.parquet")
    stream, node = counted(spark.readStream.schema(DDL).parquet(str(tmp_path / "in")))
    outputs = {"counts": node.emit("final"), "late": stream.late().select("id"), "rejected": stream.rejected()}
    hr.start({str(tmp_path / n): o for n, o in outputs.items()}, checkpoint=str(tmp_path / "checkpoint"), buckets=2).wait(200)
    assert sorted(row[:2] for row in read_sink(tmp_path / "counts")) == [(1, 1), (5, 1)]
    assert sorted(read_sink(tmp_path / "late")) == [(3,), (7,)]
    punctuation = stream.node.stream.punctuation
    assert [(row[1].split(", with")[0], row[3]) for row in read_sink(tmp_path / "rejected")] == [
        ("the expression 10 / (id) failed", "0:1"),
        (f"the expression {punctuation} failed", "0:4"),
        (f"the punctuation {punctuation} is outside years 1 to 9999", "0:6"),
    ]
