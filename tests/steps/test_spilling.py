"""Events of a pattern outside memory (001, VIII): the bound holds, nothing changes but when late events that wait are taken."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from headrace.oracle.admission import Arrival, Batch, admit
from headrace.oracle.evaluate import Results, results, source_rows
from headrace.oracle.rows import canonical_row, from_micros
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Node, base_streams
from headrace.plan.patterns import Pattern, Spill
from headrace.plan.query import Emit, Query, Script
from headrace.sql import parse_script
from headrace.steps.patterns.spilled import NEVER
from headrace.steps.patterns.step import PatternStep
from headrace.testing.conformance import check_query
from headrace.testing.local import LocalEngine, local_engine
from headrace.testing.pattern_strategies import pattern_arrivals, patterns, reading_streams, seeded_pattern_case

UNIT = 1_000_000
MEMORY = 32
WINDOW = 20 * MEMORY  # an event a second
DELAY = MEMORY // 4 - 1  # what is open stays in memory: only with room for it does the bound say anything


def script(emit: str = "CHANGES", memory: str = f"WITH (memory = {MEMORY})", pattern: str = "a x, !(b y), c z", delay: int = 15):
    streams = "".join(
        f"CREATE STREAM {t} (k INT, n INT, at TIMESTAMP) SOURCE FILE('{t}.csv') TIMESTAMP BY at DELAY {delay} SECONDS; "
        for t in "abc"
    )
    own = "x.k = z.k AND x.n < z.n" + (" AND y.k = x.k AND y.n > x.n" if "b y" in pattern else "")
    return parse_script(
        f"{streams} EVENT SEQ({pattern}) WHERE {own} WITHIN {WINDOW} SECONDS RETURN x.k AS k, x.at AS first, z.at AS last "
        f"{memory} EMIT {emit} INTO found;"
    )


def arrivals(count: int, size: int = 1) -> list[Batch]:
    """Events of any of three types, so many a batch; some come late."""
    dice = Random(1)
    times = sorted((n + (dice.randrange(MEMORY // 6) if dice.random() < 0.3 else 0), n) for n in range(count))
    out = []
    for start in range(0, count, size):
        batch: dict[str, list[Arrival]] = {}
        for _, at in times[start : start + size]:
            batch.setdefault(dice.choice("abc"), []).append(event(dice, at))
        out.append(Batch(start * UNIT, batch))
    return out


def event(dice: Random, at: int) -> Arrival:
    return Arrival((dice.randrange(40), dice.randrange(100), from_micros(at * UNIT)))


def matching(engine: LocalEngine):
    (processor,) = engine._processors.values()
    return processor.step


def net(changes) -> Counter:
    out: Counter = Counter()
    for change in changes:
        out[tuple(change.row)] += change.sign
    assert all(n >= 0 for n in out.values()), "what is taken back was there"
    return +out


@pytest.mark.parametrize("emit", ["CHANGES", "FINAL IN ORDER USING KSLACK"])
def test_memory_is_bounded_by_a_twentieth_of_the_window_and_the_output_is_the_same(emit):
    small, large = LocalEngine(script(emit, delay=DELAY), 1), LocalEngine(script(emit, memory="", delay=DELAY), 1)
    peak = reference = said = 0
    for batch in arrivals(WINDOW + WINDOW // 6, size=MEMORY // 8):
        found, wanted = small.push(batch)["found"], large.push(batch)["found"]
        assert Counter(map(repr, found)) == Counter(map(repr, wanted))
        said += len(found)
        peak, reference = max(peak, matching(small).stored), max(reference, matching(large).stored)
    frames = matching(small).frames
    assert peak + frames.largest <= MEMORY
    assert reference > 15 * MEMORY
    assert frames.loads > 100
    assert said > 100


def test_what_is_outside_memory_is_let_go_with_age():
    engine = LocalEngine(script(delay=DELAY), 1)
    most = 0
    for batch in arrivals(2 * WINDOW, size=MEMORY):
        engine.push(batch)
        kept = matching(engine).kept
        most = max(most, kept.reservoir.count - kept.reservoir.oldest)
    assert WINDOW < most < 1.3 * WINDOW


def test_a_restart_before_every_batch_changes_nothing_and_reads_only_what_is_in_memory():
    plan = script("FINAL", pattern="a x, c z, !(b y)", memory="WITH (memory = 64)")
    plan = replace(plan, queries=tuple(replace(q, node=_shorter(q.node)) for q in plan.queries))
    whole, restarted = LocalEngine(plan, 1), LocalEngine(plan, 1)
    said = 0
    for batch in arrivals(400, size=4):
        restarted = LocalEngine(plan, 1, restarted.save())
        assert matching(restarted).stored <= 64
        wanted = whole.push(batch)["found"]
        assert restarted.push(batch)["found"] == wanted
        said += len(wanted)
    assert said > 5


def _shorter(node):
    if isinstance(node, Pattern):
        return replace(node, within=300 * UNIT)
    return replace(node, input=_shorter(node.input))


@pytest.mark.parametrize("seed", range(6))
def test_random_patterns_with_hardly_any_memory(seed):
    case = seeded_pattern_case(seed + 1000, 30)
    spill = Spill(8, seed // 2 + 1)
    queries = tuple(replace(q, node=_spilled(q.node, spill)) for q in case.script.queries)
    check_query(replace(case.script, queries=queries), case.batches, local_engine, buckets=(3,), restarts=(2,), seed=seed)


def _spilled(node, spill):
    """The same with long windows and hardly any memory, where it has no repeated place."""
    if isinstance(node, Pattern):
        return node if any(p.repeated for p in node.places) else replace(node, within=6 * node.within, spill=spill)
    return replace(node, input=_spilled(node.input, spill)) if hasattr(node, "input") else node


# ---- late events that wait ----------------------------------------------------------------------------------------------


FILLING = 10  # batches of events in order


def late_stream() -> list[Batch]:
    """Enough in order to fill frames, then late events among others that are not."""
    dice = Random(3)
    out = []
    for start in range(0, 300, 300 // FILLING):
        rows: dict[str, list[Arrival]] = {t: [] for t in "abc"}
        for n in range(start, start + 300 // FILLING):
            rows["abc"[n % 3]].append(event(dice, n))
        out.append(Batch(start * UNIT, rows))
    for n in range(300, 360):
        at = n - 5 if n % 3 == 0 else n
        out.append(Batch(n * UNIT, {dice.choice("abc"): [event(dice, at)]}))
    return out


def waiting_times(engine: LocalEngine) -> set[int]:
    (processor,) = engine._processors.values()
    return set(processor.open.rows.rows.ts[processor.step.waiting.since != NEVER].tolist())


def without(batches: list[Batch], times: set[int]) -> list[Batch]:
    """The same without the late events of some times."""
    out = []
    for batch in batches:
        rows = {
            stream: [a for a in given if not (late(a, batch) and micros(a) in times)]
            for stream, given in batch.rows.items()
        }  # fmt: skip
        out.append(replace(batch, rows={s: given for s, given in rows.items() if given}))
    return out


def micros(arrival: Arrival) -> int:
    return int(arrival.values[2].timestamp() * 1_000_000)


def late(arrival: Arrival, batch: Batch) -> bool:
    return micros(arrival) < batch.now


def test_late_events_wait_for_each_other_and_all_else_is_as_if_they_had_not_come():
    engine = LocalEngine(script(memory=f"WITH (memory = {MEMORY}, together = 3)"), 1)
    seen, waited, changes = [], 0, []
    for batch in late_stream():
        seen.append(batch)
        changes += engine.push(batch)["found"]
        times = waiting_times(engine)
        waited = max(waited, len(times))
        if len(seen) > FILLING and (len(seen) - FILLING) % 20 == 0:
            other = LocalEngine(script(memory=""), 1)
            wanted = [change for some in without(seen, times) for change in other.push(some)["found"]]
            assert net(changes) == net(wanted)
    assert waited == 2  # the third takes them all


def test_late_events_wait_no_longer_than_wait():
    engine = LocalEngine(script(memory=f"WITH (memory = {MEMORY}, together = 100, wait = 3 SECONDS)"), 1)
    since: dict[int, int] = {}
    longest = -1
    for batch in late_stream():
        engine.push(batch)
        now = waiting_times(engine)
        since = {t: since.get(t, batch.now) for t in now}
        longest = max([longest, *(batch.now - begun for begun in since.values())])
    assert longest == 1 * UNIT  # a late event came when time was a second behind its batch, and three seconds later is taken


@pytest.mark.parametrize("emit", ["CHANGES", "FINAL", "FINAL IN ORDER"])
def test_what_is_final_does_not_depend_on_who_waits(emit):
    waits = LocalEngine(script(emit, memory=f"WITH (memory = {MEMORY}, together = 1000)"), 1)
    plain = LocalEngine(script(emit, memory=""), 1)
    found, wanted, waited = [], [], 0
    for batch in [*late_stream(), Batch(10_000 * UNIT, {t: [Arrival((0, 0, from_micros(10_000 * UNIT)))] for t in "abc"})]:
        found += waits.push(batch)["found"]
        wanted += plain.push(batch)["found"]
        waited = max(waited, len(matching(waits).waiting))
        if emit == "FINAL IN ORDER":
            assert found == wanted
    assert net(found) == net(wanted)
    assert waited > 2


HIDDEN = "~"  # the id of a reading that is as if it had not come
SEEN = Expr.of(f"COALESCE(id <> '{HIDDEN}', TRUE)")


def _over_what_is_seen(node):
    """The same over the readings that are not hidden. They have their places in the source, and move frontiers."""
    if isinstance(node, Pattern):
        return replace(node, places=tuple(replace(p, input=Filter(p.input, SEEN)) for p in node.places), spill=None)
    return replace(node, input=_over_what_is_seen(node.input))


def hidden(batches: list[Batch], rows: set[tuple[str, int, int]]) -> list[Batch]:
    """The same where rows of these streams, partitions and numbers are hidden."""
    count: Counter = Counter()
    out = []
    for batch in batches:
        given = {}
        for name, arrivals in batch.rows.items():
            given[name] = []
            for arrival in arrivals:
                at, _, *rest = arrival.values
                hide = (name, arrival.partition, count[name, arrival.partition]) in rows
                given[name].append(replace(arrival, values=(at, HIDDEN, *rest)) if hide else arrival)
                count[name, arrival.partition] += 1
        out.append(Batch(batch.now, given))
    return out


def waiting_rows(engine: LocalEngine) -> set[tuple[str, int, int]]:
    """Stream, partition and number of the events that wait."""
    found = set()
    for processor in engine._processors.values():
        if isinstance(processor.step, PatternStep) and len(processor.step.waiting):
            rows = processor.open.rows.rows.take(np.flatnonzero(processor.step.waiting.since != NEVER))
            names = [s.name for s in processor.stage.sources]
            found |= {
                (names[int(h) >> 50], int(h) & (1 << 50) - 1, int(low))
                for h, low in zip(rows.keys.high, rows.keys.low, strict=True)
            }
    return found


def waiting_case(seed: int) -> tuple[Pattern, Script, list[Batch]]:
    """A random pattern, late events of which wait: its window is longer than memory, and the frontiers are far behind."""
    dice = Random(seed)
    steady = {"delay": 5 * UNIT, "idle": None, "ahead": None, "end_after": None, "unique": None}
    streams = tuple(replace(reading_streams(dice, name), **steady) for name in "ab"[: dice.choice((1, 2))])
    node = patterns(dice, streams, derived=False)
    while any(p.repeated for p in node.places) or len(node.places) not in (2, 3):
        node = patterns(dice, streams, derived=False)
    node = replace(node, within=20 * UNIT, spill=Spill(8, dice.choice((2, 3, 5)), dice.choice((None, None, 2 * UNIT))))
    return node, Script((), streams), pattern_arrivals(dice, streams, 40)


def test_changes_are_convergent_over_the_arrivals_of_random_patterns_that_do_not_wait():
    """After every batch, with a restart before each."""
    waited = 0
    for seed in range(11):
        node, plan, batches = waiting_case(seed)
        waited += check_convergent(replace(plan, queries=(Query("q", node),)), batches)
    assert waited > 20


@pytest.mark.parametrize("seed", [1, 2, 4, 6, 7, 8, 9, 10])
def test_random_patterns_whose_late_events_wait_conform(seed):
    """What is final and in order is out when it should be; the rest is at the end."""
    node, plan, batches = waiting_case(seed)
    plan = replace(plan, queries=tuple(Query(emit.name, node, emit) for emit in Emit))
    check_query(plan, batches, local_engine, buckets=(3,), restarts=(len(batches) // 2,), recuts=0, losses=False)


def results_so_far(node: Node, batches: list[Batch]) -> Results:
    """What the oracle says after the last of some batches, without asking it after those before."""
    outcomes = {stream.name: admit(stream, batches, end=False) for stream in base_streams(node)}
    clock = {name: (every[-1].clock, every[-1].last) for name, every in outcomes.items()}
    return results(node, source_rows(node, outcomes), clock)


def check_convergent(plan: Script, batches: list[Batch]) -> int:
    """Against the oracle, which is asked after batches in which some begin or cease to wait. Gives how often that was."""
    query = plan.queries[0]
    shown = replace(query, node=_over_what_is_seen(query.node))
    engine, out, before, asked = LocalEngine(plan, 1), Counter(), set(), 0
    for number, batch in enumerate(batches):
        engine = LocalEngine(plan, 1, engine.save())
        for change in engine.push(batch)["q"]:
            out[change.key, canonical_row(change.row)] += change.sign
        rows = waiting_rows(engine)
        if rows != before:
            asked += 1
            wanted = results_so_far(shown.node, hidden(batches[: number + 1], rows))
            assert +out == Counter((key, canonical_row(row)) for key, row in wanted), f"batch {number} of {plan}"
        before = rows
    return asked
