"""Queries: a plan, what leaves it and when, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headrace.errors import QueryError
from headrace.plan.joins import Join, check_bounded
from headrace.plan.nodes import Node, WindowAggregate, WindowReport, base_streams, children
from headrace.plan.stream import Bound, Stream


class Emit(Enum):
    """What leaves, and when (design section 4)."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"
    FINAL_IN_ORDER = "FINAL IN ORDER"


@dataclass(frozen=True, slots=True)
class FileSink:
    """`INTO FILE(path)`: exactly once, published by batch."""

    path: str
    format: str = "parquet"  # parquet | csv | json

    def __str__(self) -> str:
        """As written in SQL."""
        return f"FILE('{self.path}', '{self.format}')"


@dataclass(frozen=True, slots=True)
class TableSink:
    """`INTO TABLE name`: a Spark table over files published by batch."""

    name: str

    def __str__(self) -> str:
        """As written in SQL."""
        return f"TABLE {self.name}"


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """No INTO, or `INTO CONSOLE`: the rows are shown, at least once."""

    def __str__(self) -> str:
        """As written in SQL."""
        return "CONSOLE"


@dataclass(frozen=True, slots=True)
class StreamSink:
    """`INTO name`: a named stream that other queries may read; shown if nothing reads it."""

    name: str

    def __str__(self) -> str:
        """As written in SQL."""
        return self.name


Sink = FileSink | TableSink | ConsoleSink | StreamSink


@dataclass(frozen=True, slots=True)
class Query:
    """One output of a script."""

    name: str
    node: Node
    emit: Emit = Emit.CHANGES
    sink: Sink = ConsoleSink()

    def __post_init__(self) -> None:
        """Refuse what could never emit, or would grow for ever without saying so."""
        if not has_window(self.node):
            return
        for join in _joins(self.node):
            check_bounded(join, base_streams(join.left), base_streams(join.right))
        for stream in base_streams(self.node):
            if stream.delay is None and stream.keep is None:
                raise QueryError(
                    f"stream {stream.name!r} declares no bound on disorder, "
                    "so the state of a window over it could never be let go",
                    hint="add DELAY (for example DELAY 10 SECONDS, or DELAY 0 if it is in order) or KEEP to CREATE STREAM",
                )
            if stream.delay is Bound.UNBOUNDED and self.emit is not Emit.CHANGES:
                raise QueryError(
                    f"EMIT {self.emit.value} over {stream.name!r} would never emit: its DELAY is UNBOUNDED",
                    hint="give a DELAY, or use EMIT CHANGES",
                )


def has_window(node: Node) -> bool:
    """Whether any step keeps state."""
    return isinstance(node, WindowAggregate | WindowReport | Join) or any(map(has_window, children(node)))


def _joins(node: Node) -> list[Join]:
    own = [node] if isinstance(node, Join) else []
    return [*own, *(join for child in children(node) for join in _joins(child))]


@dataclass(frozen=True, slots=True)
class Answer:
    """What SHOW and DESCRIBE say: a small table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Script:
    """All queries that run together, and every stream that was declared."""

    queries: tuple[Query, ...]
    streams: tuple[Stream, ...] = ()
    answers: tuple[Answer, ...] = ()  # to SHOW and DESCRIBE

    def __post_init__(self) -> None:
        """Names identify outputs and their state."""
        names = [q.name for q in self.queries]
        for name in names:
            if names.count(name) > 1:
                raise QueryError(f"two queries are called {name!r}", hint="give one of them another INTO")
