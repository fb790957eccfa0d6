"""Rows come out of a cell as they went in, however they are placed and whatever of them need not travel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.changes.keys import Keys
from headrace.exchange.cells import batch_of, join_arrivals, read_cell, write_cells
from headrace.exchange.heads import Counted, RowsHead, read_head, write_head
from headrace.exchange.pack import Placed, segments_of
from headrace.plan.arrow import arrow_type
from headrace.plan.time import START_OF_TIME
from headrace.runtime.clock import Segment
from headrace.sql import parse_script
from headrace.stages.lower import lower

SCRIPT = """CREATE STREAM s (k BIGINT, v DOUBLE, at TIMESTAMP) SOURCE FILE('s', 'parquet') TIMESTAMP BY at DELAY 10 SECONDS;
    SELECT k, at, SUM(v) AS total FROM s [RANGE 1 MINUTE] GROUP BY k EMIT CHANGES;"""
STAGE = lower(parse_script(SCRIPT)).stages[0]
KINDS = {"k": pa.int64(), "v": pa.float64(), "at": arrow_type("TIMESTAMP")}
TIMES = tuple(i for i, spec in enumerate(STAGE.inputs) if spec.expr.sql == "at")


@st.composite
def placed_rows(draw):
    """Some segments of rows: near together or centuries apart, partitions of their own or files."""
    partitioned = draw(st.booleans())
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    wide = draw(st.booleans())
    ts, high, low, segment, places = [], [], [], [], []
    for number, size in enumerate(sizes):
        start = draw(st.integers(0, 2**47))
        steps = draw(st.lists(st.integers(0, 2**40 if wide else 9), min_size=size, max_size=size))
        ts += draw(st.lists(st.integers(-(2**50), 2**50) if wide else st.integers(0, 20_000_000), min_size=size, max_size=size))
        low += (start + np.cumsum([0, *steps[1:]])).tolist()
        high += [number + 7 if partitioned else 2**40 + number] * size
        segment += [number] * size
        places.append((0, start) if partitioned else (2**40 + number, start))
    names = np.array([n + 7 if partitioned else 0 for n in range(len(sizes))])
    arrays = (np.array(x, np.int64) for x in (ts, high, low))
    return Placed(Keys(*arrays), np.array(segment, np.int32), names, places, 0, partitioned)


@given(placed_rows(), st.integers(1, 5), st.booleans())
def test_rows_come_out_as_they_went_in(placed, buckets, time_travels):
    rows = len(placed.keys)
    values = {"k": np.arange(rows) % 3, "v": np.arange(rows) / 2.0, "at": placed.keys.ts}
    columns = [pa.array(values[spec.expr.sql]).cast(KINDS[spec.expr.sql]) for spec in STAGE.inputs]
    inputs = batch_of(columns, rows)
    segments, behind = segments_of(placed, STAGE.sources[0].disorder)
    shape, cells = write_cells(STAGE, inputs, () if time_travels else TIMES, placed, behind, buckets)
    head = read_head(write_head(RowsHead(0, 7, tuple(segments), shape, rows=rows), Counted(rows)))
    assert head == RowsHead(0, 7, tuple(segments), shape, rows=rows)
    assert len(cells) == buckets
    parts = [read_cell(STAGE, shape, segments, bytes(cell), 0) for cell in cells if len(cell)]
    found = join_arrivals(parts)
    v = found.inputs.column([spec.expr.sql for spec in STAGE.inputs].index("v")).to_numpy()
    order = np.argsort(v)  # v numbers the rows
    for name in ("ts", "high", "low"):
        assert getattr(found.keys, name)[order].tolist() == getattr(placed.keys, name).tolist(), name
    assert found.segment[order].tolist() == placed.segment.tolist()
    assert found.behind[order].tolist() == behind.tolist()
    assert found.inputs.take(pa.array(order)).to_pydict() == inputs.to_pydict()


def test_in_arrival_order_within_a_bucket():
    n = 100
    placed = Placed(Keys(np.arange(n), np.full(n, 5), np.arange(n)), np.zeros(n, np.int32), np.zeros(1), [(5, 0)], 0)
    columns = {"k": pa.array(np.arange(n) % 7), "v": pa.array(np.zeros(n)), "at": pa.array(np.arange(n)).cast(KINDS["at"])}
    inputs = batch_of([columns[spec.expr.sql] for spec in STAGE.inputs], n)
    shape, cells = write_cells(STAGE, inputs, TIMES, placed, np.zeros(n, np.bool_), 4)
    for cell in cells:
        if len(cell):
            low = read_cell(STAGE, shape, [Segment(0, (5, 0), START_OF_TIME, n)], bytes(cell), 0).keys.low
            assert (np.diff(low) > 0).all()


@pytest.mark.parametrize(("span", "short"), [(2**32 - 1, True), (2**32, False)])
def test_four_bytes_where_they_are_enough(span, short):
    ts = np.array([10, 10 + span])
    placed = Placed(Keys(ts, np.zeros(2, np.int64), np.arange(2)), np.zeros(2, np.int32), np.zeros(1), [(0, 0)], 0)
    inputs = batch_of([pa.array([1, 2]).cast(arrow_type(spec.type)) for spec in STAGE.inputs], 2)
    shape, cells = write_cells(STAGE, inputs, TIMES, placed, np.zeros(2, np.bool_), 1)
    assert shape.short_ts is short
    assert read_cell(STAGE, shape, [Segment(0, (0, 0), 0, 2)], bytes(cells[0]), 0).keys.ts.tolist() == ts.tolist()
