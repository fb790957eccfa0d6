"""Late, rejected, frontier: each rule of design section 2 on a handful of rows."""

import datetime as dt

import pytest

from headrace.oracle.admission import Admission, Arrival, Batch, Event, admit, unique
from headrace.oracle.rows import MAX_TIME, MIN_TIME
from headrace.plan.arrival import by_arrival
from headrace.plan.expr import Expr
from headrace.plan.nodes import Scan
from headrace.plan.schema import Schema
from headrace.plan.stream import Bound, FileSource, FrameSource, Stream, Unique
from headrace.plan.time import END_OF_TIME, START_OF_TIME

SCHEMA = Schema.of(at="TIMESTAMP", n="BIGINT", day="DATE", x="DOUBLE")


def stream(many=False, **clauses):
    source = FrameSource("x", ("p", "o")) if many else FileSource("x.csv")
    return Stream("s", source, SCHEMA, **{"timestamp": Expr.of("at"), **clauses})


def batch(now, *times):
    """Times, or (time, partition)."""
    pairs = [t if isinstance(t, tuple) else (t, 0) for t in times]
    return Batch(now, {"s": [Arrival((ts, 0, None, None), p) for ts, p in pairs]})


def run(s, *batches):
    """Per batch: admitted times, late times, number of rejected rows, frontier."""
    return [
        ([e.key[0] for e in o.admitted], [e.key[0] for e in o.late], len(o.rejected), o.frontier)
        for o in admit(s, batches, end=False)
    ]


def test_before_anything_came():
    assert run(stream(delay=5), batch(1000)) == [([], [], 0, START_OF_TIME)]


def test_late_is_below_the_running_maximum_less_delay_and_equal_is_not():
    assert run(stream(delay=5), batch(0, 10, 5, 4, 20, 14, 15)) == [([10, 5, 20, 15], [4, 14], 0, 15)]


def test_late_is_below_the_frontier_of_the_start_of_the_batch_also_in_another_partition():
    s = stream(many=True, delay=5)
    assert run(s, batch(0, (10, 0), (30, 1)), batch(1, (20, 0)), batch(2, (14, 2), (15, 2), (24, 0))) == [
        ([10, 30], [], 0, 5),
        ([20], [], 0, 15),
        ([15, 24], [14], 0, 15),  # partition 2 holds the frontier back, and it does not go back
    ]


def test_the_frontier_is_the_minimum_over_partitions():
    assert [o[3] for o in run(stream(many=True, delay=0), batch(0, (10, 0), (7, 1)), batch(1, (20, 0)), batch(2, (9, 1)))] == [
        7,
        7,
        9,
    ]


def test_idle_partitions_leave_the_minimum():
    s = stream(many=True, delay=0, idle=10)
    assert [o[3] for o in run(s, batch(0, (10, 0), (7, 1)), batch(9, (20, 0)), batch(10, (30, 0)))] == [7, 7, 30]


def test_when_all_are_idle_the_clock_takes_over_and_the_frontier_stays():
    s = stream(delay=3, idle=10)
    assert [o[3] for o in run(s, batch(0, 100), batch(9), batch(10), batch(25), batch(26, 110, 122, 121))] == [
        97,
        97,
        107,
        122,
        122,
    ]
    assert run(s, batch(0, 100), batch(25), batch(26, 110, 122, 121))[-1] == ([122], [110, 121], 0, 122)


def test_rows_too_far_ahead_are_admitted_but_do_not_count():
    s = stream(delay=5, ahead=10)
    assert run(s, batch(0, 10, 11, 4, 6), batch(100, 0, 110, 111)) == [([10, 11, 6], [4], 0, 5), ([110, 111], [0], 0, 105)]


def test_end_after_silence_and_it_stays():
    s = stream(delay=5, end_after=10)
    assert [o[3] for o in run(s, batch(50), batch(60, 1), batch(69), batch(70))] == [START_OF_TIME, -4, -4, END_OF_TIME]
    assert run(s, batch(60, 1), batch(70), batch(71, 10**6))[-1] == ([], [10**6], 0, END_OF_TIME)


@pytest.mark.parametrize("delay", [None, Bound.UNBOUNDED])
def test_without_a_bound_nothing_is_late_and_nothing_final_until_the_end(delay):
    s = stream(delay=delay, keep=1)
    assert run(s, batch(0, 10, -(10**9)), batch(1, 3)) == [([10, -(10**9)], [], 0, START_OF_TIME), ([3], [], 0, START_OF_TIME)]
    assert admit(s, [batch(0, 1)])[-1].final_before == END_OF_TIME


def promise(upto, partition=0):
    """A row whose `day` makes it punctuation: no more rows up to `n`."""
    return Arrival((None, upto, dt.date(1970, 1, 1), None), partition)


def row(ts, partition=0):
    return Arrival((ts, 0, None, None), partition)


def punctuated(**clauses):
    return stream(punctuation=Expr.of("CASE WHEN day IS NOT NULL THEN n END"), timestamp_unit=1, **clauses)


def arrive(now, *arrivals):
    return Batch(now, {"s": list(arrivals)})


def test_punctuation_is_no_event_and_moves_the_frontier_past_its_time():
    assert run(punctuated(), arrive(0, row(10), row(3)), arrive(1, promise(5)), arrive(2, row(5), row(6))) == [
        ([10, 3], [], 0, START_OF_TIME),
        ([], [], 0, 6),
        ([6], [5], 0, 6),
    ]


def test_in_a_batch_rows_are_late_only_behind_the_punctuation_of_their_own_partition():
    s = punctuated(many=True)
    first = arrive(0, row(5), promise(5), row(5), row(5, 1), promise(3, 1))
    assert run(s, first, arrive(1, row(4, 1), row(3, 1), promise(9), row(9, 1))) == [
        ([5, 5], [5], 0, 4),
        ([4, 9], [3], 0, 4),
    ]


def test_punctuation_that_comes_out_of_order_takes_nothing_back():
    assert run(punctuated(), arrive(0, promise(9)), arrive(1, promise(4), row(9), row(10))) == [
        ([], [], 0, 10),
        ([10], [9], 0, 10),
    ]


def test_without_delay_the_frontier_waits_for_the_punctuation_of_every_partition_that_is_not_idle():
    batches = [arrive(0, row(1), row(1, 1), promise(7)), arrive(1, promise(5, 1)), arrive(2, promise(8, 2)), arrive(3, row(9, 3))]
    assert [o[3] for o in run(punctuated(many=True), *batches)] == [START_OF_TIME, 6, 6, 6]
    later = [*batches, arrive(13, promise(10, 0)), arrive(23)]
    assert [o[3] for o in run(punctuated(many=True, idle=10), *later)] == [START_OF_TIME, 6, 6, 6, 11, 21]


def test_with_delay_a_partition_is_as_far_as_the_further_of_the_two():
    s = punctuated(many=True, delay=5)
    batches = [arrive(0, row(10), row(20, 1)), arrive(1, promise(8)), arrive(2, row(13)), arrive(3, row(30))]
    assert [o[3] for o in run(s, *batches)] == [5, 9, 9, 15]
    assert run(s, arrive(0, row(10), promise(8), row(8), row(9), row(20), row(14))) == [([10, 9, 20], [8, 14], 0, 15)]


def test_punctuation_too_far_ahead_does_not_count():
    assert run(punctuated(ahead=10), arrive(0, promise(11)), arrive(1, row(5), promise(11))) == [
        ([], [], 0, START_OF_TIME),
        ([5], [], 0, 12),
    ]


def test_punctuation_keeps_a_stream_from_ending_and_is_rejected_where_no_calendar_reaches():
    s = punctuated(end_after=10)
    assert [o[3] for o in run(s, arrive(0, promise(1)), arrive(9, promise(1)), arrive(18), arrive(19))] == [2, 2, 2, END_OF_TIME]
    (outcome,) = admit(s, [arrive(0, promise(MAX_TIME + 1))], end=False)
    assert [r.reason for r in outcome.rejected] == [f"the punctuation {s.punctuation} is outside years 1 to 9999"]


def test_by_arrival_punctuation_is_no_event_and_says_nothing():
    (outcome,) = admit(by_arrival(Scan(punctuated())).stream, [arrive(7, row(5), promise(9), row(4))], end=False)
    assert ([e.key for e in outcome.admitted], outcome.late, outcome.frontier) == ([(7, 0, 0), (7, 0, 2)], (), 7)


def test_final_before():
    def final(s):
        return [o.final_before for o in admit(s, [batch(0, 10)])]

    assert final(stream(delay=3)) == [7, END_OF_TIME]
    assert final(stream(delay=0)) == [11, END_OF_TIME]
    assert final(stream(many=True, delay=0)) == [10, END_OF_TIME]


def test_positions_number_all_rows_of_a_partition():
    door = Admission(stream(many=True, delay=0))
    first = door.push(batch(0, (5, 0), (None, 0), (5, 1), (1, 0), (6, 0)))
    assert [e.key for e in first.admitted] == [(5, 0, 0), (5, 1, 0), (6, 0, 3)]
    assert [e.key for e in first.late] == [(1, 0, 2)]
    assert [r.key[1:] for r in first.rejected] == [(0, 1)]
    assert [e.key for e in door.push(batch(1, (7, 0))).admitted] == [(7, 0, 4)]


def test_null_and_absurd_times_are_rejected_with_a_reason():
    (outcome,) = admit(stream(delay=0), [batch(0, None, MAX_TIME + 1, MIN_TIME - 1, MIN_TIME, MAX_TIME)], end=False)
    assert [r.reason for r in outcome.rejected] == ["the timestamp at is NULL"] + [
        "the timestamp at is outside years 1 to 9999"
    ] * 2
    assert [e.key[0] for e in outcome.admitted] == [MIN_TIME, MAX_TIME]


def test_integer_date_and_arrival_times():
    rows = Batch(77, {"s": [Arrival((None, -3, dt.date(1969, 12, 31), None))]})
    for clauses, ts in (
        ({"timestamp": Expr.of("n")}, -3000),
        ({"timestamp": Expr.of("n + 1"), "timestamp_unit": 1_000_000}, -2_000_000),
        ({"timestamp": Expr.of("day")}, -86_400_000_000),
        ({"timestamp": None}, 77),
    ):
        (outcome,) = admit(stream(delay=0, **clauses), [rows], end=False)
        assert [e.key for e in outcome.admitted] == [(ts, 0, 0)]


def test_an_integer_time_out_of_range_is_rejected():
    rows = Batch(0, {"s": [Arrival((None, 2**62, None, None))]})
    (outcome,) = admit(stream(delay=0, timestamp=Expr.of("n")), [rows], end=False)
    assert len(outcome.rejected) == 1


def test_a_file_has_one_partition():
    with pytest.raises(ValueError, match="one partition"):
        run(stream(delay=0), batch(0, (1, 1)))


def test_unique_keeps_the_first_and_a_dropped_row_reaches_nobody():
    s = stream(delay=0, unique=Unique((Expr.of("x"),), 10))
    nan = float("nan")
    pairs = [(25, 1.0), (0, 1.0), (10, 1.0), (11, 1.0), (0, nan), (0, nan), (3, None), (4, None), (0, 0.0), (1, -0.0)]
    events = [Event((ts, 0, i), (None, i, None, x)) for i, (ts, x) in enumerate(pairs)]
    assert [e.key for e in unique(s, events)] == [(0, 0, 1), (0, 0, 4), (0, 0, 8), (3, 0, 6), (11, 0, 3), (25, 0, 0)]
