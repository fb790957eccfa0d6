"""Rows read and rejected, stream by stream: counted where they are packed, told by Spark with every batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from headrace.exchange.heads import COUNTED
from headrace.runs.losses import StreamRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column

    from headrace.plan.stream import Stream

WATCHED = "rows of "


def counting() -> list[Column]:
    """What is observed of packed rows. Few of them say a count, and those say it first."""
    told = F.when(F.col("head").startswith(COUNTED), F.col("head"))
    values = {"read": "BIGINT", "rejected": "BIGINT", "example": "STRING"}
    found = {name: F.get_json_object(told, f"$.{name}").cast(kind) for name, kind in values.items()}
    return [
        F.sum(found["read"]).alias("read"),
        F.sum(found["rejected"]).alias("rejected"),
        F.min(F.nullif(found["example"], F.lit(""))).alias("example"),
    ]


def watched(stream: str) -> str:
    return WATCHED + stream


def counts_of(streams: Iterable[Stream], observed: Any) -> tuple[StreamRows, ...]:
    """The counts of one batch. A stream that is read by its time and by arrival is one."""
    found: dict[str, StreamRows] = {}
    for stream in streams:
        row = observed.get(watched(stream.name))
        if row is not None and row["read"] is not None:
            one = StreamRows(stream.rows_of, row["read"], row["rejected"] or 0, row["example"] or "")
            found[stream.rows_of] = max(found.get(stream.rows_of, one), one, key=lambda count: count.rejected)
    return tuple(found.values())
