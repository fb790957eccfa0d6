"""The runtime against the oracle: random scripts over random arrivals, at every EMIT level, however they are cut, split or restarted.

`HYPOTHESIS_PROFILE=deep` looks a hundred times longer than the default profile.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from headrace.errors import QueryError
from headrace.plan.aggregates import FUNCTIONS, Aggregate
from headrace.plan.expr import Expr
from headrace.plan.nodes import Scan, WindowAggregate
from headrace.plan.query import Emit, Query, Script
from headrace.plan.stream import FileSource, Stream
from headrace.plan.time import SECOND
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow
from headrace.testing.conformance import check_query
from headrace.testing.local import local_engine
from headrace.testing.strategies import ANYTHING, NUMBERS, PAYMENTS, Case, arrivals, scripts, streams

RUNTIME_HAS_KEEP = False  # KEEP and UNIQUE BY are being written
RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@st.composite
def cases(draw: st.DrawFn, most_queries: int = 3, most_rows: int = 24) -> Case:
    stream = draw(streams())
    if not RUNTIME_HAS_KEEP:
        stream = replace(stream, keep=None, unique=None, delay=stream.delay if stream.delay is not None else 2 * SECOND)
    return Case(draw(scripts(stream, most_queries, nested=False)), tuple(draw(arrivals(stream, most_rows))))


@settings(suppress_health_check=RELAXED)
@given(cases())
def test_any_script_conforms(case):
    try:
        local_engine(case.script, 1, None)
    except QueryError:
        assume(False)
    check_query(case.script, case.batches, local_engine)
