"""INSERT INTO, MERGE, and the split of a stream: `ON s INSERT INTO .. SELECT .. WHERE .., INSERT INTO ..`."""

from __future__ import annotations

from dataclasses import replace

from headrace.sql.parse.expressions import scalar
from headrace.sql.parse.items import items
from headrace.sql.parse.patterns import at_event
from headrace.sql.parse.select import event, select
from headrace.sql.parse.sinks import ends, target
from headrace.sql.parse.syntax import Body, Branch, Event, Insert, IntoClause, Merged, Select, Split, Statement
from headrace.sql.parse.tokens import Cursor


def insert(cursor: Cursor) -> Statement:
    """Read `INSERT INTO x [AS] SELECT .. | EVENT .. | MERGE a, b | stream`."""
    start = cursor.index
    clause = _target(cursor)
    cursor.accept("AS")
    if cursor.at("SELECT"):
        return select(cursor, prefix=clause)
    if at_event(cursor):
        return event(cursor, prefix=clause)
    found = body(cursor)
    emits, into = ends(cursor, clause, nested=False)
    if isinstance(found, Select | Event):  # it stood in brackets, and EMIT behind them
        return replace(found, emit=emits, into=into)
    return Insert(found, emits, into, cursor.since(start))


def _target(cursor: Cursor) -> IntoClause:
    start = cursor.index
    cursor.expect("INSERT")
    cursor.expect("INTO")
    return IntoClause(target(cursor), cursor.since(start))


def merge(cursor: Cursor) -> Statement:
    """Read `MERGE a, b, c [EMIT ..] [INTO ..]`."""
    start = cursor.index
    found = merged(cursor)
    emits, into = ends(cursor, None, nested=False)
    return Insert(found, emits, into, cursor.since(start))


def merged(cursor: Cursor) -> Merged:
    """Read `MERGE a, b, c`."""
    start = cursor.index
    cursor.expect("MERGE")
    streams = cursor.several(lambda c: c.name("the name of a stream"))
    if len(streams) < 2:
        raise cursor.expected("',' and another stream")
    return Merged(streams, cursor.since(start))


def body(cursor: Cursor) -> Body:
    """Read what fills a stream, in brackets or not: `SELECT ..`, `EVENT ..`, `MERGE a, b` or the name of a stream."""
    if cursor.accept("("):
        found = body(cursor)
        cursor.expect(")")
        return found
    if cursor.at("SELECT"):
        return select(cursor, nested=True)
    if at_event(cursor):
        return event(cursor, nested=True)
    return merged(cursor) if cursor.at("MERGE") else cursor.name("SELECT, EVENT, MERGE or the name of a stream")


def split(cursor: Cursor) -> Statement:
    """Read a split; a comma between branches may be left out, as the paper does."""
    start = cursor.index
    cursor.expect("ON")
    stream = cursor.name("the name of a stream")
    branches = [_branch(cursor)]
    while cursor.accept(",") or cursor.at("INSERT"):
        branches.append(_branch(cursor))
    return Split(stream, tuple(branches), cursor.since(start))


def _branch(cursor: Cursor) -> Branch:
    start = cursor.index
    clause = _target(cursor)
    cursor.expect("SELECT")
    found = items(cursor, ("WHERE", "INSERT INTO"))
    where = scalar(cursor, "a condition", ("INSERT INTO",)) if cursor.accept("WHERE") else None
    return Branch(clause, found, where, cursor.since(start))
