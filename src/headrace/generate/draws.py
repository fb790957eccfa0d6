"""Randomness that can be entered anywhere: a counter-based generator keyed by (seed, block), and what is derived from it.

Only raw 64-bit words are taken from NumPy, whose bit generators never change their stream; its distributions may.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headrace.generate.options import Options

    Words = NDArray[np.uint64]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

# Rows are made a block at a time, so a block is the least that a request costs.
BLOCK = 4096


def words(seed: int, block: int, columns: int) -> Words:
    """A (columns, BLOCK) array of random words that depends on nothing but the arguments."""
    raw = np.random.Philox(key=np.array([seed, block], dtype=np.uint64)).random_raw(columns * BLOCK)
    return raw.reshape(columns, BLOCK)


def uniform(raw: Words) -> Floats:
    """Evenly spread in [0, 1), 53 bits."""
    return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


def gaussian(raw: Words) -> Floats:
    """Nearly normal (mean 0, variance 1): the sum of the four 16-bit numbers in a word. No libm, so the same everywhere."""
    mask = np.uint64(0xFFFF)
    total: Floats = np.zeros(raw.shape)
    for shift in (0, 16, 32, 48):
        total += (raw >> np.uint64(shift)) & mask
    value: Floats = (total / 65_536.0 + (2.0 / 65_536.0 - 2.0)) * 3.0**0.5
    return value


def zipf(raw: Words, keys: int, skew: float) -> Ints:
    """Key numbers in [0, keys): key k has the weight 1 / (k + 1)^skew."""
    u = uniform(raw)
    if skew == 0:
        return (u * keys).astype(np.int64)
    return np.minimum(np.searchsorted(_cumulative(keys, skew), u, side="right"), keys - 1).astype(np.int64)


@lru_cache(maxsize=4)
def _cumulative(keys: int, skew: float) -> Floats:
    total: Floats = np.cumsum(np.arange(1, keys + 1, dtype=np.float64) ** -skew)
    share: Floats = total / total[-1]
    return share


def arrivals(options: Options, block: int, place: Words) -> Ints:
    """When the rows of a block arrive: one in each slot, so they never go back."""
    row = np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=np.int64)
    return options.start + ((row + uniform(place)) * (1e6 / options.row_rate)).astype(np.int64)


def times(options: Options, block: int, place: Words, late: Words, how_late: Words) -> tuple[Ints, Ints]:
    """Arrival and event time of the rows of a block: arrivals never go back, events lie up to `late_max` before them."""
    arrival = arrivals(options, block, place)
    lateness = (uniform(how_late) * options.late_max).astype(np.int64) + 1
    is_late = (uniform(late) < options.late_share) & (options.late_max > 0)
    return arrival, arrival - np.where(is_late, np.minimum(lateness, options.late_max), 0)


def names(prefix: str, numbers: Ints, most: int) -> pa.StringArray:
    """`names("card-", [7], 1000)` is `["card-007"]`: wide enough for `most` of them, so that they sort as they count."""
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width=len(str(most - 1)), padding="0")
    return pc.binary_join_element_wise(prefix, digits, "")


def timestamps(micros: Ints) -> pa.TimestampArray:
    """Spark's TIMESTAMP: an instant in microseconds."""
    return pa.array(micros).cast(pa.timestamp("us", tz="UTC"))
