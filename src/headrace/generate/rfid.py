"""RFID readings of a shop: an item is taken from the shelf, paid for, and leaves; now and then it is not paid for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.generate.draws import BLOCK, names, times, timestamps, uniform, words, zipf
from headrace.generate.options import Options
from headrace.plan.schema import Schema

SCHEMA = Schema.of(kind="STRING", id="STRING", reader="INT", at="TIMESTAMP")
KINDS = np.array(["shelf", "checkout", "exit"])
READERS = np.array([40, 8, 3])  # of each kind; numbered from 1
STOLEN = 0.02


def block(options: Options, number: int) -> pa.RecordBatch:
    """`keys` is the number of tagged items. The three readings of a visit lie anywhere in the block, in this order in event time.

    A stolen item is seen at the shelf once more instead of at the checkout.
    """
    place, late, how_late, shuffle, who, stolen, which = words(options.seed, number, 7)
    _, at = times(options, number, place, late, how_late)
    visit = np.empty(BLOCK, dtype=np.int64)
    visit[np.argsort(shuffle, kind="stable")] = np.arange(BLOCK) // 3
    in_order = np.lexsort((at, visit))
    step = np.empty(BLOCK, dtype=np.int64)
    step[in_order] = np.arange(BLOCK) % 3
    kind = np.where((step == 1) & (uniform(stolen) < STOLEN)[visit], 0, step)
    reader = 1 + (uniform(which) * READERS[kind]).astype(np.int32)
    return pa.record_batch(
        {
            "kind": pa.DictionaryArray.from_arrays(kind.astype(np.int32), pa.array(KINDS.tolist())).cast(pa.string()),
            "id": names("item-", zipf(who, options.keys, options.skew)[visit], options.keys),
            "reader": pa.array(reader.astype(np.int32)),
            "at": timestamps(at),
        }
    )
