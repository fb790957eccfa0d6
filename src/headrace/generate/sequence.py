"""Events of several types for sequence patterns (001, table I): some come late, and promises say what will not come any more.

A promise of type T at p (a partial order guarantee, POG) is a row with `pog` and without `at`: no more rows of T at or before p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from headrace.generate.draws import BLOCK, arrivals, timestamps, uniform, words, zipf
from headrace.plan.schema import Schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headrace.generate.draws import Floats, Ints
    from headrace.generate.options import Options

    Bools = NDArray[np.bool_]

SCHEMA = Schema.of(type="STRING", at="TIMESTAMP", arrival="TIMESTAMP", id="BIGINT", value="INT", pog="TIMESTAMP")
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Drawn:
    """A block before promises are made: the number of the type, whether a row is a promise, and times in microseconds."""

    type: Ints
    promise: Bools
    at: Ints
    arrival: Ints
    value: Ints


def block(options: Options, number: int) -> pa.RecordBatch:
    """Types are dealt out evenly, late events and promises in the shares asked for, to the row; where they lie is random."""
    drawn = _drawn(options, number)
    return pa.record_batch(
        {
            "type": pa.DictionaryArray.from_arrays(drawn.type.astype(np.int32), pa.array(options.type_names)).cast(pa.string()),
            "at": _times(drawn.at, drawn.promise),
            "arrival": timestamps(drawn.arrival),
            "id": pa.array(np.arange(number * BLOCK, (number + 1) * BLOCK, dtype=np.int64)),
            "value": pa.array(drawn.value.astype(np.int32), mask=drawn.promise),
            "pog": _times(promises(options, number), ~drawn.promise),
        }
    )


def promises(options: Options, number: int) -> Ints:
    """For every row of a block: the largest time for which its type can be promised when it arrives."""
    drawn, longest = _drawn(options, number), longest_delays(options)
    if options.pog == "delay":
        return drawn.arrival - longest[drawn.type] - 1
    ahead = int(longest.max() / 1e6 * options.row_rate / BLOCK) + 2  # nothing behind these blocks is under way already
    blocks = [drawn, *(_drawn(options, number + i) for i in range(1, ahead + 1))]
    kinds, promise, at = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("type", "promise", "at"))
    out = drawn.arrival.copy()
    for kind in range(options.types):
        still_to_come = np.where((kinds == kind) & ~promise, at, NEVER)[::-1]
        first = np.minimum.accumulate(still_to_come)[::-1][:BLOCK]
        out = np.where(drawn.type == kind, np.minimum(out, first), out)
    return out - 1


def longest_delays(options: Options) -> Ints:
    """By type, in microseconds."""
    given = dict(options.type_max)
    return np.array([given.get(name, options.late_max) for name in options.type_names], np.int64)


def late_shares(options: Options) -> Floats:
    given = dict(options.type_share)
    return np.array([given.get(name, options.late_share) for name in options.type_names], np.float64)


# A promise looks ahead: the same blocks are asked for again and again.
@lru_cache(maxsize=64)
def _drawn(options: Options, number: int) -> Drawn:
    place, shuffle, how_late, what = words(options.seed, number, 4)
    arrival = arrivals(options, number, place)
    order = np.argsort(shuffle, kind="stable")
    before, behind = (_promises_before(options, row) for row in (number * BLOCK, (number + 1) * BLOCK))
    count = behind - before
    promise = np.zeros(BLOCK, np.bool_)
    promise[order[:count]] = True
    dealt = np.empty(BLOCK, np.int64)  # promises and events, each counted from the first of the stream on
    dealt[order[:count]] = np.arange(before, behind)
    dealt[order[count:]] = np.arange(number * BLOCK - before, (number + 1) * BLOCK - behind)
    kind, turn = dealt % options.types, dealt // options.types
    share, longest = late_shares(options)[kind], longest_delays(options)[kind]
    is_late = (np.floor((turn + 1) * share) > np.floor(turn * share)) & (longest > 0)
    delay = np.minimum((uniform(how_late) * longest).astype(np.int64) + 1, longest)
    return Drawn(kind, promise, arrival - np.where(is_late, delay, 0), arrival, zipf(what, options.keys, options.skew))


def _promises_before(options: Options, row: int) -> int:
    """How many of the first rows are promises."""
    return int(row * (options.pog_share / (1.0 + options.pog_share)))


def _times(micros: Ints, missing: Bools) -> pa.TimestampArray:
    return pa.array(micros, mask=missing).cast(pa.timestamp("us", tz="UTC"))
