"""What is inside a window, on small tables; and RANGE against DuckDB's own OVER."""

from dataclasses import replace
from random import Random

import duckdb
import pyarrow as pa
import pytest

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.evaluate import expected_after_each_batch, results
from headrace.oracle.rows import batch_of_rows, canonical_row, from_micros
from headrace.plan.aggregates import Aggregate, function
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Project, Rejected, Scan, WindowAggregate
from headrace.plan.query import Emit, Query
from headrace.plan.schema import Schema
from headrace.plan.stream import Bound, FileSource, Stream
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow

SCHEMA = Schema.of(at="TIMESTAMP", card="STRING", amount="DOUBLE", ok="BOOLEAN")
STREAM = Stream("s", FileSource("x.csv"), SCHEMA, timestamp=Expr.of("at"), delay=5)
NAN = float("nan")


def agg(name, argument=None, where=None, alias="x"):
    return Aggregate(alias, function(name), (Expr.of(argument),) if argument else (), Expr.of(where) if where else None)


def over(window, *calls, keys=(), where=None, stream=STREAM):
    return WindowAggregate(
        Scan(stream), window, tuple(map(Expr.of, keys)), calls or (agg("COUNT"),), Expr.of(where) if where else None
    )


def column(node, *events, name="x"):
    """The column of the results for events (ts, card, amount, ok); shorter ones are filled up."""
    filled = [(ts, *rest, *("a", 1.0, True)[len(rest) :]) for ts, *rest in events]
    rows = [((ts, 0, i), (from_micros(ts), *rest)) for i, (ts, *rest) in enumerate(filled)]
    place = node.schema.names.index(name)
    return [row[place] for _, row in results(node, rows)]


def test_range_is_open_below_and_closed_above():
    assert column(over(RangeWindow(5)), (0,), (4,), (5,), (9,), (10,), (10,)) == [1, 2, 2, 2, 2, 3]


def test_ties_see_those_before_them_in_the_total_order():
    assert column(over(RangeWindow(1)), (7,), (7,), (7,)) == [1, 2, 3]


def test_lag_is_the_same_window_earlier_without_the_rows_after():
    assert column(over(RangeWindow(5, lag=2)), (0,), (2,), (3,), (6,), (7,), (8,), (9,)) == [0, 1, 1, 3, 2, 3, 3]


def test_history_is_sorted_before_anything_else():
    assert column(over(RangeWindow(5)), (10,), (0,), (4,)) == [1, 2, 1]


def test_rows_count_the_stream_and_then_the_key():
    events = [(0, "a"), (1, "b"), (2, "a"), (3, "b"), (4, "b")]
    assert column(over(RowsWindow(3)), *events) == [1, 2, 3, 3, 3]
    assert column(over(RowsWindow(3), keys=["card"]), *events) == [1, 1, 2, 2, 2]
    assert column(over(RowsWindow(2, (Expr.of("card"),))), *events) == [1, 2, 3, 4, 4]
    assert column(over(RowsWindow(2, (Expr.of("card"),)), keys=["card"]), *events) == [1, 1, 2, 2, 2]


def test_where_keeps_rows_in_the_window_but_out_of_the_result():
    events = [(0, "a", 1.0, True), (1, "a", 2.0, False), (2, "a", 4.0, True), (3, "a", 8.0, None)]
    assert column(over(RowsWindow(2), agg("SUM", "amount"), where="ok"), *events) == [1.0, 4.0]
    assert column(over(RowsWindow(3), agg("SUM", "amount"), where="ok"), *events) == [1.0, 5.0]


def test_filter_is_of_one_call():
    node = over(UnboundedWindow(), agg("COUNT", where="ok"), agg("COUNT", alias="y"))
    events = [(0, "a", 1.0, False), (1, "a", 1.0, True), (2, "a", 1.0, None)]
    assert column(node, *events) == [0, 1, 1]
    assert column(node, *events, name="y") == [1, 2, 3]


def test_keys_put_nulls_nans_and_zeros_together():
    events = [(0, "a", v) for v in (None, NAN, 0.0, None, NAN, -0.0)]
    assert column(over(UnboundedWindow(), keys=["amount"]), *events) == [1, 1, 1, 2, 2, 2]


def test_keep_starts_a_silent_key_anew():
    stream = replace(STREAM, keep=5)
    events = [(0, "a"), (5, "a"), (6, "b"), (11, "a"), (12, "b")]
    assert column(over(UnboundedWindow(), keys=["card"], stream=stream), *events) == [1, 2, 1, 1, 1]
    assert column(over(RowsWindow(9, (Expr.of("card"),)), keys=["card"], stream=stream), *events) == [1, 2, 1, 1, 1]
    assert column(over(RowsWindow(9, (Expr.of("card"),)), stream=stream), *events) == [1, 2, 3, 2, 2]
    assert column(over(RowsWindow(9), stream=stream), *events, (18, "a")) == [1, 2, 3, 4, 5, 6]  # no keys: nothing to keep
    assert column(over(RangeWindow(100), keys=["card"], stream=stream), *events) == [1, 2, 1, 3, 2]


def test_first_and_last_go_by_the_total_order():
    node = over(RangeWindow(5), agg("FIRST", "amount"), agg("LAST", "amount", where="amount < 9", alias="y"))
    events = [(3, "a", 3.0), (1, "a", None), (9, "a", 9.0), (3, "a", 4.0)]
    assert column(node, *events) == [None, None, None, 9.0]
    assert column(node, *events, name="y") == [None, 3.0, 4.0, None]


def test_windows_over_windows_filters_and_projections():
    inner = Filter(over(RowsWindow(2)), Expr.of("x > 1"))
    outer = WindowAggregate(inner, UnboundedWindow(), (), (agg("SUM", "x", alias="y"),))
    node = Project(outer, (("z", Expr.of("y + 1")), ("card", Expr.of("card"))))
    assert column(node, (0,), (1,), (2,), name="z") == [3, 5]


def test_sums_over_projected_expressions():
    node = over(UnboundedWindow(), agg("SUM", "amount * 2"), agg("MAX", "UPPER(card)", alias="y"))
    assert column(node, (0, "a", 1.5), (1, "b", None)) == [3.0, 3.0]
    assert column(node, (0, "a", 1.5), (1, "b", None), name="y") == ["A", "B"]


def batch(now, *times):
    return Batch(now, {"s": [Arrival((ts, "a", 1.0, True)) for ts in times]})


def changes(query, batches):
    return [e.changes for e in expected_after_each_batch(query, batches)]


def final(query, batches):
    return [e.final for e in expected_after_each_batch(query, batches)]


def times_and_counts(found):
    return [[(key[0], row[-1]) for key, row in rows] for rows in found]


def test_changes_and_final_after_each_batch():
    query = Query("q", over(RangeWindow(10)), Emit.CHANGES)
    batches = [batch(0, 10, 12), batch(1, 8, 18), batch(2, 4)]
    assert times_and_counts(changes(query, batches)) == [
        [(10, 1), (12, 2)], *[[(8, 1), (10, 2), (12, 3), (18, 3)]] * 3,
    ]  # fmt: skip
    assert times_and_counts(final(query, batches)) == [
        [], [(8, 1), (10, 2), (12, 3)], [(8, 1), (10, 2), (12, 3)], [(8, 1), (10, 2), (12, 3), (18, 3)],
    ]  # fmt: skip
    assert len(expected_after_each_batch(query, batches, end=False)) == 3


def test_in_order_input_is_final_at_once_with_delay_0():
    query = Query("q", over(UnboundedWindow(), stream=replace(STREAM, delay=0)), Emit.FINAL)
    assert times_and_counts(final(query, [batch(0, 1), batch(1, 1)])) == [[(1, 1)], *[[(1, 1), (1, 2)]] * 2]


def test_an_unbounded_stream_gives_changes_only():
    query = Query("q", over(UnboundedWindow(), stream=replace(STREAM, delay=Bound.UNBOUNDED)))
    assert times_and_counts(final(query, [batch(0, 1)])) == [[], [(1, 1)]]


def test_late_and_rejected_rows_are_streams_in_arrival_order():
    batches = [batch(0, 10, 3, 4), Batch(1, {"s": [Arrival((None, "b", 1.0, True)), Arrival((2, "c", 1.0, True))]})]
    late = Query("late", Project(Late(STREAM), (("card", Expr.of("card")), ("t", Expr.of("_time")))))
    assert [[row for _, row in rows] for rows in changes(late, batches)][-1] == [
        ("a", from_micros(3)), ("a", from_micros(4)), ("c", from_micros(2)),
    ]  # fmt: skip
    rejected = Query("rejected", Rejected(STREAM))
    assert [row[1:] for _, row in changes(rejected, batches)[-1]] == [("the timestamp at is NULL", "s", "0:3", None, None)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("lag", [0, 3])
def test_range_agrees_with_duckdb(seed, lag):
    """DuckDB's RANGE is closed below, so its lower bound moves up one microsecond; timestamps are unique."""
    rng, size, n = Random(seed), 20, 60
    times = rng.sample(range(-100, 100), n)
    amounts = [rng.choice((None, 0.25, -1.5, 3.0, 2.0**40)) for _ in range(n)]  # sums of these are exact in any order
    rows = [(from_micros(t), rng.choice("ab"), a, rng.random() < 0.7) for t, a in zip(times, amounts, strict=True)]
    calls = (
        agg("SUM", "amount", alias="a"), agg("COUNT", "amount", alias="b"), agg("MIN", "amount", alias="c"),
        agg("MAX", "amount", where="ok", alias="d"), agg("COUNT", alias="e"), agg("FIRST", "amount", alias="f"),
        agg("LAST", "amount", alias="g"),
    )  # fmt: skip
    node = over(RangeWindow(size, lag), *calls, keys=["card"])
    ours = [row for _, row in results(node, [((t, 0, i), row) for i, (t, row) in enumerate(zip(times, rows, strict=True))])]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("s", pa.Table.from_batches([batch_of_rows(SCHEMA, rows)]))
    theirs = connection.execute(
        f"""SELECT epoch_us("at"), card, amount, ok, sum(amount) OVER w, count(amount) OVER w, min(amount) OVER w,
                   max(amount) FILTER (ok) OVER w, count(*) OVER w, first(amount) OVER w, last(amount) OVER w
            FROM s WINDOW w AS (PARTITION BY card ORDER BY "at"
              RANGE BETWEEN INTERVAL {size + lag - 1} MICROSECOND PRECEDING AND INTERVAL {lag} MICROSECOND PRECEDING)
            ORDER BY 1"""
    ).fetchall()
    assert [canonical_row(r, node.schema) for r in ours] == [canonical_row(r, node.schema) for r in theirs]
