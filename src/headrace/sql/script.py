"""A whole script: statements in their order, bound to one plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.plan.nodes import base_stream
from headrace.plan.query import ConsoleSink, Emit, FileSink, Query, Script, StreamSink, TableSink
from headrace.sql.bind_create import bind_derived, bind_schema, bind_stream
from headrace.sql.bind_select import bind_select
from headrace.sql.catalog import Catalog
from headrace.sql.errors import Text
from headrace.sql.scope import find_over
from headrace.sql.statements import statements
from headrace.sql.syntax import CreateDerived, CreateSchema, CreateStream, Item, Name, Select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headrace.plan.nodes import Node
    from headrace.plan.query import Sink
    from headrace.plan.schema import Schema
    from headrace.sql.errors import Span


def parse_script(
    text: str,
    name: str = "script",
    *,
    streams: Mapping[str, Node] | None = None,
    frames: Mapping[str, Schema] | None = None,
    functions: Iterable[str] = (),
) -> Script:
    """Read a script.

    `streams` are plans that it may read by name, `frames` DataFrames for SOURCE DATAFRAME(name), `functions` names of the user's
    own functions. Every error is a `SqlError` with its place.
    """
    source = Text(text, name, frozenset(f.lower() for f in functions))
    catalog = Catalog(source, streams=dict(streams or {}), frames=dict(frames or {}))
    queries: list[Query] = []
    for statement in statements(source):
        place = statement.span if isinstance(statement, Select) else statement.name.span
        with source.at(place):  # whatever has no place of its own
            match statement:
                case CreateSchema():
                    bind_schema(statement, catalog)
                case CreateStream():
                    bind_stream(statement, catalog)
                case CreateDerived():
                    bind_derived(statement, catalog)
                case Select():
                    queries.append(_query(statement, catalog, queries))
    read = [base_stream(q.node) for q in queries]
    return Script(tuple(queries), tuple(dict.fromkeys((*catalog.base, *read))))


def _query(select: Select, catalog: Catalog, before: list[Query]) -> Query:
    node = bind_select(select, catalog)
    sink = select.into.sink if select.into else ConsoleSink()
    span = select.into.span if select.into else select.span
    if isinstance(sink, StreamSink):
        catalog.add_stream(Name(sink.name, span), node)
    name = _name(sink, before)
    if any(q.name == name for q in before):
        raise catalog.text.error(f"two queries write into {sink}", span, hint="give one of them another INTO")
    with catalog.text.at(_bound_place(select, node)):
        return Query(name, node, select.emit.emit if select.emit else Emit.CHANGES, sink)


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


def _bound_place(select: Select, node: Node) -> Span:
    """Where to complain about a query whose state has no bound: EMIT if that is the reason, else the window."""
    if select.emit and select.emit.emit is not Emit.CHANGES and base_stream(node).delay is not None:
        return select.emit.span
    window = select.source.window or select.group_window
    if window:
        return window.span
    over = (i.value.span for i in select.items if isinstance(i, Item) and find_over(i.value))
    return next(over, select.source.span)
