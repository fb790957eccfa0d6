"""All values of a key in the order they came: a queue that drops none, read as a list at every event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.aggregates.queue import QueueTally

if TYPE_CHECKING:
    from headrace.aggregates.moves import Moves
    from headrace.aggregates.tally import Reading


@dataclass(slots=True, eq=False)
class Lists:
    """A list of words for each of some events, one behind the other; can be cut and compared as an array of them."""

    words: np.ndarray
    ends: np.ndarray

    ndim = 1

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.ends, prepend=0)

    def __getitem__(self, chosen: np.ndarray | slice) -> Lists:
        sizes, starts = self.sizes[chosen], (self.ends - self.sizes)[chosen]
        ends = np.cumsum(sizes)
        return Lists(self.words[np.arange(len(ends) and ends[-1]) + np.repeat(starts - ends + sizes, sizes)], ends)

    def __eq__(self, other: object) -> np.ndarray:  # type: ignore[override]
        """Which of them are the same, word for word."""
        assert isinstance(other, Lists)
        same = self.sizes == other.sizes
        here = np.flatnonzero(same)
        one, two = self[here], other[here]
        differs = np.concatenate(([0], np.cumsum(one.words != two.words)))
        same[here] = differs[one.ends] == differs[one.ends - one.sizes]
        return same

    def append(self, other: Lists) -> Lists:
        begin = len(self.words)
        return Lists(np.concatenate((self.words, other.words)), np.concatenate((self.ends, other.ends + begin)))


class ListTally(QueueTally):
    """Queues of every value that is not NULL."""

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None = None, keep: bool = True) -> Reading:
        words, ends, _ = self._read(moves, event_key, keep, whole=True)
        return {"value": Lists(words, ends)}
