"""CREATE SCHEMA and CREATE STREAM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token

from headrace.plan.stream import Bound, FileSource, Source
from headrace.plan.time import UNITS
from headrace.sql.errors import Span
from headrace.sql.parse import syntax
from headrace.sql.parse.durations import duration
from headrace.sql.parse.expressions import ends_operand, parse_scalar, read_type, scalar, scalars, tokens_of_expression
from headrace.sql.parse.inserts import body
from headrace.sql.parse.sources import source
from headrace.sql.parse.tokens import Cursor, is_name, words

CLAUSES = ("SOURCE", "TIMESTAMP BY", "DELAY", "PUNCTUATED BY", "IDLE", "AHEAD", "END AFTER", "KEEP", "UNIQUE BY")
TIMESTAMP_UNITS = {w: UNITS[u] for u in ("millisecond", "second", "microsecond") for w in (u.upper(), u.upper() + "S")}
DURATIONS = {"IDLE": "idle", "AHEAD": "ahead", "END AFTER": "end_after", "KEEP": "keep"}


@dataclass(frozen=True, slots=True)
class NamedColumns(syntax.Columns):
    """The columns of a schema in the place of written ones: `CREATE SCHEMA a b EXTENDS parent`."""

    schema: syntax.Name = field(kw_only=True)


def create(cursor: Cursor) -> syntax.Statement:
    cursor.expect("CREATE")
    what = cursor.expect("SCHEMA", "STREAM", "TABLE")
    if what == "SCHEMA":
        name = cursor.name("the name of the schema")
        return syntax.CreateSchema(name, _schema(cursor))
    if what == "TABLE":
        return _table(cursor)
    return _stream(cursor)


def _schema(cursor: Cursor) -> syntax.Columns:
    """Read `b` or `(a INT, ..)`, each with EXTENDS."""
    token = cursor.peek()
    if token is None or not (cursor.at("(", "EXTENDS") or is_name(token)):
        raise cursor.expected("'(', EXTENDS or the name of a schema", near=("EXTENDS",))
    found = columns(cursor) if cursor.at("(", "EXTENDS") else _named(cursor)
    if found.parent is None and not cursor.done:
        raise cursor.expected("EXTENDS or the end of the statement", near=("EXTENDS",))
    return found


def _named(cursor: Cursor) -> NamedColumns:
    """Read the name of a schema with EXTENDS after it."""
    name = cursor.name("the name of a schema")
    return NamedColumns((), _parent(cursor) if cursor.accept("EXTENDS") else None, schema=name)


def _parent(cursor: Cursor) -> syntax.Name:
    return cursor.name("the schema that is extended")


def columns(cursor: Cursor) -> syntax.Columns:
    """Read `(a INT, ..)` with EXTENDS before or after it."""
    parent = _parent(cursor) if cursor.accept("EXTENDS") else None
    cursor.expect("(", what="'(' and columns" if parent else "'(' or EXTENDS")
    found = cursor.several(_column)
    cursor.expect(")", what="',' or ')'")
    if parent is None and cursor.accept("EXTENDS"):
        parent = _parent(cursor)
    return syntax.Columns(found, parent)


def _column(cursor: Cursor) -> syntax.Column:
    name = cursor.name("the name of a column")
    return syntax.Column(name, read_type(cursor))


def _stream(cursor: Cursor) -> syntax.Statement:
    name = cursor.name("the name of the stream")
    if cursor.accept("AS"):
        return syntax.CreateDerived(name, _derived(cursor))
    shape = _shape(cursor)
    if shape is not None and cursor.accept("AS"):
        return syntax.CreateDerived(name, _derived(cursor), shape)
    if shape is not None and cursor.done:
        return syntax.CreateEmpty(name, shape)
    found, where, timing = _clauses(cursor)
    if not cursor.done:
        raise cursor.expected("one of " + ", ".join(CLAUSES) + " or the end of the statement", near=CLAUSES)
    if found is None or where is None:
        hint = "a stream without a source is filled by INSERT INTO, and has no clauses of its own"
        raise cursor.expected("SOURCE FILE(..), HOST(..) or GENERATE(..), or AS SELECT ..", hint=hint)
    return syntax.CreateStream(name, shape, found, where, timing)


def _table(cursor: Cursor) -> syntax.Statement:
    """Read a table: columns and a source, and nothing about time."""
    name = cursor.name("the name of the table")
    shape = _shape(cursor)
    if shape is None:
        raise cursor.expected("'(' and columns, or the name of a schema")
    if not cursor.at("SOURCE"):
        raise cursor.expected("SOURCE FILE(..)", near=("SOURCE",))
    cursor.expect("SOURCE")
    found, where = source(cursor)
    if not isinstance(found, FileSource):
        raise cursor.text.error("a table is read from FILE(..), whole, before anything else", where)
    if cursor.at(*CLAUSES):
        raise cursor.error("a table has no time and no order", hint="CREATE STREAM has clauses about them")
    if not cursor.done:
        raise cursor.expected("the end of the statement")
    return syntax.CreateStream(name, shape, found, where, syntax.Timing(), table=True)


def _derived(cursor: Cursor) -> syntax.Body:
    """What stands after AS, in brackets or not: a stream, a SELECT or a MERGE."""
    if not cursor.accept("("):
        return body(cursor)
    found = _derived(cursor)
    cursor.expect(")")
    return found


def _shape(cursor: Cursor) -> syntax.Columns | syntax.Name | None:
    """Columns, the name of a schema, or nothing where the source knows its columns."""
    if cursor.at("(", "EXTENDS"):
        return columns(cursor)
    token = cursor.peek()
    if token is None or not is_name(token) or cursor.at(*CLAUSES):
        return None
    found = _named(cursor)
    return found if found.parent else found.schema


def _clauses(cursor: Cursor) -> tuple[Source | None, Span | None, syntax.Timing]:
    """The clauses, in any order, each once."""
    found: tuple[Source, Span] | None = None
    values: dict[str, object] = {}
    seen: set[str] = set()
    while (here := next((c for c in CLAUSES if cursor.at(c)), None)) is not None:
        if here in seen:
            raise cursor.error(f"{here} is there twice")
        seen.add(here)
        cursor.expect(here)
        match here:
            case "SOURCE":
                found = source(cursor)
            case "TIMESTAMP BY":
                values["timestamp"], values["timestamp_unit"] = _timestamp(cursor)
            case "DELAY":
                unbounded = cursor.accept("UNBOUNDED") is not None
                values["delay"] = Bound.UNBOUNDED if unbounded else duration(cursor, "a duration, 0 or UNBOUNDED", bare_zero=True)
            case "PUNCTUATED BY":
                what = "the column or expression that is not NULL in a row of punctuation"
                values["punctuation"] = scalar(cursor, what, CLAUSES)
            case "UNIQUE BY":
                values["unique_by"] = scalars(cursor, "a column", ("WITHIN", *CLAUSES))
                cursor.expect("WITHIN", what="WITHIN and a duration")
                values["unique_within"] = duration(cursor, "a duration")
            case _:
                values[DURATIONS[here]] = duration(cursor, "a duration")
    return (*(found or (None, None)), syntax.Timing(**values))  # type: ignore[arg-type]


def _timestamp(cursor: Cursor) -> tuple[syntax.Scalar, int | None]:
    """An expression, and the unit of it if it is an integer."""
    taken = tokens_of_expression(cursor, CLAUSES)
    if not taken:
        raise cursor.expected("the column or expression that holds the time of an event")
    unit = TIMESTAMP_UNITS.get(" ".join(words(taken[-1])))
    if unit is not None and len(taken) > 1 and ends_operand(taken[-2]) and not _in_interval(taken):
        return parse_scalar(cursor.text, taken[:-1], "an expression", CLAUSES), unit
    near = ("SECONDS", "MILLISECONDS", "MICROSECONDS", *CLAUSES)
    return parse_scalar(cursor.text, taken, "an expression", near), None


def _in_interval(taken: Sequence[Token]) -> bool:
    """Whether the unit at the end belongs to an INTERVAL: `.. + INTERVAL 5 SECONDS`, `INTERVAL 1 MINUTE 30 SECONDS`."""
    at = len(taken) - 2
    while at > 0 and words(taken[at - 1]) and words(taken[at - 1])[0].rstrip("S").lower() in UNITS:
        at -= 2
    return at > 0 and words(taken[at - 1]) == ("INTERVAL",)
