"""SHOW, DESCRIBE and DROP: what has been declared so far, as a small table, and taking it back."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.plan.nodes import Scan, base_streams
from headrace.plan.query import Answer, Query
from headrace.sql.bind.catalog import Catalog, spelt
from headrace.sql.parse.syntax import Describe, Drop, Name, Show, Statement
from headrace.sql.parse.tokens import Cursor


def show(cursor: Cursor) -> Statement:
    """Read `SHOW STREAMS | SCHEMAS | QUERIES`."""
    start = cursor.index
    cursor.expect("SHOW")
    return Show(cursor.expect("STREAMS", "SCHEMAS", "QUERIES"), cursor.since(start))


def describe(cursor: Cursor) -> Statement:
    """Read `DESCRIBE name`."""
    cursor.expect("DESCRIBE")
    cursor.accept("STREAM", "SCHEMA")
    return Describe(cursor.name("the name of a stream or a schema"))


def drop(cursor: Cursor) -> Statement:
    """Read `DROP STREAM name` or `DROP SCHEMA name`."""
    cursor.expect("DROP")
    kind = cursor.expect("STREAM", "SCHEMA")
    return Drop(kind, cursor.name(f"the name of a {kind.lower()}"))


def answer_show(statement: Show, catalog: Catalog, queries: Sequence[Query]) -> Answer:
    match statement.what:
        case "SCHEMAS":
            return Answer("schemas", ("name", "columns"), tuple((n, str(s)) for n, s in catalog.schemas.items()))
        case "QUERIES":
            rows = tuple((q.name, q.emit.value, str(q.sink), str(q.node)) for q in queries)
            return Answer("queries", ("name", "emit", "into", "plan"), rows)
    known = [(n, str(node.schema), _comes_from(n, catalog)) for n, node in catalog.streams.items()]
    filled = [(f.name, str(f.schema), "INSERT INTO") for f in catalog.fills.values()]
    return Answer("streams", ("name", "columns", "from"), (*known, *filled))


def _comes_from(name: str, catalog: Catalog) -> str:
    node = catalog.streams[name]
    if isinstance(node, Scan):
        return str(node.stream.source)
    return ", ".join(dict.fromkeys(s.name for s in base_streams(node)))


def answer_describe(statement: Describe, catalog: Catalog) -> Answer:
    name = statement.name
    known, fill = spelt(name, catalog.schemas), catalog.fills.get(name.text.lower())
    if known is not None:
        schema = catalog.schemas[known]
    else:
        schema = fill.schema if fill is not None else catalog.stream(name, reads=False).schema
    return Answer(known or name.text, ("column", "type"), tuple((f.name, f.type) for f in schema.fields))


def take_back(statement: Drop, catalog: Catalog, queries: Sequence[Query]) -> None:
    """Forget a declaration. What queries of the script read stays."""
    name = statement.name
    if statement.kind == "SCHEMA":
        catalog.schema(name)  # is there
        del catalog.schemas[str(spelt(name, catalog.schemas))]
        return
    _refuse_read(name, catalog, queries)
    if catalog.fills.pop(name.text.lower(), None) is None:
        catalog.stream(name, reads=False)
        del catalog.streams[str(spelt(name, catalog.streams))]
        catalog.base = [s for s in catalog.base if s.name.lower() != name.text.lower()]


def _refuse_read(name: Name, catalog: Catalog, queries: Sequence[Query]) -> None:
    for query in queries:
        if any(s.name.lower() == name.text.lower() for s in base_streams(query.node)) or query.name.lower() == name.text.lower():
            raise catalog.text.error(f"{name.text!r} cannot go: the query {query.name} needs it", name.span)
