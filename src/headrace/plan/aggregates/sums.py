"""SUM and AVG: exact, rounded once."""

from __future__ import annotations

from headrace.plan.aggregates.function import NUMBER, Function, Keeps, Reads, TallyKind, double
from headrace.plan.types import INTEGRAL, base_type, decimal, decimal_parts

KEPT = Keeps(TallyKind.SUM, counted=True)


def total(kind: str) -> str:
    """Integers sum to BIGINT, decimals to ten more digits."""
    match base_type(kind):
        case "DECIMAL":
            precision, scale = decimal_parts(kind)
            return decimal(precision + 10, scale)
        case base if base in INTEGRAL:
            return "BIGINT"
    return double(kind)


def average(kind: str) -> str:
    """The mean of decimals has four more digits."""
    if base_type(kind) != "DECIMAL":
        return double(kind)
    precision, scale = decimal_parts(kind)
    return decimal(precision + 4, scale + 4)


FUNCTIONS = (
    Function("SUM", KEPT, total, (NUMBER,), overflows=True),
    Function("AVG", KEPT, average, (NUMBER,), Reads("mean"), ("MEAN",), overflows=True),
)
