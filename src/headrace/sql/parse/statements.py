"""Statements: split a script at semicolons and read each by its first word."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot.tokenizer_core import Token, TokenType

from headrace.plan.sinks import alternatives
from headrace.sql.bind.catalog_statements import describe, drop, show
from headrace.sql.errors import Span, Text
from headrace.sql.parse.create import create
from headrace.sql.parse.inserts import insert, merge, split
from headrace.sql.parse.select import event, select
from headrace.sql.parse.syntax import Statement
from headrace.sql.parse.tokens import Cursor, parts, span, tokenize

STATEMENTS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": create, "SELECT": select, "EVENT": event, "INSERT": insert, "MERGE": merge, "ON": split,
    "SHOW": show, "DESCRIBE": describe, "DROP": drop,
}  # fmt: skip
NOT_YET = ("WITH",)


def statements(text: Text) -> list[Statement]:
    """Every statement of a script; a script without one is refused."""
    found = [_statement(cursor) for cursor in _split(text, tokenize(text))]
    if not found:
        raise text.error("there is no statement", Span(0, 0), hint="a script has at least one CREATE STREAM and one SELECT")
    return found


def _split(text: Text, tokens: list[Token]) -> Iterator[Cursor]:
    for part in parts(tokens):
        if part[-1].token_type is not TokenType.SEMICOLON:
            yield Cursor(text, part, span(part[-1]).end)
        elif part[:-1]:
            yield Cursor(text, part[:-1], part[-1].start)


def _statement(cursor: Cursor) -> Statement:
    for word, read in STATEMENTS.items():
        if cursor.at(word):
            statement = read(cursor)
            if not cursor.done:
                raise cursor.expected("';' or the end of the script")
            return statement
    for word in NOT_YET:
        if cursor.at(word):
            hint = "there are CREATE, SELECT, EVENT, INSERT INTO, MERGE and ON .. INSERT INTO"
            raise cursor.error(f"{word} is not there yet", hint=hint)
    raise cursor.expected(f"a statement: {alternatives(STATEMENTS)}", near=(*STATEMENTS, *NOT_YET))
