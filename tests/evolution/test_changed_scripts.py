"""A script that changed goes on with what it kept: against the oracle, for every kind of step, however it changed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from changed import Told, check_changed, variants
from hypothesis import strategies as st

from cascade_cases import a_case
from headrace.testing.local import local_engine
from headrace.testing.pattern_strategies import seeded_pattern_case
from headrace.testing.reach import hold
from headrace.testing.strategies import Case, arrivals, policy_cases, sampled, scripts, shared_looks, streams
from join_cases import joins
from seeds import FIRST, examples


def windows(seed: int) -> Case:
    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        stream = draw(streams())
        return Case(draw(scripts(stream, 2, nested=False)), tuple(draw(arrivals(stream, 24))))

    return variants(Random(seed), sampled(cases(), seed))


def changes(make: Callable[[int], Case], few: int, share: int, **least: int) -> None:
    """Hold scripts that change against the oracle; so often at least it is to reach what it is for."""

    def case(seed: int) -> Case:
        found = make(seed)
        local_engine(found.script, 1, None)
        return found

    told = Told()
    hold(case, lambda run, seed: check_changed(run, seed, told), examples(few, share), first=FIRST + 100, tries=6)
    told.at_least(rebucketed=2, widened=1, **least)


def test_windows_of_a_changed_script():
    changes(windows, 12, 2, continued=8, renamed=2, added_with_results=2, refused=2, filled_with_results=1)


def test_windows_of_every_policy_of_a_changed_script():
    changes(
        lambda seed: variants(Random(seed), sampled(policy_cases(), seed)),
        10,
        4,
        continued=8,
        renamed=2,
        refused=2,
        filled_with_results=2,
    )


def test_slices_of_a_changed_script():
    changes(
        lambda seed: variants(Random(seed), sampled(shared_looks(), seed), 1),
        5,
        6,
        continued=5,
        added_with_results=2,
        filled_with_results=3,
    )


def test_patterns_of_a_changed_script():
    changes(
        lambda seed: variants(Random(seed), seeded_pattern_case(seed)),
        9,
        4,
        continued=6,
        added_with_results=2,
        filled_with_results=2,
    )


def test_joins_of_a_changed_script():
    changes(
        lambda seed: variants(Random(seed), sampled(joins(), seed)),
        10,
        4,
        continued=6,
        renamed=2,
        added_with_results=2,
        filled_with_results=2,
    )


def test_cascades_of_a_changed_script():
    changes(
        lambda seed: variants(Random(seed), a_case(seed)),
        14,
        6,
        continued=4,
        refused=1,
        added_over_results=1,
        filled_with_results=2,
    )
