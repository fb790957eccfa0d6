"""What is inside a window when it is evaluated. Windows are open below and closed above."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.schema import Field
from headrace.plan.time import format_duration, format_instant
from headrace.plan.triggers import EveryTime, Trigger

# The window that a report is about: (window_start, window_end].
BOUNDS = (Field("window_start", "TIMESTAMP"), Field("window_end", "TIMESTAMP"))


class AnyWindow:
    """What a window says of itself, so that nobody else need know its kind. A kind says what is different about it."""

    __slots__ = ()
    partition_by: tuple[Expr, ...] = ()  # each partition has a window of its own
    lag: int = 0  # how far behind now rows come into it
    peers: bool = False  # rows of the event's own time that stand behind it are in it, too
    counts_rows: bool = False  # a row that comes pushes another out, so whatever is dropped before would be in it
    ends_by_itself: bool = False  # by what comes, not by a measure; each has rows of its own
    closed_by_rows: bool = False  # and that with the row that no longer fits, not in time
    rows_leave: bool = False  # every row leaves in the end, whatever comes of its key
    stores_rows: bool = False  # final rows must stay in the reservoir until they have left
    bounds: tuple[Field, ...] = BOUNDS  # what a look shows of where it begins and ends
    depends_on: str | None = None  # what of other rows than those of a group decides on what is in it (`BEYOND`)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What of the rows decides on what is in it."""
        return self.partition_by if self.field is None else (*self.partition_by, self.field)

    @property
    def field(self) -> Expr | None:
        """The field that it is measured on."""
        return None

    @property
    def edges(self) -> tuple[int, ...]:
        """How long after its time a row enters and leaves; nothing, where time alone does not say."""
        return ()

    @property
    def last_rows(self) -> int | None:
        """How many of the last rows of the whole stream it holds, where it counts those."""
        return None

    @property
    def keeps_keys(self) -> bool:
        """Whether it keeps something for a key that no longer comes."""
        return False

    @property
    def waits(self) -> bool:
        """Whether a row of the event's own time may still come into it."""
        return False

    @property
    def leaves(self) -> str | None:
        """In words, in front of its text: where its rows leave, if not at an edge in time."""
        return None

    def bound(self, slack: str, keep: str) -> str:
        """In words: how much state it keeps, with rows of `slack` that are not final; `keep` says until when a key is kept."""
        return f"a fixed amount per key, and rows of {slack}"

    def holds(self, trigger: Trigger | None) -> str:
        """In words: what is in it when it is looked at; None: by every event."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class RangeWindow(AnyWindow):
    """`[RANGE size LAG lag]`: at an event of time t, the rows in (t - lag - size, t - lag].

    With `peers` it is a frame of standard SQL, `RANGE BETWEEN .. PRECEDING AND ..`: rows of the event's own time that stand
    behind it are in it, too. It is closed below, which is the same as open and a microsecond longer.
    """

    size: int
    lag: int = 0
    peers: bool = False
    rows_leave = stores_rows = True

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise QueryError("RANGE needs a size above zero", hint="for example [RANGE 5 MINUTES]")
        if self.lag < 0:
            raise QueryError("LAG cannot be negative")

    def __str__(self) -> str:
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
    def edges(self) -> tuple[int, ...]:
        return self.lag, self.lag + self.size

    @property
    def waits(self) -> bool:
        return self.peers and self.lag == 0

    def bound(self, slack: str, keep: str) -> str:
        return f"rows of ({format_duration(self.reach)} + {slack}) at the rate of the stream"

    def holds(self, trigger: Trigger | None) -> str:
        upper = f"t - {format_duration(self.lag)}" if self.lag else "t"
        match trigger:
            case EveryTime(every=every, open_above=True):
                closed = f"[l, u): a row at l is inside, one at u is not; {format_duration(self.size)} long"
                return f"{closed}, l is a whole multiple of {format_duration(every)} since 1970 (UTC)"
            case EveryTime(every=every, origin=origin):
                since = "since 1970 (UTC)" if origin == 0 else f"from {format_instant(origin)}"
                lagging = f", less {format_duration(self.lag)}" if self.lag else ""
                multiple = f"u is a whole multiple of {format_duration(every)} {since}{lagging}"
                return f"(l, u]: a row at u is inside; {format_duration(self.size)} long, {multiple}"
            case _ if self.peers:
                lower = f"t - {format_duration(self.reach)}" if self.reach else "t"
                return f"[{lower}, {upper}] at an event of time t, with all rows of that time, as in standard SQL"
        what = "an event" if trigger is None else "a look"
        return f"(t - {format_duration(self.reach)}, {upper}] at {what} of time t"


@dataclass(frozen=True, slots=True)
class RowsWindow(AnyWindow):
    """`[ROWS n PARTITIONED BY ..]`: the last n rows up to the event, of the stream or of each partition."""

    rows: int
    partition_by: tuple[Expr, ...] = ()
    counts_rows = True
    bounds = BOUNDS[1:]
    depends_on = "counts"

    def __post_init__(self) -> None:
        if self.rows <= 0:
            raise QueryError("ROWS needs a number above zero", hint="for example [ROWS 100]")

    def __str__(self) -> str:
        by = f" PARTITIONED BY {', '.join(map(str, self.partition_by))}" if self.partition_by else ""
        return f"[ROWS {self.rows}{by}]"

    @property
    def last_rows(self) -> int | None:
        return None if self.partition_by else self.rows

    @property
    def keeps_keys(self) -> bool:
        return bool(self.partition_by)

    @property
    def leaves(self) -> str:
        count = "1 row" if self.rows == 1 else f"{self.rows} rows"
        where = f"a ring of {count} per key, apart from the reservoir" if self.partition_by else f"{count} ago"
        return f"{where}: rows leave"

    def bound(self, slack: str, keep: str) -> str:
        return f"{self.rows} rows {'per partition' if self.partition_by else 'in all'}{keep}, and rows of {slack}"

    def holds(self, trigger: Trigger | None) -> str:
        count = "the last row" if self.rows == 1 else f"the last {self.rows} rows"
        return count + (f" of the same {', '.join(map(str, self.partition_by))}" if self.partition_by else "")


@dataclass(frozen=True, slots=True)
class UnboundedWindow(AnyWindow):
    """`[UNBOUNDED]`: every row up to the event. With `peers`, as in standard SQL, and every other one of its time."""

    peers: bool = False
    bounds = BOUNDS[1:]
    keeps_keys = True

    def __str__(self) -> str:
        return "RANGE UNBOUNDED PRECEDING" if self.peers else "[UNBOUNDED]"

    @property
    def waits(self) -> bool:
        return self.peers

    @property
    def leaves(self) -> str:
        return "no edge: rows never leave"

    def bound(self, slack: str, keep: str) -> str:
        return f"a fixed amount per key{keep}, and rows of {slack}"

    def holds(self, trigger: Trigger | None) -> str:
        peers = "every row up to the event's time, with all rows of that time, as in standard SQL"
        return peers if self.peers else "every row so far"


@dataclass(frozen=True, slots=True)
class SpanWindow(AnyWindow):
    """`[LANDMARK FROM start]`: the rows after `start`; with `stop`, `[FIXED FROM start TO stop]`: those up to it. None leaves."""

    start: int
    stop: int | None = None

    def __post_init__(self) -> None:
        if self.stop is not None and self.stop <= self.start:
            raise QueryError("FIXED needs a TO that is after FROM")

    def __str__(self) -> str:
        if self.stop is None:
            return f"[LANDMARK FROM '{format_instant(self.start)}']"
        return f"[FIXED FROM '{format_instant(self.start)}' TO '{format_instant(self.stop)}']"

    def holds(self, trigger: Trigger | None) -> str:
        after = format_instant(self.start)
        return f"every row after {after}" if self.stop is None else f"the rows after {after}, up to {format_instant(self.stop)}"


@dataclass(frozen=True, slots=True)
class UntilWindow(AnyWindow):
    """`[LANDMARK TO stop EVERY e]`: all windows that end at `stop` and begin some whole number of `e` before it.

    They are told when that time has passed, for every group back to the first that holds all of its rows.
    """

    stop: int
    stores_rows = True

    def __str__(self) -> str:
        return f"[LANDMARK TO '{format_instant(self.stop)}']"

    def bound(self, slack: str, keep: str) -> str:
        return f"all rows up to {format_instant(self.stop)}, until then"

    def holds(self, trigger: Trigger | None) -> str:
        return f"every row up to {format_instant(self.stop)}; one window for every beginning"


@dataclass(frozen=True, slots=True)
class FieldWindow(AnyWindow):
    """`[SIZE n ON field]`: the rows whose position is in (p - n, p], where p is the position of the stream.

    The position is the largest value of the field so far, in the order of the stream: it never goes back, so a row whose value
    does counts where the stream stood when it came. NULL moves nothing, nor does what no position can be told exactly of:
    a DOUBLE that is not finite or beyond 2^53, a whole number beyond 2^60.
    """

    size: int | float
    on: Expr
    rows_leave = stores_rows = True
    bounds = BOUNDS[1:]
    depends_on = "positions"

    def __post_init__(self) -> None:
        if self.size <= 0:
            raise QueryError("SIZE needs a number above zero", hint="for example [SIZE 10 ON id]")

    def __str__(self) -> str:
        return f"[SIZE {self.size} ON {self.on}]"

    @property
    def field(self) -> Expr:
        return self.on

    def bound(self, slack: str, keep: str) -> str:
        return f"rows of the last {self.size} of {self.on}, and of {slack}"

    def holds(self, trigger: Trigger | None) -> str:
        return f"(p - {self.size}, p], where p is the largest {self.on} so far"


@dataclass(frozen=True, slots=True)
class SessionWindow(AnyWindow):
    """`[SESSION gap]`: rows of a group, none later than `gap` after the one before it."""

    gap: int
    ends_by_itself = True
    depends_on = "segments"

    def __post_init__(self) -> None:
        if self.gap <= 0:
            raise QueryError("SESSION needs a gap above zero", hint="for example [SESSION 30 MINUTES]")

    def __str__(self) -> str:
        return f"[SESSION {format_duration(self.gap)}]".upper()

    def bound(self, slack: str, keep: str) -> str:
        return f"a fixed amount per key, until silent for {format_duration(self.gap)}, and rows of {slack}"

    def holds(self, trigger: Trigger | None) -> str:
        return f"rows of a group, none later than {format_duration(self.gap)} after the one before it"


@dataclass(frozen=True, slots=True)
class DeltaWindow(AnyWindow):
    """`[DELTA limit ON expr]`: rows of a group, as long as `expr` of the first row of the window and each is within `limit`.

    In `expr`, columns of the first row are called `first.column`.
    """

    limit: float
    expr: Expr
    ends_by_itself = closed_by_rows = True
    depends_on = "segments"

    def __str__(self) -> str:
        return f"[DELTA {self.limit:g} ON {self.expr}]"

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return (self.expr,)

    def holds(self, trigger: Trigger | None) -> str:
        return f"rows of a group, as long as {self.expr} is within {self.limit:g}"


Window = RangeWindow | RowsWindow | UnboundedWindow  # that an event can look at
LookedAt = Window | SpanWindow | UntilWindow | FieldWindow | SessionWindow | DeltaWindow
BEYOND = ("segments", "instants", "positions", "counts")  # what of other rows a look may depend on; the first goes before


def starting(every: int, window: LookedAt) -> EveryTime:
    """Windows [l, u) that start at every whole multiple of `every`; one that is not measured in time ends there."""
    return EveryTime(every, (max(window.edges, default=0) - 1) % every, open_above=True)
