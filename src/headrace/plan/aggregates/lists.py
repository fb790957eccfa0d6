"""COLLECT_LIST: all values that are not NULL, in the total order."""

from __future__ import annotations

from headrace.plan.aggregates.function import Function, Keeps, TallyKind, Values
from headrace.plan.expr import UNKNOWN_TYPE


def array(kind: str) -> str:
    """Of values of the argument."""
    return kind if kind == UNKNOWN_TYPE else f"ARRAY<{kind}>"


FUNCTIONS = (Function("COLLECT_LIST", Keeps(TallyKind.LIST, Values.BITS, "every"), array, aliases=("ARRAY_AGG",)),)
