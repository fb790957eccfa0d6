"""Windows: `hr.range("5 minutes")`, `hr.rows(100)`, `hr.unbounded()`, `hr.size("1 hour", every="5 minutes")`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.api.texts import bind, duration
from headrace.errors import QueryError
from headrace.plan.windows import EveryTime, RangeWindow, RowsWindow, UnboundedWindow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from headrace.plan.schema import Schema
    from headrace.plan.windows import Window


@dataclass(frozen=True, slots=True)
class Rows:
    """The last n rows; the columns it is partitioned by are looked up when it is used."""

    rows: int
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """A window that is looked at by the clock."""

    window: RangeWindow
    trigger: EveryTime


WindowLike = RangeWindow | Rows | UnboundedWindow | Size


def range_(size: str | timedelta, lag: str | timedelta | None = None) -> RangeWindow:
    """A sliding window: at an event of time t, the events in (t - lag - size, t - lag].

    >>> str(range_("5 minutes", lag="1 hour"))
    '[RANGE 5 MINUTES LAG 1 HOUR]'
    """
    return RangeWindow(duration(size, "range"), duration(lag, "lag") if lag is not None else 0)


def rows(count: int, partition_by: str | Sequence[str] = ()) -> Rows:
    """The last `count` rows of the stream, or of each partition."""
    RowsWindow(count)  # refuses zero and less
    return Rows(count, names(partition_by))


def unbounded() -> UnboundedWindow:
    """Every row up to the event."""
    return UnboundedWindow()


def size(length: str | timedelta, every: str | timedelta | None = None, lag: str | timedelta | None = None) -> Size:
    """A window that is looked at `every` so often and not at every event: tumbling, hopping or jumping.

    It gives one row for every group that is in it, with `window_start` and `window_end`; without `every` it tumbles.

    >>> window = size("1 hour", every="5 minutes")
    >>> str(window.window), str(window.trigger)
    ('[RANGE 1 HOUR]', 'EVERY 5 MINUTES')
    """
    window = range_(length, lag)
    return Size(window, EveryTime(duration(every, "every") if every is not None else window.size))


def names(value: str | Sequence[str]) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)


def bind_window(window: WindowLike, schema: Schema) -> Window:
    """The window over some columns."""
    match window:
        case RangeWindow() | UnboundedWindow():
            return window
        case Size(window=inside):
            return inside
        case Rows(rows=count, partition_by=by):
            return RowsWindow(count, tuple(bind(b, schema, "partition_by") for b in by))
    hint = "hr.range('5 minutes'), hr.rows(100), hr.unbounded() or hr.size('1 hour')"
    raise QueryError(f"expected a window, got {window!r}", hint=hint)
