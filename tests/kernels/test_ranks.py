"""Treaps of values against a sorted list, however rows come and go."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from headrace.kernels.windows import ranks

SHARES = (0.0, 0.25, 0.5, 0.9, 1.0)
KEYS, ROOM = 3, 512
NONE = np.empty(0, np.int64)


class Treaps:
    def __init__(self):
        self.root = np.full(KEYS, ranks.NIL, np.int32)
        self.values, self.counts = np.zeros(ROOM, np.int64), np.zeros((ROOM, 2), np.int64)
        self.links, self.free = np.zeros((ROOM, 2), np.int32), np.concatenate(([0], np.arange(ROOM)))

    def run(self, moves, keys):
        """Rows come (+) and go (-) one by one, with nobody looking; then all keys are read."""
        enter = [(k, v) for k, v, sign in moves if sign > 0]
        leave = [(k, v) for k, v, sign in moves if sign < 0]
        columns = [
            column
            for rows in (enter, leave)
            for column in (
                np.array([k for k, _ in rows], np.int32), np.array([v for _, v in rows], np.int64), np.zeros(len(rows), np.uint8)
            )
        ]  # fmt: skip
        low, high = np.zeros((len(keys), len(SHARES) * 2), np.int64), np.zeros((len(keys), len(SHARES) * 2), np.int64)
        n = np.zeros(len(keys), np.int64)
        between = np.repeat([True, False], len(SHARES))
        ranks.ranks(
            np.array(keys, np.int32), np.full(len(keys), len(enter)), np.full(len(keys), len(leave)), *columns,
            np.array(SHARES * 2), between, NONE, self.root, self.values, self.counts, self.links, self.free, low, high, n,
        )  # fmt: skip
        return low, high, n

    def check(self, held):
        low, high, n = self.run([], range(KEYS))
        for k, values in held.items():
            values = sorted(values)
            assert n[k] == len(values)
            for j, share in enumerate(SHARES if values else ()):
                place = share * (len(values) - 1)
                assert (low[k, j], high[k, j]) == (values[math.floor(place)], values[math.ceil(place)])
                assert low[k, j + len(SHARES)] == values[max(math.ceil(share * len(values)), 1) - 1]


@pytest.mark.parametrize("seed", range(20))
def test_any_rank_after_any_moves(seed):
    dice, treaps, held = Random(seed), Treaps(), {k: [] for k in range(KEYS)}
    some = dice.choice([range(5), range(-1000, 1000), [-(2**63), 0, 2**63 - 1]])
    for _ in range(60):
        moves = []
        for _ in range(dice.randrange(8)):
            key = dice.randrange(KEYS)
            if held[key] and dice.random() < 0.45:
                value = held[key].pop(dice.randrange(len(held[key])))
                treaps.run([(key, value, -1)], [])
            else:
                moves.append((key, dice.choice(some), 1))
        for key, value, _ in moves:
            held[key].append(value)
        treaps.run(moves, [])
        treaps.check(held)
    used = sum(len(set(values)) for values in held.values())
    assert treaps.free[0] == used

    keys = np.arange(KEYS, dtype=np.int32)
    sizes, values, rows = ranks.dump(keys, treaps.root, treaps.values, treaps.counts, treaps.links)
    assert list(sizes) == [len(set(held[k])) for k in range(KEYS)]
    again = Treaps()
    ranks.load(keys, sizes, values, rows, NONE, again.root, again.values, again.counts, again.links, again.free)
    again.check(held)
    ranks.clear(keys[:2], again.root, again.links, again.free, ROOM)
    again.check({0: [], 1: [], 2: held[2]})
    assert again.free[0] == len(set(held[2]))
