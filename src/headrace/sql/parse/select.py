"""SELECT: items, FROM, WHERE, GROUP BY, HAVING, EMIT, INTO."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from headrace.sql.parse import syntax
from headrace.sql.parse.expressions import scalar, scalars
from headrace.sql.parse.items import items
from headrace.sql.parse.joins import at_join, joined
from headrace.sql.parse.patterns import pattern
from headrace.sql.parse.recognize import at_recognize, recognize
from headrace.sql.parse.sinks import ends, finish
from headrace.sql.parse.tokens import Cursor, is_name, words
from headrace.sql.parse.windows import at_window, window

CLAUSES = ("WHERE", "GROUP BY", "HAVING", "BATCH BY", "WITH", "EMIT", "INTO")
# Clauses of other SQLs, and what to do instead.
ABSENT = {
    "ORDER BY": "a stream has no end to sort; EMIT FINAL IN ORDER gives rows in the order of time",
    "LIMIT": "a stream has no first rows",
    "UNION": "read the streams in queries of their own",
    "QUALIFY": "put the SELECT into FROM (..) and use WHERE",
    "ACTIVATED BY": "ACTIVATED BY is not there yet",
    "WINDOW": "write the window in OVER (..) or in square brackets",
}
CLAUSE_WORDS = ("WHERE", "GROUP", "HAVING", "BATCH", "WITH", "EMIT", "INTO")
RELATIONS = ("ISTREAM", "DSTREAM", "RSTREAM")
BEHIND_COLUMNS = (",", ".", "+", "-", "/", "=", "[")
_JOINING = ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "ON", "USING", "NATURAL")


def select(cursor: Cursor, *, prefix: syntax.IntoClause | None = None, nested: bool = False) -> syntax.Select:
    """Read a SELECT; `prefix` is the target of INSERT INTO, `nested` a sub-select or derived stream, which has no sink."""
    start = cursor.index
    cursor.expect("SELECT")
    if cursor.at("DISTINCT"):
        hint = "UNIQUE BY .. WITHIN .. in CREATE STREAM drops rows that come twice"
        raise cursor.error("SELECT DISTINCT is not there yet", hint=hint)
    relation = _relation_to_stream(cursor)
    columns = items(cursor, CLAUSES)
    cursor.expect("FROM", what="',' or FROM" if not cursor.at(*CLAUSES) else "FROM")
    source = joined(cursor, _one, CLAUSES)
    where = scalar(cursor, "a condition", CLAUSES[1:]) if cursor.accept("WHERE") else None
    group_by, group_window = _group_by(cursor)
    having = scalar(cursor, "a condition", CLAUSES[3:]) if cursor.accept("HAVING") else None
    batch = scalar(cursor, "the batch that a row is of", CLAUSES[4:]) if cursor.accept("BATCH BY") else None
    chosen = settings(cursor)
    emits, target = ends(cursor, prefix, nested=nested)
    _finish(cursor, nested=nested, seen=(where, group_by, having, batch, chosen, emits, target))
    return syntax.Select(
        columns, source, where, group_by, group_window, having, emits, target, cursor.since(start), batch, chosen, relation
    )


def event(cursor: Cursor, *, prefix: syntax.IntoClause | None = None, nested: bool = False) -> syntax.Event:
    """Read an EVENT, which may stand wherever a SELECT may."""
    return pattern(cursor, _relation, prefix, nested=nested)


def _relation_to_stream(cursor: Cursor) -> syntax.Name | None:
    """ISTREAM, DSTREAM or RSTREAM, which is not the name of a column: a column or `*` follows."""
    after = cursor.peek(1)
    if not cursor.at(*RELATIONS) or after is None or after.text in BEHIND_COLUMNS or cursor.at_next("FROM", "AS"):
        return None
    start = cursor.index
    return syntax.Name(cursor.expect(*RELATIONS), cursor.since(start))


def settings(cursor: Cursor) -> tuple[syntax.Setting, ...]:
    """Read `WITH (key = 'value', ..)`."""
    if not cursor.accept("WITH"):
        return ()
    cursor.expect("(")
    found = cursor.several(_setting)
    cursor.expect(")", what="',' or ')'")
    return found


def _setting(cursor: Cursor) -> syntax.Setting:
    key = cursor.name("a setting: profile, model, report, origin or order")
    cursor.expect("=")
    return syntax.Setting(key, cursor.string("its value in quotes"))


def _one(cursor: Cursor) -> syntax.From:
    start = cursor.index
    relation: syntax.FromStream | syntax.Select | syntax.Event | syntax.Recognize = _relation(cursor)
    if at_recognize(cursor):
        relation = recognize(cursor, syntax.From(relation, None, None, cursor.since(start)))
    clause = window(cursor) if cursor.at("[") else None
    alias = _alias(cursor)
    if clause is None and cursor.at("["):
        clause = window(cursor)
    return syntax.From(relation, clause, alias, cursor.since(start))


def _relation(cursor: Cursor) -> syntax.FromStream | syntax.Select | syntax.Event:
    if cursor.accept("("):
        inner = event(cursor, nested=True) if cursor.at("EVENT") else select(cursor, nested=True)
        cursor.expect(")")
        return inner
    name = cursor.name("a stream or a SELECT in brackets")
    if not cursor.at("("):
        return syntax.FromStream(name)
    if name.text.lower() not in ("late", "rejected"):
        raise cursor.text.error(f"there is no {name.text}(..) of a stream", name.span, hint="there are late(s) and rejected(s)")
    cursor.expect("(")
    inner_name = cursor.name("the name of a stream")
    cursor.expect(")")
    return syntax.FromStream(inner_name, name.text.lower())


def _alias(cursor: Cursor) -> syntax.Name | None:
    if cursor.accept("AS"):
        return cursor.name("a name after AS")
    token = cursor.peek()
    plain = token is not None and is_name(token) and token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    if not plain or cursor.at(*CLAUSES, *ABSENT) or at_join(cursor):
        return None
    after = cursor.peek(1)
    if after is not None and after.text not in ("[", ")", ",") and not {*words(after)[:1]} & {*CLAUSE_WORDS, *_JOINING}:
        return None  # more likely a misspelt clause: let the complaint be about that
    return cursor.name("a name")


def _group_by(cursor: Cursor) -> tuple[tuple[syntax.Scalar, ...], syntax.WindowClause | None]:
    if not cursor.accept("GROUP BY"):
        return (), None
    if cursor.at("ALL", "ROLLUP", "CUBE", "GROUPING SETS") and cursor.peek(1) is None:
        raise cursor.expected("columns to group by")
    keys = () if at_window(cursor) else scalars(cursor, "a column to group by", CLAUSES[2:], at_window)
    clause = window(cursor) if cursor.at("[") else None
    if clause is not None and cursor.at("["):
        raise cursor.error("there are two windows", hint="one is enough")
    return keys, clause


def _finish(cursor: Cursor, *, nested: bool, seen: tuple[object, ...]) -> None:
    """Clauses of other SQLs, and the order of our own."""
    for phrase, reason in ABSENT.items():
        if cursor.at(phrase):
            raise cursor.error(f"{phrase} cannot stand here", hint=reason)
    last = max((i for i, s in enumerate(seen) if s), default=-1)
    still = [c for i, c in enumerate(CLAUSES) if i > last or (i >= 5 and not seen[i])]
    finish(cursor, CLAUSES, still, nested=nested, end="the end of the statement")
