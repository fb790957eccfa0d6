"""Rows that pass as they are: at once, or once they are final."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.steps.shown import carried, show, wanted
from headrace.steps.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.program.outputs import Output
    from headrace.program.rows import RowsProgram
    from headrace.state.open_rows import OpenRows
    from headrace.steps.step import Results, StepParts, Times, Turn


class RowsStep(Step):
    """Nothing is kept but what waits."""

    def __init__(self, parts: StepParts, program: RowsProgram) -> None:
        self.outputs = program.outputs
        # What may be taken back, or come twice, is not final at once.
        unsure = parts.stage.signed or parts.stage.unique is not None
        self._waits = [o.emit.ordered or (unsure and not o.emit.early) for o in self.outputs]
        self.keeps_open = any(self._waits) or parts.stage.unique is not None
        self._carried = carried(parts.stage)

    def final_before(self, times: Times) -> int:
        """What stands before the frontier."""
        return times.final_before

    def turn(self, turn: Turn) -> Results:
        """What is taken back and what comes; or what became final."""
        out: Results = []
        for i, output in enumerate(self.outputs):
            if self._waits[i]:
                out += self._shown(i, output, turn.new, np.arange(turn.final), 1)
            else:
                out += self._shown(i, output, turn.old, turn.removed.nonzero()[0], -1)
                out += self._shown(i, output, turn.new, turn.added.nonzero()[0], 1)
        return out

    def _shown(self, index: int, output: Output, rows: OpenRows, which: np.ndarray, sign: int) -> Results:
        return show(output, rows, wanted(rows.wanted[index], which), self._carried, [], sign)

    def settle(self, turn: Turn) -> Iterable[list[np.ndarray]]:
        return [turn.new.rows.slice(0, turn.final).columns] if self.keeps_open else []
