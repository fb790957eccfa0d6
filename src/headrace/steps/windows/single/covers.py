"""Which stages take single events compiled, and why the others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.plan.aggregates import TallyKind
from headrace.plan.windows import RangeWindow, UnboundedWindow
from headrace.steps.windows.single.inputs import how_it_lies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.program.stage import Stage

BITS = 60  # of a word, each for a mask, an output or a table
TALLIES = (TallyKind.COUNT, TallyKind.SUM, TallyKind.MOMENTS, TallyKind.DISTINCT, TallyKind.QUEUE)


def slow_because(stage: Stage[Any]) -> str | None:
    """In words, what keeps the windows of a stage from taking single events compiled; None: nothing."""
    return next(_reasons(stage), None)


def _reasons(stage: Stage[Any]) -> Iterator[str]:
    program = stage.program
    if program.reports:
        yield "its windows are looked at by triggers"
    if any(t.derived for t in stage.tables):
        yield "keys that are silent are forgotten (KEEP)"
    for one in program.windows:
        if not isinstance(one.window, RangeWindow | UnboundedWindow):
            yield f"rows are counted: {one.window}"
    for tally in program.tallies:
        if tally.kind not in TALLIES:
            yield f"what is kept is a {tally.kind.name.lower()}"
    for i in read_inputs(stage):
        if how_it_lies(stage.inputs[i].type) is None:
            yield f"a key or value is of type {stage.inputs[i].type}"
    if max(len(masks_of(stage)), len(program.outputs), len(stage.tables)) > BITS:
        yield f"it has more than {BITS} conditions, outputs or keys"


def read_inputs(stage: Stage[Any]) -> list[int]:
    """The inputs that keys are made of, and those that are aggregated."""
    found = {i for t in stage.tables for i in t.inputs} | {v.input for v in stage.vectors if v.input is not None}
    return sorted(found | set(getattr(stage.route, "inputs", ())))


def masks_of(stage: Stage[Any]) -> list[int]:
    """The conditions: inputs that must be true."""
    return sorted({i for part in (*stage.vectors, *stage.program.outputs) for i in part.masks})
