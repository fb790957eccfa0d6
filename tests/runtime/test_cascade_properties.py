"""Queries over the results of queries, against the oracle: aggregates of aggregates, looks at looks, merges of results."""

from __future__ import annotations

from cascade_cases import a_case
from headrace.testing.conformance import Run
from headrace.testing.reach import hold
from seeds import FIRST, agrees, examples


def conforms(run: Run, seed: int) -> None:
    agrees(run, seed, (3, 1), (4,), (1,), restarts=(1, 3), losses=False)


def test_queries_over_results_conform():
    hold(a_case, conforms, examples(8, 6), first=FIRST)
