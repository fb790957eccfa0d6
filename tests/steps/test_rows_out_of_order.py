"""ROWS PARTITIONED BY with a GROUP BY across partitions: rows leave a group's window in another order than they came."""

from __future__ import annotations

import pytest

from headrace.errors import QueryError
from headrace.sql import parse_script
from headrace.testing.conformance import check_query
from headrace.testing.local import local_engine
from headrace.testing.tables import read_batches

CASES = {
    "FIRST": "| 1 | 1 | b | 2 | 4 |\n| 1 | 2 | a | 2 | 9 |\n| 1 | 3 | a | 1 | 8 |\n| 1 | 4 | b | 2 | 1 |",
    "MIN": "| 1 | 1 | a | 1 | 1 |\n| 1 | 2 | b | 1 | 1 |\n| 2 | 3 | b | 1 | 7 |\n| 3 | 4 | b | 2 | 4 |",
    "MAX": "| 1 | 1 | b | 1 | 8 |\n| 1 | 2 | a | 1 | 7 |\n| 3 | 3 | a | 2 | 3 |\n| 4 | 4 | b | 1 | 5 |",
}


def check(function: str, rows: str) -> None:
    script = parse_script(
        "CREATE STREAM p (at TIMESTAMP, card STRING, shop INT, x INT) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 0;"
        f"SELECT x, {function}(x) AS f FROM p [ROWS 1 PARTITIONED BY card] GROUP BY shop EMIT FINAL INTO q"
    )
    table = f"| now | at | card | shop | x |\n{rows}"
    check_query(script, read_batches("p", script.streams[0].schema, table), local_engine)


@pytest.mark.parametrize("function", ["COUNT", "SUM", "STDDEV"])
@pytest.mark.parametrize("rows", CASES.values(), ids=CASES)
def test_invertible_aggregates_do_not_mind(function, rows):
    check(function, rows)


@pytest.mark.parametrize("function", [*CASES, "LAST"])
def test_selective_aggregates_are_refused(function):
    with pytest.raises(QueryError, match="needs GROUP BY to name"):
        check(function, CASES["FIRST"])
