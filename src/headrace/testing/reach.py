"""How far a property reaches: random cases in which nothing comes out, or nothing is ever corrected, prove little.

A property counts the runs it has made, and asserts at its end that enough of them had results, and enough of these came out of
disorder that matters: under EMIT CHANGES, that something was said and taken back; under EMIT FINAL, that who had answered at once
would have been wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis.errors import UnsatisfiedAssumption

from headrace.errors import QueryError
from headrace.oracle.evaluate import Expected, Results
from headrace.oracle.rows import canonical_row
from headrace.plan.nodes import Late, Rejected
from headrace.stages.flatten import split_top
from headrace.testing.conformance import Run
from headrace.testing.strategies import Case

RESULTS = 0.9  # of all queries that were asked
DISORDER = 1 / 3  # of those of a level


class ReachError(AssertionError):
    """A property seldom reaches what it is for."""


@dataclass
class Reach:
    """Counts the queries of many runs."""

    asked: int = 0
    answered: int = 0
    changes: int = 0
    taken_back: int = 0
    final: int = 0
    mattered: int = 0

    def add(self, run: Run) -> None:
        """Count what the oracle says of a run; queries over `late(s)` and `rejected(s)` are a record of what came."""
        for query in run.script.queries:
            if isinstance(split_top(query.node)[1], Late | Rejected):
                continue
            expected = run.expected[query.name]
            self.asked += 1
            self.answered += any(want.changes or want.final for want in expected)
            if query.emit.early:
                self.changes += 1
                self.taken_back += _taken_back(expected)
            else:
                self.final += 1
                self.mattered += _mattered(expected)

    def check(self, results: float = RESULTS, disorder: float = DISORDER) -> None:
        for what, share, of, least in (
            ("have results", self.answered, self.asked, results),
            ("take a result back under CHANGES", self.taken_back, self.changes, disorder),
            ("would have been answered wrongly at once under FINAL", self.mattered, self.final, disorder),
        ):
            if share < least * of or not of:
                raise ReachError(f"only {share} of {of} queries {what}, not {least:.0%}: the cases must be denser ({self})")


def hold(
    make: Callable[[int], Case], check: Callable[[Run, int], object], count: int, *, first: int = 0, tries: int = 5,
    by_turns: bool = False,
) -> None:  # fmt: skip
    """Check so many cases, each the best of some that seeds give: the oracle, asked anyway, says how far one reaches.

    So nothing is left out that a seed may give, but what is checked is mostly what the property is for. The shares are asserted
    over what was checked. A failure says its seed, which gives the same case again. With `by_turns`, cases of the one and of the
    other level are preferred by turns, where one of them seldom reaches anything.
    """
    reach = Reach()
    for number in range(count):
        seeds = range(first + number * tries, first + (number + 1) * tries)
        seed, run = _best(make, seeds, seeds[0] // tries % 2 == 0 if by_turns else None)
        if run is None:
            continue
        try:
            check(run, seed)
        except Exception as error:
            error.add_note(f"the case of seed {seed}; HEADRACE_SEED={seeds[0]} begins with it")
            raise
        reach.add(run)
    reach.check()


def _best(make: Callable[[int], Case], seeds: range, changes: bool | None) -> tuple[int, Run | None]:
    """The first whose queries all reach what they are for, at the level that is wanted, if any; else the one of which most do."""
    best: tuple[float, int, Run | None] = (-1.0, seeds[0], None)
    for seed in seeds:
        try:
            case = make(seed)
        except (QueryError, UnsatisfiedAssumption):  # refused: FIRST over ROWS whose partitions are no groups, and the like
            continue
        run, own = Run.of(case.script, case.batches), Reach()
        own.add(run)
        share = (own.taken_back + own.mattered + own.answered) / (2 * own.asked or 1)
        wanted = changes is None or (own.changes if changes else own.final) > 0
        score = share + 0.6 * wanted
        if score > best[0]:
            best = (score, seed, run)
        if share >= 1 and wanted:
            break
    return best[1], best[2]


def _taken_back(expected: list[Expected]) -> bool:
    """Whether a result that was right for what had arrived was not any more, a batch later."""
    return any(_bag(earlier.changes) - _bag(later.changes) for earlier, later in pairwise(expected))


def _mattered(expected: list[Expected]) -> bool:
    """Whether the answer to the arrivals so far had, after some batch, what the whole answer does not."""
    whole = _bag(expected[-1].changes)
    return any(_bag(want.changes) - whole for want in expected[:-1])


def _bag(results: Results) -> Counter[Any]:
    return Counter((key, canonical_row(row)) for key, row in results)
