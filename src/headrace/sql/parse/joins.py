"""FROM with several streams: `a [..] JOIN b [..] ON ..`, and CQL's `a [..], b [..]`."""

from __future__ import annotations

from collections.abc import Callable

from headrace.sql.parse.expressions import scalar
from headrace.sql.parse.syntax import From, Joined
from headrace.sql.parse.tokens import Cursor

# How a join is written, and which kind it is.
JOINS = {
    ",": "CROSS", "CROSS JOIN": "CROSS", "JOIN": "INNER", "INNER JOIN": "INNER",
    "LEFT JOIN": "LEFT", "LEFT OUTER JOIN": "LEFT", "RIGHT JOIN": "RIGHT", "RIGHT OUTER JOIN": "RIGHT",
    "FULL JOIN": "FULL", "FULL OUTER JOIN": "FULL",
}  # fmt: skip
ABSENT = {
    "NATURAL": "write JOIN .. ON with the columns that must be equal",
    "LEFT SEMI": "there are JOIN, LEFT JOIN, RIGHT JOIN and FULL JOIN",
    "LEFT ANTI": "a LEFT JOIN with WHERE .. IS NULL shows the rows that met none",
    "SEMI JOIN": "there are JOIN, LEFT JOIN, RIGHT JOIN and FULL JOIN",
    "ANTI JOIN": "a LEFT JOIN with WHERE .. IS NULL shows the rows that met none",
    "LATERAL": "there is no LATERAL here",
}
PHRASES = tuple(sorted((p for p in JOINS if p != ","), key=len, reverse=True))
SEVERAL = (
    "give the result of the first a window of its own: FROM (SELECT .. FROM a [..] JOIN b [..] ON ..) [RANGE ..] x JOIN c [..]"
)


def joined(cursor: Cursor, read: Callable[[Cursor], From], clauses: tuple[str, ...]) -> From | Joined:
    """Read a stream, and what is joined to it, if anything is."""
    start, first = cursor.index, read(cursor)
    _refuse(cursor)
    kind = cursor.accept(",", *PHRASES)
    if kind is None:
        return first
    second = read(cursor)
    on = None
    if JOINS[kind] != "CROSS":
        if cursor.at("USING"):
            raise cursor.error("USING is not there yet", hint="write ON with both columns: ON x.k = y.k")
        cursor.expect("ON")
        on = scalar(cursor, "a condition", (*PHRASES, *clauses))
    elif cursor.at("ON"):
        raise cursor.error("a join of all rows with all has no ON", hint="write JOIN .. ON, or use WHERE")
    _refuse(cursor)
    if cursor.at(",", *PHRASES):
        raise cursor.error("a join has two sides", hint=SEVERAL)
    return Joined(first, second, JOINS[kind], on, cursor.since(start))


def at_join(cursor: Cursor) -> bool:
    """Whether a join, or its condition, comes next."""
    return cursor.at(*PHRASES, *ABSENT, "ON", "USING")


def _refuse(cursor: Cursor) -> None:
    for phrase, instead in ABSENT.items():
        if cursor.at(phrase):
            raise cursor.error(f"{phrase} is not there", hint=instead)
