"""Aggregate functions and their laws. The planner picks the algorithm from the laws, never from the name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from headrace.errors import QueryError, unknown
from headrace.plan.expr import UNKNOWN_TYPE, Expr

NUMERIC = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
INTEGRAL = ("TINYINT", "SMALLINT", "INT", "BIGINT")


class Laws(Enum):
    """What an aggregate can do when a row leaves the window."""

    INVERTIBLE = "invertible: a row is taken out again exactly"
    SELECTIVE = "selective: the result is one of the rows, so a monotone queue per key holds the candidates"


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate function: its name in SQL, its laws, and what it takes."""

    name: str
    laws: Laws
    takes: tuple[str, ...] | None  # types by first word; None: any
    ordered: bool = False  # depends on the total order, not only on the multiset


FUNCTIONS = {
    f.name: f
    for f in (
        Function("COUNT", Laws.INVERTIBLE, None),
        Function("COUNT_DISTINCT", Laws.INVERTIBLE, None),
        Function("SUM", Laws.INVERTIBLE, NUMERIC),
        Function("AVG", Laws.INVERTIBLE, NUMERIC),
        Function("VARIANCE", Laws.INVERTIBLE, NUMERIC),
        Function("VAR_POP", Laws.INVERTIBLE, NUMERIC),
        Function("STDDEV", Laws.INVERTIBLE, NUMERIC),
        Function("STDDEV_POP", Laws.INVERTIBLE, NUMERIC),
        Function("MIN", Laws.SELECTIVE, None),
        Function("MAX", Laws.SELECTIVE, None),
        Function("FIRST", Laws.SELECTIVE, None, ordered=True),
        Function("LAST", Laws.SELECTIVE, None, ordered=True),
    )
}
ALIASES = {"VAR_SAMP": "VARIANCE", "STDDEV_SAMP": "STDDEV", "STD": "STDDEV", "MEAN": "AVG", "FIRST_VALUE": "FIRST",
           "LAST_VALUE": "LAST"}  # fmt: skip


def function(name: str) -> Function:
    """Look up an aggregate by any of its names."""
    upper = name.upper()
    found = FUNCTIONS.get(ALIASES.get(upper, upper))
    if found is None:
        raise QueryError(unknown("aggregate", name, FUNCTIONS))
    return found


def base_type(kind: str) -> str:
    """`DECIMAL(10, 2)` -> `DECIMAL`."""
    return re.split(r"[(<]", kind, maxsplit=1)[0].strip()


def decimal_parts(kind: str) -> tuple[int, int]:
    """Precision and scale of a DECIMAL type."""
    numbers = re.findall(r"\d+", kind)
    return (int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0) if numbers else (10, 0)


def decimal(precision: int, scale: int) -> str:
    """A DECIMAL type within Spark's limit of 38 digits."""
    return f"DECIMAL({min(precision, 38)}, {min(scale, 38)})"


def result_type(f: Function, argument: str | None) -> str:
    """The type of the result, by the rules of Spark SQL."""
    if f.name in ("COUNT", "COUNT_DISTINCT"):
        return "BIGINT"
    assert argument is not None, "only COUNT goes without an argument"
    if f.takes is not None and argument != UNKNOWN_TYPE and base_type(argument) not in f.takes:
        raise QueryError(f"{f.name} takes a number, and got {argument}", hint="CAST it to DOUBLE or DECIMAL")
    if f.laws is Laws.SELECTIVE or argument == UNKNOWN_TYPE:
        return argument
    if base_type(argument) == "DECIMAL" and f.name in ("SUM", "AVG"):
        precision, scale = decimal_parts(argument)
        return decimal(precision + 10, scale) if f.name == "SUM" else decimal(precision + 4, scale + 4)
    if f.name == "SUM":
        return "BIGINT" if base_type(argument) in INTEGRAL else "DOUBLE"
    return "DOUBLE"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One call: `name = function(argument) FILTER (WHERE filter)`; COUNT(*) has no argument."""

    name: str
    function: Function
    argument: Expr | None = None
    filter: Expr | None = None

    def __post_init__(self) -> None:
        """Only COUNT counts rows without looking at them."""
        if self.argument is None and self.function.name != "COUNT":
            raise QueryError(f"{self.function.name} needs an argument")

    def __str__(self) -> str:
        """As written in SQL."""
        inner = "*" if self.argument is None else str(self.argument)
        name, distinct = ("COUNT", "DISTINCT ") if self.function.name == "COUNT_DISTINCT" else (self.function.name, "")
        text = f"{name}({distinct}{inner})"
        return f"{text} FILTER (WHERE {self.filter})" if self.filter else text
