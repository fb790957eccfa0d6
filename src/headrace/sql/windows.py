"""Windows in square brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from headrace.sql.durations import duration, whole_number
from headrace.sql.expressions import scalar, scalars
from headrace.sql.syntax import RangeSpec, RowsSpec, SizeSpec, UnboundedSpec, WindowClause
from headrace.sql.tokens import words

if TYPE_CHECKING:
    from headrace.sql.syntax import Scalar, WindowSpec
    from headrace.sql.tokens import Cursor

KINDS = ("RANGE", "ROWS", "UNBOUNDED", "SIZE", "NOW")
NOT_YET = ("DELTA", "LANDMARK", "FIXED", "SESSION", "SYSTEM", "ON")
CLAUSES = ("LAG", "SLIDE", "EVERY", "WHERE", "PARTITIONED BY")
HINT = "there are [RANGE 5 MINUTES], [ROWS 100], [UNBOUNDED] and [SIZE 1 HOUR EVERY 5 MINUTES]; see docs/language.md"


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
    """Read `[RANGE ..]`, `[ROWS ..]`, `[UNBOUNDED]` or `[SIZE ..]`, with the predicate that applies before it."""
    start = cursor.index
    cursor.expect("[")
    spec = _spec(cursor)
    _refuse_not_yet(cursor)
    predicate = scalar(cursor, "a condition") if cursor.accept("WHERE") else None
    cursor.expect("]", what=_after(spec), near=(*CLAUSES, *NOT_YET))
    return WindowClause(spec, predicate, cursor.since(start))


def _spec(cursor: Cursor) -> WindowSpec:
    _refuse_not_yet(cursor)
    match cursor.accept(*KINDS):
        case "RANGE":
            size = duration(cursor, "the length of the window")
            lag = duration(cursor, "how far the window lags") if cursor.accept("LAG") else 0
            if cursor.accept("SLIDE"):
                return SizeSpec(size, duration(cursor, "how often to look at the window"), lag, _partitions(cursor))
            return RangeSpec(size, lag)
        case "ROWS":
            rows = whole_number(cursor, "a number of rows")
            return RowsSpec(rows, _partitions(cursor))
        case "UNBOUNDED":
            return UnboundedSpec()
        case "NOW":
            return RangeSpec(1)  # the rows of the same microsecond
        case "SIZE":
            size = duration(cursor, "the length of the window")
            every = duration(cursor, "how often to look at the window") if cursor.accept("EVERY") else size
            return SizeSpec(size, every, 0, _partitions(cursor))
    raise cursor.expected("RANGE, ROWS, UNBOUNDED, NOW or SIZE", near=(*KINDS, *NOT_YET), hint=HINT)


def _partitions(cursor: Cursor) -> tuple[Scalar, ...]:
    return scalars(cursor, "a column", ("WHERE",)) if cursor.accept("PARTITIONED BY", "PARTITION BY") else ()


def _after(spec: WindowSpec) -> str:
    match spec:
        case RangeSpec(size=1):
            return "WHERE or ']'"
        case RangeSpec(lag=0):
            return "LAG, SLIDE, WHERE or ']'"
        case RangeSpec():
            return "SLIDE, WHERE or ']'"
        case SizeSpec(partition_by=()) if spec.every == spec.size:
            return "EVERY, PARTITIONED BY, WHERE or ']'"
        case RowsSpec(partition_by=()) | SizeSpec(partition_by=()):
            return "PARTITIONED BY, WHERE or ']'"
    return "WHERE or ']'"


def _refuse_not_yet(cursor: Cursor) -> None:
    for word in NOT_YET:
        if cursor.at(word):
            raise cursor.error(f"{word} in a window is not there yet", hint=HINT)
