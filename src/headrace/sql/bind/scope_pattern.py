"""Names in the clauses of a pattern: whose column is meant, and aggregates of the events of a repeated place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from headrace.errors import unknown
from headrace.plan.aggregates import function
from headrace.plan.expr import Expr
from headrace.plan.patterns import Place, place_columns
from headrace.sql.bind.calls import Results
from headrace.sql.bind.scope import Scope, aggregate_name, place, renamed
from headrace.sql.errors import Span
from headrace.sql.parse.syntax import Scalar, Star


@dataclass(frozen=True)
class PatternScope(Scope):
    """The columns of all places. A name that several have needs the event before it."""

    what: ClassVar[str] = "event"
    places: tuple[Place, ...] = ()
    shown: bool = False  # only columns of events of which a result has exactly one

    def own(self, parts: list[exp.Identifier], where: Span) -> list[exp.Identifier]:
        """The column that is meant, by its name beside those of the other places, and the fields below it."""
        at, rest = self.find(parts, where)
        if self.shown:
            self._check_shown(at, rest[0].name, place(parts[0], where))
        columns = {old.lower(): new for old, new in place_columns(self.places)[at].items()}
        return [renamed(rest[0], columns[rest[0].name.lower()]), *rest[1:]]

    def find(self, parts: list[exp.Identifier], where: Span) -> tuple[int, list[exp.Identifier]]:
        """The place that a name is of, and the name without that of the place."""
        named = self.named(parts[0].name)
        if named is not None and len(parts) > 1:
            columns = self.places[named].input.schema
            if not columns.has(parts[1].name):
                raise self.text.error(unknown("column", parts[1].name, columns.names), place(parts[1], where))
            return named, parts[1:]
        holders = [i for i, p in enumerate(self.places) if p.input.schema.has(parts[0].name)]
        if len(holders) > 1:
            hint = "write " + " or ".join(f"{self.places[i].name}.{parts[0].name}" for i in holders)
            raise self.text.error(f"several events have a column {parts[0].name!r}", place(parts[0], where), hint=hint)
        if not holders and named is not None:
            example = f"{self.places[named].name}.{self.places[named].input.schema.names[0]}"
            raise self.text.error(f"{parts[0].name!r} is an event, not a column", place(parts[0], where), hint=f"write {example}")
        if not holders:
            raise self._unknown(parts[0], where, qualified=len(parts) > 1)
        return holders[0], parts

    def named(self, name: str) -> int | None:
        return next((i for i, p in enumerate(self.places) if p.name.lower() == name.lower()), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of all places, as they are spelt there."""
        return tuple(dict.fromkeys(name for p in self.places for name in p.input.schema.names))

    def star(self, star: Star) -> list[tuple[str, Expr]]:
        """`*` is all columns of single events with the name of the event in front, `s.*` those of one as they are."""
        self.check_star(star)
        columns = place_columns(self.places)
        if star.qualifier is None:
            single = [i for i, p in enumerate(self.places) if not (p.negated or p.repeated)]
            return [(name, Expr.column(name)) for i in single for name in columns[i].values()]
        at = self.named(star.qualifier.text)
        assert at is not None, "check_star has seen it"
        self._check_shown(at, "x", star.span)
        return [(old, Expr.column(new)) for old, new in columns[at].items()]

    def _check_shown(self, at: int, column: str, where: Span) -> None:
        found = self.places[at]
        if found.negated:
            single = ", ".join(p.name for p in self.places if not (p.negated or p.repeated))
            message = f"{found.name!r} must not be there, so a result has no columns of it"
            raise self.text.error(message, where, hint=f"a result has one: {single}")
        if found.repeated:
            name = found.name
            hint = f"write FIRST({name}.{column}), LAST({name}.{column}), COUNT({name}), or another aggregate of them"
            raise self.text.error(f"{name!r} stands for several events", where, hint=hint)


class GroupCalls(Results):
    """The aggregates of repeated places that the clauses of one pattern call, each once."""

    def __init__(self, scope: PatternScope) -> None:
        super().__init__(scope.schema.names)

    def bind(self, value: Scalar, scope: PatternScope, name: str | None = None) -> Expr:
        """An expression over single events and the results of its calls; `name` is for the result of a call that is all of it."""

        def swap(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
                raise scope.text.error("IGNORE NULLS is not there yet", value.span)
            if isinstance(node, exp.Window):
                raise scope.text.error("OVER (..) has no meaning in a pattern", place(node, value.span), hint=_hint(scope))
            if isinstance(node, exp.Filter) or aggregate_name(node):
                return self._add(node, scope, value.span, name if node.parent is None else None)
            return None

        return scope.rewrite(value.tree, value.span, swap, self.types)

    def _add(self, node: exp.Expr, scope: PatternScope, where: Span, name: str | None) -> exp.Expr:
        call = node.this if isinstance(node, exp.Filter) else node
        spelt = aggregate_name(call)
        if spelt is None:
            raise scope.text.error("FILTER belongs to an aggregate", place(node, where))
        at = place(call, where)
        call, counted = _counted(call, scope) if function(spelt).stars else (call, None)
        group = self._place(call, node, counted, scope, at)
        return self.add(group.name, node, Scope(scope.text, group.input.schema, (group.name,)), where, name, call)

    def _place(self, call: exp.Expr, whole: exp.Expr, counted: int | None, scope: PatternScope, at: Span) -> Place:
        """The repeated place whose events a call is about."""
        filtered = isinstance(whole, exp.Filter)
        spelt = aggregate_name(whole.this if filtered else whole)
        columns = [*call.find_all(exp.Column), *(whole.expression.find_all(exp.Column) if filtered else ())]
        read = {scope.find([p for p in c.parts if isinstance(p, exp.Identifier)], at)[0] for c in columns}
        read |= set() if counted is None else {counted}
        if not read:
            raise scope.text.error(f"{spelt} does not say of which events", at, hint=_hint(scope))
        if len(read) > 1:
            names = ", ".join(scope.places[i].name for i in sorted(read))
            message = f"{spelt} is about the events of one repeated place, and reads {names}"
            raise scope.text.error(message, at, hint=_hint(scope))
        found = scope.places[read.pop()]
        if not found.repeated:
            raise scope.text.error(f"{spelt} is for a repeated place, and {found.name!r} is none", at, hint=_hint(scope))
        return found


def _counted(call: exp.Expr, scope: PatternScope) -> tuple[exp.Expr, int | None]:
    """`COUNT(b)` and `COUNT(b.*)` count the events of place b: the call as COUNT(*), and the place."""
    column = call.expressions[0] if len(call.expressions) == 1 else None
    if not isinstance(column, exp.Column):
        return call, None
    star, parts = isinstance(column.this, exp.Star), column.parts
    name = column.table if star else column.name if len(parts) == 1 else ""
    at = scope.named(name)
    if at is None and star:
        raise scope.text.error(unknown("event", name, scope.qualifiers), place(column, Span(0, 0)))
    if at is None:
        return call, None
    counted = call.copy()
    counted.set("expressions", [exp.Star()])
    return counted, at


def _hint(scope: PatternScope) -> str:
    repeated = [p.name for p in scope.places if p.repeated]
    if not repeated:
        return "a stream with + behind it, as in SEQ(a x, b+ y), stands for all events that fit; aggregates are about those"
    return f"COUNT({repeated[0]}) counts the events of {repeated[0]}, SUM({repeated[0]}.x) adds up a column of them"
