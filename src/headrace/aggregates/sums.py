"""Exact sums per key: SUM and AVG of doubles, integers and decimals; VARIANCE and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.aggregates.tally import Columns, Reading, grown
from headrace.kernels.exact import accumulators as exact
from headrace.kernels.windows import passes

if TYPE_CHECKING:
    from headrace.aggregates.moves import Moves
    from headrace.program.aggregates import Tally
    from headrace.state.rows import Layout

INT_WIDTH = 3  # limbs for sums of 2^31 integers of 64 bits
DECIMAL_WIDTH = 6  # and of 128 bits


class Limbs:
    """A column of exact accumulators that widens as the data needs it."""

    def __init__(self) -> None:
        """Holds zero for no key."""
        self.array, self.low, self._adds = exact.empty(0), 0, 0

    def cover(self, low: int, high: int, adds: int) -> None:
        """Make room for values whose bits lie in limbs low..high, and for this many more additions."""
        width = self.array.shape[1]
        if low < high and (width == 0 or low < self.low or high > self.low + width):
            if width == 0:
                self.array, self.low = np.zeros((len(self.array), high - low), np.int64), low
            else:
                new_low, new_high = min(low, self.low), max(high, self.low + width)
                self.array, self.low = exact.widen(self.array, self.low, new_low, new_high)
        self._adds += adds
        if self._adds > exact.ADDS_BEFORE_NORMALIZE:
            exact.normalize(self.array)
            self._adds = adds

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        return {"limbs": self.array[start:stop], "low": self.low}

    def load(self, start: int, stop: int, limbs: np.ndarray, low: int) -> None:
        """Put limbs back; pages may have been written at different widths."""
        width = limbs.shape[1]
        self.cover(low, low + width, 0)
        if width:
            self.array[start:stop, low - self.low : low - self.low + width] = limbs
        # How often a dumped page was added to is not known: be on the safe side.
        self._adds = exact.ADDS_BEFORE_NORMALIZE // 2


def _nothing(size: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(size), np.zeros(size)


class DoubleSumTally:
    """Sums of DOUBLE: exact limbs for finite values, counts of NaN and the infinities beside them."""

    def __init__(self, spec: Tally, layout: Layout, mean: bool = False) -> None:
        """Nothing summed; `mean`: whether anybody asks for it."""
        self.at, self.mean = Columns(spec, layout), mean
        self.limbs = Limbs()
        self.specials = np.zeros((0, 3), np.int64)

    def grow(self, size: int) -> None:
        self.limbs.array = grown(self.limbs.array, size)
        self.specials = grown(self.specials, size)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None = None, keep: bool = True) -> Reading:
        out, mean = _nothing(len(event_key))
        self._cover(moves, keep)
        at = self.at
        passes.sums(
            keep, event_key, moves.enter_end, moves.leave_end,
            at.keys(moves.enter), at.value(moves.enter), at.code(moves.enter),
            at.keys(moves.leave), at.value(moves.leave), at.code(moves.leave),
            n if n is not None else np.zeros(0, np.int64), self.mean, self.limbs.array, self.limbs.low, self.specials, out, mean,
        )  # fmt: skip
        return {"value": out, "mean": mean}

    def _cover(self, moves: Moves, keep: bool) -> None:
        # What leaves has entered before, so only what enters can need more room.
        self.limbs.cover(*exact.limb_range(self.at.value(moves.enter)), moves.adds(keep))

    def reset(self, keys: np.ndarray) -> None:
        self.limbs.array[keys] = 0
        self.specials[keys] = 0

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        state = self.limbs.dump(start, stop)
        if self.specials[start:stop].any():
            state["specials"] = self.specials[start:stop]
        return state

    def load(self, start: int, stop: int, state: dict[str, Any]) -> None:
        self.limbs.load(start, stop, state["limbs"], state["low"])
        if "specials" in state:
            self.specials[start:stop] = state["specials"]


class MomentsTally(DoubleSumTally):
    """Sums of values and of their squares: VARIANCE, STDDEV, of the sample and of the population."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        super().__init__(spec, layout)
        self.squares = Limbs()

    def grow(self, size: int) -> None:
        super().grow(size)
        self.squares.array = grown(self.squares.array, size)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None = None, keep: bool = True) -> Reading:
        sample, population = _nothing(len(event_key))
        self._cover(moves, keep)
        at = self.at
        self.squares.cover(*exact.square_limb_range(at.value(moves.enter)), moves.adds(keep))
        passes.variances(
            keep, event_key, moves.enter_end, moves.leave_end,
            at.keys(moves.enter), at.value(moves.enter), at.code(moves.enter),
            at.keys(moves.leave), at.value(moves.leave), at.code(moves.leave),
            n if n is not None else np.zeros(0, np.int64), self.limbs.array, self.limbs.low,
            self.squares.array, self.squares.low, self.specials, sample, population,
        )  # fmt: skip
        return {"sample": sample, "population": population}

    def reset(self, keys: np.ndarray) -> None:
        super().reset(keys)
        self.squares.array[keys] = 0

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        squares = self.squares.dump(start, stop)
        return {**super().dump(start, stop), "squares": squares["limbs"], "squares_low": squares["low"]}

    def load(self, start: int, stop: int, state: dict[str, Any]) -> None:
        super().load(start, stop, state)
        self.squares.load(start, stop, state["squares"], state["squares_low"])


class IntegerSumTally:
    """Sums of integers, wider than any of them; the result is NULL where it does not fit BIGINT."""

    width, parts = INT_WIDTH, 1

    def __init__(self, spec: Tally, layout: Layout) -> None:
        self.at = Columns(spec, layout)
        self.limbs = Limbs()
        self.limbs.cover(0, self.width, 0)

    def grow(self, size: int) -> None:
        self.limbs.array = grown(self.limbs.array, size)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None = None, keep: bool = True) -> Reading:
        size = len(event_key)
        out, fits, mean = np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size)
        self.limbs.cover(0, 0, moves.adds(keep))
        at = self.at
        passes.integer_sums(
            keep, event_key, moves.enter_end, moves.leave_end,
            at.keys(moves.enter), at.value(moves.enter), at.code(moves.enter),
            at.keys(moves.leave), at.value(moves.leave), at.code(moves.leave),
            n if n is not None else np.zeros(0, np.int64), self.limbs.array, out, fits, mean,
        )  # fmt: skip
        return {"value": out, "value fits": fits, "mean": mean}

    def reset(self, keys: np.ndarray) -> None:
        self.limbs.array[keys] = 0

    def dump(self, start: int, stop: int) -> dict[str, Any]:
        return self.limbs.dump(start, stop)

    def load(self, start: int, stop: int, state: dict[str, Any]) -> None:
        self.limbs.load(start, stop, state["limbs"], state["low"])


class DecimalSumTally(IntegerSumTally):
    """Sums of DECIMAL as integers of 128 bits and more; the mean has four more digits, as in Spark."""

    width = DECIMAL_WIDTH

    def __init__(self, spec: Tally, layout: Layout, mean_digits: int) -> None:
        super().__init__(spec, layout)
        self.mean_digits = mean_digits

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray | None = None, keep: bool = True) -> Reading:
        size = len(event_key)
        out, mean = np.zeros((size, 2), np.uint64), np.zeros((size, 2), np.uint64)
        fits, mean_fits = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        self.limbs.cover(0, 0, moves.adds(keep))
        at = self.at
        passes.decimal_sums(
            keep, event_key, moves.enter_end, moves.leave_end,
            at.keys(moves.enter), at.value(moves.enter), at.value(moves.enter, 1), at.code(moves.enter),
            at.keys(moves.leave), at.value(moves.leave), at.value(moves.leave, 1), at.code(moves.leave),
            n if n is not None else np.zeros(0, np.int64), self.mean_digits, self.limbs.array, out, fits, mean, mean_fits,
        )  # fmt: skip
        return {"value": out, "value fits": fits, "mean": mean, "mean fits": mean_fits}
