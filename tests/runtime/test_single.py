"""One event a call, against batches of one row and against the oracle: the same changes, in the same order, to the last bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis.errors import UnsatisfiedAssumption

from headrace.errors import QueryError
from headrace.kernels.single import record as r
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.query import Script
from headrace.runtime.single import slow_because, wanted
from headrace.sql import parse_script
from headrace.stages.lower import lower
from headrace.steps.windows.single import record, runs
from headrace.testing.conformance import Run, check_query
from headrace.testing.reach import hold
from headrace.testing.strategies import Case
from seeds import FIRST, examples
from single_cases import OneByOne, a_taken_case, any_case

CASES = examples(30, 2)
REACHED = {  # of every hundred events that are taken compiled
    "corrections": 2, "late": 1, "batches": 5, "saves": 5, f"asked {r.A_SEAL}": 2, f"asked {r.A_CHUNK}": 1,
    f"asked {r.NEW_VALUE}": 2, f"asked {r.MORE_LIMBS}": 1, f"asked {r.MORE_NODES}": 0.5, f"asked {r.MORE_ROWS}": 0.5,
    f"asked {r.MORE_OUT}": 0.5, f"asked {r.MORE_WORK}": 0.5, f"asked {r.MORE_NOW}": 0.5, f"asked {r.MORE_MATCHES}": 0.5,
}  # fmt: skip


@pytest.fixture(autouse=True)
def little_room(monkeypatch):
    """So that a few rows meet what many would: arrays that are full."""
    monkeypatch.setattr(record, "LEAST_ROOM", 4)
    monkeypatch.setattr(runs, "LEAST_ROOM", 2)


def alike(case: Case, seed: int, single: float) -> Counter[str]:
    """What is told of every event is the same, with saves and batches in between."""
    rng = Random(seed)
    batch, own = OneByOne(case.script, 2, single=0.0), OneByOne(case.script, 2, single=single, seed=seed)
    reached: Counter[str] = Counter()
    for number, arrived in enumerate(case.batches):
        batch.push(arrived)
        own.push(arrived)
        assert own.told == batch.told, f"event {number}"
        batch.told.clear(), own.told.clear()
        if rng.random() < 0.15:
            own, reached = _saved(own, single, rng, reached)
    end = case.batches[-1].now
    assert str(own.finish(end)) == str(batch.finish(end))
    return reached + own.reached()


def _saved(engine: OneByOne, single: float, rng: Random, reached: Counter[str]) -> tuple[OneByOne, Counter[str]]:
    """Save, and go on; half of the time in another process, as it were."""
    saved = engine.save()
    reached["saves"] += 1
    if rng.random() < 0.5:
        return engine, reached
    other = OneByOne(engine.lowered.script, 2, saved, single=single, seed=rng.randrange(1000))
    return other, reached + engine.reached()


def each_alike(make: Callable[[int], Case], count: int) -> Counter[str]:
    """So many cases; every third has batches in between."""
    reached: Counter[str] = Counter()
    for seed in range(FIRST, FIRST + count):
        try:
            case = make(seed)
        except (QueryError, UnsatisfiedAssumption):
            continue
        try:
            reached += alike(case, seed, 1.0 if seed % 3 else 0.8) if case.batches else Counter()
        except Exception as error:
            error.add_note(f"the case of seed {seed}; HEADRACE_SEED={seed} begins with it")
            raise
    return reached


def test_single_events_are_told_what_batches_of_one_are():
    reached = each_alike(a_taken_case, CASES)
    assert reached["fast"] > 10 * CASES, reached
    assert reached["fast"] > 5 * reached["slow"], reached
    for what, share in REACHED.items():
        assert reached[what] >= share / 100 * reached["fast"], (what, reached)


def test_what_is_not_taken_compiled_is_a_batch_of_one():
    reached = each_alike(any_case, examples(12, 5))
    assert reached["slow"] > examples(12, 5), reached


def test_sums_are_told_how_often_they_were_added_to():
    case = a_taken_case(2)
    batch, own = OneByOne(case.script, 1, single=0.0), OneByOne(case.script, 1)
    carried = 0
    for arrived in case.batches:
        for processor in own._processors.values():
            live = getattr(processor.single, "_live", None)
            if hasattr(live, "head"):
                live.head[r.MOVES] = r.MOST_MOVES + 1
                carried += live.asked[r.CARRY]
        assert str(own.push(arrived)) == str(batch.push(arrived))
    assert carried > 0


def test_rows_that_come_behind_k_slack_are_late_once():
    stream = "CREATE STREAM {0} (at TIMESTAMP, id STRING) SOURCE FILE('{0}.csv') TIMESTAMP BY at DELAY {1} SECONDS;"
    script = parse_script(
        stream.format("a", 1) + stream.format("b", 5) + "SELECT id FROM late(b) INTO lost;"
        "EVENT SEQ(a x, b y) WITHIN 1 HOUR RETURN y.id EMIT FINAL IN ORDER USING KSLACK INTO pairs;"
    )  # fmt: skip
    words = ["a1", "b2", "a30", "b3", "b24", "b25", "b26", "b18"]
    rows = [Arrival((from_micros(int(word[1:]) * 1_000_000), word)) for word in words]
    batches = [Batch(i, {word[0]: [row]}) for i, (word, row) in enumerate(zip(words, rows, strict=True))]
    engine = OneByOne(script, 2)
    lost = [change.row[0] for batch in batches for change in engine.push(batch)["lost"]]
    assert lost == ["b3", "b24", "b18"]
    assert engine.counted["fast"] > 0  # late rows pass by themselves
    check_query(script, batches, one_engine, buckets=(2, 1), losses=False)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT COUNT(*) AS n FROM p [RANGE 5 SECONDS SLIDE 1 SECOND]", "looked at by triggers"),
        ("SELECT COUNT(*) AS n FROM p [ROWS 5]", "rows are counted"),
        ("SELECT MEDIAN(x) AS m FROM p [RANGE 5 SECONDS]", "ranks"),
        ("SELECT COLLECT_LIST(x) AS m FROM p [RANGE 5 SECONDS]", "list"),
        ("SELECT SUM(x) AS s, MAX(card) AS c FROM p [RANGE 5 SECONDS LAG 1 SECOND] GROUP BY card", None),
        ("SELECT x FROM p WHERE x > 1 EMIT FINAL IN ORDER", None),
    ],
)
def test_why_a_stage_is_not_taken_compiled_is_told(query, why):
    stream = "CREATE STREAM p (at TIMESTAMP, x INT, card STRING) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 5 SECONDS;"
    (stage,) = lower(parse_script(f"{stream} {query} INTO q;")).stages
    found = slow_because(stage)
    assert found is None if why is None else why in (found or "")


def test_what_no_query_wants_is_not_brought():
    stream = "CREATE STREAM p (at TIMESTAMP, x INT) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 5 SECONDS;"
    (stage,) = lower(parse_script(f"{stream} SELECT COUNT(*) AS n FROM p [RANGE 5 SECONDS] WHERE x > 1 INTO q;")).stages
    masks = {i for some in stage.keep for i in some}
    found = [wanted(stage, tuple(x if i in masks else None for i in range(len(stage.inputs)))) for x in (True, False, None)]
    assert found == [True, False, False]


def conforms(run: Run, seed: int) -> None:
    """The oracle agrees, restarted at two places; in other batches events come together, too."""
    places = len(run.batches) + 1
    check_query(
        run.script, run.batches, one_engine, buckets=((2,), (1,))[seed % 2], seed=seed, known=run.expected,
        restarts=sorted({seed % places, seed // 7 % places}),
    )  # fmt: skip


def one_engine(script: Script, buckets: int, saved: object | None) -> OneByOne:
    return OneByOne(script, buckets, saved, single=0.9)


def test_single_events_conform():
    hold(a_taken_case, conforms, examples(5, 5), first=FIRST, tries=3)


def test_any_script_conforms_one_event_a_call():
    hold(any_case, conforms, examples(5, 5), first=FIRST)
