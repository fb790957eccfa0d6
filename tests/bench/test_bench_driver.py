"""The experiments drive the engine right: every strategy ends with the results of a count by hand, each said in time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.patterns_count import count_by_hand
from benchmarks.patterns_driver import trace_of
from benchmarks.patterns_metrics import Trace, measured, standing_of
from benchmarks.patterns_runs import UNIT, Run, Strategy

from headrace.generate import events

ROWS = 700
FAR = 10**9


def traced(strategy: Strategy, share: float = 0.3) -> tuple[Run, Trace]:
    run = Run(strategy, 3, share, share, pog_share=0.2, rows=ROWS)
    return run, trace_of(run)


def said(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """The results that stand, and the rows that brought them out; FAR: the end of the stream."""
    stands = standing_of(trace)
    call = trace.call[stands]
    return trace.ids[stands], np.where(call < trace.calls, trace.row[np.minimum(call, trace.calls - 1)], FAR)


def columns(run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = events("sequence", run.options, 0, run.rows)
    at, pog = (rows.column(name).cast(pa.int64()).fill_null(-1).to_numpy() for name in ("at", "pog"))
    return np.array(rows.column("type").to_pylist()), at, pog


@pytest.mark.parametrize("strategy", list(Strategy))
def test_every_strategy_ends_with_the_same_results(strategy):
    run, trace = traced(strategy, 0.0 if strategy is Strategy.BASIC else 0.3)
    found, _ = measured(trace, run.events, UNIT)
    assert found.results == count_by_hand(run) > 100


def test_aggressive_says_a_result_with_the_last_of_its_events():
    _, trace = traced(Strategy.AGGRESSIVE)
    ids, row = said(trace)
    assert (row == ids.max(axis=1)).all()
    assert (trace.sign < 0).sum() > 10


def test_conservative_says_a_result_with_the_first_promise_that_makes_it_sure():
    run, trace = traced(Strategy.CONSERVATIVE)
    kind, at, pog = columns(run)
    ids, row = said(trace)
    promise = np.flatnonzero((kind == "C") & (pog >= 0))
    needed = np.searchsorted(np.maximum.accumulate(pog[promise]), at[ids[:, 2]])
    sure = np.append(promise, FAR)[needed]
    assert (row == np.maximum(sure, ids.max(axis=1))).all()


def test_kslack_says_a_result_when_the_clock_is_past_it():
    run, trace = traced(Strategy.KSLACK)
    kind, at, _ = columns(run)
    ids, row = said(trace)
    read = np.isin(kind, list(run.types)) & (at >= 0)
    clock = np.maximum.accumulate(np.where(read, at, -1))
    past = np.searchsorted(clock, at[ids[:, 2]] + round(run.max_delay * UNIT), side="right")
    assert (row == np.where(past < ROWS, past, FAR)).all()
    assert (trace.sign > 0).all()
