"""What the frontier allows to go is gone: state and memory of a long run level off, for keys that fall silent too."""

from __future__ import annotations

import gc
import tracemalloc
from random import Random

import pyarrow as pa
import pytest

from headrace.oracle.admission import admit
from headrace.oracle.rows import from_micros, to_micros
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import check_bounded_state
from headrace.testing.disorder import cut, delayed, disordered, in_order, punctuated
from headrace.testing.local import LocalEngine, local_engine

STREAM = "CREATE STREAM p (at TIMESTAMP, card STRING, x DOUBLE) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 3 SECONDS;"
# Windows let go of silent keys; ROWS per key and UNBOUNDED keep a fixed amount per key, so there the keys are few.
SLIDING = f"""{STREAM}
SELECT card, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS lo, COUNT(DISTINCT x) AS d, STDDEV(x) AS sd, LAST(card) AS l
  FROM p [RANGE 10 SECONDS] GROUP BY card EMIT CHANGES INTO sliding;
SELECT card, SUM(x) AS s, MAX(card) AS hi FROM p [RANGE 5 SECONDS LAG 5 SECONDS] GROUP BY card EMIT FINAL INTO lagging;
"""
LOOK = "SELECT card, SUM(x) AS s, COUNT(*) AS n FROM p [SIZE {} SECONDS EVERY 2 SECONDS] GROUP BY card EMIT {} INTO w{};"
EMITS = {2: "CHANGES", 4: "CHANGES", 10: "CHANGES", 6: "FINAL", 8: "FINAL", 12: "FINAL"}
LOOKS = STREAM + "".join(LOOK.format(size, emit, size) for size, emit in EMITS.items())
LAST_ROWS = f"""{STREAM}
SELECT card, SUM(x) AS s, MIN(x) AS lo, FIRST(card) AS f FROM p [ROWS 20] GROUP BY card EMIT FINAL IN ORDER INTO last_rows;
"""
PER_KEY = f"""{STREAM}
SELECT card, SUM(x) AS s, MAX(x) AS hi, LAST(x) AS l FROM p [ROWS 5 PARTITIONED BY card] GROUP BY card EMIT FINAL INTO last_rows;
SELECT card, SUM(x) AS s, COUNT(*) AS n, MIN(x) AS lo, AVG(x) AS a FROM p [UNBOUNDED] GROUP BY card EMIT CHANGES INTO ever;
"""


PROMISED = SLIDING.replace("DELAY 3 SECONDS", "PUNCTUATED BY CASE WHEN card IS NULL THEN at END")


def batches(count: int, fresh_keys: bool, seed: int = 0):
    """Ten rows a second for `count` seconds, one batch a second; with `fresh_keys`, a key is never seen again after a while."""
    rng = Random(seed)
    events = []
    for i in range(count * 10):
        key = f"card {i // 40 * 4 + rng.randrange(4)}" if fresh_keys else f"card {rng.randrange(8)}"
        ts = i * SECOND // 10
        events.append((ts, (from_micros(ts), key, rng.choice((0.1, 0.2, 0.7, 1e9)))))
    return disordered("p", events, seed=seed, share=0.3, up_to=3 * SECOND, batches=count)


@pytest.mark.parametrize(
    ("sql", "fresh_keys"),
    [(SLIDING, True), (SLIDING, False), (LOOKS, True), (LOOKS, False), (LAST_ROWS, False), (PER_KEY, False)],
    ids=["sliding, fresh keys", "sliding", "slices, fresh keys", "slices", "rows", "per key"],
)
def test_state_levels_off(sql, fresh_keys):
    check_bounded_state(parse_script(sql), batches(160, fresh_keys), local_engine, buckets=2)


@pytest.mark.parametrize("fresh_keys", [True, False])
def test_state_levels_off_where_only_punctuation_lets_it_go(fresh_keys):
    """Some of it lost and some out of order: the next that comes lets go of what is past."""
    script, rng = parse_script(PROMISED), Random(1)
    events = [(a.values[0], a.values) for b in batches(160, fresh_keys) for a in b.rows["p"]]
    rows = delayed(in_order((to_micros(at), values) for at, values in events), rng, share=0.3, up_to=3 * SECOND)
    rows = punctuated(rows, rng, lambda upto: (from_micros(upto), None, None), share=0.3, lost=0.3, up_to=2 * SECOND)
    feed = cut("p", rows, rng, batches=160)
    assert not [e for o in admit(script.streams[0], feed) for e in o.late], "what is promised holds"
    check_bounded_state(script, feed, local_engine, buckets=2)


def test_memory_of_an_endless_run_levels_off():
    """Between two saves the numbers of touched pages are kept; a run saves from time to time."""
    engine = LocalEngine(parse_script(SLIDING), 2)
    feed = batches(300, fresh_keys=True)
    sizes = []
    tracemalloc.start()
    try:
        for number, batch in enumerate(feed):
            engine.push(batch)
            if number % 25 == 24:
                engine.save()
            if number % 75 == 74:
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0] + pa.total_allocated_bytes())
    finally:
        tracemalloc.stop()
    assert sizes[-1] < sizes[1] * 1.25, sizes
