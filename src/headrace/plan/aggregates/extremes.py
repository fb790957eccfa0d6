"""MIN and MAX: DISTINCT makes no difference to them."""

from __future__ import annotations

from headrace.plan.aggregates.function import Function, Keeps, TallyKind, Values, same

FUNCTIONS = (
    Function("MIN", Keeps(TallyKind.QUEUE, Values.ORDERED, "least"), same, distinct="MIN"),
    Function("MAX", Keeps(TallyKind.QUEUE, Values.ORDERED, "greatest"), same, distinct="MAX"),
)
