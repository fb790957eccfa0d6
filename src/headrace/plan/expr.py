"""Scalar expressions: Spark SQL text, normalised, with what sqlglot can tell about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types

from headrace.errors import QueryError
from headrace.plan.schema import Schema

UNKNOWN_TYPE = "UNKNOWN"


@lru_cache(maxsize=4096)
def _parse(sql: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(sql, dialect="spark", into=exp.Condition)  # a statement word such as SET may be a column
    except SqlglotError as error:
        raise QueryError(f"{sql!r} is not an expression: {error}") from error


@lru_cache(maxsize=4096)
def _needs_quotes(name: str) -> bool:
    """Whether a name, written bare, would be read as anything but that column."""
    try:
        tree = sqlglot.parse_one(name, dialect="spark", into=exp.Condition)
    except SqlglotError:
        return True
    return not (isinstance(tree, exp.Column) and tree.sql(dialect="spark") == name)


@dataclass(frozen=True, slots=True)
class Expr:
    """A scalar Spark SQL expression over the columns of one input. Equal text means equal expression."""

    sql: str

    @staticmethod
    def of(value: Expr | exp.Expr | str) -> Expr:
        """Normalise SQL text or a sqlglot tree: `Expr.of("a+ b") == Expr.of("a + b")`."""
        if isinstance(value, Expr):
            return value
        return _normal(value) if isinstance(value, str) else _written(value)

    @staticmethod
    @lru_cache(maxsize=4096)
    def column(name: str) -> Expr:
        """Refer to a column, quoted where the name needs it."""
        return Expr(exp.column(exp.to_identifier(name, quoted=_needs_quotes(name))).sql(dialect="spark"))

    @property
    def tree(self) -> exp.Expr:
        """The parsed tree; a copy, because sqlglot trees are mutable."""
        return _parse(self.sql).copy()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns it reads, each once, in order of appearance."""
        return tuple(dict.fromkeys(column.name for column in _parse(self.sql).find_all(exp.Column)))

    @property
    def as_column(self) -> str | None:
        """The name of the column, if the expression is nothing but a column."""
        return _column_of(self.sql)

    def check(self, schema: Schema) -> Expr:
        """Refuse columns that `schema` does not have."""
        for name in self.columns:
            schema.field(name)
        return self

    def substitute(self, replacements: dict[str, Expr]) -> Expr:
        """Put expressions in the place of columns (by lower-case name)."""

        def swap(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.name.lower() in replacements:
                return exp.paren(replacements[node.name.lower()].tree)
            return node

        return Expr.of(self.tree.transform(swap))

    def type_in(self, schema: Schema) -> str:
        """The Spark SQL type as far as sqlglot knows it; `UNKNOWN` is settled by Spark when the query is bound."""
        return _type_in(self, schema)

    def __str__(self) -> str:
        return self.sql


def _written(tree: exp.Expr) -> Expr:
    return Expr(tree.sql(dialect="spark", identify=False, comments=False))


@lru_cache(maxsize=4096)
def _normal(sql: str) -> Expr:
    return _written(_parse(sql))


@lru_cache(maxsize=4096)
def _column_of(sql: str) -> str | None:
    tree = _parse(sql)
    return tree.name if isinstance(tree, exp.Column) else None


def _is_distance(annotated: exp.Expr) -> bool:
    """Whether an expression is the time between two times, which sqlglot takes for a time."""
    inner = annotated.unalias().unnest()
    times = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ)
    return isinstance(inner, exp.Sub) and inner.this.is_type(*times) and inner.expression.is_type(*times)


@lru_cache(maxsize=16384)
def _type_in(expr: Expr, schema: Schema) -> str:
    select = exp.select(exp.alias_(expr.tree, "x")).from_("s")
    types = {field.name.lower(): field.type for field in schema.fields}
    for column in select.find_all(exp.Column):
        column.set("this", exp.to_identifier(column.name.lower()))
        column.set("table", exp.to_identifier("s"))
    try:
        annotated = annotate_types(select, schema={"s": types}, dialect="spark")
    except SqlglotError:
        return UNKNOWN_TYPE
    if _is_distance(annotated.selects[0]):
        return "INTERVAL DAY TO SECOND"
    found = annotated.selects[0].type
    return found.sql(dialect="spark") if found else UNKNOWN_TYPE


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND puts together."""
    inner = tree.unnest()
    return [*conjuncts(inner.this), *conjuncts(inner.expression)] if isinstance(inner, exp.And) else [tree]


@lru_cache(maxsize=4096)
def all_of(predicates: tuple[Expr, ...]) -> Expr | None:
    return Expr.of(exp.and_(*(p.tree for p in predicates))) if predicates else None


@lru_cache(maxsize=4096)
def any_of(predicates: tuple[Expr, ...]) -> Expr | None:
    return Expr.of(exp.or_(*(p.tree for p in predicates))) if predicates else None
