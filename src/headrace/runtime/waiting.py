"""Late events that wait until enough of them need the same frame (001, VIII), each as if it had not come yet.

The paper has two thresholds for a frame: how many late events need it, and an "expected execution time". The second is read as
time of the stream: once its clock has gone so far since the first of them came, all that wait for the frame are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.stacks import NONE
from headrace.plan.time import END_OF_TIME

if TYPE_CHECKING:
    from headrace.plan.patterns import Spill
    from headrace.runtime.frames import Frames

NEVER = END_OF_TIME  # when an event that does not wait began to


@dataclass(slots=True)
class Waiting:
    """Per row of the zone: what the clock was when it began to wait."""

    since: np.ndarray

    def __len__(self) -> int:
        """How many wait."""
        return int((self.since != NEVER).sum())

    def moved(self, removed: np.ndarray, is_new: np.ndarray) -> np.ndarray:
        """The same for the zone as it is now."""
        out = np.full(len(is_new), NEVER, np.int64)
        out[~is_new] = self.since[~removed]
        return out


def waits_on(spill: Spill, frames: Frames, since: np.ndarray, begins: np.ndarray, must: np.ndarray, clock: int) -> np.ndarray:
    """Which rows go on waiting, of those that do; their windows begin at these times. Those that `must` be taken do not."""
    out = np.zeros(len(since), np.bool_)
    some = np.flatnonzero((since != NEVER) & ~must)
    frame = frames.begins_in(begins[some])
    some, frame = some[frame != NONE], frame[frame != NONE]
    if not len(some):
        return out
    _, number, count = np.unique(frame, return_inverse=True, return_counts=True)
    first = np.full(len(count), NEVER, np.int64)
    np.minimum.at(first, number, since[some])
    stay = count < spill.together
    if spill.wait is not None:
        stay &= clock - first < spill.wait
    out[some[stay[number]]] = True
    return out
