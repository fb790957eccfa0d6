"""The suite accepts an engine that is right by construction and catches each of the broken ones."""

import pytest
from hypothesis import HealthCheck, given, settings
from naive_engine import BROKEN, DependsOnBuckets, Forgetful, KeepsLists, NaiveEngine, SharesState

from headrace.plan.aggregates import Aggregate, function
from headrace.plan.expr import Expr
from headrace.plan.nodes import Scan, WindowAggregate
from headrace.plan.query import Emit, Query, Script
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream
from headrace.plan.time import SECOND
from headrace.plan.windows import RangeWindow
from headrace.testing.conformance import ConformanceError, check_bounded_state, check_query
from headrace.testing.engine import Arrival, Batch
from headrace.testing.strategies import cases
from headrace.testing.tables import read_batches

SCHEMA = Schema.of(at="TIMESTAMP", card="STRING", amount="DOUBLE")
STREAM = Stream("payments", FileSource("x.csv"), SCHEMA, timestamp=Expr.of("at"), delay=5 * SECOND)
NODE = WindowAggregate(
    Scan(STREAM), RangeWindow(5 * SECOND), (Expr.of("card"),),
    (Aggregate("total", function("SUM"), (Expr.of("amount"),)), Aggregate("n", function("COUNT"))),
)  # fmt: skip
SCRIPT = Script(tuple(Query(emit.name.lower(), NODE, emit) for emit in Emit), (STREAM,))
BATCHES = read_batches(
    "payments",
    SCHEMA,
    """
    | now | at | card | amount |
    |  10 |  5 | a    | 1.5    |
    |  10 | 10 | a    | -1.5   |
    |  12 |  7 | a    | 4      |
    |  13 | 14 | b    | 0      |
    |  13 | 11 | a    | -2.5   |
    |  20 | 20 | b    | 1      |
    |  21 |  3 | a    | 9      |
    |  22 |    | a    | 9      |
    |  30 | 30 | a    | 9      |
    |  31 |  . | .    | .      |
    """,
)


def test_the_naive_engine_conforms():
    check_query(SCRIPT, BATCHES, NaiveEngine, recuts=3)


@pytest.mark.parametrize("engine", BROKEN)
def test_a_broken_engine_is_caught(engine):
    with pytest.raises(ConformanceError):
        check_query(SCRIPT, BATCHES, engine, recuts=0)


@pytest.mark.parametrize("engine", [Forgetful, KeepsLists, SharesState, DependsOnBuckets])
def test_what_only_a_metamorphic_check_finds(engine):
    check_query(SCRIPT, BATCHES, lambda script, buckets, saved: NaiveEngine(script, 4, saved), recuts=0)
    with pytest.raises(ConformanceError, match=r"restarted|wiped|1 buckets"):
        check_query(SCRIPT, BATCHES, engine, recuts=0)


def test_the_message_shows_the_rows():
    class Silent(NaiveEngine):
        def _changes(self, query, end):
            return []

    with pytest.raises(ConformanceError) as error:
        check_query(SCRIPT, BATCHES, Silent)
    text = str(error.value)
    assert text.startswith("changes (EMIT CHANGES: WindowAggregate [RANGE 5 SECONDS] GROUP BY card:")
    assert "in batch 0 0 rows are out, the oracle has 2" in text
    assert "| missing | 10000000 | 0  | 1  |     | 1970-01-01 00:00:10 | a    | -1.5   | -1.5  | 1 |" in text


def test_state_that_grows_is_caught():
    batches = [Batch(i, {"payments": [Arrival((i, "a", 1.0))]}) for i in range(20)]
    with pytest.raises(ConformanceError, match="state grows"):
        check_bounded_state(Script(SCRIPT.queries[:1]), batches, NaiveEngine)

    class Small(NaiveEngine):
        def state_size(self):
            return min(super().state_size(), 4)

    assert check_bounded_state(Script(SCRIPT.queries[:1]), batches, Small)[-1] == 4


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases(most_queries=2, most_rows=10))
def test_random_cases_run(case):
    check_query(case.script, case.batches, NaiveEngine, buckets=(1,), restarts=(1,) if case.batches else (), recuts=1)
