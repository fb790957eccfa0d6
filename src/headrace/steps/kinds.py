"""The kinds of step there are. To add one: a folder beside these, a program type, an oracle, and a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.program.joins import JoinProgram
from headrace.program.patterns import PatternProgram
from headrace.program.rows import RowsProgram
from headrace.program.windows import WindowsProgram

if TYPE_CHECKING:
    from headrace.program.stage import Stage
    from headrace.steps.step import Step, StepParts


def make_step(parts: StepParts) -> Step:
    """The step that runs the program of a stage. What other kinds need is not loaded."""
    program: Any = parts.stage.program
    match program:
        case RowsProgram():
            from headrace.steps.rows import RowsStep

            return RowsStep(parts, program)
        case WindowsProgram():
            from headrace.steps.windows.step import WindowsStep

            return WindowsStep(parts)
        case JoinProgram():
            from headrace.steps.joins.step import JoinStep

            return JoinStep(parts)
        case PatternProgram():
            from headrace.steps.patterns.step import PatternStep

            return PatternStep(parts)
    raise AssertionError(f"no step runs {program}")


def slow_because(stage: Stage[Any]) -> str | None:
    """In words, why a stage takes single events as batches of one; None: it takes them one by one."""
    if stage.signed:
        return "it reads results of other stages"
    if stage.unique is not None:
        return "rows that come twice count once (UNIQUE BY)"
    if any(s.disorder.end_after is not None for s in stage.sources):
        return "its stream ends when it is silent (END AFTER)"
    match stage.program:
        case RowsProgram():
            return None
        case WindowsProgram():
            from headrace.steps.windows.single.covers import slow_because as of_windows

            return of_windows(stage)
    return "what it looks for is found in batches"


def freed_tables(stage: Stage[Any]) -> frozenset[int]:
    """The tables whose numbers mean nothing once no row holds them."""
    if isinstance(stage.program, WindowsProgram):
        from headrace.steps.windows.evaluate import freed_tables as of_windows

        return of_windows(stage)
    return frozenset(range(len(stage.tables)))
