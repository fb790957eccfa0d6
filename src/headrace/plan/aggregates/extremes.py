"""MIN, MAX, and MIN_BY, MAX_BY: the first argument where the second is least or greatest. DISTINCT makes no difference."""

from __future__ import annotations

from headrace.plan.aggregates.function import ANY, Function, Keeps, TallyKind, Values, same

FUNCTIONS = (
    Function("MIN", Keeps(TallyKind.QUEUE, Values.ORDERED, "least"), same, distinct="MIN"),
    Function("MAX", Keeps(TallyKind.QUEUE, Values.ORDERED, "greatest"), same, distinct="MAX"),
    Function("MIN_BY", Keeps(TallyKind.QUEUE, Values.ORDERED, "least", by=1), same, (ANY, ANY), distinct="MIN_BY"),
    Function("MAX_BY", Keeps(TallyKind.QUEUE, Values.ORDERED, "greatest", by=1), same, (ANY, ANY), distinct="MAX_BY"),
)
