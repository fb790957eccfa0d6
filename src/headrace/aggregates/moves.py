"""What a window does to the rows: some enter, some leave, and events look at it in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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

    def only(self, group: int, active: np.ndarray, events: np.ndarray) -> Moves:
        """The part that concerns the active keys of a group, as the chosen events see it."""
        enter, enter_end = _some(self.enter[group], active, self.enter_end[events])
        leave, leave_end = _some(self.leave[group], active, self.leave_end[events])
        return Moves(
            [c[enter] for c in self.enter], self.enter_row[enter], enter_end,
            [c[leave] for c in self.leave], self.leave_row[leave], leave_end,
        )  # fmt: skip

    def reversed(self) -> Moves:
        """What takes these moves back, with no event looking."""
        none = np.empty(0, np.int64)
        return Moves(self.leave, self.leave_row, none, self.enter, self.enter_row, none)


def _some(keys: np.ndarray, active: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    chosen = active[keys]
    before = np.zeros(len(keys) + 1, np.int64)
    np.cumsum(chosen, out=before[1:])
    return chosen.nonzero()[0], before[ends]
