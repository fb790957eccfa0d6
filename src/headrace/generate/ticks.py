"""Trades of a stock exchange: the price of every symbol is a random walk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.generate.draws import gaussian, names, times, timestamps, uniform, words, zipf
from headrace.generate.options import Options
from headrace.generate.walk import walk
from headrace.plan.schema import Schema

SCHEMA = Schema.of(symbol="STRING", price="DOUBLE", qty="INT", at="TIMESTAMP")
FIRST_PRICE = 100.0
STEP = 0.005  # of the logarithm of the price, per block
FARTHEST = 4.0  # prices stay within a factor of e^4 of the first


def block(options: Options, number: int) -> pa.RecordBatch:
    """`keys` is the number of symbols; prices are in whole cents, quantities in lots of 1 to 1000."""
    place, late, how_late, which, move, lots = words(options.seed, number, 6)
    _, at = times(options, number, place, late, how_late)
    symbol = zipf(which, options.keys, options.skew)
    value = walk(options.seed, number, symbol, np.lexsort((at, symbol)), gaussian(move))
    price = np.rint(np.exp(np.clip(value * STEP, -FARTHEST, FARTHEST)) * (FIRST_PRICE * 100)) / 100.0
    quantity = 1 + (uniform(lots) ** 2 * 1000).astype(np.int32)
    return pa.record_batch(
        {
            "symbol": names("SYM", symbol, options.keys),
            "price": pa.array(price),
            "qty": pa.array(quantity.astype(np.int32)),
            "at": timestamps(at),
        }
    )
