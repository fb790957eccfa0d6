"""Several expressions over the columns of one row as one Python function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from headrace.errors import DataError, QueryError
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.scalars.row.parts import Writer
from headrace.scalars.row.tree import Tree
from headrace.scalars.row.types import Type, type_of

JAVA = 17  # whose way to print doubles is meant where nothing is said
Row = Sequence[Any]


class ExpressionFailed(DataError):
    """An expression has no value for this row: Spark would fail there. `number` is its place among the expressions."""

    def __init__(self, expr: Expr, number: int, reason: str) -> None:
        super().__init__(f"{expr}: {reason}")
        self.expr, self.number, self.reason = expr, number, reason


@dataclass(frozen=True, slots=True)
class Compiled:
    """The types of some expressions, and what computes them; `source` is its text."""

    types: tuple[Type, ...]
    function: Callable[[Row], tuple[Any, ...]]
    source: str


def compile_row(exprs: Sequence[Expr], schema: Schema, *, java: int = JAVA) -> Callable[[Row], tuple[Any, ...]]:
    """A function from the values of a row, in the order of the schema, to the values of the expressions.

    It raises ExpressionFailed where Spark would fail. An expression that is not offered is refused here.

    >>> schema = Schema.of(amount="DECIMAL(10, 2)", card="STRING")
    >>> from decimal import Decimal
    >>> compile_row([Expr.of("amount * 2"), Expr.of("UPPER(card)")], schema)((Decimal("1.25"), "a"))
    (Decimal('2.50'), 'A')
    """
    return compiled(exprs, schema, java=java).function


def compiled(exprs: Sequence[Expr], schema: Schema, *, java: int = JAVA) -> Compiled:
    """The function and what is known of it."""
    columns = {field.name.lower(): (place, type_of(field.type)) for place, field in enumerate(schema.fields)}
    tree, writer = Tree(columns, java), Writer(java)
    types, results = [], []
    failing = writer.bind(ExpressionFailed)
    for number, expr in enumerate(exprs):
        part = _part(tree, expr)
        start = len(writer.lines)
        writer.depth, writer.known = 2, {}
        results.append(part.write(writer).text)
        types.append(part.type)
        if len(writer.lines) > start:
            writer.lines.insert(start, (1, "try:"))
            raised = f"{failing}({writer.bind(expr)}, {number}, str(error))"
            writer.lines += [(1, "except Failed as error:"), (2, f"raise {raised} from error")]
    used = sorted({place for expr in exprs for place in _places(expr, columns)})
    head = [(0, "def row(values):"), *((1, f"c{place} = values[{place}]") for place in used)]
    lines = [*head, *writer.lines, (1, f"return ({', '.join(results)}{',' * (len(results) == 1)})")]
    source = "".join(f"{'    ' * depth}{text}\n" for depth, text in lines)
    scope = dict(writer.scope)
    exec(compile(source, "<expressions over a row>", "exec"), scope)
    return Compiled(tuple(types), scope["row"], source)


def _part(tree: Tree, expr: Expr) -> Any:
    try:
        return tree.part(expr.tree)
    except QueryError as error:
        message = error.message if error.message.startswith(str(expr)) else f"in {expr}: {error.message}"
        raise QueryError(message, hint=error.hint) from error


def _places(expr: Expr, columns: dict[str, tuple[int, Type]]) -> set[int]:
    names = {node.parts[0].name.lower() for node in expr.tree.find_all(exp.Column)}
    return {columns[name][0] for name in names if name in columns}
