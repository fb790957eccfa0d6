"""Tallies: the state of an aggregate per key. One class per kind, all with the same verbs.

grow(n)        make room for n keys
run(moves, ..) move rows and read the aggregate at every event, for good or for a moment
dump / load    a range of keys as arrays, and back
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace.kernels.windows import passes

if TYPE_CHECKING:
    from headrace.aggregates.moves import Moves
    from headrace.program.aggregates import Tally
    from headrace.state.rows import Layout

Reading = dict[str, Any]  # arrays, or what can be cut like them, by part


def grown(array: np.ndarray, size: int) -> np.ndarray:
    """The array with room for `size` keys; new ones start at zero."""
    if len(array) >= size:
        return array
    out = np.zeros((size, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def reserve(state: Any, names: tuple[str, ...], count: int) -> None:
    """Make room for so many more nodes in the arrays of a pool; `free` is how many are in use, then the stack of nodes."""
    used, size = int(state.free[0]), len(state.free) - 1
    if used + count > size:
        new = max(used + count, 2 * size, 64)
        for name in names:
            setattr(state, name, grown(getattr(state, name), new))
        state.free = np.concatenate((state.free, np.arange(size, new)))


class TallyState(Protocol):
    """What every tally can do."""

    def grow(self, size: int) -> None:
        """Make room."""

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None, keep: bool = True) -> Reading:
        """Move rows; read at every event. `n` is the reading of the count beside it, where there is one.

        Unless it should `keep` them, the moves are taken back.
        """

    def reset(self, keys: np.ndarray) -> None:
        """Forget these keys."""

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        """The keys start..stop."""

    def load(self, start: int, stop: int, state: dict[str, Any]) -> None:
        """Put them back."""


class Columns:
    """Finds the columns of a tally in moving rows."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        self.group = spec.group
        self.values = layout.values[spec.vector]
        self._code = layout.codes[spec.vector]

    def keys(self, columns: list[np.ndarray]) -> np.ndarray:
        return columns[self.group]

    def value(self, columns: list[np.ndarray], part: int = 0) -> np.ndarray:
        return columns[self.values[part]]

    def code(self, columns: list[np.ndarray]) -> np.ndarray:
        """What each value is."""
        if self._code is not None:
            return columns[self._code]
        return np.zeros(len(columns[self.group]), np.uint8)


class CountTally:
    """COUNT: rows whose value is there."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        self.at = Columns(spec, layout)
        self.counts = np.zeros(0, np.int64)

    def grow(self, size: int) -> None:
        self.counts = grown(self.counts, size)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None = None, keep: bool = True) -> Reading:
        out = np.zeros(len(event_key), np.int64)
        at = self.at
        passes.counts(
            keep, event_key, moves.enter_end, moves.leave_end, at.keys(moves.enter), at.code(moves.enter),
            at.keys(moves.leave), at.code(moves.leave), self.counts, out,
        )  # fmt: skip
        return {"value": out}

    def reset(self, keys: np.ndarray) -> None:
        self.counts[keys] = 0

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        return {"n": self.counts[start:stop]}

    def load(self, start: int, stop: int, state: dict[str, Any]) -> None:
        self.counts[start:stop] = state["n"]


class DistinctTally:
    """COUNT(DISTINCT): a count per (key, value) pair, and per key how many of those are above zero."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        assert spec.pairs is not None
        self.at, self.pairs = Columns(spec, layout), spec.pairs
        self.counts = np.zeros(0, np.int64)
        self.pair_counts = np.zeros(0, np.int64)

    def grow(self, size: int) -> None:
        self.counts = grown(self.counts, size)

    def grow_pairs(self, size: int) -> None:
        self.pair_counts = grown(self.pair_counts, size)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None = None, keep: bool = True) -> Reading:
        out = np.zeros(len(event_key), np.int64)
        at = self.at
        passes.distincts(
            keep, event_key, moves.enter_end, moves.leave_end,
            at.keys(moves.enter), moves.enter[self.pairs], at.code(moves.enter),
            at.keys(moves.leave), moves.leave[self.pairs], at.code(moves.leave),
            self.pair_counts, self.counts, out,
        )  # fmt: skip
        return {"value": out}

    def reset(self, keys: np.ndarray) -> None:
        self.counts[keys] = 0

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        return {"n": self.counts[start:stop]}

    def load(self, start: int, stop: int, state: dict[str, Any]) -> None:
        self.counts[start:stop] = state["n"]

    def dump_pairs(self, start: int, stop: int) -> dict[str, Any]:
        return {"n": self.pair_counts[start:stop]}

    def load_pairs(self, start: int, stop: int, state: dict[str, Any]) -> None:
        self.pair_counts[start:stop] = state["n"]
