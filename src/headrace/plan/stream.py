"""Base streams: where rows come from, their time, and how much disorder is declared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.time import format_duration


@dataclass(frozen=True, slots=True)
class FileSource:
    """`SOURCE FILE(path, delimiter)`: CSV, JSON or parquet; one file, a pattern, or a directory that grows."""

    path: str
    format: str = "csv"  # csv | json | parquet | auto: what is in the files says
    delimiter: str = ","
    headed: bool | None = None  # whether the files of CSV have headers, if that is known
    spooled: bool = False  # files of our own, which are what they should be and not looked at

    def __post_init__(self) -> None:
        if self.format not in ("csv", "json", "parquet", "auto"):
            raise QueryError(f"FILE cannot read {self.format!r}", hint="csv, json or parquet")

    def __str__(self) -> str:
        return f"FILE('{self.path}')" if self.format == "auto" else f"FILE('{self.path}', '{self.format}')"


@dataclass(frozen=True, slots=True)
class HostSource:
    """`SOURCE HOST(host, port)`: lines of text from a socket, spooled to files before they are read."""

    host: str
    port: int
    format: str = "csv"
    delimiter: str = ","

    def __str__(self) -> str:
        return f"HOST('{self.host}', {self.port})"


@dataclass(frozen=True, slots=True)
class GenerateSource:
    """`SOURCE GENERATE(kind, option => value, ..)`: made-up events, the same for the same seed."""

    kind: str  # payments | rfid | ticks | sequence
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"GENERATE('{self.kind}'" + "".join(f", {k} => {v}" for k, v in self.options) + ")"


@dataclass(frozen=True, slots=True)
class FrameSource:
    """A Spark DataFrame handed to the Python API, known to the plan by its name only."""

    name: str
    position: tuple[str, str] | None = None  # columns (partition, offset) that place a row in the source

    def __str__(self) -> str:
        return f"DATAFRAME({self.name})"


def kafka_position(schema: Schema) -> tuple[str, str] | None:
    """The columns that place a row in its source, where a DataFrame has those of Kafka."""
    kinds = {f.name: f.type.upper() for f in schema.fields}
    return ("partition", "offset") if (kinds.get("partition"), kinds.get("offset")) == ("INT", "BIGINT") else None


@dataclass(frozen=True, slots=True)
class StageSource:
    """The results of another stage of the same script. Made when a plan is cut into stages, never written by a user."""

    node: str
    punctuated: bool = False  # whether punctuation alone bounds the disorder of some stream below it

    def __str__(self) -> str:
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
    punctuation: Expr | None = None  # where it is not NULL a row is no event, but says: no more rows up to this time
    idle: int | None = None
    ahead: int | None = None
    end_after: int | None = None
    keep: int | None = None
    unique: Unique | None = None
    reads: str | None = None  # the stream whose rows it has, where that is another one
    static: bool = False  # a table: all of it is there before anything else begins

    def __post_init__(self) -> None:
        if self.timestamp is not None:
            self.timestamp.check(self.schema)
        for expr in self.unique.by if self.unique else ():
            expr.check(self.schema)
        if self.punctuation is not None:
            self._check_punctuation(self.punctuation)
        for clause in ("delay", "idle", "ahead", "end_after", "keep"):
            value = getattr(self, clause)
            if isinstance(value, int) and value < 0:
                raise QueryError(f"{clause.upper().replace('_', ' ')} cannot be negative", where=f"stream {self.name}")

    def _check_punctuation(self, punctuation: Expr) -> None:
        """It speaks of the time of events, and is a bound."""
        punctuation.check(self.schema)
        if self.timestamp is None and self.reads is None:
            message = "PUNCTUATED BY speaks of the time of events, and they have none but that of their arrival"
            raise QueryError(message, where=f"stream {self.name}", hint="add TIMESTAMP BY to CREATE STREAM")
        if self.delay is Bound.UNBOUNDED:
            message = "DELAY UNBOUNDED says that nothing bounds the disorder, and PUNCTUATED BY does"
            hint = "leave DELAY out: then punctuation alone says up to where the stream is complete"
            raise QueryError(message, where=f"stream {self.name}", hint=hint)

    @property
    def punctuated(self) -> bool:
        """Whether punctuation bounds the disorder. Rows that are read by arrival have no time that it could speak of."""
        if isinstance(self.source, StageSource):
            return self.source.punctuated
        return self.punctuation is not None and self.timestamp is not None

    @property
    def bounded(self) -> bool:
        """Whether something that is declared says when the stream is complete up to a time."""
        return isinstance(self.delay, int) or self.punctuated

    @property
    def rows_of(self) -> str:
        """The name of the stream whose rows these are."""
        return self.reads or self.name

    @property
    def single_partition(self) -> bool:
        """Whether the source is one sequence of rows; only a frame with positions may be several side by side."""
        return not (isinstance(self.source, FrameSource) and self.source.position is not None)

    def __str__(self) -> str:
        parts = [f"{'Table' if self.static else 'Stream'} {self.name} {self.schema} FROM {self.source}"]
        if self.timestamp is not None:
            parts.append(f"TIMESTAMP BY {self.timestamp}")
        match self.delay:
            case Bound.UNBOUNDED:
                parts.append("DELAY UNBOUNDED")
            case int(delay):
                parts.append(f"DELAY {format_duration(delay)}")
        if self.punctuation is not None:
            parts.append(f"PUNCTUATED BY {self.punctuation}")
        for clause, value in (("IDLE", self.idle), ("AHEAD", self.ahead), ("END AFTER", self.end_after), ("KEEP", self.keep)):
            if value is not None:
                parts.append(f"{clause} {format_duration(value)}")
        if self.unique:
            parts.append(str(self.unique))
        return " ".join(parts)


def longest_delay(streams: Iterable[Stream]) -> int:
    """K, where rows of these streams wait for each other (USING KSLACK)."""
    return max((s.delay for s in streams if isinstance(s.delay, int)), default=0)
