"""The columns that a SELECT or a RETURN gives, from what is written there."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, Project
from headrace.sql.bind.scope import Scope
from headrace.sql.errors import Span
from headrace.sql.parse.syntax import Item, Star


def project(written: Sequence[Item | Star], span: Span, node: Node, scope: Scope, bound: Sequence[tuple[Item, Expr]]) -> Node:
    """The columns of the SELECT; `*` stands for those of the event. No step at all where nothing changes."""
    values = {id(item): value for item, value in bound}
    items: list[tuple[str, Expr]] = []
    for item in written:
        if isinstance(item, Star):
            _add(items, scope.star(item), scope, item.span)
        else:
            at = item.alias.span if item.alias else item.value.span
            _add(items, [(_spelling(item, values[id(item)], node), values[id(item)])], scope, at)
    if all(e.as_column == n for n, e in items) and tuple(n for n, _ in items) == node.schema.names:
        return node
    with scope.text.at(span):
        return Project(node, tuple(items))


def _spelling(item: Item, value: Expr, node: Node) -> str:
    """A plain column is spelt as it was declared."""
    name = value.as_column
    if item.alias is None and name is not None and isinstance(item.value.tree, exp.Column) and item.name.lower() == name.lower():
        return node.schema.field(name).name
    return item.name


def _add(items: list[tuple[str, Expr]], more: list[tuple[str, Expr]], scope: Scope, span: Span) -> None:
    taken = {n.lower() for n, _ in items}
    for name, value in more:
        if name.lower() in taken:
            raise scope.text.error(f"column {name!r} is there twice", span, hint="give one of them another name with AS")
        taken.add(name.lower())
        items.append((name, value))
