"""A run that has ended goes on when there is more, as if the end had not been: against the oracle, for every kind of step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from changed import OTHERS, Told, go_on, redistributed, variants
from hypothesis import strategies as st

from cascade_cases import a_case
from headrace.errors import StateError
from headrace.plan.nodes import Scan
from headrace.plan.query import Emit, Query
from headrace.testing.conformance import Run, check_outputs, watch_losses
from headrace.testing.engine import Outputs
from headrace.testing.local import LocalEngine, local_engine
from headrace.testing.pattern_strategies import seeded_pattern_case
from headrace.testing.reach import hold
from headrace.testing.strategies import Case, arrivals, policy_cases, sampled, scripts, shared_looks, streams, window_reports
from join_cases import joins
from seeds import FIRST, examples

Check = Callable[[Run, int, Told], None]


def check_ended(run: Run, seed: int, told: Told, others: tuple[int, ...] = ()) -> None:
    """End after some of the batches, perhaps several times, and go on. What is final and was released by an end cannot.

    With `others` it goes on with one of these numbers of buckets.
    """
    rng, queries = Random(seed), list(watch_losses(run.script).queries)
    if len(run.batches) < 2:
        return
    ends = sorted(rng.sample(range(1, len(run.batches)), rng.randint(1, min(2, len(run.batches) - 1))))
    while queries:
        own = Run.of(replace(run.script, queries=tuple(queries)), run.batches, run.expected)
        stuck = _went_on(own, ends, rng.choice((1, 3)), others, rng, told)
        if not stuck:
            break
        told.cases["refused"] += 1
        queries = [q for q in queries if q not in stuck]


def check_ended_with_other_buckets(run: Run, seed: int, told: Told) -> None:
    """What each bucket had released is taken back once, by whichever takes over its keys."""
    check_ended(run, seed, told, (1, 3, *OTHERS))


def _went_on(run: Run, ends: list[int], buckets: int, others: tuple[int, ...], rng: Random, told: Told) -> list[Query]:
    """The queries that cannot go on, or nothing, and then all have been judged."""
    engine, outputs, pending = LocalEngine(run.script, buckets), [], None
    for number, batch in enumerate(run.batches):
        if number in ends:
            so_far = Run.of(run.script, run.batches[:number])
            end = engine.finish(so_far.end)
            check_outputs(so_far, [*outputs, end], f"ended before batch {number}")
            stuck = [q for q in run.script.queries if not q.emit.early and end[q.name]]
            saved = engine.save()
            if stuck:
                with pytest.raises(StateError, match="is EMIT FINAL and takes nothing back"):
                    LocalEngine(run.script, buckets, saved)
                return stuck
            told.cases["ended"] += 1
            told.cases["took_back"] += any(end.values())
            buckets = rng.choice([n for n in others if n != buckets] or [buckets])
            old, engine = engine, LocalEngine(run.script, buckets, saved)
            told.cases["rebucketed"] += bool(others) and bool(redistributed(old, engine))
            if rng.random() < 0.5:  # killed before it has done anything
                engine = LocalEngine(run.script, buckets, engine.save())
            pending = end
        given = engine.push(batch)
        outputs.append(given if pending is None else _joined(pending, given))
        pending = None
        if rng.random() < 0.3:
            engine = LocalEngine(run.script, buckets, engine.save())
    outputs.append(engine.finish(run.end))
    check_outputs(run, outputs, f"ended before batches {ends}, and went on")
    told.cases["final"] += any(q.emit is not Emit.CHANGES and any(o[q.name] for o in outputs) for q in run.script.queries)
    return []


def _joined(first: Outputs, then: Outputs) -> Outputs:
    return {name: [*first[name], *changes] for name, changes in then.items()}


def check_changed_after_the_end(run: Run, seed: int, told: Told) -> None:
    """A script that ended goes on as another: what both have takes back what the end gave, and says the rest."""
    rng = Random(seed)
    queries = [q for q in run.script.queries if q.emit.early]
    if len(queries) < 2 or len(run.batches) < 2:
        return
    place = rng.randint(1, len(run.batches) - 1)
    old = rng.sample(queries, rng.randint(1, len(queries) - 1))
    engine = LocalEngine(replace(run.script, queries=tuple(old)), 3)
    outputs = [engine.push(batch) for batch in run.batches[:place]]
    end = engine.finish(run.batches[place - 1].now)
    again = {q.name: f"{q.name}_again" if rng.random() < 0.5 else q.name for q in queries}
    kept = rng.sample(old, rng.randint(1, len(old)))
    new = [*kept, *(q for q in queries if q not in old)]
    rng.shuffle(new)
    script = replace(run.script, queries=tuple(replace(q, name=again[q.name]) for q in new))
    went_on = go_on(script, 3, engine.save(), {again[q.name] for q in new if q not in old}, told)
    assert went_on is not None
    after = [*(went_on.push(batch) for batch in run.batches[place:]), went_on.finish(run.end)]
    for query in kept:
        name = again[query.name]
        told.cases["continued"] += 1
        told.cases["took_back"] += bool(end[query.name])
        own = Run(replace(run.script, queries=(query,)), run.batches, {query.name: run.expected[query.name]})
        mine = [{query.name: o[name]} for o in after]
        mine[0] = _joined({query.name: end[query.name]}, mine[0])
        before = [{query.name: o[query.name]} for o in outputs]
        check_outputs(own, [*before, *mine], f"ended after {place} batches, and another script went on")


def ended(make: Callable[[int], Case], few: int, share: int, tries: int = 6, check: Check = check_ended, **least: int) -> None:
    """Hold runs that end and go on against the oracle; so often at least it is to reach what it is for."""

    def case(seed: int) -> Case:
        found = make(seed)
        if seed % 3:  # what is final can seldom go on
            queries = tuple(replace(q, emit=Emit.CHANGES) for q in found.script.queries)
            found = Case(replace(found.script, queries=queries), found.batches)
        local_engine(found.script, 1, None)
        return found

    told = Told()
    hold(case, lambda run, seed: check(run, seed, told), examples(few, share), first=FIRST + 300, tries=tries)
    told.at_least(**least)


def windows(seed: int) -> Case:
    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        stream = draw(streams())
        script = draw(scripts(stream, 2))
        report = Query("report", draw(window_reports(Scan(stream))), draw(st.sampled_from(list(Emit))))
        return Case(replace(script, queries=(*script.queries, report)), tuple(draw(arrivals(stream, 24))))

    return sampled(cases(), seed)


def test_windows_of_a_run_that_ended():
    ended(windows, 12, 2, ended=8, took_back=2, refused=2)


def test_windows_of_every_policy_of_a_run_that_ended():
    ended(lambda seed: sampled(policy_cases(), seed), 10, 4, ended=8, took_back=2, refused=2)


def test_slices_of_a_run_that_ended():
    ended(lambda seed: sampled(shared_looks(), seed), 8, 6, tries=15, ended=5, took_back=2)


def test_patterns_of_a_run_that_ended():
    ended(seeded_pattern_case, 9, 4, ended=6)


def test_joins_of_a_run_that_ended():
    ended(lambda seed: sampled(joins(), seed), 10, 4, ended=8, took_back=1, refused=1)


def test_cascades_of_a_run_that_ended():
    ended(a_case, 10, 6, tries=12, ended=4, took_back=2)


def test_runs_that_ended_go_on_with_other_buckets():
    check = check_ended_with_other_buckets
    ended(windows, 6, 4, check=check, ended=5, took_back=1, rebucketed=4)
    ended(lambda seed: sampled(joins(), seed), 4, 8, check=check, ended=3, took_back=1, rebucketed=2)
    ended(seeded_pattern_case, 4, 8, check=check, ended=3, took_back=1, rebucketed=1)
    ended(a_case, 4, 8, tries=12, check=check, ended=2, took_back=1, rebucketed=2)


def test_windows_of_a_run_that_ended_and_changed():
    ended(lambda s: variants(Random(s), windows(s), 1), 8, 4, check=check_changed_after_the_end, continued=8, took_back=2)


def test_patterns_of_a_run_that_ended_and_changed():
    ended(lambda s: variants(Random(s), seeded_pattern_case(s)), 8, 4, check=check_changed_after_the_end, continued=5)
