"""The aggregates at their edges; the expected values are those of Spark SQL 4, but for sums, which are exact."""

import math
from decimal import Decimal

import pytest

from headrace.oracle.aggregates import aggregate
from headrace.oracle.rows import canonical
from headrace.plan.aggregates import FUNCTIONS, function, result_type

NAN, INF = math.nan, math.inf
D = Decimal


def call(name, values, kind="DOUBLE"):
    f = function(name)
    return aggregate(f, values, result_type(f, [kind]))


@pytest.mark.parametrize(
    ("name", "kind", "values", "result"),
    [
        ("COUNT", "DOUBLE", [1.0, None, NAN], 2),
        ("COUNT_DISTINCT", "DOUBLE", [0.0, -0.0, NAN, -NAN, None, 1.0], 3),
        ("COUNT_DISTINCT", "STRING", ["a", "A", "", None], 3),
        ("SUM", "DOUBLE", [1e16, 1.0, -1e16], 1.0),
        ("SUM", "DOUBLE", [1e308, 1e308, -1e308], 1e308),
        ("SUM", "DOUBLE", [1e308, 1e308], INF),
        ("SUM", "DOUBLE", [-1e308, -1e308], -INF),
        ("SUM", "DOUBLE", [0.1] * 10, 1.0),
        ("SUM", "DOUBLE", [-0.0], 0.0),
        ("SUM", "DOUBLE", [INF, 1.0], INF),
        ("SUM", "DOUBLE", [INF, INF, None], INF),
        ("SUM", "DOUBLE", [INF, -INF], NAN),
        ("SUM", "DOUBLE", [NAN, INF], NAN),
        ("SUM", "DOUBLE", [None], None),
        ("SUM", "DOUBLE", [], None),
        ("SUM", "BIGINT", [2**63 - 1, 1, -1], 2**63 - 1),
        ("SUM", "BIGINT", [2**63 - 1, 1], None),
        ("SUM", "INT", [2**31 - 1, 1], 2**31),
        ("SUM", "DECIMAL(10, 2)", [D("0.01"), D("99999999.99")], D("100000000.00")),
        ("SUM", "DECIMAL(38, 0)", [D(10**38 - 1), D(1)], None),
        ("AVG", "DOUBLE", [1e308, 1e308], 1e308),
        ("AVG", "DOUBLE", [INF, 1.0], INF),
        ("AVG", "INT", [1, 2, 2], 5 / 3),
        ("AVG", "BIGINT", [2**63 - 1, 2**63 - 1], float(2**63 - 1)),
        ("AVG", "DECIMAL(10, 2)", [D("1.00"), D("2.00"), D("2.00")], D("1.666667")),
        ("AVG", "DECIMAL(10, 2)", [D("-0.01"), *[D(0)] * 19_999], D("-0.000001")),
        ("AVG", "DECIMAL(10, 2)", [D("-0.01"), *[D(0)] * 20_000], D("0.000000")),
        ("AVG", "DOUBLE", [None], None),
        ("VARIANCE", "DOUBLE", [1.0], None),
        ("VARIANCE", "DOUBLE", [INF], None),
        ("VARIANCE", "DOUBLE", [1.0, 2.0, 4.0], 7 / 3),
        ("VARIANCE", "DOUBLE", [1e16, 1e16 + 2], 2.0),
        ("VARIANCE", "DOUBLE", [1.0, INF], NAN),
        ("VARIANCE", "DECIMAL(10, 2)", [D("0.10"), D("0.30")], 0.019999999999999997),
        ("VAR_POP", "DOUBLE", [5.0], 0.0),
        ("VAR_POP", "DOUBLE", [NAN], NAN),
        ("VAR_POP", "DOUBLE", [], None),
        ("VAR_POP", "BIGINT", [2**62, 2**62 + 2], 0.0),
        ("STDDEV", "DOUBLE", [1.0, 3.0], math.sqrt(2)),
        ("STDDEV", "DOUBLE", [1e308, -1e308], INF),
        ("STDDEV_POP", "DOUBLE", [1.0, 3.0, None], 1.0),
        ("MIN", "DOUBLE", [NAN, None, INF], INF),
        ("MIN", "DOUBLE", [NAN], NAN),
        ("MAX", "DOUBLE", [1.0, NAN, INF], NAN),
        ("MAX", "DOUBLE", [-0.0, -1.0], 0.0),
        ("MAX", "STRING", ["z\uffee", "z\U0001f600"], "z\U0001f600"),
        ("MIN", "BOOLEAN", [True, False], False),
        ("MAX", "DOUBLE", [None], None),
        ("MAX_BY", "STRING", [("a", 1.0), ("b", math.nan), ("c", math.inf), ("d", None)], "b"),
        ("MAX_BY", "STRING", [("a", 2), ("b", 1), (None, 2)], None),
        ("MIN_BY", "STRING", [("a", -0.0), ("b", 0.0), ("c", None)], "b"),
        ("MIN_BY", "DOUBLE", [(1.0, None)], None),
        ("COLLECT_LIST", "DOUBLE", [1.0, None, -0.0, math.nan], [1.0, -0.0, math.nan]),
        ("COLLECT_LIST", "STRING", [], []),
        ("PERCENTILE", "DOUBLE", [(1.0, 0.3), (None, 0.3), (2.0, 0.3)], 0.7 * 1.0 + 0.3 * 2.0),
        ("PERCENTILE", "INT", [(10, 1), (0, 1)], 10.0),
        ("MEDIAN", "DOUBLE", [1.0, NAN, INF], INF),
        ("MEDIAN", "DOUBLE", [-INF, INF], NAN),
        ("MEDIAN", "DECIMAL(4, 1)", [D("0.5"), D("1.5")], 1.0),
        ("APPROX_PERCENTILE", "INT", [(v, 0.5) for v in (10, 0, 2, 1)], 1),
        ("APPROX_PERCENTILE", "DOUBLE", [(-0.0, 0)], 0.0),
        ("FIRST", "DOUBLE", [None, 1.0], None),
        ("LAST", "DOUBLE", [1.0, None], None),
        ("FIRST", "DOUBLE", [-0.0, 1.0], -0.0),
        ("LAST", "STRING", [], None),
    ],
)  # fmt: skip
def test_edges(name, kind, values, result):
    assert canonical(call(name, values, kind)) == canonical(result)


def test_a_mean_that_underflows_keeps_its_sign():
    assert str(call("AVG", [-5e-324, 0.0])) == "-0.0"
    assert str(call("AVG", [-5e-324, 5e-324])) == "0.0"


def test_every_function_is_known():
    for name in FUNCTIONS:
        assert call(name, [], "DOUBLE") == {"COUNT": 0, "COUNT_DISTINCT": 0, "COLLECT_LIST": []}.get(name)
