"""Who has which partition: evenly, stickily, and never two under one epoch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.log.log import At
from headrace.serve.assignment import Assignment

PARTITIONS = tuple(At("t", p) for p in range(7))


def held(assignment: Assignment) -> dict[At, int]:
    return {at: one.unit for at, one in assignment.held.items()}


def test_all_partitions_are_shared_out_evenly():
    assignment = Assignment(PARTITIONS)
    assert assignment.give({1, 2, 3}) == {1, 2, 3}
    assert sorted(len(assignment.of(unit)) for unit in (1, 2, 3)) == [2, 2, 3]


def test_who_stays_keeps_what_it_had():
    assignment = Assignment(PARTITIONS)
    assignment.give({1, 2, 3})
    before = held(assignment)
    assignment.give({1, 3})
    assert all(held(assignment)[at] == unit for at, unit in before.items() if unit != 2)


def test_who_dies_and_comes_again_gets_higher_epochs():
    assignment = Assignment(PARTITIONS[:1])
    assignment.give({1})
    assignment.give(set())
    assignment.give({1})
    assert assignment.of(1) == {PARTITIONS[0]: 2}


def test_epochs_go_on_from_those_there_were():
    assignment = Assignment(PARTITIONS[:2], epochs={PARTITIONS[0]: 7})
    assignment.give({0})
    assert assignment.of(0) == {PARTITIONS[0]: 8, PARTITIONS[1]: 1}


@given(st.lists(st.sets(st.integers(0, 5)), max_size=8))
def test_however_units_come_and_go(rounds):
    assignment, given_to = Assignment(PARTITIONS), dict[tuple[At, int], int]()
    for units in rounds:
        before = held(assignment)
        told = assignment.give(units)
        now = held(assignment)
        assert set(now) == (set(PARTITIONS) if units else set())
        sizes = [len(assignment.of(unit)) for unit in units]
        assert not sizes or max(sizes) - min(sizes) <= 1
        stays = {at for at, unit in before.items() if unit in units}
        most = -(-len(PARTITIONS) // len(units)) if units else 0
        kept = {unit: sum(now[at] == unit for at in stays if before[at] == unit) for unit in units}
        had = {unit: sum(before[at] == unit for at in stays) for unit in units}
        assert all(kept[unit] >= min(had[unit], most - 1) for unit in units)
        assert told >= {unit for at, unit in now.items() if before.get(at) != unit}
        for at, one in assignment.held.items():
            assert given_to.setdefault((at, one.epoch), one.unit) == one.unit
