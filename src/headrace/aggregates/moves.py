"""What a window does to the rows: some enter, some leave, and events look at it in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.kernels.windows import passes


@dataclass(slots=True)
class Moves:
    """Rows that enter and leave a window, and how far both are when each event is evaluated.

    What is left after the last event moves too: it is what time alone does to the window.
    """

    enter: list[np.ndarray]  # columns of the layout
    enter_row: np.ndarray  # numbers of the rows in the reservoir
    enter_end: np.ndarray
    leave: list[np.ndarray]
    leave_row: np.ndarray
    leave_end: np.ndarray

    def at(self, events: np.ndarray) -> Moves:
        """The same moves, as some of the events see them; they may be seen by no others already."""
        if len(events) == len(self.enter_end):
            return self
        enter_end, leave_end = self.enter_end[events], self.leave_end[events]
        return Moves(self.enter, self.enter_row, enter_end, self.leave, self.leave_row, leave_end)

    def adds(self, keep: bool) -> int:
        """How often a run adds to sums."""
        return (len(self.enter_row) + len(self.leave_row)) * (1 if keep else 2)

    def only(self, group: int, keys: np.ndarray, flags: np.ndarray) -> Moves:
        """The part that concerns some keys of a group; no key has a flag before and after."""
        enter, enter_end = passes.chosen(self.enter[group], keys, flags, self.enter_end)
        leave, leave_end = passes.chosen(self.leave[group], keys, flags, self.leave_end)
        return Moves(
            [c[enter] for c in self.enter], self.enter_row[enter], enter_end,
            [c[leave] for c in self.leave], self.leave_row[leave], leave_end,
        )  # fmt: skip

    def reversed(self) -> Moves:
        """What takes these moves back, with no event looking."""
        none = np.empty(0, np.int64)
        return Moves(self.leave, self.leave_row, none, self.enter, self.enter_row, none)
