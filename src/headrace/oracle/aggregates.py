"""Groups, and the aggregates, each from its definition over the list of values in the window, in the total order."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from headrace.oracle.rows import Row, group_value
from headrace.oracle.scalar import evaluate, holds
from headrace.plan.aggregates import Aggregate, Function
from headrace.plan.expr import Expr
from headrace.plan.schema import Schema
from headrace.plan.types import base_type, decimal_parts

BIGINT = range(-(2**63), 2**63)


def groups(exprs: Sequence[Expr], schema: Schema, table: Sequence[Row]) -> list[Hashable]:
    """For every row a stand-in for its values of the expressions that compares as GROUP BY does."""
    return [tuple(map(group_value, values)) for values in evaluate(exprs, schema, table)]


class Call:
    """One aggregate call with its arguments and filter evaluated for every row."""

    def __init__(self, call: Aggregate, schema: Schema, table: Sequence[Row], result_type: str) -> None:
        self.function = call.function
        self.result_type = result_type
        self.passes = holds(call.filter, schema, table)
        # Each row has the value of the argument, or a tuple of those of several; COUNT(*) sees that it is there.
        rows = evaluate(call.arguments, schema, table) if call.arguments else [(1,)] * len(table)
        self.values = [row if len(row) > 1 else row[0] for row in rows]

    def over(self, window: Sequence[int]) -> object:
        return aggregate(self.function, [self.values[j] for j in window if self.passes[j]], self.result_type)


def aggregate(function: Function, values: Sequence[Any], result_type: str) -> Any:
    """The value of the function over the values of its argument; COUNT(*) gets one value per row, none of them NULL."""
    match function.name:
        case "FIRST":
            return values[0] if values else None
        case "LAST":
            return values[-1] if values else None
        case "MIN_BY":
            return _at_end(values, min)
        case "MAX_BY":
            return _at_end(values, max)
        case "PERCENTILE":
            return _percentile([x for x, _ in values if x is not None], values[0][1] if values else 0)
        case "APPROX_PERCENTILE":
            return _ranked([row[0] for row in values if row[0] is not None], values[0][1] if values else 0)
    present = [v for v in values if v is not None]
    match function.name:
        case "COUNT":
            return len(present)
        case "COUNT_DISTINCT":
            return len({group_value(v) for v in present})
        case "MEDIAN":
            return _percentile(present, 0.5)
        case "COLLECT_LIST":
            return present
        case "MIN":
            return _positive_zero(min(present, key=_sort_key, default=None))
        case "MAX":
            return _positive_zero(max(present, key=_sort_key, default=None))
        case "SUM":
            return _sum(present, result_type) if present else None
        case "AVG":
            return _avg(present, result_type) if present else None
        case "VARIANCE":
            return _variance(present, len(present) - 1)
        case "VAR_POP":
            return _variance(present, len(present))
        case "STDDEV":
            return _root(_variance(present, len(present) - 1))
        case "STDDEV_POP":
            return _root(_variance(present, len(present)))
    raise NotImplementedError(f"the oracle does not know {function.name}")


def _at_end(pairs: Sequence[tuple[Any, Any]], end: Callable[[list[Any]], Any]) -> Any:
    """The first of a pair where the second, not NULL, is the least or greatest of all; of several such pairs the last."""
    keys = [_sort_key(by) for _, by in pairs if by is not None]
    found = [value for value, by in pairs if by is not None and _sort_key(by) == end(keys)]
    return found[-1] if found else None


def _percentile(values: Sequence[Any], share: Any) -> float | None:
    """Between the two values in order that lie around the share of the way from the first to the last; in doubles, as Spark."""
    if not values:
        return None
    ordered = sorted((float(v) + 0.0 for v in values), key=_sort_key)
    place = (len(ordered) - 1) * float(share)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    if low == high or _sort_key(low) == _sort_key(high):
        return low
    return (math.ceil(place) - place) * low + (place - math.floor(place)) * high


def _ranked(values: Sequence[Any], share: Any) -> Any:
    """The first value in order with at least this share of all values up to it."""
    ordered = sorted(values, key=_sort_key)
    return _positive_zero(ordered[max(math.ceil(len(ordered) * float(share)), 1) - 1]) if ordered else None


def _sum(values: Sequence[Any], result_type: str) -> Any:
    """Exact; rounded once where the result is DOUBLE, NULL where it does not fit."""
    if base_type(result_type) == "DOUBLE":
        special = _special_sum(values)
        return special if special is not None else rounded(sum(map(Fraction, values), Fraction(0)))
    if base_type(result_type) == "DECIMAL":
        return _decimal(sum(map(Fraction, values), Fraction(0)), result_type)
    total = sum(values)
    return total if total in BIGINT else None


def _avg(values: Sequence[Any], result_type: str) -> Any:
    """The exact sum over the number of values, rounded once."""
    if base_type(result_type) == "DECIMAL":
        return _decimal(sum(map(Fraction, values), Fraction(0)) / len(values), result_type)
    special = _special_sum(values)
    return special if special is not None else rounded(sum(map(Fraction, values), Fraction(0)) / len(values))


def _variance(values: Sequence[Any], divisor: int) -> float | None:
    """The exact sum of squared distances from the exact mean over the divisor, rounded once.

    As in Spark, the values are doubles: integers and decimals are cast first.
    """
    if not values or divisor == 0:
        return None
    doubles = [float(v) for v in values]
    if not all(map(math.isfinite, doubles)):
        return math.nan
    exact = [Fraction(v) for v in doubles]
    mean = sum(exact, Fraction(0)) / len(exact)
    return rounded(sum(((v - mean) ** 2 for v in exact), Fraction(0)) / divisor)


def _root(variance: float | None) -> float | None:
    return None if variance is None else math.sqrt(variance)


def _special_sum(values: Sequence[Any]) -> float | None:
    """The sum, where a NaN or an infinity decides it."""
    special = [v for v in values if isinstance(v, float) and not math.isfinite(v)]
    if not special:
        return None
    return special[0] if len(set(special)) == 1 and not math.isnan(special[0]) else math.nan


def rounded(exact: Fraction) -> float:
    """The nearest double, ties to even; exactly zero is +0.0, what underflows keeps its sign."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _decimal(exact: Fraction, result_type: str) -> Decimal | None:
    """Rounded half up, away from zero, to the scale; NULL where it has more digits than the precision."""
    precision, scale = decimal_parts(result_type)
    digits = math.floor(abs(exact) * 10**scale + Fraction(1, 2))
    if digits >= 10**precision:
        return None
    return Decimal((int(exact < 0 and digits > 0), tuple(map(int, str(digits))), -scale))


def _sort_key(value: Any) -> Any:
    """Order of values: NaN is the greatest, -0.0 is 0.0, strings by their bytes."""
    match value:
        case float():
            return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
        case str():
            return value.encode()
    return value


def _positive_zero(value: Any) -> Any:
    """MIN and MAX of zeros of either sign is +0.0."""
    return 0.0 if isinstance(value, float) and value == 0 else value
