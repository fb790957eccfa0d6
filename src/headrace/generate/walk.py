"""A random walk that can be entered anywhere without walking there.

At block boundaries the walk of a key is given by Lévy's construction: the value in the middle of an interval is the mean of
its ends plus noise that depends on (seed, key, interval) only, so any boundary is reached in `LEVELS` steps. Inside a block the
steps of the key are summed and pinned to the two boundaries (a Brownian bridge).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.generate.draws import gaussian

if TYPE_CHECKING:
    from headrace.generate.draws import Floats, Ints, Words

LEVELS = 29  # 2^29 blocks: more rows than options allow


def _mix(x: Words) -> Words:
    """SplitMix64's finaliser: neighbouring numbers in, unrelated words out."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def boundary(seed: int, keys: Ints, block: int) -> Floats:
    """The walk of each key where a block begins; it moves by a standard normal step per block."""
    low, high = 0, 1 << LEVELS
    assert 0 <= block <= high, f"block {block} is past the end of the walk"
    salt = _mix(_mix(keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)) ^ np.uint64(seed))
    left = np.zeros(len(keys))
    right = gaussian(_mix(salt)) * np.sqrt(float(high))
    while low < block < high:
        middle = (low + high) // 2
        noise = gaussian(_mix(salt ^ _mix(np.full(len(keys), middle, dtype=np.uint64))))
        value = (left + right) / 2 + noise * (np.sqrt(float(high - low)) / 2)
        if block < middle:
            high, right = middle, value
        else:
            low, left = middle, value
    return left if block == low else right


def walk(seed: int, block: int, keys: Ints, order: Ints, steps: Floats) -> Floats:
    """The walk after each row of a block; `order` sorts the rows by key and then by time."""
    present, first, count = np.unique(keys[order], return_index=True, return_counts=True)
    begin, end = boundary(seed, present, block), boundary(seed, present, block + 1)
    summed = np.cumsum(steps[order])
    before = np.where(first > 0, summed[first - 1], 0.0)
    total = summed[first + count - 1] - before
    row_key = np.repeat(np.arange(len(present)), count)
    share = (np.arange(len(order)) - first[row_key] + 1) / count[row_key]
    bridge = (summed - before[row_key] - share * total[row_key]) / np.sqrt(count[row_key])
    value = np.empty(len(order))
    value[order] = begin[row_key] + share * (end - begin)[row_key] + bridge
    return value
