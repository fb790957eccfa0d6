from random import Random

import pytest

from headrace.oracle.admission import admit
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, FrameSource, Stream
from headrace.testing.disorder import cut, delayed, disordered, doubled, in_order, paused, punctuated, recut, spread

SCHEMA = Schema.of(at="TIMESTAMP", n="INT")
EVENTS = [(i * 1000, (i * 1000, i)) for i in range(200)]


def stream(delay, source=None):
    return Stream("s", source or FileSource("x.csv"), SCHEMA, timestamp=Expr.of("at"), delay=delay)


def values(batches):
    return [a.values[1] for b in batches for a in b.rows["s"]]


@pytest.mark.parametrize("seed", range(5))
def test_within_the_bound_nothing_is_late(seed):
    batches = disordered("s", EVENTS, seed=seed, share=0.5, up_to=20_000, duplicates=0.1, batches=17)
    assert len(batches) == 17
    assert values(batches) != sorted(values(batches))
    assert not any(o.late for o in admit(stream(20_000), batches))


def test_beyond_the_bound_some_are_late_and_all_arrive():
    batches = disordered("s", EVENTS, seed=1, share=0.5, up_to=20_000, beyond=0.5)
    outcomes = admit(stream(20_000), batches)
    assert sum(len(o.late) for o in outcomes) > 5
    assert sorted(values(batches)) == list(range(200))


@pytest.mark.parametrize("seed", range(3))
def test_punctuation_holds_also_where_it_is_lost_or_comes_out_of_order(seed):
    rng = Random(seed)
    rows = delayed(spread(in_order(EVENTS), rng, partitions=3, apart=5_000), rng, share=0.5, up_to=20_000)
    came = punctuated(rows, rng, lambda upto: (upto, -1), share=0.5, lost=0.3, up_to=9_000)
    promises = [r.ts for r in came if r.values[1] == -1]
    assert 20 < len(promises) < 100
    assert promises != sorted(promises)
    promised = Stream(
        "s", FrameSource("s", ("p", "o")), SCHEMA, timestamp=Expr.of("at"), punctuation=Expr.of("CASE WHEN n = -1 THEN at END")
    )
    outcomes = admit(promised, cut("s", came, rng, batches=20), end=False)
    assert sum(len(o.admitted) for o in outcomes) == len(EVENTS)
    assert outcomes[-1].frontier > 150_000


def test_the_same_seed_gives_the_same_arrivals():
    first, again, other = (disordered("s", EVENTS, seed=s, share=0.5, up_to=9_000, partitions=3) for s in (1, 1, 2))
    assert first == again != other
    assert {a.partition for b in first for a in b.rows["s"]} == {0, 1, 2}
    late = [o.late for o in admit(stream(9_000, FrameSource("x", ("p", "o"))), first)]
    assert not any(late)


def test_doubled_paused_and_ticks():
    rows = in_order(EVENTS)
    assert len(doubled(rows, Random(0), share=0.5)) > 250
    gap = paused(rows, after=100_000, length=1_000_000)
    batches = cut("s", gap, Random(0), batches=4, tick=100_000)
    assert len(batches) == 4 + sum(not b.rows["s"] for b in batches)
    assert max(b.now for b in batches) == 1_199_000
    assert [b.now for b in batches] == sorted(b.now for b in batches)
    assert sorted(r.arrives - r.ts for r in delayed(rows, Random(0), share=1.0, up_to=5))[-1] == 5


@pytest.mark.parametrize("seed", range(5))
def test_recut_keeps_the_arrival_order(seed):
    batches = disordered("s", EVENTS, seed=seed, up_to=5_000)
    other = recut(batches, Random(seed))
    assert [v for b in other for a in b.rows.get("s", ()) for v in [a.values[1]]] == values(batches)
    assert other[-1].now == batches[-1].now
    assert [b.now for b in other] == sorted(b.now for b in other)
