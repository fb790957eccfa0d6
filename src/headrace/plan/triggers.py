"""When a window is looked at."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.time import format_duration, format_instant

ONCE = 2**60  # longer than all of time: the origin is the only look


class AnyTrigger:
    """What a trigger says of itself."""

    __slots__ = ()
    partition_by: tuple[Expr, ...] = ()  # each partition is looked at by itself
    batch: Expr | None = None
    by_rows: bool = False  # rows let it look, and not time alone
    depends_on: str | None = None  # as of a window
    told: str = "whenever it is looked at"

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """What of the rows decides when it looks."""
        return (*self.partition_by, *(e for e in (self.batch, self.field) if e is not None))

    @property
    def field(self) -> Expr | None:
        """The field whose position lets it look."""
        return None

    @property
    def counts_rows(self) -> bool:
        """Whether it looks when so many rows have come."""
        return False

    @property
    def shown(self) -> int:
        """How far behind the time of a look the bound lies that is shown of it."""
        return 0

    @property
    def reacts(self) -> str:
        """In words: what it reacts to."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class EveryTime(AnyTrigger):
    """`EVERY 1 MINUTE`: a window is looked at when the time is origin + k * every, for every whole k, and not at every event.

    Where windows are open above, as in Flink and Spark, [l, u) is (l, u] a microsecond before: that is when it is looked at, and
    l and u are what is shown.
    """

    every: int
    origin: int = 0
    open_above: bool = False
    told = "whenever it is looked at, changed or not, unless it is empty"

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise QueryError("EVERY needs a time above zero", hint="for example [SIZE 1 HOUR EVERY 1 MINUTE]")

    def __str__(self) -> str:
        if self.every >= ONCE:
            return "ONCE"
        origin = f" FROM '{format_instant(self.origin)}'" if self.origin % self.every else ""
        return f"EVERY {format_duration(self.every)}".upper() + (" OPEN ABOVE" if self.open_above else origin)

    def first_at(self, time: int) -> int:
        """The first of these times that is not before `time`."""
        return self.origin + -(-(time - self.origin) // self.every) * self.every

    @property
    def shown(self) -> int:
        return 1 if self.open_above else 0

    @property
    def reacts(self) -> str:
        when = f"every {format_duration(self.every)}" if self.every < ONCE else f"once, at {format_instant(self.origin)}"
        return f"the clock, {when}; what else the engine reacts to makes no difference"


@dataclass(frozen=True, slots=True)
class EveryRows(AnyTrigger):
    """`EVERY 100`: a window is looked at after every so many rows, of the stream or of each partition."""

    every: int
    partition_by: tuple[Expr, ...] = ()
    by_rows = counts_rows = True
    depends_on = "counts"

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise QueryError("EVERY needs a number above zero", hint="for example [SIZE 100 EVERY 10]")

    def __str__(self) -> str:
        return f"EVERY {self.every} ROWS"

    @property
    def reacts(self) -> str:
        of = " of a partition" if self.partition_by else ""
        return ("every row" if self.every == 1 else f"every {self.every} rows") + of + " (tuple-driven)"


@dataclass(frozen=True, slots=True)
class EveryField(AnyTrigger):
    """`EVERY n ON field`: a window is looked at whenever the position of the stream has passed a multiple of n."""

    every: int | float
    on: Expr
    by_rows = True
    depends_on = "positions"

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise QueryError("EVERY needs a number above zero", hint="for example [SIZE 10 ON id EVERY 5 ON id]")

    def __str__(self) -> str:
        return f"EVERY {self.every} ON {self.on}"

    @property
    def field(self) -> Expr:
        return self.on

    @property
    def reacts(self) -> str:
        return f"{self.on}, whenever it has passed a multiple of {self.every}"


@dataclass(frozen=True, slots=True)
class EveryInstant(AnyTrigger):
    """The time-driven model (002, 3.1): all rows of one time are seen together, and then the window is looked at.

    With `rows`, only if a multiple of so many rows (of the stream or of each partition) was among them; else at the groups that
    had a row then. With `batch` the rows of one time are parted into batches: runs of rows with the same value of it.
    """

    rows: int | None = None
    partition_by: tuple[Expr, ...] = ()
    batch: Expr | None = None
    depends_on = "instants"

    def __str__(self) -> str:
        unit = "TIME" if self.batch is None else f"BATCH BY {self.batch}"
        return f"AT EVERY {unit}" + (f" THAT COMPLETES {self.rows} ROWS" if self.rows else "")

    @property
    def counts_rows(self) -> bool:
        return self.rows is not None

    @property
    def reacts(self) -> str:
        completed = "" if self.rows in (None, 1) else f", and looked at when they complete {self.rows} rows"
        if self.batch is None:
            return f"time moving on: rows of one time are seen together{completed} (time-driven)"
        return f"a batch: rows of one time with the same {self.batch}{completed} (batch-driven)"


@dataclass(frozen=True, slots=True)
class OnClose(AnyTrigger):
    """A window that ends by itself is looked at when it has ended."""

    reacts = "the end of a window"
    told = "once, when it has ended"

    def __str__(self) -> str:
        return "WHEN IT CLOSES"


Trigger = EveryTime | EveryRows | EveryField | EveryInstant | OnClose
