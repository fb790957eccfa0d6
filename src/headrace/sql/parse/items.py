"""The columns of a SELECT or a RETURN: expressions with their names, and stars."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headrace.sql.parse.expressions import ends_operand, parse_scalar, tokens_of_expression
from headrace.sql.parse.syntax import Item, Name, Scalar, Star
from headrace.sql.parse.tokens import Cursor, is_name, span, words

UNIT_BEFORE = (TokenType.NUMBER, TokenType.STRING)


def items(cursor: Cursor, stops: tuple[str, ...], then: tuple[str, ...] = ("FROM",)) -> tuple[Item | Star, ...]:
    """Read the columns of a SELECT, up to one of these words; `then` is what may follow them."""
    found = [_item(cursor, stops, then)]
    while cursor.at(",") and not cursor.at_next("INSERT INTO", "INSERT"):  # of a split: the next branch
        cursor.expect(",")
        found.append(_item(cursor, stops, then))
    return tuple(found)


def _item(cursor: Cursor, stops: tuple[str, ...], then: tuple[str, ...]) -> Item | Star:
    star = _star(cursor)
    if star is not None:
        return star
    taken = tokens_of_expression(cursor, ("AS", *stops))
    if not taken:
        raise cursor.expected("a column or expression")
    alias = cursor.name("a name after AS") if cursor.accept("AS") else None
    if alias is None and _ends_in_alias(taken):
        alias, taken = Name(taken[-1].text, span(taken[-1])), taken[:-1]
    value = parse_scalar(cursor.text, taken, "a column or expression", ("','", "AS", *then))
    return Item(value, alias, alias.text if alias else _written_name(cursor, value))


def _ends_in_alias(taken: Sequence[Token]) -> bool:
    """`amount a`: a name right after a complete operand, which is not the unit of an INTERVAL."""
    if len(taken) < 2 or not is_name(taken[-1]) or taken[-1].token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
        return False
    if taken[-2].token_type in UNIT_BEFORE and any(words(t) == ("INTERVAL",) for t in taken[-7:-2]):
        return False
    return ends_operand(taken[-2]) and words(taken[-2]) not in (("IGNORE",), ("RESPECT",))


def _written_name(cursor: Cursor, value: Scalar) -> str:
    """A column keeps its name; any other expression is called what is written there."""
    if isinstance(value.tree, exp.Column | exp.Dot):
        return value.tree.name
    return " ".join(cursor.text.slice(value.span).split())


def _star(cursor: Cursor) -> Star | None:
    start = cursor.index
    first, dot, last = cursor.peek(), cursor.peek(1), cursor.peek(2)
    qualifier = None
    if first and dot and last and is_name(first) and dot.text == "." and last.token_type is TokenType.STAR:
        qualifier = Name(first.text, span(first))
        cursor.index += 2
    if not cursor.at("*"):
        return None
    cursor.index += 1
    if cursor.at("EXCEPT"):
        raise cursor.error("EXCEPT is not there yet", hint="list the columns")
    return Star(qualifier, cursor.since(start))
