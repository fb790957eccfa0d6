"""EMIT and INTO: what leaves, when, and where to."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.plan.query import ConsoleSink, Emit, FileSink, Sink, StreamSink, TableSink, Using
from headrace.plan.sinks import FORMATS, alternatives
from headrace.sql.parse.syntax import EmitClause, IntoClause
from headrace.sql.parse.tokens import Cursor

LEVELS = {level.value: level for level in sorted(Emit, key=lambda e: -len(e.value))}  # the longest that fits is meant


def emit(cursor: Cursor) -> EmitClause:
    """Read `EMIT CHANGES | FINAL | FINAL IN ORDER [USING OPTIMISTIC | KSLACK]`."""
    start = cursor.index
    cursor.expect("EMIT")
    if cursor.at("ADAPTIVE"):
        raise cursor.error("EMIT ADAPTIVE is not there yet", hint="use CHANGES, FINAL or FINAL IN ORDER")
    level = LEVELS[cursor.expect(*LEVELS, what="CHANGES, FINAL or FINAL IN ORDER")]
    if cursor.at("IN"):
        cursor.index += 1
        raise cursor.expected("ORDER after IN")
    using = _using(cursor, level) if cursor.at("USING") else Using.OPTIMISTIC
    return EmitClause(level, cursor.since(start), using)


def _using(cursor: Cursor, level: Emit) -> Using:
    if level is not Emit.FINAL_IN_ORDER:
        raise cursor.error("USING chooses how rows are put in order, and belongs to EMIT FINAL IN ORDER")
    cursor.expect("USING")
    if cursor.at("BUFFERED"):
        raise cursor.error("USING BUFFERED is not there yet", hint="leave it out, or write USING OPTIMISTIC")
    return Using(cursor.expect(*(way.value for way in Using)))


def into(cursor: Cursor) -> IntoClause:
    """Read `INTO name | FILE('path', 'format') | TABLE name | CONSOLE`."""
    start = cursor.index
    cursor.expect("INTO")
    return IntoClause(target(cursor), cursor.since(start))


def target(cursor: Cursor) -> Sink:
    """Read what stands after INTO."""
    if cursor.at("FILE"):
        after = cursor.peek(1)
        if after is not None and after.text == "(":
            return _file(cursor)
    if cursor.accept("CONSOLE"):
        return ConsoleSink()
    if cursor.accept("TABLE"):
        return TableSink(dotted(cursor, "the name of a table"))
    name = cursor.name("the name of a stream, FILE('path'), TABLE name or CONSOLE")
    if cursor.at("(") and not cursor.at("( SELECT", "( MERGE", "( EVENT", "( ("):  # what fills it may stand in brackets
        hint = "there are a name, FILE('path'), TABLE name and CONSOLE"
        raise cursor.error(f"{name.text}(..) is no place to write to", hint=hint)
    return StreamSink(name.text)


def dotted(cursor: Cursor, what: str) -> str:
    """Read a name with its catalog and database, if given."""
    parts = [cursor.name(what).text]
    while cursor.accept("."):
        parts.append(cursor.name(what).text)
    return ".".join(parts)


def _file(cursor: Cursor) -> FileSink:
    cursor.expect("FILE")
    cursor.expect("(")
    path = cursor.string("a path in quotes")
    kind, span = None, path.span
    if cursor.accept(","):
        written = cursor.string(f"a format in quotes: {alternatives(map(repr, FORMATS))}")
        kind, span = written.text.lower(), written.span
    with cursor.text.at(span):
        sink = FileSink.of(path.text, kind)
    cursor.expect(")")
    return sink


def finish(cursor: Cursor, clauses: Sequence[str], still: Sequence[str], *, nested: bool, end: str, first: str = "") -> None:
    """Nothing may follow but the end, or the bracket of a sub-select; `still` are the clauses that could."""
    if cursor.done or (nested and cursor.at(")")):
        return
    misplaced = next((c for c in clauses if cursor.at(c)), None)
    if misplaced:
        raise cursor.error(f"{misplaced} is out of order", hint=f"the order is {first}{', '.join(clauses)}")
    raise cursor.expected(alternatives([*still, end]), near=still)


def ends(cursor: Cursor, prefix: IntoClause | None, *, nested: bool) -> tuple[EmitClause | None, IntoClause | None]:
    """EMIT and INTO, in any order, each once."""
    emits: EmitClause | None = None
    target = prefix
    while cursor.at("EMIT", "INTO"):
        if nested:
            hint = "put them at the end of the outer SELECT"
            raise cursor.error("EMIT and INTO belong to the query that has a sink", hint=hint)
        if cursor.at("EMIT"):
            if emits is not None:
                raise cursor.error("EMIT is there twice")
            emits = emit(cursor)
        elif target is not None:
            raise cursor.error("INTO is there twice" if prefix is None else "INSERT INTO has named the target already")
        else:
            target = into(cursor)
    return emits, target
