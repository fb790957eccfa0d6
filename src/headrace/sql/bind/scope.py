"""Names in expressions: which columns there are, and an error at the very name that does not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from headrace.errors import unknown
from headrace.plan.aggregates import NAMES
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.typecheck import TypeMismatch, Typing
from headrace.plan.types import base_type
from headrace.sql.errors import Span, Text
from headrace.sql.parse.syntax import Scalar, Star

Swap = Callable[[exp.Expr], exp.Expr | None]

NESTED = ("STRUCT", "MAP", "VARIANT", "UNKNOWN")
NOT_CONDITIONS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ",
                  "STRING", "BINARY", "ARRAY", "MAP", "STRUCT")  # fmt: skip


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may use, and what may stand before their dot."""

    what: ClassVar[str] = "stream"  # what may stand there is called
    text: Text
    schema: Schema
    qualifiers: tuple[str, ...] = ()
    aliases: Mapping[str, Expr] = field(default_factory=dict)  # names of SELECT items, where a clause may use them
    later: frozenset[str] = frozenset()  # names of SELECT items that this clause cannot use

    def bind(self, value: Scalar, clause: str) -> Expr:
        """An expression over the columns; aggregates are refused, naming the clause."""

        def refuse(node: exp.Expr) -> exp.Expr | None:
            if isinstance(node, exp.Window) or aggregate_name(node):
                hint = "HAVING sees aggregates" if clause == "WHERE" else None
                raise self.text.error(f"an aggregate cannot stand in {clause}", place(node, value.span), hint=hint)
            return None

        return self.rewrite(value.tree, value.span, refuse)

    def condition(self, value: Scalar, clause: str) -> Expr:
        return self.check_condition(self.bind(value, clause), value, clause)

    def check_condition(self, bound: Expr, value: Scalar, clause: str, schema: Schema | None = None) -> Expr:
        """Refuse what is certainly no condition."""
        kind = base_type(bound.type_in(schema or self.schema))
        if kind in NOT_CONDITIONS:
            raise self.text.error(f"{clause} takes a condition, and this is a {kind}", value.span)
        return bound

    def rewrite(self, tree: exp.Expr, where: Span, swap: Swap, results: Mapping[str, str] | None = None) -> Expr:
        """Replace nodes for which `swap` gives something, look up the columns of the rest, and refuse types that do not fit.

        `results` are the types of the columns that `swap` puts in, by lower-case name.
        """

        def visit(node: exp.Expr) -> exp.Expr:
            swapped = swap(node)
            if swapped is not None:
                return swapped
            return self.column(node, where) if isinstance(node, exp.Column) else node

        with self.text.at(where):
            bound = tree.transform(visit)
            found = Expr.of(bound)
            written = {c.name for c in bound.find_all(exp.Column)}
            if set(found.columns) != written:  # sqlglot reads `0 . x`, and writes something else
                raise self.text.error("this is not an expression that can be written down again", where)
            self._check_types(bound, where, results or {})
            return found

    def _check_types(self, bound: exp.Expr, where: Span, results: Mapping[str, str]) -> None:
        columns = {**{f.name.lower(): f.type for f in self.schema.fields}, **results}

        def said(node: exp.Expr) -> str:
            span = known_extent(self.text, node)
            return " ".join(self.text.slice(span).split()) if span else node.sql(dialect="spark")

        try:
            Typing(columns, said).of(bound)
        except TypeMismatch as error:
            raise self.text.error(error.message, extent(self.text, error.node, where), hint=error.hint) from error

    def column(self, node: exp.Column, where: Span) -> exp.Expr:
        """Look a column up: `a`, `s.a`, or a field of a struct `a.b`, which becomes `(a).b`."""
        parts = self.own([p for p in node.parts if isinstance(p, exp.Identifier)], where)
        first, rest = parts[0], parts[1:]
        name = first.name
        if not rest and name.lower() in self.aliases:
            named = self.aliases[name.lower()].tree
            return placed(named if isinstance(named, exp.Column) else exp.paren(named), place(node, where))
        if not self.schema.has(name):
            raise self._unknown(first, where, qualified=bool(rest))
        found = self.schema.field(name)
        if rest and base_type(found.type) not in NESTED:
            message = f"{name!r} is neither a stream that is read here nor a column with fields"
            hint = f"streams read here: {', '.join(self.qualifiers) or 'none'}"
            raise self.text.error(message, place(first, where), hint=hint)
        tree = placed(Expr.column(found.name).tree, known_extent(self.text, node))
        for part in rest:
            tree = exp.Dot(this=tree if isinstance(tree, exp.Dot) else exp.paren(tree), expression=part.copy())
        return tree

    def own(self, parts: list[exp.Identifier], where: Span) -> list[exp.Identifier]:
        """The parts of a name without the stream in front."""
        return parts[1:] if len(parts) > 1 and parts[0].name.lower() in map(str.lower, self.qualifiers) else parts

    def star(self, star: Star) -> list[tuple[str, Expr]]:
        """The columns that `*` stands for, under their names."""
        self.check_star(star)
        return [(name, Expr.column(name)) for name in self.schema.names]

    def check_star(self, star: Star) -> None:
        """What stands before the star is read here."""
        if star.qualifier and star.qualifier.text.lower() not in map(str.lower, self.qualifiers):
            raise self.text.error(unknown(self.what, star.qualifier.text, self.qualifiers), star.qualifier.span)

    def _unknown(self, part: exp.Expr, where: Span, *, qualified: bool) -> Exception:
        name = part.name
        if qualified:
            message = unknown(f"{self.what} or column", name, (*self.qualifiers, *self.names))
            return self.text.error(message, place(part, where))
        hint = None
        if name.lower() in self.later:
            hint = f"{name} is a name of the SELECT, which this clause comes before: repeat the expression"
        return self.text.error(unknown("column", name, self.names), place(part, where), hint=hint)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, as a user calls them."""
        return self.schema.names


def renamed(part: exp.Identifier, name: str) -> exp.Identifier:
    """Another name at the same place."""
    found = exp.to_identifier(name)
    found.meta.update(part.meta)
    return found


def place(node: exp.Expr, default: Span) -> Span:
    """Where a node stands, as far as sqlglot kept it: its own place, or its first name's."""
    for part in (node, *node.find_all(exp.Identifier, exp.Func, exp.Literal)):
        if "start" in part.meta:
            return Span(part.meta["start"], part.meta["end"] + 1)
    return default


def extent(text: Text, tree: exp.Expr, default: Span) -> Span:
    """Where an expression stands, as far as that is known."""
    return known_extent(text, tree) or default


def known_extent(text: Text, tree: exp.Expr) -> Span | None:
    """From the first to the last word of an expression that sqlglot kept the place of, and the brackets it opens."""
    found = [node.meta for node in tree.walk() if "start" in node.meta]
    if not found:
        return None
    span = Span(min(m["start"] for m in found), max(m["end"] for m in found) + 1)
    while text.slice(span).count("(") > text.slice(span).count(")") and text.sql[span.end : span.end + 1] == ")":
        span = Span(span.start, span.end + 1)
    return span


def placed(tree: exp.Expr, span: Span | None) -> exp.Expr:
    """A tree of another text, at the place of what it stands for."""
    for node in tree.walk():
        node.meta.clear()
    if span is not None:
        tree.meta.update(start=span.start, end=span.end - 1)
    return tree


def aggregate_name(node: exp.Expr) -> str | None:
    """The name of the aggregate function that a node calls, as written; None for anything else."""
    name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
    return name if name in NAMES else None


def has_aggregate(value: Scalar) -> bool:
    """Whether an expression calls an aggregate, with or without OVER."""
    return any(aggregate_name(node) for node in value.tree.walk())


def find_over(value: Scalar) -> exp.Window | None:
    return value.tree.find(exp.Window)
