"""Aggregate calls: taken out of expressions, each once, and replaced by the column that will hold the result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from headrace.plan.aggregates import FUNCTIONS, Aggregate, Function, function, result_type
from headrace.plan.expr import Expr
from headrace.sql.bind.scope import Scope, aggregate_name, extent, place, placed
from headrace.sql.errors import Span
from headrace.sql.parse.over import frame
from headrace.sql.parse.syntax import Scalar


@dataclass(frozen=True, slots=True)
class Group:
    """A window and the keys that it is looked at by: what one WindowAggregate computes."""

    window: Any  # one that events look at, or that something else lets be looked at
    keys: tuple[Expr, ...]


class Results:
    """The results of calls, each computed once, under names that nothing else has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.calls: list[tuple[Any, Aggregate]] = []  # with what each is over
        self.names = {n.lower() for n in taken}
        self.types: dict[str, str] = {}  # by name

    def add(self, over: object, node: exp.Expr, scope: Scope, where: Span, name: str | None, call: exp.Expr) -> exp.Expr:
        """The column that holds the result of a call, with or without FILTER (`node`); `scope` has what it may read."""
        condition = filter_condition(scope, node, where) if isinstance(node, exp.Filter) else None
        at = place(call, where)
        kind, arguments = arguments_of(scope, call, str(aggregate_name(call)), at)
        with scope.text.at(at):
            made = Aggregate("", kind, arguments, condition)
            found = result_type(kind, [a.type_in(scope.schema) for a in arguments])
        known = next((c.name for of, c in self.calls if of == over and replace(c, name="") == made), None)
        if known is None:
            known = take_name(name or "", self.names)
            self.calls.append((over, replace(made, name=known)))
            self.types[known.lower()] = found
        return placed(Expr.column(known).tree, extent(scope.text, node, where))


class Calls(Results):
    """The calls of one SELECT. With a group every call belongs to it; without one every call says OVER (..)."""

    def __init__(self, scope: Scope, group: Group | None, order: Expr | None = None) -> None:
        """Begin with none; `order` is the time of the stream, the only ORDER BY there is."""
        super().__init__(scope.schema.names)
        self.scope, self.group, self.order = scope, group, order

    @property
    def found(self) -> dict[Group, list[Aggregate]]:
        """The calls of every group."""
        out: dict[Group, list[Aggregate]] = {self.group: []} if self.group else {}
        for group, call in self.calls:
            out.setdefault(group, []).append(call)
        return out

    def bind(self, value: Scalar, *, name: str | None = None, scope: Scope | None = None, group: Group | None = None) -> Expr:
        """An expression over the columns and the results of its calls; `name` is for the result of one that is a call alone."""
        columns, group = scope or self.scope, group or self.group

        def swap(node: exp.Expr) -> exp.Expr | None:
            wanted = name if node.parent is None else None
            if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
                raise columns.text.error("IGNORE NULLS is not there yet", value.span)
            if isinstance(node, exp.Window):
                return self._over(node, columns, value.span, wanted)
            if isinstance(node, exp.Filter) or aggregate_name(node):
                if group is None:
                    raise self._without_over(node, value.span)
                return self._add(group, node, columns, value.span, wanted)
            return None

        return columns.rewrite(value.tree, value.span, swap, self.types)

    def _without_over(self, node: exp.Expr, where: Span) -> Exception:
        hint = "or use one window for all, with GROUP BY"
        return self.scope.text.error("an aggregate beside OVER (..) needs an OVER (..) of its own", place(node, where), hint=hint)

    def _over(self, node: exp.Window, scope: Scope, where: Span, name: str | None) -> exp.Expr:
        if self.group is not None:
            raise scope.text.error("OVER (..) cannot be mixed with GROUP BY or a window in square brackets", place(node, where))
        window, keys = frame(scope, node, where, self.order)
        return self._add(Group(window, keys), node.this, scope, where, name)

    def _add(self, group: Group, node: exp.Expr, scope: Scope, where: Span, name: str | None) -> exp.Expr:
        scope = replace(scope, aliases={})  # an aggregate sees columns of the event only
        call = node.this if isinstance(node, exp.Filter) else node
        if aggregate_name(call) is None:
            raise scope.text.error("FILTER and OVER belong to an aggregate", place(node, where))
        return self.add(group, node, scope, where, name, call)


def filter_condition(scope: Scope, node: exp.Filter, where: Span) -> Expr:
    tree = node.expression.this
    value = Scalar(tree, extent(scope.text, tree, where))
    return scope.check_condition(inner_scalar(scope, tree, value.span, "FILTER"), value, "FILTER")


def take_name(wanted: str, taken: set[str]) -> str:
    """A name for the result of a call: the one that is wanted, or, if there is none or it is taken, one made up."""
    name, number = wanted, 0
    while not name or name.lower() in taken:
        name, number = f"_agg{number}", number + 1
    taken.add(name.lower())
    return name


def inner_scalar(scope: Scope, tree: exp.Expr, where: Span, clause: str) -> Expr:
    """An expression below an aggregate, which sees columns of the event only."""

    def refuse(node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Window) or aggregate_name(node):
            hint = "put the inner SELECT into FROM (..)"
            raise scope.text.error(f"an aggregate cannot stand in {clause}", place(node, where), hint=hint)
        return None

    return scope.rewrite(tree, where, refuse)


def arguments_of(scope: Scope, call: exp.Expr, spelt: str, at: Span) -> tuple[Function, tuple[Expr, ...]]:
    """The function and what it is called on; nothing stands for whole rows."""
    text, f, arguments = scope.text, function(spelt), call.expressions
    if arguments and isinstance(arguments[0], exp.Distinct):
        if not f.distinct:
            others = " and ".join(f"{o.name}(DISTINCT ..)" for o in FUNCTIONS.values() if o.distinct not in ("", o.name))
            raise text.error(f"{spelt}(DISTINCT ..) is not there yet", at, hint=f"there is {others}")
        f, arguments = function(f.distinct), arguments[0].expressions
    only = arguments[0] if len(arguments) == 1 else None
    if isinstance(only, exp.Column) and isinstance(only.this, exp.Star):
        raise text.error(f"{spelt}(x.*) is for the events of a repeated place of a pattern", at, hint=f"{spelt}(*) counts rows")
    if f.stars and isinstance(only, exp.Star | exp.Literal):
        return f, ()
    with text.at(at):
        f.check_number(len(arguments))
    return f, tuple(inner_scalar(scope, a, at, "the argument of another") for a in arguments)
