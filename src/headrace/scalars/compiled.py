"""Scalar expressions over the columns of several rows, compiled to machine code for loops that go over pairs of rows.

A value is one int64 word and a flag that it is NULL: doubles (and FLOAT) are the bits of a double, strings the number of the
value in a table that all strings of the expression share, decimals whole numbers of their last digit. What Spark SQL fails at,
such as an overflow, is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from textwrap import indent
from typing import Any

import numba as nb
import numpy as np

from headrace.errors import QueryError
from headrace.kernels import scalars
from headrace.kernels import signatures as s
from headrace.plan.expr import Expr
from headrace.scalars.source import Writer
from headrace.scalars.tree import Tree
from headrace.scalars.types import Kind, Slot, Value

__all__ = ["Compiled", "Slot", "all_of", "compile_expression"]

_HEAD = "def expression(values, nulls):\n"


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression, typed and written as source; asking for a function compiles it.

    The caller puts the numbers of `strings` in their table into these places among the words, once.
    """

    expr: Expr
    type: str
    width: int  # how many words and flags the functions read
    strings: tuple[tuple[int, str], ...]
    body: str
    result: Value

    @property
    def holds(self) -> str:
        """Source text of whether the predicate is true; NULL is not."""
        if self.result.kind not in (Kind.BOOLEAN, Kind.VOID):
            raise QueryError(f"{self.expr} is a {self.type}, not a predicate", hint="compare it with something")
        return self.result.text if self.result.kind is Kind.BOOLEAN else "False"

    @property
    def truth(self) -> Any:
        """`fn(values, nulls) -> bool`: whether the predicate is true."""
        return jit(f"{_HEAD}{self.body}    return {self.holds}\n", s.boolean(s.ints, s.flags))

    @property
    def number(self) -> Any:
        """`fn(values, nulls) -> (float, is NULL)`; times are in microseconds, dates in days."""
        return jit(_HEAD + self.body + self.gives, s.number_or_null(s.ints, s.flags))

    @property
    def gives(self) -> str:
        """Source text that returns the number and whether it is NULL."""
        if self.result.kind in (Kind.BOOLEAN, Kind.STRING):
            raise QueryError(f"{self.expr} is a {self.type}, not a number", hint="use an expression that gives a number")
        if self.result.kind is Kind.VOID:
            return "    return 0.0, True\n"
        value = Value(Kind.DOUBLE, str(float(self.result.literal))) if self.result.kind is Kind.DECIMAL else self.result  # type: ignore[arg-type]
        return f"    if {value.null}:\n        return 0.0, True\n    return float({value.text}), False\n"


@lru_cache(maxsize=1024)
def jit(source: str, signature: Any) -> Any:
    """The compiled function; equal texts are compiled once in a process."""
    scope: dict[str, Any] = {"np": np, **{name: getattr(scalars, name) for name in dir(scalars) if name[0] != "_"}}
    exec(source, scope)
    return nb.njit(signature)(scope["expression"])


def all_of(predicates: list[Compiled]) -> Any:
    """`fn(chosen, values, nulls) -> bool`: whether all chosen predicates (bits) are true. Each was compiled with its number."""
    text = "def expression(chosen, values, nulls):\n"
    for i, predicate in enumerate(predicates):
        text += f"    if (chosen >> {i}) & 1:\n{indent(predicate.body, '    ')}"
        text += f"        if not ({predicate.holds}):\n            return False\n"
    return jit(text + "    return True\n", s.boolean(s.integer, s.ints, s.flags))


def compile_expression(expr: Expr, columns: Mapping[tuple[str, str], Slot], number: int = 0) -> Compiled:
    """Type an expression and write its source. Keys are (qualifier or "", column) in lower case; names in it begin with a number.

    >>> columns = {("", "x"): Slot("DOUBLE", 0), ("first", "x"): Slot("DOUBLE", 1)}
    >>> compile_expression(Expr.of("ABS(x - first.x)"), columns).type
    'DOUBLE'
    """
    writer = Writer(1 + max((slot.position for slot in columns.values()), default=-1), f"x{number}_")
    tree = Tree(writer, columns)
    try:
        result = tree.value(expr.tree)
        if result.kind is Kind.STRING:
            result = writer.convert(result, Kind.STRING)
        if result.size is not None:
            result = writer.convert(result, Kind.DOUBLE)
    except QueryError as error:
        raise QueryError(f"{expr} cannot be evaluated between rows: {error.message}", hint=error.hint) from error
    lines = [*tree.loads.values(), *writer.lines]
    strings = tuple((place, text) for text, place in writer.strings.items())
    width = writer.first_free + len(strings)
    return Compiled(expr, result.kind.value, width, strings, "\n".join(lines) + "\n", result)
