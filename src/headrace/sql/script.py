"""A whole script: statements in their order, bound to one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from headrace.plan import profiles
from headrace.plan.nodes import Node, base_stream, base_streams
from headrace.plan.query import Answer, ConsoleSink, Emit, FileSink, Query, Script, Sink, StreamSink, TableSink, Using
from headrace.plan.schema import Schema
from headrace.plan.sinks import check_apart
from headrace.sql.bind.catalog import Catalog, Fill
from headrace.sql.bind.catalog_statements import answer_describe, answer_show, take_back
from headrace.sql.bind.create import bind_derived, bind_schema, bind_stream, shape_of
from headrace.sql.bind.fill import bind_body, bind_branches, conform, merge_all
from headrace.sql.bind.scope import find_over
from headrace.sql.errors import Span, Text
from headrace.sql.parse import syntax
from headrace.sql.parse.statements import statements

Part = syntax.Select | syntax.Event | syntax.Insert | syntax.Split
Leaving = syntax.Select | syntax.Event | syntax.Insert | syntax.Branch  # what has rows that leave


def parse_script(
    text: str,
    name: str = "script",
    *,
    streams: Mapping[str, Node] | None = None,
    frames: Mapping[str, Schema] | None = None,
    functions: Iterable[str] = (),
    profile: str | None = None,
) -> Script:
    """Read a script.

    `streams` are plans that it may read by name, `frames` DataFrames for SOURCE DATAFRAME(name), `functions` names of the user's
    own functions. `profile` is how queries are executed that do not say so themselves. Every error is a `SqlError` with its
    place.
    """
    source = Text(text, name, frozenset(f.lower() for f in functions))
    settings = profiles.profile(profile).settings if profile else profiles.Settings()
    catalog = Catalog(source, streams=dict(streams or {}), frames=dict(frames or {}), settings=settings)
    binding = _Binding(catalog, statements(source))
    for statement in binding.statements:
        binding.bind(statement)
    # A named stream that others read is theirs; nobody else waits for its rows.
    queries = tuple(q for q in binding.queries if not (isinstance(q.sink, StreamSink) and q.sink.name.lower() in catalog.read))
    read = [stream for q in queries for stream in base_streams(q.node)]
    declared = tuple(s for s in read if s.reads is None)  # one that is read by arrival is the stream it has the rows of
    return Script(queries, tuple(dict.fromkeys((*catalog.base, *declared))), tuple(binding.answers))


class _Binding:
    """Binds statement by statement."""

    def __init__(self, catalog: Catalog, found: Sequence[syntax.Statement]) -> None:
        self.catalog, self.statements = catalog, found
        self.queries: list[Query] = []
        self.answers: list[Answer] = []
        self._bound: set[int] = set()  # declarations, by their place in the script

    def bind(self, statement: syntax.Statement) -> None:
        if isinstance(statement, syntax.CreateSchema | syntax.CreateStream | syntax.CreateEmpty):
            if statement.name.span.start in self._bound:
                return
            self._bound.add(statement.name.span.start)
        place = statement.span if isinstance(statement, Part | syntax.Show) else statement.name.span
        with self.catalog.text.at(place):  # whatever has no place of its own
            self._bind(statement)

    def _bind(self, statement: syntax.Statement) -> None:
        match statement:
            case syntax.CreateSchema():
                bind_schema(statement, self.catalog)
            case syntax.CreateStream():
                bind_stream(statement, self.catalog)
            case syntax.CreateDerived():
                bind_derived(statement, self.catalog)
            case syntax.CreateEmpty():
                self._declare(statement)
            case syntax.Show():
                self.answers.append(answer_show(statement, self.catalog, self.queries))
            case syntax.Describe():
                self.answers.append(answer_describe(statement, self.catalog))
            case syntax.Drop():
                take_back(statement, self.catalog, self.queries)
            case syntax.Select() | syntax.Event() | syntax.Insert():
                self._query(statement, lambda: bind_body(statement, self.catalog))
            case syntax.Split():
                for branch, node in bind_branches(statement, self.catalog):
                    self._query(branch, node)

    def _declare(self, statement: syntax.CreateEmpty) -> None:
        """A stream without a source. Statements that fill it may come later, so it is bound when it is first read."""
        catalog, name = self.catalog, statement.name
        schema = shape_of(statement.columns, catalog)

        def make() -> Node:
            parts = self._into(name.text)
            with catalog.text.at(name.span):
                return merge_all([conform(node, schema, catalog, span) for node, span in parts])

        fills = [s for s in self.statements if name.text.lower() in _targets(s)]
        catalog.add_fill(name, Fill(name.text, schema, list(fills), make))

    def _into(self, name: str) -> list[tuple[Node, Span]]:
        """All that the script puts into a stream, in the order of the statements; each may read what is declared before it."""
        out: list[tuple[Node, Span]] = []
        last = max(i for i, s in enumerate(self.statements) if name.lower() in _targets(s))
        for statement in self.statements[: last + 1]:
            match statement:
                case syntax.CreateSchema() | syntax.CreateStream() | syntax.CreateEmpty():
                    self.bind(statement)
                case syntax.Select() | syntax.Event() | syntax.Insert() if name.lower() in _targets(statement):
                    out.append((bind_body(statement, self.catalog), statement.span))
                case syntax.Split() if name.lower() in _targets(statement):
                    branches = bind_branches(statement, self.catalog)
                    out += [(node, b.span) for b, node in branches if _name_of(b.into) == name.lower()]
        return out

    def _query(self, part: Leaving, given: Node | Callable[[], Node]) -> None:
        catalog, into = self.catalog, part.into
        sink: Sink = into.sink if into else ConsoleSink()
        span = into.span if into else part.span
        filled = isinstance(sink, StreamSink) and sink.name.lower() in catalog.fills
        if isinstance(sink, StreamSink) and filled:
            node = catalog.stream(syntax.Name(sink.name, span), reads=False)
            if any(q.name == sink.name for q in self.queries):
                return
        else:
            node = given() if callable(given) else given
            if isinstance(sink, StreamSink):
                catalog.add_stream(syntax.Name(sink.name, span), node)
        name = _name(sink, self.queries)
        if any(q.name == name for q in self.queries):
            raise catalog.text.error(f"two queries write into {sink}", span, hint="give one of them another INTO")
        with catalog.text.at(span):
            check_apart(sink, (q.sink for q in self.queries), base_streams(node))
        with catalog.text.at(_bound_place(part, node)):
            emit = _emit_of(part)
            level, using = (emit.emit, emit.using) if emit else (Emit.CHANGES, Using.OPTIMISTIC)
            self.queries.append(Query(name, node, level, sink, using))


def _name_of(into: syntax.IntoClause | None) -> str | None:
    return into.sink.name.lower() if into and isinstance(into.sink, StreamSink) else None


def _targets(statement: syntax.Statement) -> set[str]:
    """The streams that a statement puts rows into, in lower case."""
    if not isinstance(statement, Part):
        return set()
    parts = statement.branches if isinstance(statement, syntax.Split) else (statement,)
    return {name for part in parts if (name := _name_of(part.into)) is not None}


def _name(sink: Sink, before: list[Query]) -> str:
    """What identifies the query and its state: its target, or its number."""
    match sink:
        case StreamSink(name=name) | TableSink(name=name):
            return name
        case FileSink(path=path):
            return path
    taken, number = {q.name for q in before}, len(before) + 1
    while f"query{number}" in taken:
        number += 1
    return f"query{number}"


def _emit_of(part: Leaving) -> syntax.EmitClause | None:
    return None if isinstance(part, syntax.Branch) else part.emit


def _bound_place(part: Leaving, node: Node) -> Span:
    """Where to complain about a query whose state has no bound: EMIT if that is the reason, else the window."""
    emit = _emit_of(part)
    if emit and (emit.using is Using.KSLACK or (emit.emit is not Emit.CHANGES and base_stream(node).delay is not None)):
        return emit.span
    if isinstance(part, syntax.Event):
        return part.within_span
    if not isinstance(part, syntax.Select):
        return part.span
    window = part.source.window or part.group_window
    if window:
        return window.span
    over = (i.value.span for i in part.items if isinstance(i, syntax.Item) and find_over(i.value))
    return next(over, part.source.span)
