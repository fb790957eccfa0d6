"""RANGE against DuckDB's OVER. Ours is open below: the lower bound is moved up one microsecond. Timestamps are unique, because an
event of ours sees those before it in the total order, and DuckDB's also its peers."""

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

SCHEMA = Schema.of(at="TIMESTAMP", id="INT", card="STRING", x="DOUBLE", q="BIGINT", d="DECIMAL(10, 2)")
CALLS = {
    "n": "COUNT(*)", "c": "COUNT(x)", "u": "COUNT(DISTINCT q)", "s": "SUM(x)", "sq": "SUM(q)", "sd": "SUM(d)", "a": "AVG(x)",
    "lo": "MIN(x)", "hi": "MAX(card)", "f": "FIRST(q)", "l": "LAST(x)", "at_hi": "MAX_BY(id, q)", "at_lo": "MIN_BY(id, x)",
    "all": "COLLECT_LIST(q)", "mid": "MEDIAN(x)", "third": "PERCENTILE(q, 0.25)", "one": "APPROX_PERCENTILE(q, 0.5)",
}  # fmt: skip
# What DuckDB calls otherwise. Of rows that are equal it takes the first, and we the last, whose id is the greatest.
OTHERWISE = {"at_hi": "MAX_BY(id, q * 1000 + id)", "at_lo": "MIN_BY(id, x * 10000 - id)",
             "all": "COALESCE(LIST(q) FILTER (WHERE q IS NOT NULL) OVER, [])", "third": "QUANTILE_CONT(q, 0.25)",
             "one": "QUANTILE_DISC(q, 0.5)"}  # fmt: skip
SIZES = st.sampled_from((1, 2, SECOND - 1, SECOND, 3 * SECOND, 10 * SECOND, 3_600 * SECOND))

# Quarters: sums of them are exact in any order, so that DuckDB's are the right ones to the last bit.
quarters = st.none() | st.integers(-1_000, 1_000).map(lambda n: n / 4)
rows = st.tuples(
    st.sampled_from(("a", "b", "c", None)), quarters, st.none() | st.integers(-5, 5), st.none() | st.integers(-99, 99)
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(
    times=st.sets(st.builds(lambda s, n: s * SECOND + n, st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=40),
    data=st.data(), size=SIZES, lag=st.sampled_from((0, 0, 1, SECOND, 5 * SECOND)), seed=st.integers(0, 100),
)  # fmt: skip
def test_range_is_duckdbs_range_with_the_lower_bound_one_microsecond_up(times, data, size, lag, seed):
    events = []
    for number, ts in enumerate(sorted(times)):
        card, x, q, d = data.draw(rows)
        events.append((ts, (from_micros(ts), number, card, x, q, None if d is None else Decimal(d) / 100)))
    assert ours(events, size, lag, seed) == duckdbs(events, size, lag)


def ours(events, size, lag, seed):
    calls = ", ".join(f"{call} AS {name}" for name, call in CALLS.items())
    window = f"[RANGE {size} MICROSECONDS LAG {lag} MICROSECONDS]"
    script = parse_script(
        "CREATE STREAM p (at TIMESTAMP, id INT, card STRING, x DOUBLE, q BIGINT, d DECIMAL(10, 2)) SOURCE FILE('p.csv')"
        f" TIMESTAMP BY at DELAY 5 SECONDS; SELECT id, {calls} FROM p {window} GROUP BY card EMIT FINAL INTO o"
    )
    engine = LocalEngine(script, 3)
    batches = disordered("p", events, seed=seed, share=0.5, up_to=5 * SECOND, batches=5)
    outputs = [engine.push(batch) for batch in batches] + [engine.finish(0)]
    return sorted(change.row for output in outputs for change in output["o"])


def duckdbs(events, size, lag):
    over = (
        f'OVER (PARTITION BY card ORDER BY "at" RANGE BETWEEN INTERVAL {size + lag - 1} MICROSECONDS PRECEDING'
        f" AND INTERVAL {lag} MICROSECONDS PRECEDING)"
    )
    calls = ", ".join(c.replace(" OVER", over) if " OVER" in c else f"{c} {over}" for c in (CALLS | OTHERWISE).values())
    table = pa.Table.from_batches([batch_of_rows(SCHEMA, [row for _, row in events])])
    connection = duckdb.connect()
    connection.register("p", table.set_column(0, "at", table.column(0).cast(pa.timestamp("us"))))
    found = connection.execute(f"SELECT id, {calls} FROM p ORDER BY id").fetchall()
    return [tuple(int(v) if i == 5 and v is not None else v for i, v in enumerate(row)) for row in found]
