"""What a running script tells whoever started it: rows to show, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.runs.losses import StreamRows, added

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """Rows of a query that has no INTO, or whose INTO nothing reads.

    Under EMIT CHANGES the first column is `_op`: `+` for a row, `-` for one that is taken back.
    """

    query_name: str
    columns: tuple[str, ...]
    rows: pa.RecordBatch
    batch_id: int | None = None  # the micro-batch that gave them, where there are several


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """One micro-batch, counted. `frontier_lag_s` is how far the frontier is behind the newest event; None before the first.

    Of the rows that came in, `late` has those behind the frontier of their stream, and those that a K-slack query has missed;
    `punctuation` has those that are no events, but say up to where their stream is complete. `waiting` is how many late events
    wait for what their pattern has outside memory.
    """

    batch_id: int
    rows_in: int
    rows_out: int
    late: int
    rejected: int
    frontier_lag_s: float | None
    batch_ms: float
    cache_hits: int = 0
    cache_misses: int = 0
    punctuation: int = 0
    waiting: int = 0
    streams: tuple[StreamRows, ...] = ()  # rows read and rejected of every stream
    filling: tuple[str, ...] = ()  # queries that began with nothing, and have not seen all that their windows reach


@dataclass(frozen=True, slots=True)
class Progress:
    """All micro-batches of a run together. `frontier_lag_s` is that of the last one."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    rejected: int = 0
    punctuation: int = 0
    frontier_lag_s: float | None = None
    streams: tuple[StreamRows, ...] = ()
    filling: tuple[str, ...] = ()  # after the last one

    def plus(self, event: ProgressEvent) -> Progress:
        return Progress(
            self.batches + 1,
            self.rows_in + event.rows_in,
            self.rows_out + event.rows_out,
            self.late + event.late,
            self.rejected + event.rejected,
            self.punctuation + event.punctuation,
            event.frontier_lag_s,
            added((*self.streams, *event.streams)),
            event.filling,
        )


Event = RowsEvent | ProgressEvent
