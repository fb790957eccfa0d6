"""Tallies: the state of an aggregate per key. One class per kind, all with the same verbs.

grow(n)        make room for n keys
run(moves, ..) move rows and read the aggregate at every event, for good or for a moment
dump / load    a range of keys as arrays, and back; `dump_at` and `load_at`: some of the keys
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headrace.kernels.windows import passes
from headrace.state.parts import KeyArrays, State, Which, grown, picked

if TYPE_CHECKING:
    from headrace.program.aggregates import Tally
    from headrace.state.rows import Layout

Reading = dict[str, Any]  # arrays, or what can be cut like them, by part
NOTHING = np.empty(0, np.int64)
NO_EVENTS = np.empty(0, np.int32)


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

    @staticmethod
    def entering(columns: list[np.ndarray], rows: np.ndarray) -> Moves:
        """Rows enter, with no event looking."""
        return Moves(columns, rows, NOTHING, [c[:0] for c in columns], NOTHING, NOTHING)

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
        return Moves(self.leave, self.leave_row, NOTHING, self.enter, self.enter_row, NOTHING)


def reserve(state: Any, names: tuple[str, ...], count: int) -> None:
    """Make room for so many more nodes in the arrays of a pool; `free` is how many are in use, then the stack of nodes."""
    used, size = int(state.free[0]), len(state.free) - 1
    if used + count > size:
        new = max(used + count, 2 * size, 64)
        for name in names:
            setattr(state, name, grown(getattr(state, name), new))
        state.free = np.concatenate((state.free, np.arange(size, new)))


class TallyState(KeyArrays):
    """What every tally can do."""

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        """Move rows; read at every event. `n` is the reading of the count beside it, where there is one.

        Unless it should `keep` them, the moves are taken back.
        """
        raise NotImplementedError


class Columns:
    """Finds the columns of a tally in moving rows."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        self.group = spec.group
        self.values = layout.values[spec.vector]
        self._code = layout.codes[spec.vector]

    def keys(self, columns: list[np.ndarray]) -> np.ndarray:
        return columns[self.group]

    def value(self, columns: list[np.ndarray]) -> np.ndarray:
        return columns[self.values[0]]

    def code(self, columns: list[np.ndarray]) -> np.ndarray:
        """What each value is."""
        if self._code is not None:
            return columns[self._code]
        return np.zeros(len(columns[self.group]), np.uint8)

    def arguments(self, moves: Moves, event_key: np.ndarray, keep: bool, *more: Any) -> tuple[Any, ...]:
        """What kernels take: how far rows move; keys, values and codes of those that enter and that leave; and this."""
        own = (self.group, *self.values)
        enter, leave = ((*(columns[c] for c in own), self.code(columns)) for columns in (moves.enter, moves.leave))
        return keep, event_key, moves.enter_end, moves.leave_end, *enter, *leave, *more


class CountTally(TallyState):
    """COUNT: rows whose value is there."""

    arrays: ClassVar[dict[str, str]] = {"n": "counts"}

    def __init__(self, spec: Tally, layout: Layout) -> None:
        self.at = Columns(spec, layout)
        self.counts = np.zeros(0, np.int64)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        out = np.zeros(len(event_key), np.int64)
        at = self.at
        passes.counts(
            keep, event_key, moves.enter_end, moves.leave_end, at.keys(moves.enter), at.code(moves.enter),
            at.keys(moves.leave), at.code(moves.leave), self.counts, out,
        )  # fmt: skip
        return {"value": out}


class DistinctTally(CountTally):
    """COUNT(DISTINCT): a count per (key, value) pair, and per key how many of those are above zero."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        assert spec.pairs is not None
        super().__init__(spec, layout)
        self.pairs, self.pair_counts = spec.pairs, np.zeros(0, np.int64)

    def grow_pairs(self, size: int) -> None:
        self.pair_counts = grown(self.pair_counts, size)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        out = np.zeros(len(event_key), np.int64)
        at = self.at
        passes.distincts(
            keep, event_key, moves.enter_end, moves.leave_end,
            at.keys(moves.enter), moves.enter[self.pairs], at.code(moves.enter),
            at.keys(moves.leave), moves.leave[self.pairs], at.code(moves.leave),
            self.pair_counts, self.counts, out,
        )  # fmt: skip
        return {"value": out}

    def dump_pairs(self, start: int, stop: int) -> State:
        return self.dump_pairs_at(slice(start, stop))

    def load_pairs(self, start: int, stop: int, state: State) -> None:
        self.load_pairs_at(slice(start, stop), state)

    def dump_pairs_at(self, which: Which) -> State:
        return {"n": picked(self.pair_counts, which)}

    def load_pairs_at(self, which: Which, state: State) -> None:
        self.pair_counts[which] = state["n"]
