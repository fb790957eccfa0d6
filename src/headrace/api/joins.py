"""Joins in Python: `a.window(..).join(b.window(..), on="key")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.api.texts import bind
from headrace.api.windows import Size, WindowLike, bind_window
from headrace.errors import QueryError, unknown
from headrace.plan.expr import Expr
from headrace.plan.joins import Join, JoinKind
from headrace.plan.nodes import Node, Project
from headrace.plan.windows import RowsWindow, Window

KINDS = {kind.name.lower(): kind for kind in JoinKind}
OTHER = "right_"  # stands before columns of the other stream whose names are taken


def joined(
    left: tuple[Node, WindowLike], right: tuple[Node, WindowLike], on: str | Sequence[str] | Mapping[str, str], how: str
) -> Join:
    kind = KINDS.get(how.lower())
    if kind is None:
        raise QueryError(unknown("kind of join", how, KINDS))
    names = _renamed(left[0], right[0])
    pairs = {on: on} if isinstance(on, str) else dict(on) if hasattr(on, "keys") else {name: name for name in on}
    other = Project(right[0], tuple((names[n], Expr.column(n)) for n in right[0].schema.names))
    mapping = {old.lower(): Expr.column(new) for old, new in names.items()}
    keys = tuple((bind(a, left[0].schema, "on"), _over(bind(b, right[0].schema, "on"), mapping)) for a, b in pairs.items())
    return Join(left[0], other, _window(left, {}), _window(right, mapping), kind, keys)


def _renamed(left: Node, right: Node) -> dict[str, str]:
    taken = {n.lower() for n in left.schema.names}
    return {n: OTHER + n if n.lower() in taken else n for n in right.schema.names}


def _over(expr: Expr, mapping: dict[str, Expr]) -> Expr:
    name = expr.as_column
    return mapping[name.lower()] if name is not None else expr.substitute(mapping)


def _window(side: tuple[Node, WindowLike], mapping: dict[str, Expr]) -> Window:
    node, given = side
    if isinstance(given, Size):
        raise QueryError("a stream is joined by every row, not when its window is looked at", hint="hr.range('5 minutes')")
    window = bind_window(given, node.schema)
    if isinstance(window, RowsWindow) and mapping:
        return RowsWindow(window.rows, tuple(_over(e, mapping) for e in window.partition_by))
    return window
