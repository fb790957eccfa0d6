"""The profile `spark` against Spark's own `window()` and `session_window()`: random sizes, slides, gaps and disorder."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.oracle.rows import batch_of_rows, from_micros
from headrace.plan.schema import Schema
from headrace.testing.profiled import CALLS, answers, events, hops

SCHEMA = Schema.of(at="TIMESTAMP", id="INT", card="STRING", q="BIGINT")
SEED, GRID = 13, 250_001  # an odd grid: neither sizes nor slides are whole seconds
ROWS = events(SEED, GRID, 200)
HOPS = hops(SEED, GRID, 18, jumping=False)
GAPS = [GRID * gap for gap in (1, 2, 3, 5, 7, 39, 40, 41)]
CODE = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
SHOWN = ", ".join(f"{call} AS {name}" for name, call in CALLS.items())


@pytest.fixture(scope="module")
def native(spark):
    """Spark with the rows as the view `s`. Code for two dozen windows takes longer to make than the rows to count without."""
    before = {key: spark.conf.get(key) for key in CODE}
    for key, value in CODE.items():
        spark.conf.set(key, value)
    rows = pa.Table.from_batches([batch_of_rows(SCHEMA, [row for _, row in ROWS])])
    spark.createDataFrame(rows).coalesce(1).createOrReplaceTempView("s")
    yield spark
    spark.catalog.dropTempView("s")
    for key, value in before.items():
        spark.conf.set(key, value)


def ours(windows):
    select = "SELECT card, window_start, window_end, {} FROM s {} GROUP BY card WITH (profile = 'spark')"
    found = answers({f"q{i}": select.format(SHOWN, window) for i, window in enumerate(windows)}, ROWS, GRID, SEED)
    return {windows[int(name[1:])]: sorted(map(comparable, rows)) for name, rows in found.items()}


def theirs(spark, windows, rows, window):
    """Bounds as numbers of microseconds: as times, Spark would show them in a zone."""
    out = {w: [] for w in windows}
    grouped = f"SELECT number, card, {window} AS w, {SHOWN} FROM ({rows}) GROUP BY number, card, {window}"
    bounds = "unix_micros(w.start), unix_micros(w.end)"
    for number, card, low, high, *values in spark.sql(
        f"SELECT number, card, {bounds}, {', '.join(CALLS)} FROM ({grouped})"
    ).collect():
        out[windows[number]].append(comparable((card, from_micros(low), from_micros(high), *values)))
    return {w: sorted(found) for w, found in out.items()}


def comparable(row):
    return tuple((value is not None, 0 if value is None else value) for value in row)


def test_windows_start_and_end_where_sparks_do(native):
    hop = "SELECT {} AS number, card, q, window(at, '{} microseconds', '{} microseconds') AS w FROM s"
    rows = " UNION ALL ".join(hop.format(i, h.size, h.every) for i, h in enumerate(HOPS))
    assert any(h.size % h.every for h in HOPS)
    assert ours(HOPS) == theirs(native, HOPS, rows, "w")


def test_sessions_join_and_end_as_sparks_do(native):
    gaps = ", ".join(f"({i}, '{gap} microseconds')" for i, gap in enumerate(GAPS))
    windows = [f"[SESSION {gap} MICROSECONDS]" for gap in GAPS]
    rows = f"SELECT * FROM s CROSS JOIN VALUES {gaps} AS g(number, gap)"
    assert ours(windows) == theirs(native, windows, rows, "session_window(at, gap)")
