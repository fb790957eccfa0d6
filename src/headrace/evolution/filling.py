"""How far back the results of a stage reach: so long after it has begun with nothing, they lack something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.plan.windows import RangeWindow
from headrace.program.joins import JoinProgram
from headrace.program.patterns import PatternProgram
from headrace.program.stage import Stage
from headrace.program.windows import WindowsProgram

EVER = 2**61
MOST_TOLD = 62  # stages: those that fill up are told as the bits of a number


def reaches(stages: Sequence[Stage[Any]]) -> tuple[int, ...]:
    """Of every stage, with the stages whose results it reads; EVER if it is not time that ends it."""
    found = [_own(stage) for stage in stages]
    for number in sorted(range(len(stages)), key=lambda n: stages[n].level):
        read = {s.name for s in stages[number].sources if s.follows}
        below = [found[i] for i, other in enumerate(stages) if read & set(other.queries)]
        found[number] = min(found[number] + max(below, default=0), EVER)
    return tuple(found)


def filling(stages: Sequence[Stage[Any]], told: int) -> tuple[str, ...]:
    """The queries of the stages that are told to lack something."""
    return tuple(dict.fromkeys(q for n, stage in enumerate(stages) if told >> n & 1 for q in stage.queries))


def _own(stage: Stage[Any]) -> int:
    match stage.program:
        case WindowsProgram(windows=programs):
            windows = [p.window for p in programs]
        case JoinProgram(windows=both):
            windows = list(both)
        case PatternProgram(sequence=sequence):
            return sequence.within
        case _:
            return 0
    return max((w.lag + w.size if isinstance(w, RangeWindow) else EVER for w in windows), default=0)
