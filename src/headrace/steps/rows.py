"""Rows that pass as they are: at once, or once they are final."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.steps.shown import carried, show, wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headrace.program.outputs import Output
    from headrace.program.rows import RowsProgram
    from headrace.state.open_rows import OpenRows
    from headrace.state.parts import HeadPart, KeyPart, PageStore
    from headrace.state.share import Share
    from headrace.steps.step import Given, Results, Standing, StepParts, Times, Turn


class RowsStep:
    """Nothing is kept but what waits."""

    def __init__(self, parts: StepParts, program: RowsProgram) -> None:
        """For one stage."""
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
        """Nothing is kept."""
        return [turn.new.rows.slice(0, turn.final).columns] if self.keeps_open else []

    def standing(self, query: str, now: Standing) -> Standing:
        """As far as the input."""
        return now

    def grow(self) -> None:
        """Nothing is kept."""

    def parts(self) -> Iterable[HeadPart | KeyPart]:
        """None."""
        return ()

    def save_pages(self, pages: PageStore) -> None:
        """None."""

    def restored(self, open_: OpenRows, pages: PageStore) -> None:
        """Nothing follows."""

    def adopt(self, old: Any, open_: OpenRows, given: Given) -> None:
        """Nothing was kept."""

    def owners(self, table: int) -> np.ndarray:
        """No key has a life."""
        return np.zeros(0, np.int64)

    def gather(self, shares: Sequence[Share], open_: OpenRows) -> Sequence[list[np.ndarray]]:
        """Nothing was kept."""
        return ()

    def numbers(self) -> dict[str, int]:
        """None."""
        return {}
