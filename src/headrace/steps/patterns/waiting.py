"""Late events that wait until enough of them need a frame (001, VIII), each as if it had not come yet.

The paper has two thresholds for a frame: how many late events need it, and an "expected execution time". The second is read as
time of the stream: once it has gone so far since the first of them came, all that wait for the frame are taken. Whatever needs a
frame needs all newer ones too, as a window has no holes and what is in memory is newer than all frames. So the newest is needed
most: once enough events wait at all, it has enough, and all of them are taken together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.plan.time import END_OF_TIME

if TYPE_CHECKING:
    from headrace.plan.patterns import Spill

NEVER = END_OF_TIME  # when an event that does not wait began to


@dataclass(slots=True)
class Waiting:
    """Per open row: how far time was when it began to wait."""

    since: np.ndarray

    def __len__(self) -> int:
        return int((self.since != NEVER).sum())

    def moved(self, removed: np.ndarray, is_new: np.ndarray) -> np.ndarray:
        """The same for the open rows as it is now."""
        out = np.full(len(is_new), NEVER, np.int64)
        out[~is_new] = self.since[~removed]
        return out


def waits_on(spill: Spill, since: np.ndarray, must: np.ndarray, now: int) -> np.ndarray:
    """Which rows go on waiting, of those that do. Those that `must` be taken do not."""
    waits = (since != NEVER) & ~must
    enough = int(waits.sum()) >= spill.together
    over = spill.wait is not None and now - int(since.min(initial=NEVER)) >= spill.wait
    return np.zeros(len(since), np.bool_) if enough or over else waits
