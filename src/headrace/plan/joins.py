"""Joins of two streams through windows: what meets what, on which key, and what is kept for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from headrace.errors import QueryError
from headrace.plan.expr import UNKNOWN_TYPE, Expr
from headrace.plan.schema import Schema
from headrace.plan.time import format_duration
from headrace.plan.types import INTEGRAL, base_type, decimal, decimal_parts
from headrace.plan.windows import RangeWindow, RowsWindow, Window

if TYPE_CHECKING:
    from headrace.plan.nodes import Node
    from headrace.plan.stream import Stream

DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
KEY_HINT = "convert one of them with CAST"


class JoinKind(Enum):
    """Which rows that meet no other are shown too."""

    INNER = "INNER JOIN"
    LEFT = "LEFT JOIN"
    RIGHT = "RIGHT JOIN"
    FULL = "FULL JOIN"

    @property
    def preserved(self) -> tuple[bool, bool]:
        """Whether rows of the left and of the right side that meet none are shown."""
        return self in (JoinKind.LEFT, JoinKind.FULL), self in (JoinKind.RIGHT, JoinKind.FULL)


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of rows: every row meets the rows of the other side that stand before it and are in the window of their side.

    `on` are equalities between a left and a right expression; NULL equals nothing. A pair stands where its later row stands. A
    row of a preserved side that has met none gives a row with NULLs at the time at which it leaves its window.
    """

    left: Node
    right: Node
    left_window: Window
    right_window: Window
    kind: JoinKind = JoinKind.INNER
    on: tuple[tuple[Expr, Expr], ...] = ()
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        """Names must exist and be different, keys must compare, windows must end where something waits for that."""
        for left, right in self.on:
            left.check(self.left.schema)
            right.check(self.right.schema)
        for side, (node, window) in enumerate(((self.left, self.left_window), (self.right, self.right_window))):
            self._check_partitions(side, node, window)
        for preserved, window in zip(self.kind.preserved, self.windows, strict=True):
            if preserved and (not window.edges or window.lag):
                raise QueryError(
                    f"{self.kind.value} shows a row that met no other when it leaves its window, and {window} does not say when",
                    hint="give that side [RANGE ..] without LAG, or [NOW]",
                )
        object.__setattr__(self, "schema", Schema(self.left.schema.fields + self.right.schema.fields))
        _ = self.keys  # that can be compared

    @property
    def windows(self) -> tuple[Window, Window]:
        """That of the left side, that of the right side."""
        return self.left_window, self.right_window

    @property
    def keys(self) -> tuple[tuple[Expr, Expr], ...]:
        """The equalities with both sides in one type."""
        out = []
        for left, right in self.on:
            types = left.type_in(self.left.schema), right.type_in(self.right.schema)
            common = common_type(*types)
            if common is None:
                raise QueryError(f"{left} and {right} cannot be compared: {types[0]} and {types[1]}", hint=KEY_HINT)
            out.append((_as(left, types[0], common), _as(right, types[1], common)))
        return tuple(out)

    @property
    def counts(self) -> bool:
        """Whether some window counts the rows of a whole side, so that all of them must meet."""
        return any(w.last_rows is not None for w in self.windows)

    def _check_partitions(self, side: int, node: Node, window: Window) -> None:
        if not window.partition_by:
            return
        own = {pair[side] for pair in self.on}
        for expr in window.partition_by:
            expr.check(node.schema)
        if own != set(window.partition_by):
            keys = ", ".join(sorted(map(str, own)))
            hint = f"PARTITIONED BY {keys} goes with this ON" if own else "add an equality of the two streams to ON"
            message = f"{window} of a join is partitioned by what the streams are joined on, and by nothing else"
            raise QueryError(message, hint=hint)
        for pair, keys_ in zip(self.on, self.keys, strict=True):
            if keys_[side] != pair[side] and base_type(keys_[side].type_in(node.schema)) == "DOUBLE":
                raise QueryError(f"{window} cannot tell its partitions apart once {pair[side]} is a DOUBLE", hint=KEY_HINT)

    def __str__(self) -> str:
        on = " AND ".join(f"{left} = {right}" for left, right in self.on)
        return f"Join {self.left_window} {self.kind.value} {self.right_window}" + (f" ON {on}" if on else "")


def common_type(left: str, right: str) -> str | None:
    """The type in which values of both are compared; None if there is none. What only Spark knows is left to it."""
    if left == right or UNKNOWN_TYPE in (left, right):
        return left if left == right else UNKNOWN_TYPE
    kinds = base_type(left), base_type(right)
    if all(k in INTEGRAL for k in kinds):
        return max(kinds, key=INTEGRAL.index)
    numbers = (*INTEGRAL, "DECIMAL", "FLOAT", "DOUBLE")
    if all(k in numbers for k in kinds):
        return "DOUBLE" if {"FLOAT", "DOUBLE"} & set(kinds) else _common_decimal(left, right)
    if set(kinds) == {"DATE", "TIMESTAMP"}:
        return "TIMESTAMP"
    return "STRING" if all(k in ("STRING", "VARCHAR", "CHAR") for k in kinds) else None


def _common_decimal(left: str, right: str) -> str | None:
    parts = [(DIGITS[t], 0) if t in DIGITS else decimal_parts(t) for t in (left, right)]
    scale = max(s for _, s in parts)
    precision = max(p - s for p, s in parts) + scale
    return decimal(precision, scale) if precision <= 38 else None


def _as(expr: Expr, have: str, want: str) -> Expr:
    return expr if want in (have, UNKNOWN_TYPE) else Expr.of(f"CAST({expr} AS {want})")


def check_bounded(node: Join, left: tuple[Stream, ...], right: tuple[Stream, ...]) -> None:
    """Refuse what would keep rows for ever without saying so."""
    for window, streams in zip(node.windows, (left, right), strict=True):
        for stream in streams:
            if stream.static:
                continue  # it does not grow
            if stream.delay is None and not stream.punctuated:
                raise QueryError(
                    f"stream {stream.name!r} declares no bound on disorder, so the rows of a join with it could never be let go",
                    hint="add DELAY (for example DELAY 10 SECONDS, or DELAY 0 if it is in order) or PUNCTUATED BY "
                    "to CREATE STREAM",
                )
            if stream.keep is not None and not window.edges:
                hint = "give it [RANGE ..], or leave KEEP out"
                raise QueryError(f"KEEP of stream {stream.name!r} does not end what {window} of a join holds", hint=hint)


def join_bound(node: Join, slack: str, all_rows: bool) -> str:
    """In words: how much state a join keeps."""
    if all_rows:
        return "all rows of both streams, because DELAY is UNBOUNDED"
    sides = (_side_bound(window, name) for window, name in zip(node.windows, ("left", "right"), strict=True))
    return f"{'; '.join(sides)}; and rows of {slack}"


def _side_bound(window: Window, side: str) -> str:
    match window:
        case RangeWindow(size=size, lag=lag):
            return f"{side}: rows of {format_duration(size + lag)} at the rate of the stream"
        case RowsWindow(rows=rows, partition_by=by):
            return f"{side}: {rows} rows {'per partition' if by else 'in all'}"
    return f"{side}: all rows, because the window is UNBOUNDED"
