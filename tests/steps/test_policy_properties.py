"""Windows of every policy against the oracle, by application and by system time.

Time, rows and fields for size and slide, partitions, predicates, instants, batches, sessions, deltas, landmarks; under disorder,
batch cuts, restarts and bucket counts.
"""

from __future__ import annotations

from unittest.mock import patch

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.sql import parse_script
from headrace.steps.windows.slices import Slices
from headrace.testing.conformance import Run, check_query
from headrace.testing.local import local_engine
from headrace.testing.reach import hold
from headrace.testing.strategies import policy_cases, sampled, shared_looks
from seeds import FIRST, agrees, examples


def conforms(run: Run, seed: int) -> None:
    agrees(run, seed, (3, 1), (1,), (4,), (7,), restarts=(1, 3), losses=False)


def test_windows_of_every_policy():
    hold(lambda seed: sampled(policy_cases(), seed), conforms, examples(10, 6), first=FIRST)


def test_windows_of_several_lengths_that_share_slices():
    with patch.object(Slices, "page", 3):  # so that a few cells already lie in several pages, and are moved together
        hold(lambda seed: sampled(shared_looks(), seed), conforms, examples(4, 6), first=FIRST)


def test_a_distance_that_overflows_is_no_distance():
    sql = """CREATE STREAM s (at TIMESTAMP, shop INT) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;
             SELECT COUNT(*) AS n, MAX(shop) AS top FROM s [DELTA 10 ON ABS(shop - first.shop)] INTO o;"""
    shops = (-(2**31), 5, -(2**31) + 20, 2**31 - 1, 7)
    rows = [Arrival((from_micros(i * 1_000_000), shop)) for i, shop in enumerate(shops)]
    check_query(parse_script(sql), [Batch(0, {"s": rows[:3]}), Batch(1, {"s": rows[3:]})], local_engine, buckets=(1,), recuts=1)


def test_a_row_may_pass_more_looks_than_can_be_counted():
    sql = """CREATE STREAM s (at TIMESTAMP, km BIGINT) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;
             SELECT COUNT(*) AS n, MAX(km) AS top FROM s [SIZE 10 ON km EVERY 4 ON km] INTO o;"""
    rows = [Arrival((from_micros(i * 1_000_000), km)) for i, km in enumerate((1, 4, 21, 10**18, 10**18 + 5, 10**18 + 50))]
    check_query(parse_script(sql), [Batch(0, {"s": rows[:3]}), Batch(1, {"s": rows[3:]})], local_engine, buckets=(1,), recuts=1)


def test_windows_up_to_a_time_long_after_the_last_row():
    sql = """CREATE STREAM s (at TIMESTAMP, x INT) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;
             SELECT x, COUNT(*) AS n FROM s [LANDMARK TO '2026-01-01' EVERY 2 SECONDS] GROUP BY x EMIT FINAL INTO o;"""
    rows = [Arrival((from_micros(seconds * 1_000_000), x)) for seconds, x in ((-(10**9), 1), (4 - 10**9, 2), (7 - 10**9, 1))]
    check_query(parse_script(sql), [Batch(0, {"s": rows[:2]}), Batch(1, {"s": rows[2:]})], local_engine, buckets=(1,), recuts=1)


def test_where_all_rows_are_too_far_ahead_there_is_no_last_look():
    """They move no clock, so there is no time at which a window of the last second could be looked at."""
    sql = """CREATE STREAM s (at TIMESTAMP, shop INT) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 0 AHEAD 0 SECONDS;
             SELECT COUNT(DISTINCT shop) AS n FROM s [SIZE 1 SECOND EVERY 1 ON shop] EMIT CHANGES INTO o;"""
    batches = [Batch(0, {"s": [Arrival((from_micros(at * 1_000_000), shop))]}) for at, shop in ((1_000, 0), (1_001, 1))]
    check_query(parse_script(sql), batches, local_engine, buckets=(1,), restarts=(1,), recuts=0)
