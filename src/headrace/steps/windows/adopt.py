"""Windows of a changed script: rows are carried over, and what windows of stored rows hold is added up anew from them.

What lies in no stored rows (windows without a lower edge, rings, lives) is carried over by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.aggregates.tally import NO_EVENTS, DistinctTally, Moves
from headrace.plan.windows import UntilWindow
from headrace.state.relayout import carry_rows
from headrace.steps.windows.slices import Sliced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.aggregates.tally import TallyState
    from headrace.state.reservoir import RowRange
    from headrace.steps.step import Given
    from headrace.steps.windows.evaluate import Evaluator
    from headrace.steps.windows.step import WindowsStep


def adopt_windows(new: WindowsStep, old: WindowsStep, given: Given) -> None:
    """All that the old windows held, as far as the new ones hold it."""
    to, of = new.evaluator, old.evaluator
    to.numbered, to.moved_to = of.next_row, of.moved_to
    if to.stores_rows and of.stores_rows:
        carry_rows(old.reservoir, new.reservoir, given.relayout)
    windows = _same([given.new.window(w) for w in new.program.windows], [given.old.window(w) for w in old.program.windows])
    to.ended = {i for i, j in windows.items() if j in of.ended}
    _carry_fields(to, of, given, windows)
    _carry_rings(to, of, given, windows)
    _carry_lives(new, old, given)
    _carry_tallies(new, old, given)
    _set_edges(new, of)
    _rebuild(new)
    _carry_owners(new, of, given)


def _same(new: list[str], old: list[str]) -> dict[int, int]:
    """Places of names that both have."""
    return {i: old.index(name) for i, name in enumerate(new) if name in old}


def _carry_fields(to: Evaluator, of: Evaluator, given: Given, windows: dict[int, int]) -> None:
    for vector, state in to.fields.items():
        before = of.fields.get(given.old.vectors.index(given.new.vectors[vector]))
        if before is not None:
            state.position = before.position
            state.tails = {i: before.tails[j] for i, j in windows.items() if j in before.tails}


def _carry_rings(to: Evaluator, of: Evaluator, given: Given, windows: dict[int, int]) -> None:
    for i, ring in to.rings.items():
        before = of.rings.get(windows.get(i, -1))
        if before is not None:
            ring.total, ring.owner, ring.rows = before.total, before.owner, before.rows
            ring.columns = given.relayout(before.columns)
            ring.grow(to.tables[ring.partitions].capacity)


def _carry_lives(new: WindowsStep, old: WindowsStep, given: Given) -> None:
    before = {given.old.tables[lives.index]: lives for lives in old.lives}
    for lives in new.lives:
        known = before.get(given.new.tables[lives.index])
        for table in (lives.base, lives.index, *lives.pairs) if known is not None else ():
            place = given.relayout.tables[table]
            if known is not None and place is not None:
                count = old.tables[place].count
                lives.load(table, 0, count, known.dump(place, 0, count))


def _carry_tallies(new: WindowsStep, old: WindowsStep, given: Given) -> None:
    """What no stored rows tell."""
    before = {given.old.tally(t, old.program.windows): i for i, t in enumerate(old.program.tallies)}
    for spec, tally in zip(new.program.tallies, new.evaluator.tallies, strict=True):
        place = before.get(given.new.tally(spec, new.program.windows))
        if place is None or of_stored_rows(new, spec.window):
            continue
        known, count = old.evaluator.tallies[place], new.tables[spec.group].count
        tally.load(0, count, known.dump(0, count))
        if isinstance(tally, DistinctTally) and isinstance(known, DistinctTally):
            pairs = new.tables[tally.pairs].count
            tally.load_pairs(0, pairs, known.dump_pairs(0, pairs))


def of_stored_rows(step: WindowsStep, window: int) -> bool:
    of = step.program.windows[window].window
    return bool(of.edges) or of.last_rows is not None or isinstance(of, UntilWindow)


def _set_edges(new: WindowsStep, of: Evaluator) -> None:
    """Every edge stands where time is; rows that have passed the last one hold their keys no longer."""
    to, reservoir = new.evaluator, new.reservoir
    for offset in to.offsets:
        passed = reservoir.until(reservoir.oldest, of.moved_to - offset) if reservoir.count > reservoir.oldest else []
        to.edges[offset] = of.edges.get(offset, reservoir.oldest + sum(len(run.ts) for run in passed))
    if to.offsets and of.offsets:
        for run in reservoir.between(of.edges[of.offsets[-1]], to.edges[to.offsets[-1]]):
            to.tables.release(run.columns)
    to.tables.sweep()


def _rebuild(new: WindowsStep) -> None:
    """Rows enter the windows that hold them; cells of slices too."""
    to, reservoir = new.evaluator, new.reservoir
    to.grow()
    for spec, tally in zip(new.program.tallies, to.tallies, strict=True):
        window = new.program.windows[spec.window].window
        if isinstance(tally, Sliced) or not of_stored_rows(new, spec.window):
            continue
        if window.edges:
            enter, leave = window.edges
            stop = to.edges[enter] if enter else reservoir.count
            _enter(tally, reservoir.between(to.edges[leave], stop))
        elif window.last_rows is not None:
            _enter(tally, reservoir.between(max(reservoir.oldest, reservoir.count - window.last_rows), reservoir.count))
        elif isinstance(window, UntilWindow) and spec.window not in to.ended and reservoir.count:
            _enter(tally, reservoir.until(reservoir.oldest, window.stop))
    for slices in to.slices:
        for run in reservoir.between(to.edges[to.offsets[-1]], reservoir.count):
            slices.enter(run)
        slices.forget(to.moved_to)


def _enter(tally: TallyState, runs: Iterable[RowRange]) -> None:
    for run in runs:
        tally.run(Moves.entering(run.columns, run.numbers), NO_EVENTS)


def _carry_owners(new: WindowsStep, of: Evaluator, given: Given) -> None:
    """In which partition each group is: as it was known, or as stored rows say."""
    tables = given.old.tables
    before = {(tables[group], tables[partition]): owner for (group, partition), owner in of.owners.items()}
    for (group, partition), owner in new.evaluator.owners.items():
        known = before.get((given.new.tables[group], given.new.tables[partition]))
        if known is not None:
            owner.of[: len(known.of)] = known.of[: len(owner.of)]
    for run in new.reservoir.between(new.reservoir.oldest, new.reservoir.count) if new.evaluator.owners else ():
        new.evaluator.own(run.columns)
