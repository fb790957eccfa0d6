"""SQL -> plan, as text."""

from __future__ import annotations

import re

import pytest
from sql_golden import PRELUDE, check, ids, load

from headrace.plan.explain import tree
from headrace.plan.query import Query, Using
from headrace.sql import parse_script

CASES = load("plans.txt")


def plans(sql: str) -> str:
    script = parse_script(PRELUDE + sql)
    return "\n".join(f"{q.name}: EMIT {level(q)} INTO {q.sink}\n{indent(tree(q.node))}" for q in script.queries)


def level(query: Query) -> str:
    return query.emit.value if query.using is Using.OPTIMISTIC else f"{query.emit.value} USING {query.using.value}"


def indent(text: str) -> str:
    return "\n".join("  " + re.sub(r"Stream payments .*", "Scan payments", line) for line in text.splitlines())


@pytest.mark.parametrize(("sql", "expected"), CASES, ids=ids(CASES))
def test_sql_gives_plan(sql, expected):
    check("plans.txt", sql, expected, plans)


def test_streams_of_a_script_are_those_declared():
    script = parse_script(PRELUDE + "SELECT id FROM payments")
    assert [s.name for s in script.streams] == ["payments"]


def test_keywords_and_names_have_no_case():
    lower = parse_script(PRELUDE + "select CARD, sum(AMOUNT) as t from PAYMENTS [range 5 minutes] group by Card emit final")
    upper = parse_script(PRELUDE + "SELECT card, SUM(amount) AS t FROM payments [RANGE 5 MINUTES] GROUP BY card EMIT FINAL")
    assert lower.queries == upper.queries


WRITTEN = ["5 MINUTES", "300 s", "300s", "INTERVAL 5 MINUTES", "INTERVAL '5 minutes'", "'5 minutes'", "4 min 60 sec", "300000ms"]


@pytest.mark.parametrize("written", [*WRITTEN, "300000 ms", "0.5 MINUTE 4.5 MINUTES"])
def test_durations(written):
    script = parse_script(PRELUDE + f"SELECT COUNT(*) AS n FROM payments [RANGE {written}]")
    assert "RANGE 5 MINUTES" in tree(script.queries[0].node)


def test_columns_of_generated_streams_may_be_left_out():
    from headrace import generate

    for kind, schema in generate.SCHEMAS.items():
        script = parse_script(f"CREATE STREAM s SOURCE GENERATE('{kind}') DELAY 0; SELECT * FROM s")
        assert script.queries[0].node.schema == schema


def test_plans_of_the_caller_can_be_read():
    below = parse_script(PRELUDE + "SELECT card, amount FROM payments").queries[0].node
    script = parse_script("SELECT amount FROM mine WHERE card = 'a'", streams={"mine": below})
    assert [s.name for s in script.streams] == ["payments"]


def test_functions_of_the_user_are_known_by_name():
    assert parse_script(PRELUDE + "SELECT risk(card) AS r FROM payments", functions=["Risk"]).queries
