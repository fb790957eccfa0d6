"""Exact sums per key: SUM and AVG of doubles, integers and decimals; VARIANCE and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headrace.aggregates.tally import NOTHING, Columns, Moves, Reading, TallyState
from headrace.kernels.exact import accumulators as exact
from headrace.kernels.windows import passes
from headrace.state.parts import KeyArrays, State, Which

if TYPE_CHECKING:
    from headrace.program.aggregates import Tally
    from headrace.state.rows import Layout

INT_WIDTH = 3  # limbs for sums of 2^31 integers of 64 bits
DECIMAL_WIDTH = 6  # and of 128 bits


class Limbs(KeyArrays):
    """A column of exact accumulators that widens as the data needs it. Pages may be saved at different widths."""

    arrays: ClassVar[dict[str, str]] = {"limbs": "array"}
    lowest = "low"

    def __init__(self) -> None:
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

    def dump_at(self, which: Which) -> State:
        return super().dump_at(which) | {self.lowest: self.low}

    def load_at(self, which: Which, state: State) -> None:
        (limbs,), low = (state[name] for name in self.arrays), state[self.lowest]
        width = limbs.shape[1]
        self.cover(low, low + width, 0)
        self.reset(which)
        if width:
            self.array[which, low - self.low : low - self.low + width] = limbs
        # How often a dumped page was added to is not known: be on the safe side.
        self._adds = exact.ADDS_BEFORE_NORMALIZE // 2


class Squares(Limbs):
    """The same for squares of values."""

    arrays: ClassVar[dict[str, str]] = {"squares": "array"}
    lowest = "squares_low"


class Specials(KeyArrays):
    """How many values of each key are NaN, and either infinity. Most keys have none, and then nothing is saved."""

    arrays: ClassVar[dict[str, str]] = {"specials": "counts"}

    def __init__(self) -> None:
        self.counts = np.zeros((0, 3), np.int64)

    def dump_at(self, which: Which) -> State:
        state = super().dump_at(which)
        return state if state["specials"].any() else {}

    def load_at(self, which: Which, state: State) -> None:
        self.reset(which)
        if "specials" in state:
            super().load_at(which, state)


class SumTally(TallyState):
    """Sums, in columns of limbs and what stands beside them."""

    def __init__(self, spec: Tally, layout: Layout, *beside: KeyArrays) -> None:
        self.at, self.limbs = Columns(spec, layout), Limbs()
        self.columns = (self.limbs, *beside)

    def grow(self, size: int) -> None:
        for column in self.columns:
            column.grow(size)

    def reset(self, keys: Which) -> None:
        for column in self.columns:
            column.reset(keys)

    def dump_at(self, which: Which) -> State:
        return {name: value for column in self.columns for name, value in column.dump_at(which).items()}

    def load_at(self, which: Which, state: State) -> None:
        for column in self.columns:
            column.load_at(which, state)


class DoubleSumTally(SumTally):
    """Sums of DOUBLE: exact limbs for finite values, counts of NaN and the infinities beside them."""

    def __init__(self, spec: Tally, layout: Layout, mean: bool = False) -> None:
        """`mean`: whether anybody asks for it."""
        self.specials, self.mean = Specials(), mean
        super().__init__(spec, layout, self.specials)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        out, mean = np.zeros(len(event_key)), np.zeros(len(event_key))
        # What leaves has entered before, so only what enters can need more room.
        self.limbs.cover(*exact.limb_range(self.at.value(moves.enter)), moves.adds(keep))
        limbs = (self.limbs.array, self.limbs.low, self.specials.counts)
        passes.sums(*self.at.arguments(moves, event_key, keep, n, self.mean, *limbs, out, mean))
        return {"value": out, "mean": mean}


class MomentsTally(SumTally):
    """Sums of values and of their squares: VARIANCE, STDDEV, of the sample and of the population."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        self.specials, self.squares = Specials(), Squares()
        super().__init__(spec, layout, self.specials, self.squares)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        sample, population = np.zeros(len(event_key)), np.zeros(len(event_key))
        values, adds = self.at.value(moves.enter), moves.adds(keep)
        self.limbs.cover(*exact.limb_range(values), adds)
        self.squares.cover(*exact.square_limb_range(values), adds)
        limbs = (self.limbs.array, self.limbs.low, self.squares.array, self.squares.low, self.specials.counts)
        passes.variances(*self.at.arguments(moves, event_key, keep, n, *limbs, sample, population))
        return {"sample": sample, "population": population}


class IntegerSumTally(SumTally):
    """Sums of integers, wider than any of them; the result is NULL where it does not fit BIGINT."""

    def __init__(self, spec: Tally, layout: Layout) -> None:
        super().__init__(spec, layout)
        self.limbs.cover(0, INT_WIDTH, 0)

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        size = len(event_key)
        out, fits, mean = np.zeros(size, np.int64), np.zeros(size, np.bool_), np.zeros(size)
        self.limbs.cover(0, 0, moves.adds(keep))
        passes.integer_sums(*self.at.arguments(moves, event_key, keep, n, self.limbs.array, out, fits, mean))
        return {"value": out, "value fits": fits, "mean": mean}


class DecimalSumTally(SumTally):
    """Sums of DECIMAL as integers of 128 bits and more; the mean has four more digits, as in Spark."""

    def __init__(self, spec: Tally, layout: Layout, mean_digits: int) -> None:
        super().__init__(spec, layout)
        self.limbs.cover(0, DECIMAL_WIDTH, 0)
        self.mean_digits = mean_digits

    def run(self, moves: Moves, event_key: np.ndarray, n: np.ndarray = NOTHING, keep: bool = True) -> Reading:
        size = len(event_key)
        out, mean = np.zeros((size, 2), np.uint64), np.zeros((size, 2), np.uint64)
        fits, mean_fits = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        self.limbs.cover(0, 0, moves.adds(keep))
        passes.decimal_sums(
            *self.at.arguments(moves, event_key, keep, n, self.mean_digits, self.limbs.array, out, fits, mean, mean_fits)
        )
        return {"value": out, "value fits": fits, "mean": mean, "mean fits": mean_fits}
