"""Expressions written as SQL text in Python: read like those of a script, with the same errors."""

from __future__ import annotations

from datetime import timedelta

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.time import parse_duration
from headrace.sql.bind.scope import Scope
from headrace.sql.errors import Span, Text
from headrace.sql.parse.expressions import scalar
from headrace.sql.parse.syntax import Scalar
from headrace.sql.parse.tokens import Cursor, tokenize


def read(sql: str, what: str) -> tuple[Text, Scalar, str | None]:
    """An expression and, if it ends in `AS name`, that name."""
    if not isinstance(sql, str):
        raise QueryError(f"{what} takes SQL text, got {type(sql).__name__}")
    text = Text(sql, what)
    cursor = Cursor(text, tokenize(text), len(sql.rstrip()))
    value = scalar(cursor, "an expression", ("AS",))
    alias = cursor.name("a name after AS").text if cursor.accept("AS") else None
    if not cursor.done:
        raise cursor.expected("the end")
    return text, value, alias


def bind(sql: str, schema: Schema, what: str) -> Expr:
    return named(sql, schema, what)[1]


def condition(sql: str, schema: Schema, what: str) -> Expr:
    text, value, alias = read(sql, what)
    if alias is not None:
        raise text.error("a condition has no name", Span(0, len(sql)))
    return Scope(text, schema).condition(value, what.upper())


def named(sql: str, schema: Schema, what: str) -> tuple[str, Expr]:
    """An expression and its name: the one after AS, that of the column, or the text itself."""
    text, value, alias = read(sql, what)
    bound = Scope(text, schema).bind(value, what)
    column = bound.as_column
    plain = schema.field(column).name if column is not None else " ".join(sql.split())
    return alias or plain, bound


def duration(value: str | int | timedelta, what: str) -> int:
    """Microseconds of '5 minutes', a timedelta, or 0."""
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if value == 0 and not isinstance(value, bool):
        return 0
    if not isinstance(value, str):
        raise QueryError(f"{what} is a duration such as '10 seconds', got {value!r}")
    return parse_duration(value.strip())
