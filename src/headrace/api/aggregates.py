"""Aggregates: `hr.sum("amount").filter("amount > 0").over("card", hr.range("5 minutes"))`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from headrace.api.windows import WindowLike, names

__all__ = [
    "approx_percentile", "avg", "collect_list", "count", "count_distinct", "first", "last", "max", "max_by", "median", "min",
    "min_by", "percentile", "stddev", "stddev_pop", "sum", "var_pop", "variance",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate call, as SQL text, with the window and keys of its own if it has them."""

    function: str
    argument: str
    condition: str | None = None
    keys: tuple[str, ...] = ()
    window: WindowLike | None = None

    def filter(self, condition: str) -> Call:
        """Only rows for which the condition holds; a second one is added with AND."""
        both = condition if self.condition is None else f"({self.condition}) AND ({condition})"
        return replace(self, condition=both)

    def over(self, keys: str | Sequence[str], window: WindowLike) -> Call:
        """Over a window of its own: the rows with the event's keys."""
        return replace(self, keys=names(keys), window=window)

    @property
    def sql(self) -> str:
        """As written in SQL, without OVER."""
        inner = f"{self.function}({self.argument})"
        return f"{inner} FILTER (WHERE {self.condition})" if self.condition else inner


def count(value: str = "*") -> Call:
    """The number of rows, or of those where `value` is not NULL."""
    return Call("COUNT", value)


def count_distinct(value: str) -> Call:
    """The number of different values."""
    return Call("COUNT", f"DISTINCT {value}")


class OfOne(Protocol):
    """An aggregate of one value."""

    def __call__(self, value: str) -> Call: ...


def _of_one(function: str, doc: str) -> OfOne:
    def call(value: str) -> Call:
        return Call(function, value)

    call.__name__, call.__doc__ = function.lower(), doc
    return call


sum = _of_one("SUM", "The sum; of DOUBLE exact, rounded once.")
avg = _of_one("AVG", "The mean.")
min = _of_one("MIN", "The least value.")
max = _of_one("MAX", "The greatest value.")
variance = _of_one("VARIANCE", "The variance of the sample.")
stddev = _of_one("STDDEV", "The standard deviation of the sample.")
var_pop = _of_one("VAR_POP", "The variance of the population.")
stddev_pop = _of_one("STDDEV_POP", "The standard deviation of the population.")
median = _of_one("MEDIAN", "The percentile of one half.")
collect_list = _of_one("COLLECT_LIST", "All values that are not NULL, in the order of time.")
first = _of_one("FIRST", "The value of the first row in the order of time.")
last = _of_one("LAST", "The value of the last row in the order of time.")


def min_by(value: str, by: str) -> Call:
    """The value of the row where `by` is least; of several the last in the order of time."""
    return Call("MIN_BY", f"{value}, {by}")


def max_by(value: str, by: str) -> Call:
    """The value of the row where `by` is greatest; of several the last in the order of time."""
    return Call("MAX_BY", f"{value}, {by}")


def percentile(value: str, share: float) -> Call:
    """The value that a share of the rows, from 0 to 1, is below: between two values where it falls between them."""
    return Call("PERCENTILE", f"{value}, {share}")


def approx_percentile(value: str, share: float) -> Call:
    """The least value with at least a share of the rows, from 0 to 1, up to it."""
    return Call("APPROX_PERCENTILE", f"{value}, {share}")
