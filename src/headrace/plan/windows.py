"""What is inside a window when it is evaluated. Windows are open below and closed above."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.time import format_duration, format_instant


@dataclass(frozen=True, slots=True)
class RangeWindow:
    """`[RANGE size LAG lag]`: at an event of time t, the rows in (t - lag - size, t - lag].

    With `peers` it is a frame of standard SQL, `RANGE BETWEEN .. PRECEDING AND ..`: rows of the event's own time that stand
    behind it are in it, too. It is closed below, which is the same as open and a microsecond longer.
    """

    size: int
    lag: int = 0
    peers: bool = False

    def __post_init__(self) -> None:
        """An empty or backward window could never hold a row."""
        if self.size <= 0:
            raise QueryError("RANGE needs a size above zero", hint="for example [RANGE 5 MINUTES]")
        if self.lag < 0:
            raise QueryError("LAG cannot be negative")

    def __str__(self) -> str:
        """As written in SQL."""
        if self.peers:
            upper = f"{format_duration(self.lag)} PRECEDING" if self.lag else "CURRENT ROW"
            lower = f"{format_duration(self.reach)} PRECEDING" if self.reach else "CURRENT ROW"
            return f"RANGE BETWEEN {lower} AND {upper}".upper()
        lag = f" LAG {format_duration(self.lag)}" if self.lag else ""
        return f"[RANGE {format_duration(self.size)}{lag}]".upper()

    @property
    def reach(self) -> int:
        """How far it goes back."""
        return self.size + self.lag - (1 if self.peers else 0)

    @property
    def waits(self) -> bool:
        """Whether a row of the event's own time may still come into it."""
        return self.peers and self.lag == 0


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

    @property
    def waits(self) -> bool:
        """Rows are counted one by one."""
        return False


@dataclass(frozen=True, slots=True)
class UnboundedWindow:
    """`[UNBOUNDED]`: every row up to the event. With `peers`, as in standard SQL, and every other one of its time."""

    peers: bool = False

    def __str__(self) -> str:
        """As written in SQL."""
        return "RANGE UNBOUNDED PRECEDING" if self.peers else "[UNBOUNDED]"

    @property
    def waits(self) -> bool:
        """Whether a row of the event's own time may still come into it."""
        return self.peers


@dataclass(frozen=True, slots=True)
class SpanWindow:
    """`[LANDMARK FROM start]`: the rows after `start`; with `stop`, `[FIXED FROM start TO stop]`: those up to it. None leaves."""

    start: int
    stop: int | None = None

    def __post_init__(self) -> None:
        """Time goes forward."""
        if self.stop is not None and self.stop <= self.start:
            raise QueryError("FIXED needs a TO that is after FROM")

    def __str__(self) -> str:
        """As written in SQL."""
        if self.stop is None:
            return f"[LANDMARK FROM '{format_instant(self.start)}']"
        return f"[FIXED FROM '{format_instant(self.start)}' TO '{format_instant(self.stop)}']"


@dataclass(frozen=True, slots=True)
class UntilWindow:
    """`[LANDMARK TO stop EVERY e]`: all windows that end at `stop` and begin some whole number of `e` before it.

    They are told when that time has passed, for every group back to the first that holds all of its rows.
    """

    stop: int

    def __str__(self) -> str:
        """As written in SQL."""
        return f"[LANDMARK TO '{format_instant(self.stop)}']"


@dataclass(frozen=True, slots=True)
class FieldWindow:
    """`[SIZE n ON field]`: the rows whose position is in (p - n, p], where p is the position of the stream.

    The position is the largest value of the field so far, in the order of the stream: it never goes back, so a row whose value
    does counts where the stream stood when it came. NULL moves nothing, nor does what no position can be told exactly of:
    a DOUBLE that is not finite or beyond 2^53, a whole number beyond 2^60.
    """

    size: int | float
    on: Expr

    def __post_init__(self) -> None:
        """An empty window could never hold a row."""
        if self.size <= 0:
            raise QueryError("SIZE needs a number above zero", hint="for example [SIZE 10 ON id]")

    def __str__(self) -> str:
        """As written in SQL."""
        return f"[SIZE {self.size} ON {self.on}]"


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """`[SESSION gap]`: rows of a group, none later than `gap` after the one before it."""

    gap: int

    def __post_init__(self) -> None:
        """Time moves on."""
        if self.gap <= 0:
            raise QueryError("SESSION needs a gap above zero", hint="for example [SESSION 30 MINUTES]")

    def __str__(self) -> str:
        """As written in SQL."""
        return f"[SESSION {format_duration(self.gap)}]".upper()


@dataclass(frozen=True, slots=True)
class DeltaWindow:
    """`[DELTA limit ON expr]`: rows of a group, as long as `expr` of the first row of the window and each is within `limit`.

    In `expr`, columns of the first row are called `first.column`.
    """

    limit: float
    expr: Expr

    def __str__(self) -> str:
        """As written in SQL."""
        return f"[DELTA {self.limit:g} ON {self.expr}]"


Window = RangeWindow | RowsWindow | UnboundedWindow  # that an event can look at
LookedAt = Window | SpanWindow | UntilWindow | FieldWindow | SessionWindow | DeltaWindow
SEGMENTS = (SessionWindow, DeltaWindow)  # windows that end by what comes, each with its own rows


@dataclass(frozen=True, slots=True)
class EveryTime:
    """`EVERY 1 MINUTE`: a window is looked at when the time is origin + k * every, for every whole k, and not at every event.

    Where windows are open above, as in Flink and Spark, [l, u) is (l, u] a microsecond before: that is when it is looked at, and
    l and u are what is shown.
    """

    every: int
    origin: int = 0
    open_above: bool = False

    def __post_init__(self) -> None:
        """Time moves on."""
        if self.every <= 0:
            raise QueryError("EVERY needs a time above zero", hint="for example [SIZE 1 HOUR EVERY 1 MINUTE]")

    def __str__(self) -> str:
        """As written in SQL."""
        if self.every >= ONCE:
            return "ONCE"
        origin = f" FROM '{format_instant(self.origin)}'" if self.origin % self.every else ""
        return f"EVERY {format_duration(self.every)}".upper() + (" OPEN ABOVE" if self.open_above else origin)

    def first_at(self, time: int) -> int:
        """The first of these times that is not before `time`."""
        return self.origin + -(-(time - self.origin) // self.every) * self.every

    @property
    def shown(self) -> int:
        """How far behind the time of a look the bound lies that is shown of it."""
        return 1 if self.open_above else 0


def starting(every: int, window: LookedAt) -> EveryTime:
    """Windows [l, u) that start at every whole multiple of `every`; one that is not measured in time ends there."""
    length = window.size + window.lag if isinstance(window, RangeWindow) else 0
    return EveryTime(every, (length - 1) % every, open_above=True)


ONCE = 2**60  # longer than all of time: the origin is the only look


@dataclass(frozen=True, slots=True)
class EveryRows:
    """`EVERY 100`: a window is looked at after every so many rows, of the stream or of each partition."""

    every: int
    partition_by: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        """Rows come on."""
        if self.every <= 0:
            raise QueryError("EVERY needs a number above zero", hint="for example [SIZE 100 EVERY 10]")

    def __str__(self) -> str:
        """As written in SQL."""
        return f"EVERY {self.every} ROWS"


@dataclass(frozen=True, slots=True)
class EveryField:
    """`EVERY n ON field`: a window is looked at whenever the position of the stream has passed a multiple of n."""

    every: int | float
    on: Expr

    def __post_init__(self) -> None:
        """Positions move on."""
        if self.every <= 0:
            raise QueryError("EVERY needs a number above zero", hint="for example [SIZE 10 ON id EVERY 5 ON id]")

    def __str__(self) -> str:
        """As written in SQL."""
        return f"EVERY {self.every} ON {self.on}"


@dataclass(frozen=True, slots=True)
class EveryInstant:
    """The time-driven model (002, 3.1): all rows of one time are seen together, and then the window is looked at.

    With `rows`, only if a multiple of so many rows (of the stream or of each partition) was among them; else at the groups that
    had a row then. With `batch` the rows of one time are parted into batches: runs of rows with the same value of it.
    """

    rows: int | None = None
    partition_by: tuple[Expr, ...] = ()
    batch: Expr | None = None

    def __str__(self) -> str:
        """In words."""
        unit = "TIME" if self.batch is None else f"BATCH BY {self.batch}"
        return f"AT EVERY {unit}" + (f" THAT COMPLETES {self.rows} ROWS" if self.rows else "")


@dataclass(frozen=True, slots=True)
class OnClose:
    """A window that ends by itself is looked at when it has ended."""

    def __str__(self) -> str:
        """In words."""
        return "WHEN IT CLOSES"


Trigger = EveryTime | EveryRows | EveryField | EveryInstant | OnClose
