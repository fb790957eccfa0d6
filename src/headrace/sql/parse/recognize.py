"""MATCH_RECOGNIZE of the SQL standard, as far as it is a pattern of ours; what is not is refused at its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from headrace.sql.parse.durations import duration, whole_number
from headrace.sql.parse.expressions import scalar, scalars
from headrace.sql.parse.items import items
from headrace.sql.parse.patterns import WITHIN_HINT
from headrace.sql.parse.syntax import From, Item, Name, Recognize, Scalar, Star, Symbol
from headrace.sql.parse.tokens import Cursor, is_name

CLAUSES = ("ORDER BY", "MEASURES", "ONE ROW PER MATCH", "AFTER MATCH", "PATTERN", "WITHIN", "DEFINE")
NAVIGATION = frozenset({"prev", "next", "classifier", "match_number"})  # known here, so that what is refused has a reason
MOST = 20  # places that {n} may stand for
SKIP_HINT = "write AFTER MATCH SKIP TO NEXT ROW: then every row can begin a match"
ABSENT = {
    "ALL ROWS PER MATCH": ("there is one row per match", "write ONE ROW PER MATCH, or nothing"),
    "SUBSET": ("SUBSET is not there", "name the symbols in DEFINE and MEASURES"),
}


def at_recognize(cursor: Cursor) -> bool:
    """Whether MATCH_RECOGNIZE and its bracket come next."""
    return cursor.at("MATCH_RECOGNIZE (")


def recognize(cursor: Cursor, source: From) -> Recognize:
    """Read `MATCH_RECOGNIZE (..)` behind what it reads."""
    start = cursor.index
    cursor.expect("MATCH_RECOGNIZE")
    cursor.expect("(")
    by = scalars(cursor, "a column", CLAUSES) if cursor.accept("PARTITION BY") else ()
    cursor.expect("ORDER BY", what="ORDER BY and the time of the stream" if by else "PARTITION BY or ORDER BY")
    order = scalar(cursor, "the time of the stream", ("ASC", "DESC", *CLAUSES[1:]))
    _ascending(cursor)
    with _navigating(cursor):
        measures = _measures(cursor)
    _refuse(cursor)
    cursor.accept("ONE ROW PER MATCH")
    _after_match(cursor)
    symbols = _pattern(cursor)
    at = cursor.index
    if not cursor.accept("WITHIN"):
        raise cursor.expected("WITHIN", near=("WITHIN",), hint=WITHIN_HINT)
    within = duration(cursor, "how far apart the first and the last row may be")
    within_span = cursor.since(at)
    _refuse(cursor)
    with _navigating(cursor):
        cursor.expect("DEFINE", near=("DEFINE", "SUBSET"))
        defines = cursor.several(_define)
    cursor.expect(")", what="',' or ')'")
    return Recognize(source, by, order, measures, symbols, within, within_span, defines, cursor.since(start))


@contextmanager
def _navigating(cursor: Cursor) -> Iterator[None]:
    """PREV and its like are functions here, and nowhere else."""
    text = cursor.text
    cursor.text = replace(text, functions=text.functions | NAVIGATION)
    try:
        yield
    finally:
        cursor.text = text


def _refuse(cursor: Cursor) -> None:
    for phrase, (message, hint) in ABSENT.items():
        if cursor.at(phrase):
            raise cursor.error(message, hint=hint)


def _ascending(cursor: Cursor) -> None:
    cursor.accept("ASC")
    if cursor.at("DESC"):
        raise cursor.error("rows are matched in the order of time, not against it", hint="leave DESC out")
    if cursor.at(","):
        raise cursor.error("rows are in the order of time, and of one time in that of their positions", hint="leave the rest out")


def _measures(cursor: Cursor) -> tuple[Item | Star, ...]:
    if not cursor.accept("MEASURES"):
        return ()
    if cursor.at("FINAL", "RUNNING") and not cursor.at_next(".", ",", "AS", *CLAUSES):
        raise cursor.error("FINAL and RUNNING are not there", hint="leave it out: a match is looked at when it is complete")
    return items(cursor, CLAUSES[2:] + tuple(ABSENT), ("AFTER MATCH", "PATTERN"))


def _after_match(cursor: Cursor) -> None:
    """SKIP PAST LAST ROW, the standard's default, has no counterpart: silence would mean something else here."""
    if not cursor.at("AFTER MATCH"):
        message = "MATCH_RECOGNIZE without AFTER MATCH skips past the last row of a match, which is not there"
        raise cursor.error(message, hint=SKIP_HINT)
    cursor.expect("AFTER MATCH")
    if cursor.at("SKIP PAST LAST ROW", "SKIP TO") and not cursor.at("SKIP TO NEXT ROW"):
        raise cursor.error("matches may overlap here: no row is skipped because another match has it", hint=SKIP_HINT)
    cursor.expect("SKIP TO NEXT ROW")


# PATTERN (..)


def _pattern(cursor: Cursor) -> tuple[Symbol, ...]:
    cursor.expect("PATTERN")
    cursor.expect("(", what="'(' and the symbols of the pattern")
    found = [_symbol(cursor)]
    while not cursor.at(")"):
        found.append(_symbol(cursor))
    cursor.expect(")")
    return tuple(found)


def _symbol(cursor: Cursor) -> Symbol:
    """Read `A`, `A+`, `A{3}` or `A*?`."""
    token = cursor.peek()
    if token is None or not is_name(token) or cursor.at("PERMUTE"):
        raise _no_symbol(cursor)
    start = cursor.index
    name = cursor.name("a symbol")
    times, repeated, skipped = 1, False, False
    if cursor.accept("+"):
        repeated = True
    elif cursor.at("{") and not cursor.at("{ -"):
        times = _times(cursor)
    elif cursor.at("* ?"):
        skipped = cursor.accept("* ?") is not None
    elif cursor.at("*", "?"):
        what = "may be absent"
        hint = f"{name.text}+ is there at least once; {name.text}*? between two symbols, without a DEFINE, is any rows in between"
        raise cursor.error(f"a symbol that {what} is not there", hint=hint)
    if cursor.at("?"):
        raise cursor.error("as few rows as can be are taken only by *? of a symbol without a DEFINE", hint=f"write {name.text}+")
    return Symbol(name, times, repeated, skipped, cursor.since(start))


def _times(cursor: Cursor) -> int:
    start = cursor.index
    cursor.expect("{")
    token = cursor.peek()
    plain = token is not None and token.token_type is TokenType.NUMBER and not cursor.at_next(",")
    if not plain:
        raise cursor.error("a symbol has one number of rows", hint="for example A{3}; A+ is at least one")
    times = whole_number(cursor, "a number of rows")
    cursor.expect("}")
    if not 1 <= times <= MOST:
        raise cursor.text.error(f"a symbol stands for 1 to {MOST} rows", cursor.since(start))
    return times


def _no_symbol(cursor: Cursor) -> Exception:
    if cursor.at("|"):
        return cursor.error("a pattern has no alternatives", hint="write a query for each, and MERGE their results")
    if cursor.at("PERMUTE"):
        return cursor.error("a pattern has one order: PERMUTE is not there", hint="write a query for each order")
    if cursor.at("{ -"):
        hint = "MEASURES says what is shown"
        return cursor.error("all rows of a match are matched for a reason: {- -} is not there", hint=hint)
    if cursor.at("("):
        return cursor.error("symbols are not grouped", hint="write them one after the other: A B+ C")
    if cursor.at("^", "$"):
        return cursor.error("a stream has no first and no last row that a pattern could hold on to")
    return cursor.expected("a symbol or ')'")


def _define(cursor: Cursor) -> tuple[Name, Scalar]:
    name = cursor.name("a symbol")
    cursor.expect("AS")
    return name, scalar(cursor, "a condition")
