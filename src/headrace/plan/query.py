"""Queries: a plan, what leaves it and when, and where it goes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from headrace.errors import QueryError, unknown
from headrace.plan import nodes
from headrace.plan.joins import Join, check_bounded
from headrace.plan.patterns import Pattern
from headrace.plan.sinks import CONSOLE, ConsoleSink, FileSink, Sink, StreamSink, TableSink, check_apart
from headrace.plan.stream import Bound, Stream
from headrace.plan.types import NESTED, base_type
from headrace.plan.windows import UnboundedWindow


class Using(Enum):
    """How results are put in order under EMIT FINAL IN ORDER."""

    OPTIMISTIC = "OPTIMISTIC"  # compute at once, and hold the results
    KSLACK = "KSLACK"  # hold the rows, until the largest time of all streams is a DELAY past them (001, V)


class Emit(Enum):
    """What leaves, and when (design section 4)."""

    CHANGES = "CHANGES"
    FINAL = "FINAL"
    FINAL_IN_ORDER = "FINAL IN ORDER"

    @property
    def early(self) -> bool:
        """Whether a query speaks before it is sure, and takes back what was wrong."""
        return self is Emit.CHANGES

    @property
    def ordered(self) -> bool:
        """Whether what it says comes in the total order."""
        return self is Emit.FINAL_IN_ORDER


@dataclass(frozen=True, slots=True)
class Query:
    """One output of a script."""

    name: str
    node: nodes.Node
    emit: Emit = Emit.CHANGES
    sink: Sink = CONSOLE
    using: Using = Using.OPTIMISTIC

    def __post_init__(self) -> None:
        """Refuse what could never emit, or would grow for ever without saying so."""
        refuse_tables(self.node)
        if isinstance(self.sink, FileSink) and self.sink.format == "csv":
            for field in self.node.schema.fields:
                if base_type(field.type) in NESTED:
                    hint = f"write json or parquet, or a text: to_json({field.name})"
                    raise QueryError(f"a CSV file cannot hold {field.name}, which is {field.type}", hint=hint)
        if self.using is Using.KSLACK:
            _check_slack(self.node, self.emit)
        if not has_window(self.node):
            return
        for join in _joins(self.node):
            check_bounded(join, nodes.base_streams(join.left), nodes.base_streams(join.right))
        for stream in nodes.base_streams(self.node):
            if stream.static:
                continue
            if stream.delay is None and stream.keep is None and not stream.punctuated:
                raise QueryError(
                    f"stream {stream.name!r} declares no bound on disorder, "
                    "so the state of a window over it could never be let go",
                    hint="add DELAY (for example DELAY 10 SECONDS, or DELAY 0 if it is in order), PUNCTUATED BY or KEEP "
                    "to CREATE STREAM",
                )
            if stream.delay is Bound.UNBOUNDED and not self.emit.early:
                message = f"EMIT {self.emit.value} over {stream.name!r} would never emit: its DELAY is UNBOUNDED"
                raise QueryError(message, hint="give a DELAY, or use EMIT CHANGES")


def has_window(node: nodes.Node) -> bool:
    """Whether any step keeps state."""
    return isinstance(node, nodes.STATEFUL) or any(map(has_window, nodes.children(node)))


def _check_slack(node: nodes.Node, emit: Emit) -> None:
    """Rows can wait before a pattern over base streams; results of other steps have waited already."""
    while isinstance(node, nodes.Filter | nodes.Project):
        node = node.input
    made = any(map(has_window, nodes.children(node))) or any(s.unique is not None for s in nodes.base_streams(node))
    if emit is not Emit.FINAL_IN_ORDER or not isinstance(node, Pattern) or made:
        message = "USING KSLACK is for the results of a pattern over streams that no other step has made, in order"
        raise QueryError(message, hint="EVENT SEQ(..) .. EMIT FINAL IN ORDER USING KSLACK")
    for stream in nodes.base_streams(node):
        if stream.delay is None:
            message = f"USING KSLACK holds rows for the longest DELAY of the streams, and {stream.name!r} has none"
            raise QueryError(message, hint="add DELAY to CREATE STREAM, or leave USING KSLACK out")


def refuse_tables(node: nodes.Node) -> None:
    """A table has no time of its own: it is read where a stream is joined with it, and nowhere else."""
    match node:
        case nodes.Scan(stream=stream) | nodes.Late(stream=stream) | nodes.Rejected(stream=stream):
            if stream.static:
                raise QueryError(f"table {stream.name!r} is not a stream", hint=f"read it in a join: .. JOIN {stream.name} ON ..")
            return
        case Join():
            tables = [is_table(side) for side in nodes.children(node)]
            if all(tables):
                raise QueryError("two tables have no stream between them whose rows could meet theirs")
            for side, table, window in zip(nodes.children(node), tables, node.windows, strict=True):
                if table and not isinstance(window, UnboundedWindow):
                    raise QueryError(f"the rows of a table do not leave, so {window} has no meaning", hint="leave the window out")
                if not table:
                    refuse_tables(side)
            return
    for child in nodes.children(node):
        refuse_tables(child)


def is_table(node: nodes.Node) -> bool:
    """Whether the rows are those of a table, one by one."""
    while isinstance(node, nodes.Filter | nodes.Project):
        node = node.input
    return isinstance(node, nodes.Scan) and node.stream.static


def _joins(node: nodes.Node) -> list[Join]:
    own = [node] if isinstance(node, Join) else []
    return [*own, *(join for child in nodes.children(node) for join in _joins(child))]


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
        read = tuple(dict.fromkeys(s for q in self.queries for s in nodes.base_streams(q.node)))
        for number, query in enumerate(self.queries):
            check_apart(query.sink, (q.sink for q in self.queries[:number]), read)
        slack = (nodes.base_streams(q.node) for q in self.queries if q.using is Using.KSLACK)
        together = tuple(dict.fromkeys(tuple(sorted(set(streams), key=lambda s: s.name)) for streams in slack))
        object.__setattr__(self, "queries", tuple(replace(q, node=_told_of(q.node, together)) for q in self.queries))


def _told_of(node: nodes.Node, together: tuple[tuple[Stream, ...], ...]) -> nodes.Node:
    """The plan with every `late(s)` knowing which streams are taken together with s USING KSLACK."""
    match node:
        case nodes.Late(stream=stream):
            return nodes.Late(stream, tuple(streams for streams in together if stream in streams))
        case nodes.Filter() | nodes.Project():
            return nodes.over(node, (_told_of(node.input, together),))
    return node


__all__ = [
    "Answer", "ConsoleSink", "Emit", "FileSink", "Query", "Script", "Sink", "StreamSink", "TableSink", "Using", "has_window",
    "is_table", "last_part", "refuse_tables",
]  # fmt: skip


def named_queries(script: Script, called: Iterable[str]) -> frozenset[str]:
    """The queries that are called so: by their names, or by the last part of the path they write to."""
    names = {last_part(q.name): q.name for q in script.queries} | {q.name: q.name for q in script.queries}
    for name in called:
        if name not in names:
            raise QueryError(unknown("query", name, sorted(names)))
    return frozenset(names[name] for name in called)


def last_part(name: str) -> str:
    """A query as it is called for short: without the folders and the ending of what it writes."""
    return name.rstrip("/").rpartition("/")[2].partition(".")[0]
