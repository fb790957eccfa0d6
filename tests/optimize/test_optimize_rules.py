"""Rules: their examples, what they must leave alone, and that no answer changes."""

from __future__ import annotations

import doctest
import importlib
import random

import pytest

from headrace.optimize import RULES, optimize
from headrace.optimize.example import PAYMENTS, plan, show
from headrace.plan.nodes import Scan, WindowAggregate
from headrace.sql import parse_script

MICROS = 1_000_000


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_every_rule_has_a_file_of_its_name_and_an_example_that_holds(rule):
    module = importlib.import_module(f"headrace.optimize.{rule.__name__}")
    failed, tried = doctest.testmod(module)
    assert tried
    assert not failed


INNER = "SELECT *, SUM(amount) AS t FROM payments [RANGE 3 SECONDS] GROUP BY card"
QUERIES = [
    "SELECT * FROM payments",
    "SELECT card, amount * 2 AS x FROM (SELECT card, amount FROM payments WHERE amount > 3) WHERE card <> 'a'",
    "SELECT card, SUM(amount) AS s, COUNT(*) AS n FROM payments [RANGE 5 SECONDS] WHERE amount > 3 GROUP BY card HAVING n > 1",
    "SELECT card, COUNT(*) AS n FROM payments [ROWS 3] WHERE amount > 3 GROUP BY card",
    "SELECT id, MAX(amount) AS m FROM payments [ROWS 2 PARTITIONED BY card] WHERE amount > 3",
    "SELECT id, LAST(amount) AS m FROM payments [UNBOUNDED] WHERE amount > 3 GROUP BY card",
    f"SELECT *, COUNT(*) AS n FROM ({INNER}) [RANGE 3 SECONDS] GROUP BY card",
    f"SELECT *, MAX(t) AS n FROM ({INNER}) [RANGE 3 SECONDS] GROUP BY card",
    "SELECT id, t FROM (SELECT id, SUM(amount) AS t, MIN(amount) AS l FROM payments [ROWS 3] GROUP BY card) WHERE t > 5",
    "SELECT id FROM (SELECT id, COUNT(*) AS n FROM payments [RANGE 2 SECONDS] WHERE amount > 4 GROUP BY card)",
    "SELECT id FROM (SELECT id, COUNT(*) AS n FROM payments [ROWS 2] WHERE amount > 4 GROUP BY card)",
    "SELECT y + 1 AS z, y AS w FROM (SELECT amount + 1 AS y, id FROM payments)",
    "SELECT y + 1 AS z FROM (SELECT amount + 1 AS y, id FROM payments)",
    "SELECT id, SUM(amount) OVER (PARTITION BY card ROWS 2 PRECEDING) AS a,"
    " COUNT(*) OVER (RANGE INTERVAL 4 SECONDS PRECEDING) AS b FROM payments",
]  # fmt: skip


def history(rng):
    times = [rng.randrange(12) * MICROS for _ in range(25)]
    return [((ts, 0, seq), (seq, rng.choice("abc"), float(rng.randrange(10)), ts)) for seq, ts in enumerate(times)]


@pytest.mark.parametrize("sql", QUERIES)
def test_no_answer_changes(sql):
    from headrace.oracle import evaluate as oracle

    node = plan(sql)
    changed, _ = optimize(node)
    assert changed.schema == node.schema
    rng = random.Random(sql)
    for _ in range(3):
        rows = history(rng)
        rows.sort()
        assert oracle.results(changed, rows) == oracle.results(node, rows)


def test_optimizing_twice_changes_nothing():
    for sql in QUERIES:
        once, _ = optimize(plan(sql))
        assert optimize(once) == (once, [])


def test_where_stays_above_rows():
    node, changes = optimize(plan("SELECT COUNT(*) AS n FROM payments [ROWS 3] WHERE amount > 3"))
    assert changes == []
    assert "[ROWS 3] WHERE amount > 3" in show(node)


def test_where_stays_above_unbounded_with_keep():
    script = "CREATE STREAM s (a INT) SOURCE FILE('x') KEEP 1 DAY; SELECT COUNT(*) AS n FROM s [UNBOUNDED] WHERE a > 3"
    node = parse_script(script).queries[0].node
    assert optimize(node) == (node, [])


def test_changes_say_before_and_after():
    _, changes = optimize(plan("SELECT COUNT(*) AS n FROM payments [RANGE 3 SECONDS] WHERE amount > 3"))
    [(rule, before, after)] = changes
    assert rule == "pushdown_where"
    assert "WHERE amount > 3" in before
    assert "Filter amount > 3" in after


def test_an_expression_that_may_fail_is_not_dropped():
    sql = "SELECT id FROM (SELECT id, 1 / amount AS x FROM payments)"
    assert optimize(plan(sql))[1] == []
    sql = "SELECT id FROM (SELECT id, MAX(1 / amount) AS x FROM payments [ROWS 3])"
    assert "MAX(1 / amount)" in show(optimize(plan(sql))[0])
    sql = "SELECT id FROM (SELECT id, SUM(id) AS x FROM payments [ROWS 3])"
    assert "SUM(id)" in show(optimize(plan(sql))[0])


def test_a_step_without_aggregates_left_is_gone():
    node, _ = optimize(plan("SELECT id FROM (SELECT id, COUNT(*) AS n FROM payments [RANGE 2 SECONDS] WHERE amount > 4)"))
    assert show(node) == "Project id\n  Filter amount > 4\n    Scan payments"
    assert not isinstance(node, WindowAggregate)


def test_a_scan_is_left_alone():
    assert optimize(Scan(PAYMENTS)) == (Scan(PAYMENTS), [])
