"""Windows in square brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from headrace.sql.durations import duration, whole_number
from headrace.sql.expressions import scalar, scalars
from headrace.sql.syntax import RangeSpec, RowsSpec, UnboundedSpec, WindowClause
from headrace.sql.tokens import words

if TYPE_CHECKING:
    from headrace.sql.syntax import WindowSpec
    from headrace.sql.tokens import Cursor

KINDS = ("RANGE", "ROWS", "UNBOUNDED")
NOT_YET = ("SIZE", "EVERY", "DELTA", "LANDMARK", "FIXED", "NOW", "SLIDE", "SESSION", "SYSTEM", "ON")
HINT = "there are [RANGE 5 MINUTES], [RANGE 5 MINUTES LAG 1 HOUR], [ROWS 100], [ROWS 100 PARTITIONED BY card] and [UNBOUNDED]"


def at_window(cursor: Cursor) -> bool:
    """Whether a window comes next, where a subscript such as `a[1]` could stand too."""
    bracket, word, after = cursor.peek(), cursor.peek(1), cursor.peek(2)
    if bracket is None or bracket.token_type is not TokenType.L_BRACKET or word is None or after is None:
        return False
    if words(word) in (("UNBOUNDED",), ("NOW",)):
        return after.token_type is TokenType.R_BRACKET or words(after) == ("WHERE",)
    known = (
        bool(words(word)) and words(word)[0] in (*KINDS, *NOT_YET) and after.token_type in (TokenType.STRING, TokenType.INTERVAL)
    )
    return known or (bool(words(word)) and word.text[0].isalpha() and after.text[:1].isdigit())


def window(cursor: Cursor) -> WindowClause:
    """Read `[RANGE ..]`, `[ROWS ..]` or `[UNBOUNDED]`, with the predicate that applies before it."""
    start = cursor.index
    cursor.expect("[")
    spec = _spec(cursor)
    _refuse_not_yet(cursor)
    predicate = scalar(cursor, "a condition") if cursor.accept("WHERE") else None
    cursor.expect("]", what=_after(spec), near=("LAG", "WHERE", "PARTITIONED BY", *NOT_YET))
    return WindowClause(spec, predicate, cursor.since(start))


def _spec(cursor: Cursor) -> WindowSpec:
    _refuse_not_yet(cursor)
    match cursor.accept(*KINDS):
        case "RANGE":
            size = duration(cursor, "the length of the window")
            return RangeSpec(size, duration(cursor, "how far the window lags") if cursor.accept("LAG") else 0)
        case "ROWS":
            rows = whole_number(cursor, "a number of rows")
            by = scalars(cursor, "a column", ("WHERE",)) if cursor.accept("PARTITIONED BY", "PARTITION BY") else ()
            return RowsSpec(rows, by)
        case "UNBOUNDED":
            return UnboundedSpec()
    raise cursor.expected("RANGE, ROWS or UNBOUNDED", near=(*KINDS, *NOT_YET), hint=HINT)


def _after(spec: WindowSpec) -> str:
    match spec:
        case RangeSpec(lag=0):
            return "LAG, WHERE or ']'"
        case RowsSpec(partition_by=()):
            return "PARTITIONED BY, WHERE or ']'"
    return "WHERE or ']'"


def _refuse_not_yet(cursor: Cursor) -> None:
    for word in NOT_YET:
        if cursor.at(word):
            raise cursor.error(f"{word} in a window is not there yet", hint=HINT)
