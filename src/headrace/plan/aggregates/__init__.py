"""The aggregate functions, a family a file. A new one is a file here and its name in `FAMILIES`, then its oracle."""

from __future__ import annotations

from headrace.errors import QueryError, unknown
from headrace.plan.aggregates import counts, ends, extremes, lists, moments, percentiles, sums
from headrace.plan.aggregates.function import Aggregate, Function, Laws, TallyKind, Values, result_type

__all__ = ["FUNCTIONS", "NAMES", "Aggregate", "Function", "Laws", "TallyKind", "Values", "function", "result_type"]

FAMILIES = (counts, sums, moments, extremes, ends, lists, percentiles)
FUNCTIONS: dict[str, Function] = {f.name: f for family in FAMILIES for f in family.FUNCTIONS}
NAMES = FUNCTIONS | {alias: f for f in FUNCTIONS.values() for alias in f.aliases}


def function(name: str) -> Function:
    found = NAMES.get(name.upper())
    if found is None:
        raise QueryError(unknown("aggregate", name, FUNCTIONS))
    return found
