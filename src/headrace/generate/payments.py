"""Card payments: who paid whom how much, and when."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.generate.draws import BLOCK, gaussian, names, times, timestamps, words, zipf
from headrace.generate.options import Options
from headrace.plan.schema import Schema

SCHEMA = Schema.of(id="BIGINT", card="STRING", merchant="STRING", amount="DOUBLE", at="TIMESTAMP")
CARDS_PER_MERCHANT = 20
MEDIAN_AMOUNT = 25.0


def block(options: Options, number: int) -> pa.RecordBatch:
    """`keys` is the number of cards; a twentieth as many merchants; amounts are log-normal, in whole cents."""
    place, late, how_late, who, whom, how_much = words(options.seed, number, 6)
    _, at = times(options, number, place, late, how_late)
    merchants = max(1, options.keys // CARDS_PER_MERCHANT)
    cents = np.rint(np.exp(gaussian(how_much)) * (MEDIAN_AMOUNT * 100)).astype(np.int64)
    return pa.record_batch(
        {
            "id": pa.array(np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.int64)),
            "card": names("card-", zipf(who, options.keys, options.skew), options.keys),
            "merchant": names("shop-", zipf(whom, merchants, options.skew), merchants),
            "amount": pa.array(np.maximum(cents, 1) / 100.0),
            "at": timestamps(at),
        }
    )
