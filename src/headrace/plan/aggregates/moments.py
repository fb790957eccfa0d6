"""VARIANCE and STDDEV, of the sample and of the population."""

from __future__ import annotations

from headrace.plan.aggregates.function import NUMBER, Function, Keeps, Reads, TallyKind, double

KEPT = Keeps(TallyKind.MOMENTS, double=True, counted=True)
FUNCTIONS = (
    Function("VARIANCE", KEPT, double, (NUMBER,), Reads("sample", least=2), ("VAR_SAMP",)),
    Function("VAR_POP", KEPT, double, (NUMBER,), Reads("population")),
    Function("STDDEV", KEPT, double, (NUMBER,), Reads("sample", least=2, root=True), ("STDDEV_SAMP", "STD")),
    Function("STDDEV_POP", KEPT, double, (NUMBER,), Reads("population", root=True)),
)
