"""Base streams: where rows come from, their time, and how much disorder is declared."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.time import format_duration


@dataclass(frozen=True, slots=True)
class FileSource:
    """`SOURCE FILE(path, delimiter)`: CSV, JSON lines or parquet; one file, a pattern, or a directory that grows."""

    path: str
    format: str = "csv"  # csv | json | parquet
    delimiter: str = ","

    def __post_init__(self) -> None:
        """Only formats that can be read."""
        if self.format not in ("csv", "json", "parquet"):
            raise QueryError(f"FILE cannot read {self.format!r}", hint="csv, json or parquet")

    def __str__(self) -> str:
        """As written in SQL."""
        return f"FILE('{self.path}', '{self.format}')"


@dataclass(frozen=True, slots=True)
class HostSource:
    """`SOURCE HOST(host, port)`: lines of text from a socket, spooled to files before they are read."""

    host: str
    port: int
    format: str = "csv"
    delimiter: str = ","

    def __str__(self) -> str:
        """As written in SQL."""
        return f"HOST('{self.host}', {self.port})"


@dataclass(frozen=True, slots=True)
class GenerateSource:
    """`SOURCE GENERATE(kind, option => value, ..)`: made-up events, the same for the same seed."""

    kind: str  # payments | rfid | ticks | sequence
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """As written in SQL."""
        return f"GENERATE('{self.kind}'" + "".join(f", {k} => {v}" for k, v in self.options) + ")"


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A Spark DataFrame handed to the Python API, known to the plan by its name only."""

    name: str
    position: tuple[str, str] | None = None  # columns (partition, offset) that place a row in the source

    def __str__(self) -> str:
        """For explain."""
        return f"DATAFRAME({self.name})"


@dataclass(frozen=True, slots=True)
class StageSource:
    """The results of another stage of the same script. Made when a plan is cut into stages, never written by a user."""

    node: str

    def __str__(self) -> str:
        """For explain."""
        return self.node


Source = FileSource | HostSource | GenerateSource | FrameSource | StageSource


class Bound(Enum):
    """A delay that is not a number."""

    UNBOUNDED = "UNBOUNDED"


@dataclass(frozen=True, slots=True)
class Unique:
    """`UNIQUE BY columns WITHIN t`: of rows with equal columns no further apart than t, only the first counts."""

    by: tuple[Expr, ...]
    within: int

    def __str__(self) -> str:
        """As written in SQL."""
        return f"UNIQUE BY {', '.join(map(str, self.by))} WITHIN {format_duration(self.within)}"


@dataclass(frozen=True, slots=True)
class Stream:
    """A base stream. Times are microseconds; None means not declared."""

    name: str
    source: Source
    schema: Schema
    timestamp: Expr | None = None  # None: the arrival time
    timestamp_unit: int = 1_000  # microseconds of one unit of an integer timestamp
    delay: int | Bound | None = None
    idle: int | None = None
    ahead: int | None = None
    end_after: int | None = None
    keep: int | None = None
    unique: Unique | None = None
    reads: str | None = None  # the stream whose rows it has, where that is another one
    static: bool = False  # a table: all of it is there before anything else begins
    doc: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """The time and the unique columns must exist; durations must make sense."""
        if self.timestamp is not None:
            self.timestamp.check(self.schema)
        for expr in self.unique.by if self.unique else ():
            expr.check(self.schema)
        for clause in ("delay", "idle", "ahead", "end_after", "keep"):
            value = getattr(self, clause)
            if isinstance(value, int) and value < 0:
                raise QueryError(f"{clause.upper().replace('_', ' ')} cannot be negative", where=f"stream {self.name}")

    @property
    def rows_of(self) -> str:
        """The name of the stream whose rows these are."""
        return self.reads or self.name

    @property
    def single_partition(self) -> bool:
        """Whether the source is one sequence of rows; only a frame with positions may be several side by side."""
        return not (isinstance(self.source, FrameSource) and self.source.position is not None)

    def __str__(self) -> str:
        """One line for explain."""
        parts = [f"{'Table' if self.static else 'Stream'} {self.name} {self.schema} FROM {self.source}"]
        if self.timestamp is not None:
            parts.append(f"TIMESTAMP BY {self.timestamp}")
        match self.delay:
            case Bound.UNBOUNDED:
                parts.append("DELAY UNBOUNDED")
            case int(delay):
                parts.append(f"DELAY {format_duration(delay)}")
        for clause, value in (("IDLE", self.idle), ("AHEAD", self.ahead), ("END AFTER", self.end_after), ("KEEP", self.keep)):
            if value is not None:
                parts.append(f"{clause} {format_duration(value)}")
        if self.unique:
            parts.append(str(self.unique))
        return " ".join(parts)
