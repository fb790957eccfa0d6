"""COUNT(*), COUNT(x), COUNT(DISTINCT x)."""

from __future__ import annotations

from headrace.plan.aggregates.function import Function, Keeps, TallyKind


def bigint(kind: str) -> str:
    """Anything can be counted."""
    return "BIGINT"


COUNT = Function("COUNT", Keeps(TallyKind.COUNT), bigint, stars=True, distinct="COUNT_DISTINCT")
DISTINCT = Function("COUNT_DISTINCT", Keeps(TallyKind.DISTINCT), bigint, written="COUNT(DISTINCT {})")
FUNCTIONS = (COUNT, DISTINCT)
