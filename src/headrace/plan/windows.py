"""What is inside a window when it is evaluated. Windows are open below and closed above."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.time import format_duration


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """`[RANGE size LAG lag]`: at an event of time t, the rows in (t - lag - size, t - lag]."""

    size: int
    lag: int = 0

    def __post_init__(self) -> None:
        """An empty or backward window could never hold a row."""
        if self.size <= 0:
            raise QueryError("RANGE needs a size above zero", hint="for example [RANGE 5 MINUTES]")
        if self.lag < 0:
            raise QueryError("LAG cannot be negative")

    def __str__(self) -> str:
        """As written in SQL."""
        lag = f" LAG {format_duration(self.lag)}" if self.lag else ""
        return f"[RANGE {format_duration(self.size)}{lag}]".upper()


@dataclass(frozen=True, slots=True)
class RowsWindow:
    """`[ROWS n PARTITIONED BY ..]`: the last n rows up to the event, of the stream or of each partition."""

    rows: int
    partition_by: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        """An empty window could never hold a row."""
        if self.rows <= 0:
            raise QueryError("ROWS needs a number above zero", hint="for example [ROWS 100]")

    def __str__(self) -> str:
        """As written in SQL."""
        by = f" PARTITIONED BY {', '.join(map(str, self.partition_by))}" if self.partition_by else ""
        return f"[ROWS {self.rows}{by}]"


@dataclass(frozen=True, slots=True)
class UnboundedWindow:
    """`[UNBOUNDED]`: every row up to the event."""

    def __str__(self) -> str:
        """As written in SQL."""
        return "[UNBOUNDED]"


Window = RangeWindow | RowsWindow | UnboundedWindow


@dataclass(frozen=True, slots=True)
class EveryTime:
    """`EVERY 1 MINUTE`: a window is looked at when the time is origin + k * every, for every whole k, and not at every event."""

    every: int
    origin: int = 0

    def __post_init__(self) -> None:
        """Time moves on."""
        if self.every <= 0:
            raise QueryError("EVERY needs a time above zero", hint="for example [SIZE 1 HOUR EVERY 1 MINUTE]")

    def __str__(self) -> str:
        """As written in SQL."""
        return f"EVERY {format_duration(self.every)}".upper()

    def first_at(self, time: int) -> int:
        """The first of these times that is not before `time`."""
        return self.origin + -(-(time - self.origin) // self.every) * self.every


Trigger = EveryTime
