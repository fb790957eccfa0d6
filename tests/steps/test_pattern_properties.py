"""Sequence patterns against the oracle: any places, conditions and selection, each stream with its own disorder, in any cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from headrace.oracle.admission import Arrival, Batch, admit
from headrace.oracle.rows import from_micros
from headrace.plan.patterns import Selection
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.testing.conformance import ConformanceError, Run, check_bounded_state, check_query
from headrace.testing.disorder import Timed, delayed, disordered, in_order, punctuated
from headrace.testing.local import local_engine
from headrace.testing.pattern_strategies import seeded_pattern_case
from headrace.testing.reach import hold
from seeds import FIRST, agrees, examples


def conforms(run: Run, seed: int) -> None:
    agrees(run, seed, (4, 1), (3,), (1,), restarts=(1, 3))


def test_patterns_conform():
    hold(seeded_pattern_case, conforms, examples(8, 4), first=FIRST, tries=6)


def test_patterns_over_streams_that_promise_conform():
    """All streams are punctuated, most have no DELAY; promises are lost, late, out of order, or never made."""
    hold(lambda seed: seeded_pattern_case(seed, promises=True), conforms, examples(8, 6), first=FIRST, tries=12, by_turns=True)


def test_promises_move_frontiers_and_mostly_hold():
    """Else the property above would say little."""
    late = admitted = moved = 0
    for seed in range(20):
        case = seeded_pattern_case(seed, promises=True)
        for stream in case.script.streams:
            outcomes = admit(replace(stream, delay=None), case.batches, end=False)
            late += sum(len(o.late) for o in outcomes)
            admitted += sum(len(o.admitted) for o in outcomes)
            moved += sum(a.frontier < b.frontier for a, b in pairwise(outcomes))
    assert 0 < late < admitted / 5
    assert moved > admitted / 10


STREAMS = "".join(
    f"CREATE STREAM {name} (at TIMESTAMP, id STRING, x DOUBLE) SOURCE FILE('{name}.csv') TIMESTAMP BY at DELAY 3 SECONDS;\n"
    for name in ("shelf", "checkout", "door")
)
THEFT = "EVENT SEQ(shelf s, !(checkout c), door e) WHERE s.id = c.id AND c.id = e.id WITHIN 5 SECONDS RETURN s.id"
UNPAID = "EVENT SEQ(shelf s, !(checkout c)) WHERE s.id = c.id WITHIN 5 SECONDS RETURN s.id"
ANY_BOOK = "EVENT SEQ(!(checkout c), shelf s, door e) WHERE s.x < e.x WITHIN 1 SECOND RETURN s.id, e.x"
READ = "EVENT SEQ(shelf s, checkout+ c, door e) WHERE s.id = c.id AND c.id = e.id WITHIN 5 SECONDS RETURN s.id, COUNT(c) AS n"
NEAREST = "EVENT SEQ(shelf s, door e) NEXT MATCH WHERE s.id = e.id WITHIN 5 SECONDS RETURN s.id"
EMITS = ("CHANGES", "FINAL", "FINAL IN ORDER", "FINAL IN ORDER USING KSLACK")


def readings(name: str, seed: int, fresh_keys: bool) -> list[Batch]:
    """A steady stream; with fresh keys each of them is soon silent for ever."""
    rng = Random(seed)
    events = []
    for i in range(1200):
        key = f"book {i // 40 * 4 + rng.randrange(4)}" if fresh_keys else f"book {rng.randrange(8)}"
        events.append((i * SECOND // 10, (from_micros(i * SECOND // 10), key, rng.choice((0.1, 0.2, 1e9)))))
    return disordered(name, events, seed=seed, share=0.3, up_to=3 * SECOND, batches=120)


QUERIES = {"theft": THEFT, "unpaid": UNPAID, "any": ANY_BOOK, "read": READ, "nearest": NEAREST}
LEVELS = [("theft", emit) for emit in EMITS] + [(name, "CHANGES") for name in QUERIES if name != "theft"] + [("unpaid", "FINAL")]


@pytest.mark.parametrize(("name", "emit", "fresh_keys"), [(*level, True) for level in LEVELS] + [("theft", "CHANGES", False)])
def test_state_of_a_pattern_levels_off(name, emit, fresh_keys):
    parts = [readings(stream, seed, fresh_keys) for seed, stream in enumerate(("shelf", "checkout", "door"))]
    batches = [
        Batch(max(b.now for b in some), {k: v for b in some for k, v in b.rows.items()}) for some in zip(*parts, strict=True)
    ]
    check_bounded_state(
        parse_script(f"{STREAMS} {QUERIES[name]} EMIT {emit} INTO o"), batches, local_engine, buckets=2, tolerance=1.4
    )


# ---- where only promises let go ---------------------------------------------------------------------------------------------

PROMISED = STREAMS.replace("DELAY 3 SECONDS", "PUNCTUATED BY CASE WHEN id IS NULL THEN at END")
SECONDS, TICK = 100, 5 * SECOND // 2


def promising(name: str, seed: int, quiet: str) -> list[Timed]:
    """Five rows a second of keys that are soon silent, and promises, of which some are lost and some come out of order."""
    rng = Random(seed)
    times = [i * SECOND // 5 for i in range(SECONDS * 5)]
    events = [(ts, (from_micros(ts), f"book {i // 20 * 4 + rng.randrange(4)}", rng.random())) for i, ts in enumerate(times)]
    rows = delayed(in_order(events), rng, share=0.3, up_to=3 * SECOND)
    rows = punctuated(rows, rng, lambda upto: (from_micros(upto), None, None), share=0.3, lost=0.3, up_to=2 * SECOND)
    if name != "checkout":
        return rows
    return {
        "": rows,
        "only promises": [r for r in rows if r.values[1] is None],
        "idle": [r for r in rows if r.arrives < 10 * SECOND],
        "nothing": [],
    }[quiet]


def in_ticks(rows: dict[str, list[Timed]]) -> list[Batch]:
    """Batches with what came until then."""
    out = [Batch((n + 1) * TICK, {name: [] for name in rows}) for n in range(SECONDS * SECOND // TICK)]
    for name, own in rows.items():
        for row in own:
            out[min(row.arrives // TICK, len(out) - 1)].rows[name].append(Arrival(row.values))
    return out


def levels_off(query: str, emit: str, quiet: str = "") -> None:
    """Run it; checkouts may be quiet: they only promise, fall silent after a while, or never say anything."""
    streams = PROMISED.replace("THEN at END", "THEN at END IDLE 3 SECONDS") if quiet == "idle" else PROMISED
    script = parse_script(f"{streams} {QUERIES[query]} EMIT {emit} INTO o")
    feed = in_ticks({name: promising(name, seed, quiet) for seed, name in enumerate(("shelf", "checkout", "door"))})
    check_bounded_state(script, feed, local_engine, buckets=2, tolerance=1.4)


@pytest.mark.parametrize(
    ("query", "emit", "quiet"),
    [
        *(("theft", emit, "") for emit in ("CHANGES", "FINAL", "FINAL IN ORDER")),
        ("unpaid", "FINAL", ""),
        ("read", "FINAL", ""),
        ("nearest", "FINAL", ""),
        ("theft", "FINAL", "only promises"),
        ("unpaid", "CHANGES", "only promises"),
        ("theft", "FINAL", "idle"),
    ],
)
def test_state_of_a_pattern_levels_off_where_only_promises_let_it_go(query, emit, quiet):
    levels_off(query, emit, quiet)


def test_promises_of_the_endless_run_hold():
    """Else rows would be late, and its state level off for that."""
    for stream in parse_script(f"{PROMISED} {THEFT} INTO o").streams:
        assert not [e for o in admit(stream, in_ticks({stream.name: promising(stream.name, 0, "")})) for e in o.late]


def test_state_grows_where_a_type_that_forbids_promises_nothing():
    """So it is the promises that let it go above."""
    with pytest.raises(ConformanceError, match="the state grows"):
        levels_off("theft", "FINAL", "nothing")


@pytest.mark.parametrize("selection", Selection, ids=lambda s: s.value)
def test_an_event_alone_is_final_at_once_whatever_is_selected(selection):
    script = parse_script(f"""CREATE STREAM a (at TIMESTAMP, id STRING) SOURCE FILE('a.csv') TIMESTAMP BY at DELAY 5 SECONDS;
        EVENT SEQ(a x) {selection.value} WITHIN 5 SECONDS RETURN x.at AS at, x.id AS id INTO alone;
        EVENT SEQ(alone y) WITHIN 5 SECONDS RETURN y.id AS id EMIT FINAL INTO o;""")
    batches = [Batch(1, {"a": [Arrival((from_micros(SECOND), "p"))]})]
    check_query(script, batches, local_engine, buckets=(1,), restarts=(), recuts=0)
