"""The time of a micro-batch, which Spark stores with its offsets, so that a batch that is run again has the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column

    from headrace.plan.stream import Stream


def needs_now(stream: Stream) -> bool:
    """Whether anything depends on when rows come, not only on what they say."""
    return not stream.static and (
        stream.timestamp is None or any(x is not None for x in (stream.idle, stream.ahead, stream.end_after))
    )


def batch_time() -> Column:
    """Microseconds since 1970.

    Spark writes the time into the code it generates, as a number, and would compile and warm up that code anew for every batch.
    It generates none for a sort with a comparison of one's own, so around it the code stays the same.
    """
    return F.array_sort(F.array(F.unix_micros(F.current_timestamp())), lambda a, b: F.lit(0))[0]
