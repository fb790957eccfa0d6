"""What a frame has, in a few bits a row: at which places, of which keys. What has no mark is not there."""

from __future__ import annotations

import numpy as np

from headrace.kernels.patterns.stacks import BITS, KEY

BITS_A_ROW = 16


class Marks:
    """The places and keys of some rows."""

    def __init__(self, lines: np.ndarray, places: int) -> None:
        """Of these rows; `places` is how many there are, and the number of the one at which every row fits."""
        self.size = 64
        while self.size < BITS_A_ROW * len(lines):
            self.size *= 2
        there = np.zeros(self.size, np.bool_)
        for place in range(places + 1):
            fits = (lines[:, BITS] >> place) & 1 == 1
            there[self._bit(lines[fits, KEY], np.int64(place))] = True
        self.bits = np.packbits(there)

    def may_have(self, key: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Whether there may be a row of this key at this place."""
        bit = self._bit(key, place)
        return (self.bits[bit >> 3] >> (7 - (bit & 7))) & 1 == 1

    def _bit(self, key: np.ndarray, place: np.ndarray | np.int64) -> np.ndarray:
        mixed = (key * 64 + place).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return ((mixed ^ (mixed >> np.uint64(32))) & np.uint64(self.size - 1)).astype(np.int64)
