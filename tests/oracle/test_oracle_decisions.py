"""When the results of a pattern may leave under EMIT FINAL: each rule of decisions/0013 on a few rows."""

from __future__ import annotations

import pytest

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.evaluate import expected_after_each_batch
from headrace.oracle.rows import from_micros
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import check_query
from headrace.testing.local import local_engine

DELAYS = {"a": 2, "b": 5, "c": 1, "d": 3}


def streams(**more):
    return "".join(
        f"CREATE STREAM {name} (at TIMESTAMP, id STRING) SOURCE FILE('{name}.csv') TIMESTAMP BY at "
        f"DELAY {delay} SECONDS {more.get(name, '')};\n"
        for name, delay in {**DELAYS, **{k: v for k, v in more.items() if isinstance(v, int)}}.items()
    ).replace(" 0 SECONDS 0", " 0 SECONDS")


def batches(text):
    """`a3 b4; c5`: one batch is what stands before a semicolon."""
    out = []
    for number, part in enumerate(text.split(";")):
        rows = {}
        for word in part.split():
            rows.setdefault(word[0], []).append(Arrival((from_micros(int(word[1:]) * SECOND), word)))
        out.append(Batch(number * SECOND, rows))
    return out


def leaves(sql, arrivals, *, may=False, **more):
    """What leaves with each batch, and at the end: the last column of RETURN is all that is shown."""
    (query,) = parse_script(f"{streams(**more)} {sql}").queries
    out, before = [], []
    for want in expected_after_each_batch(query, batches(arrivals)):
        pairs = want.may if may else want.final
        shown = [(key, row[-1]) for key, row in pairs]
        assert all(pair in shown for pair in before)
        out.append([name for key, name in shown if (key, name) not in before])
        before = shown
    return out


def test_without_negation_a_result_is_final_at_once():
    sql = "EVENT SEQ(a, b) WITHIN 10 SECONDS RETURN b.id EMIT FINAL"
    assert leaves(sql, "b3; a1; b4") == [[], ["b3"], ["b4"], []]


def test_between_it_waits_for_the_negated_stream_to_be_past_the_next_event():
    sql = "EVENT SEQ(a, !(b), c) WITHIN 10 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(sql, "a1 c3; b8; b8 a90 c90; b9") == [[], [], [], ["c3"], ["c90"]]  # b9 brings the frontier to 4


def test_at_the_start_it_waits_for_the_first_event_only():
    sql = "EVENT SEQ(!(b), a, c) WITHIN 10 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(sql, "a2 c9; b7; b8") == [[], [], ["c9"], []]


def test_at_the_end_it_waits_for_the_negated_stream_alone():
    sql = "EVENT SEQ(a, !(b)) WITHIN 3 SECONDS RETURN a.id EMIT FINAL"
    # The clock of a is at 2 all the time: under FINAL only the frontier of b counts.
    assert leaves(sql, "a2; b10; b11") == [[], [], ["a2"], []]


def test_every_negation_of_a_gap_is_waited_for():
    sql = "EVENT SEQ(a, !(b), !(d), c) WITHIN 10 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(sql, "a1 c3; b9; d6; d7") == [[], [], [], ["c3"], []]


def test_next_waits_for_the_streams_of_later_places():
    sql = "EVENT SEQ(a, b, c) NEXT MATCH WITHIN 10 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(sql, "a1 b2 c3; b8; c5; a90") == [[], [], ["c3"], [], []]


def test_strict_waits_for_all_streams():
    sql = "EVENT SEQ(a, b, c) STRICT WITHIN 10 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(sql, "a1 b2 c3; b9; c5; a5; a6") == [[], [], [], [], ["c3"], []]


def test_a_group_must_be_complete():
    inside = "EVENT SEQ(a, b+, c) WITHIN 10 SECONDS RETURN COUNT(b) AS n, c.id EMIT FINAL"
    assert leaves(inside, "a1 b2 c3; b8; b9") == [[], [], ["c3"], []]
    start = "EVENT SEQ(b+, c) WITHIN 10 SECONDS RETURN COUNT(b) AS n, c.id EMIT FINAL"
    assert leaves(start, "b2 c3; b8; b9") == [[], [], ["c3"], []]
    end = "EVENT SEQ(a, b+) WITHIN 10 SECONDS RETURN a.id, COUNT(b) AS n EMIT FINAL"
    assert leaves(end, "a1 b2; b7; b8") == [[], [], [1], [2, 3]]


def test_rows_that_can_be_taken_back_are_waited_for():
    sql = "EVENT SEQ(a, c) WITHIN 10 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(sql, "a3 c4; a5; a6", a="UNIQUE BY id WITHIN 1 SECOND") == [[], [], ["c4"], []]
    window = "EVENT SEQ((SELECT id, at, COUNT(*) AS n FROM a [RANGE 5 SECONDS]) a, c) WITHIN 10 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(window, "a3 c4; a5; a6") == [[], [], ["c4"], []]


def test_in_order_a_result_waits_for_all_streams_and_for_those_before_it():
    sql = "EVENT SEQ(a, c) WITHIN 10 SECONDS RETURN c.id EMIT FINAL IN ORDER"
    assert leaves(sql, "a1 c3; c5; a5; a6") == [[], [], [], ["c3"], ["c5", "c5"]]
    # c3 began later than c4, so it is decided later. In order each waits until no result before it can be open.
    late = "EVENT SEQ(a, c, !(b)) WHERE a.id = 'a1' AND c.id = 'c4' OR a.id = 'a2' AND c.id = 'c3' WITHIN 4 SECONDS"
    final = f"{late} RETURN c.id EMIT FINAL"
    assert leaves(final, "a1 a2 c3 c4; a20 c20 b11; b12") == [[], ["c4"], ["c3"], []]
    assert leaves(f"{final} IN ORDER", "a1 a2 c3 c4; a20 c20 b12; b13; b14") == [[], [], ["c3"], ["c4"], []]


def test_what_forbids_at_the_end_may_be_taken_back_and_holds_up_the_order_until_it_cannot():
    alone = "(SELECT id, at, COUNT(*) AS n FROM b [RANGE 5 SECONDS])"
    pairs = "a.id = 'a1' AND c.id = 'c4' OR a.id = 'a2' AND c.id = 'c3'"
    sql = f"EVENT SEQ(a, c, !({alone} w)) WHERE ({pairs}) AND w.n = 1 WITHIN 4 SECONDS RETURN c.id EMIT FINAL"
    # b6 forbids c3, as long as it is alone in its window. c4 is decided before that is.
    arrivals = "a1 a2 c3 c4 b6; a20 c20 b11; b13; b14"
    assert leaves(sql, arrivals) == [[], ["c4"], [], [], []]
    assert leaves(f"{sql} IN ORDER", arrivals) == [[], [], [], ["c4"], []]
    assert leaves(f"{sql} IN ORDER", arrivals, may=True) == [[], [], [], ["c4"], []]


def test_what_is_above_a_negation_at_the_end_is_final_that_much_later():
    inner = "(EVENT SEQ(a, !(b)) WITHIN 3 SECONDS RETURN a.id, a.at)"
    window = f"SELECT COUNT(*) AS n, id FROM {inner} [RANGE 100 SECONDS] GROUP BY id EMIT FINAL"
    assert leaves(window, "a2; a20 b10; b11") == [[], [], ["a2"], ["a20"]]  # the frontier of b is 6, less 3
    outer = f"EVENT SEQ({inner} u, c) WITHIN 9 SECONDS RETURN c.id EMIT FINAL"
    assert leaves(outer, "a2 c3; a20 b10; b11") == [[], [], ["c3"], []]
    negated = f"EVENT SEQ(c x, !({inner} u), c y) WITHIN 9 SECONDS RETURN y.id EMIT FINAL"
    assert leaves(negated, "c1 c3; a20 b11; b12") == [[], [], ["c3"], []]


def test_one_stream_in_order_may_tell_at_once_but_not_before_the_end_of_a_window():
    sql = "EVENT SEQ(a x, !(a y), a z) WHERE y.id = 'no' WITHIN 10 SECONDS RETURN z.id EMIT FINAL"
    assert leaves(sql, "a1 a2; a3", a=0) == [[], ["a2"], ["a3", "a3"]]
    assert leaves(sql, "a1 a2; a3", a=0, may=True) == [["a2"], ["a3", "a3"], []]
    end = "EVENT SEQ(a x, !(a y)) WHERE y.id = 'no' WITHIN 2 SECONDS RETURN x.id EMIT FINAL"
    assert leaves(end, "a1; a3; a4", a=0, may=True) == [[], [], ["a1"], ["a3", "a4"]]


KSLACK = "EMIT FINAL IN ORDER USING KSLACK"


def test_kslack_takes_rows_that_the_largest_time_is_more_than_k_past():
    sql = f"EVENT SEQ(a, !(b), c) WITHIN 10 SECONDS RETURN c.id {KSLACK}"
    assert leaves(sql, "a1 c3; c8; c9") == [[], [], ["c3"], ["c8", "c9"]]


def test_kslack_has_one_clock_for_all_streams_and_what_comes_behind_it_is_late_for_the_query():
    sql = f"EVENT SEQ(a, !(b), c) WITHIN 10 SECONDS RETURN c.id {KSLACK}"
    assert leaves(sql, "a1 c3; a9; b2") == [[], ["c3"], [], []]
    # In the batch that moves the clock, what came before it counts: the clock is that of the start.
    assert leaves(sql, "a1 c3; a9 b2; a30") == [[], [], [], []]


def test_kslack_does_not_count_rows_beyond_ahead():
    sql = f"EVENT SEQ(a, c) WITHIN 10 SECONDS RETURN c.id {KSLACK}"
    assert leaves(sql, "a1 c2; a9", a="AHEAD 100 SECONDS") == [[], ["c2"], []]
    assert leaves(sql, "a1 c2; a90; a30", a="AHEAD 40 SECONDS") == [[], [], ["c2"], []]


def test_kslack_keeps_the_order_where_a_negation_ends_the_pattern():
    sql = "EVENT SEQ(a, c, !(b)) WHERE a.id = 'a1' AND c.id = 'c4' OR a.id = 'a2' AND c.id = 'c3' WITHIN 4 SECONDS RETURN c.id"
    assert leaves(f"{sql} {KSLACK}", "a1 a2 c3 c4; a12; a13; a14") == [[], [], ["c3"], ["c4"], []]


@pytest.mark.parametrize("emit", ["FINAL", "FINAL IN ORDER", "FINAL IN ORDER USING KSLACK"])
def test_filters_and_columns_above_change_nothing(emit):
    sql = f"SELECT x FROM (EVENT SEQ(a, !(b), c) WITHIN 10 SECONDS RETURN a.id AS y, c.id AS x) WHERE y <> 'a2' EMIT {emit}"
    assert [name for part in leaves(sql, "a1 a2 c3; a20 b20 c20") for name in part] == ["c3"]


def test_a_window_over_a_pattern_of_one_stream_in_order_is_final_with_its_last_row():
    script = parse_script("""
        CREATE STREAM a (at TIMESTAMP, k INT) SOURCE FILE('a.csv') TIMESTAMP BY at DELAY 0;
        SELECT k, COUNT(*) AS n FROM (EVENT SEQ(a x, a y) WHERE x.k = y.k WITHIN 5 SECONDS RETURN x.k) [RANGE 9 SECONDS]
        GROUP BY k EMIT FINAL INTO counts;
    """)
    batches = [Batch(n, {"a": [Arrival((from_micros(n * 1_000_000), 1))]}) for n in (1, 2)]
    check_query(script, batches, local_engine, buckets=(1, 3), restarts=(1,))
    assert [len(e.final) for e in expected_after_each_batch(script.queries[0], batches)] == [0, 1, 1]
