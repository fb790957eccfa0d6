"""What a run counts, batch by batch: rows that no query sees carry the numbers to where Spark observes them.

Rows read and rejected of every stream are counted where they are packed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from headrace.evolution.filling import filling
from headrace.exchange.heads import COUNTED
from headrace.plan.stream import Stream
from headrace.plan.time import END_OF_TIME, START_OF_TIME
from headrace.runs.events import ProgressEvent
from headrace.runs.losses import StreamRows
from headrace.spark.exchange.slots import METRICS_ROW
from headrace.stages.lower import Lowered

METRICS = (
    "late", "rows", "frontier", "cache_hits", "cache_misses", "rejected", "newest", "missed", "punctuation", "waiting", "filling",
)  # fmt: skip


def observations() -> list[Any]:
    out = []
    for kind, name in enumerate(METRICS):
        value = F.when((F.col("q") == METRICS_ROW) & (F.col("sign") == kind), F.col("number"))
        most = name in ("frontier", "newest")
        out.append((F.max(value) if most else F.sum(value)).alias(name))
    return out


def progress_event(batch: int, took_ms: float, observed: Any, streams: tuple[StreamRows, ...], lowered: Lowered) -> ProgressEvent:
    """A micro-batch by what was observed of it, and of the rows of each stream."""
    feeds = {f.query.name for f in lowered.feeds}
    seen = {name: observed["headrace"][name] for name in METRICS}
    frontier, newest = seen["frontier"], seen["newest"]
    known = frontier is not None and newest is not None and START_OF_TIME < frontier < END_OF_TIME
    return ProgressEvent(
        batch_id=batch,
        rows_in=seen["rows"] or 0,
        rows_out=observed["headrace_out"]["rows_out"],
        late=(seen["late"] or 0) + (seen["missed"] or 0),
        rejected=seen["rejected"] or 0,
        frontier_lag_s=max(0.0, (newest - frontier) / 1e6) if known else None,
        batch_ms=took_ms,
        cache_hits=seen["cache_hits"] or 0,
        cache_misses=seen["cache_misses"] or 0,
        punctuation=seen["punctuation"] or 0,
        waiting=seen["waiting"] or 0,
        streams=streams,
        filling=tuple(lowered.called.get(q, q) for q in filling(lowered.stages, seen["filling"] or 0) if q not in feeds),
    )


def counting() -> list[Column]:
    """What is observed of packed rows. Few of them say a count, and those say it first."""
    told = F.when(F.col("head").startswith(COUNTED), F.col("head"))
    numbers = [F.sum(F.get_json_object(told, f"$.{name}").cast("BIGINT")).alias(name) for name in ("read", "rejected")]
    example = F.nullif(F.get_json_object(told, "$.example").cast("STRING"), F.lit(""))
    return [*numbers, F.min(example).alias("example")]


def watched(stream: str) -> str:
    return f"rows of {stream}"


def counts_of(streams: Iterable[Stream], observed: Any) -> tuple[StreamRows, ...]:
    """The counts of one batch. A stream that is read by its time and by arrival is one."""
    found: dict[str, StreamRows] = {}
    for stream in streams:
        row = observed.get(watched(stream.name))
        if row is not None and row["read"] is not None:
            one = StreamRows(stream.rows_of, row["read"], row["rejected"] or 0, row["example"] or "")
            found[stream.rows_of] = max(found.get(stream.rows_of, one), one, key=lambda count: count.rejected)
    return tuple(found.values())
