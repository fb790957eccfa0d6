"""`OVER (..)` against DuckDB: the same text, over random streams that come out of order, with rows of one time."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.oracle.rows import batch_of_rows, from_micros
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.disorder import disordered
from headrace.testing.local import LocalEngine

SCHEMA = Schema.of(ts="TIMESTAMP", id="INT", card="STRING", x="DOUBLE", q="BIGINT", d="DECIMAL(10, 2)")
CALLS = ("COUNT(*)", "COUNT(x)", "COUNT(DISTINCT q)", "SUM(x)", "SUM(q)", "SUM(d)", "AVG(x)", "MIN(x)", "MAX(q)", "MIN(d)")
PARTITIONS = ("PARTITION BY card ", "PARTITION BY card, q ", "")
sizes = st.sampled_from((0, 1, SECOND - 1, SECOND, 2 * SECOND, 7 * SECOND, 3_600 * SECOND))
quarters = st.none() | st.integers(-1_000, 1_000).map(lambda n: n / 4)  # sums of them are exact in any order
values = st.tuples(st.sampled_from(("a", "b", None)), quarters, st.none() | st.integers(-3, 3), st.none() | st.integers(-99, 99))


def before(micros: int) -> str:
    return f"INTERVAL {micros} MICROSECONDS PRECEDING"


@st.composite
def frames(draw: st.DrawFn, ties: bool) -> str:
    """Any frame that a stream can have. Where ROWS cuts rows of one time apart, only the source knows their order."""
    match draw(st.integers(0, 4 if ties else 6)):
        case 0:
            return ""  # RANGE UNBOUNDED PRECEDING
        case 1:
            return draw(st.sampled_from(("RANGE UNBOUNDED PRECEDING", "RANGE BETWEEN CURRENT ROW AND CURRENT ROW")))
        case 2:
            lag, more = draw(sizes), draw(sizes)
            return f"RANGE BETWEEN {before(lag + more)} AND {before(lag)}"
        case 3 | 4:
            return f"RANGE BETWEEN {before(draw(sizes))} AND CURRENT ROW"
        case 5:
            return "ROWS UNBOUNDED PRECEDING"
    return f"ROWS BETWEEN {draw(st.integers(0, 4))} PRECEDING AND CURRENT ROW"


@st.composite
def selects(draw: st.DrawFn, ties: bool) -> str:
    """Several calls over windows of their own, in one row."""
    items = []
    for number in range(draw(st.integers(1, 5))):
        call, partition, frame = draw(st.sampled_from(CALLS)), draw(st.sampled_from(PARTITIONS)), draw(frames(ties))
        items.append(f"{call} OVER ({partition}ORDER BY ts {frame}) AS c{number}")
    where = draw(st.sampled_from(("", "", " WHERE q > 0")))
    return f"SELECT id, {', '.join(items)} FROM p{where}"


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=4 * settings.default.max_examples
)
@given(st.data(), st.booleans(), st.integers(0, 100), st.sampled_from(("FINAL", "FINAL IN ORDER", "CHANGES")))
def test_over_is_duckdbs(data, ties, seed, emit):
    times = st.builds(lambda s, n: s * SECOND + n, st.integers(-3, 9), st.sampled_from((0, 0, 0, 1)))
    some = st.lists(times, min_size=12, max_size=40) if ties else st.sets(times, min_size=8, max_size=24)
    events = []
    for number, ts in enumerate(sorted(data.draw(some))):
        card, x, q, d = data.draw(values)
        events.append((ts, (from_micros(ts), number, card, x, q, None if d is None else Decimal(d) / 100)))
    select = data.draw(selects(ties))
    assert ours(events, select, emit, seed) == duckdbs(events, select)


def ours(events, select, emit, seed):
    columns = ", ".join(f"{f.name} {f.type}" for f in SCHEMA.fields)
    stream = f"CREATE STREAM p ({columns}) SOURCE FILE('p.csv') TIMESTAMP BY ts DELAY 3 SECONDS;"
    engine = LocalEngine(parse_script(f"{stream} {select} EMIT {emit} INTO o"), 3)
    batches = disordered("p", events, seed=seed, share=0.5, up_to=3 * SECOND, batches=6)
    outputs = [engine.push(batch) for batch in batches] + [engine.finish(0)]
    rows: dict[tuple, int] = {}
    for change in (change for output in outputs for change in output["o"]):
        rows[change.row] = rows.get(change.row, 0) + change.sign
        assert rows[change.row] >= 0, "what is taken back was there"
    assert set(rows.values()) <= {0, 1}
    return sorted((row for row, count in rows.items() if count), key=lambda row: row[0])


def duckdbs(events, select):
    table = pa.Table.from_batches([batch_of_rows(SCHEMA, [row for _, row in events])])
    connection = duckdb.connect()
    connection.register("p", table.set_column(0, "ts", table.column(0).cast(pa.timestamp("us"))))
    return connection.execute(f"{select} ORDER BY id").fetchall()
