"""PERCENTILE and MEDIAN, between two values; APPROX_PERCENTILE, one of the values (decisions/0026)."""

from __future__ import annotations

from headrace.plan.aggregates.function import NUMBER, Function, Keeps, Parameter, Reads, TallyKind, Values, double, same

SHARE = Parameter(what="a constant from 0 to 1", least=0, most=1, examples=("0.5", "0", "1", "0.9", "0.25"))
ACCURACY = Parameter(what="a constant from 1 on", least=1, examples=("100",), optional=True)  # what is kept is exact
ORDERED = Parameter((*(NUMBER.types or ()), "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"), "a number, date or time")
BETWEEN = Keeps(TallyKind.RANKS, Values.ORDERED, double=True)
VALUE = Keeps(TallyKind.RANKS, Values.ORDERED)

FUNCTIONS = (
    Function("PERCENTILE", BETWEEN, double, (NUMBER, SHARE), Reads("between {}")),
    Function("MEDIAN", BETWEEN, double, (NUMBER,), Reads("between 0.5")),
    Function("APPROX_PERCENTILE", VALUE, same, (ORDERED, SHARE, ACCURACY), Reads("upto {}"), ("PERCENTILE_APPROX",)),
)
