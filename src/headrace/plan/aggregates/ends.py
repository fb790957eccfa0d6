"""FIRST and LAST in the total order, NULL or not."""

from __future__ import annotations

from headrace.plan.aggregates.function import Function, Keeps, TallyKind, Values, same

FIRST = Function("FIRST", Keeps(TallyKind.QUEUE, Values.BITS, "oldest"), same, aliases=("FIRST_VALUE",), place=0)
LAST = Function("LAST", Keeps(TallyKind.QUEUE, Values.BITS, "newest"), same, aliases=("LAST_VALUE",), place=-1)
FUNCTIONS = (FIRST, LAST)
