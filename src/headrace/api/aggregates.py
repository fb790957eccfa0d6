"""Aggregates: `hr.sum("amount").filter("amount > 0").over("card", hr.range("5 minutes"))`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.api.windows import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.api.windows import WindowLike

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


def sum(value: str) -> Call:
    """The sum; of DOUBLE exact, rounded once."""
    return Call("SUM", value)


def avg(value: str) -> Call:
    """The mean."""
    return Call("AVG", value)


def min(value: str) -> Call:
    """The least value."""
    return Call("MIN", value)


def max(value: str) -> Call:
    """The greatest value."""
    return Call("MAX", value)


def min_by(value: str, by: str) -> Call:
    """The value of the row where `by` is least; of several the last in the order of time."""
    return Call("MIN_BY", f"{value}, {by}")


def max_by(value: str, by: str) -> Call:
    """The value of the row where `by` is greatest; of several the last in the order of time."""
    return Call("MAX_BY", f"{value}, {by}")


def variance(value: str) -> Call:
    """The variance of the sample."""
    return Call("VARIANCE", value)


def stddev(value: str) -> Call:
    """The standard deviation of the sample."""
    return Call("STDDEV", value)


def var_pop(value: str) -> Call:
    """The variance of the population."""
    return Call("VAR_POP", value)


def stddev_pop(value: str) -> Call:
    """The standard deviation of the population."""
    return Call("STDDEV_POP", value)


def percentile(value: str, share: float) -> Call:
    """The value that a share of the rows, from 0 to 1, is below: between two values where it falls between them."""
    return Call("PERCENTILE", f"{value}, {share}")


def median(value: str) -> Call:
    """The percentile of one half."""
    return Call("MEDIAN", value)


def approx_percentile(value: str, share: float) -> Call:
    """The least value with at least a share of the rows, from 0 to 1, up to it."""
    return Call("APPROX_PERCENTILE", f"{value}, {share}")


def collect_list(value: str) -> Call:
    """All values that are not NULL, in the order of time."""
    return Call("COLLECT_LIST", value)


def first(value: str) -> Call:
    """The value of the first row in the order of time."""
    return Call("FIRST", value)


def last(value: str) -> Call:
    """The value of the last row in the order of time."""
    return Call("LAST", value)
