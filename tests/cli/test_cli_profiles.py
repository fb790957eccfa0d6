"""`headrace explain --profile`: what a query does, in words that follow from its plan."""

from __future__ import annotations

import pytest

from headrace.cli.compare.profiles import chosen, explain_profiles, settings_clauses
from headrace.errors import QueryError
from headrace.plan.profiles import PROFILES
from headrace.sql import parse_script
from headrace.sql.errors import CannotRun

STREAM = "CREATE STREAM s (at TIMESTAMP, v DOUBLE, b INT) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;\n"


def facts(sql, profile):
    """What is said of the only query of a script, by name."""
    lines = explain_profiles(STREAM + sql, "script", [profile]).splitlines()
    return {line[6:18].strip(): line[18:] for line in lines if line.startswith("      ") and line[6] != " "}


def test_the_edges_of_windows():
    tumbling = "SELECT AVG(v) AS a FROM s [SIZE 3 SECONDS];"
    assert facts(tumbling, "flink")["holds"].startswith("[l, u): a row at l is inside, one at u is not; 3 seconds long")
    assert facts(tumbling, "headrace")["holds"].endswith("u is a whole multiple of 3 seconds since 1970 (UTC)")
    assert facts(tumbling, "oracle-cep")["holds"].startswith("(l, u]")
    moved = "SELECT AVG(v) AS a FROM s [SIZE 3 SECONDS] WITH (origin = '2026-01-01 00:00:01');"
    assert facts(moved, "flink")["holds"].endswith("from 2026-01-01 00:00:01")


def test_when_a_window_is_told():
    hopping = "SELECT AVG(v) AS a FROM s [SIZE 5 SECONDS EVERY 1 SECOND];"
    assert facts(hopping, "flink")["told"] == "whenever it is looked at, changed or not, unless it is empty"
    assert "has changed" in facts(hopping, "oracle-cep")["told"]
    assert facts(hopping, "coral8")["reacts to"].startswith("the clock, every 1 second")


def test_models_and_the_order_of_rows():
    one = "SELECT AVG(v) AS a FROM s [SIZE 1];"
    assert facts(one, "oracle-cep")["reacts to"] == "time moving on: rows of one time are seen together (time-driven)"
    assert facts(one, "flink") == {
        "reacts to": "every row (tuple-driven)",
        "told": "whenever it is looked at",
        "holds": "the last row",
        "rows stand": "as they arrive",
    }
    assert facts(one, "headrace")["rows stand"].startswith("by time")
    batches = facts("SELECT AVG(v) AS a FROM s [RANGE 2 SECONDS] BATCH BY b;", "coral8")
    assert batches["reacts to"] == "a batch: rows of one time with the same b (batch-driven)"
    assert batches["holds"] == "(t - 2 seconds, t] at a look of time t"


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    "window",
    [
        "[RANGE 5 SECONDS LAG 1 SECOND]", "[ROWS 3 PARTITIONED BY b]", "[UNBOUNDED]", "[NOW]", "[SIZE 4 EVERY 2]",
        "[SIZE 4 ON b EVERY 2 ON b]", "[RANGE 4 SECONDS LAG 2 SECONDS SLIDE 2 SECONDS]", "[SESSION 5 SECONDS]", "[DELTA 5 ON v]",
        "[FIXED FROM '2026-01-01' TO '2026-01-02']", "[SIZE 2 SECONDS SYSTEM]", "[LANDMARK FROM '2026-01-01' EVERY 1 DAY]",
        "[LANDMARK TO '2026-01-01' EVERY 1 DAY]",
    ],
)  # fmt: skip
def test_every_window_has_words(window, profile):
    sql = f"SELECT SUM(v) AS x FROM s {window};"
    if f"under {profile} this script cannot run" in explain_profiles(STREAM + sql, "script", [profile]):
        assert profile != "headrace"
        return
    assert set(facts(sql, profile)) == {"reacts to", "told", "holds", "rows stand"}


CANNOT = [  # what is written, and the profiles whose engines can run it
    ("SELECT SUM(v) OVER (ORDER BY at RANGE INTERVAL 2 MINUTES PRECEDING) AS x FROM s", {"flink"}),
    ("SELECT SUM(v) OVER (ROWS 2 PRECEDING) AS x FROM s", {"flink"}),
    ("SELECT SUM(v) AS x FROM s [RANGE 2 MINUTES]", {"oracle-cep", "coral8", "stream", "streambase"}),
    ("SELECT SUM(v) AS x FROM s [ROWS 2]", {"flink", "oracle-cep", "coral8", "stream", "streambase"}),
    ("SELECT SUM(v) AS x FROM s [SIZE 4 SECONDS EVERY 2 SECONDS]", set(PROFILES) - {"headrace"}),
    ("SELECT SUM(v) AS x FROM s [SIZE 2 SECONDS EVERY 4 SECONDS]", set(PROFILES) - {"headrace", "spark"}),
    ("SELECT SUM(v) AS x FROM s [SIZE 2 EVERY 4]", set(PROFILES) - {"headrace", "spark"}),
    ("SELECT SUM(v) AS x FROM s [SIZE 2 EVERY 4 SECONDS]", set()),
    ("SELECT SUM(v) AS x FROM s [SIZE 2 ON b]", {"oracle-cep", "streambase"}),
    ("SELECT SUM(v) AS x FROM s [SESSION 5 SECONDS]", {"flink", "spark"}),
    ("SELECT SUM(v) AS x FROM s [DELTA 5 ON v]", set()),
    ("SELECT SUM(v) AS x FROM s [FIXED FROM '2026-01-01' TO '2026-01-02']", set()),
    (
        "SELECT a.v FROM s [RANGE 2 SECONDS] a JOIN s [RANGE 2 SECONDS] z ON a.b = z.b",
        {"oracle-cep", "coral8", "stream", "streambase"},
    ),
    ("EVENT SEQ(s x, s y) WHERE x.b = y.b WITHIN 5 SECONDS RETURN x.v", set()),
    ("SELECT v FROM s WHERE v > 1", set(PROFILES) - {"headrace"}),
]


@pytest.mark.parametrize(("sql", "can"), CANNOT, ids=[sql for sql, _ in CANNOT])
def test_a_profile_answers_only_what_its_engine_can_run(sql, can):
    parse_script(STREAM + sql, profile="headrace")
    for profile in set(PROFILES) - {"headrace"}:
        if profile in can:
            parse_script(STREAM + sql, profile=profile)
            continue
        with pytest.raises(CannotRun, match=f"{profile} cannot run"):
            parse_script(STREAM + sql, profile=profile)


def test_a_query_that_names_a_profile_is_held_to_it():
    with pytest.raises(CannotRun, match="spark cannot run") as error:
        parse_script(STREAM + "SELECT SUM(v) AS x FROM s [SIZE 2] WITH (profile = 'spark')")
    assert error.value.hint.startswith("it has [SIZE ..] of time, [SESSION ..]; leave the profile out")


def test_a_window_that_a_profile_cannot_tell_is_named():
    sql = STREAM + "SELECT SUM(v) AS x FROM s [LANDMARK FROM '2026-01-01' EVERY 1 DAY];"
    text = explain_profiles(sql, "script", list(PROFILES))
    assert "under headrace\n" in text
    assert "under oracle-cep this script cannot run\n  script:2:27: oracle-cep cannot run [LANDMARK ..]" in text


def test_queries_that_do_the_same_are_told_together():
    text = explain_profiles(STREAM + "SELECT AVG(v) AS a FROM s [SIZE 1];", "script", list(PROFILES))
    assert "under headrace, coral8" in text
    assert "under flink, streambase" in text
    assert "under oracle-cep, stream" in text


def test_a_query_that_has_settings_of_its_own_keeps_them():
    sql = """
    SELECT AVG(v) AS a FROM s [SIZE 1] WITH (profile = 'flink') INTO fixed;
    SELECT AVG(v) AS a FROM s [SIZE 1] WITH (model = 'time') INTO partly;
    SELECT AVG(v) AS a FROM s [SIZE 1] INTO free;
    SELECT v FROM s INTO plain;
    """
    parts = explain_profiles(STREAM + sql, "script", ["headrace", "flink"]).split("\n\n")
    assert "fixes this itself, by WITH (profile = 'flink'): no profile changes it" in parts[1]
    assert "under" not in parts[1].split("changes it")[1]
    assert "says WITH (model = 'time'), which goes before a profile" in parts[2]
    assert "WITH" not in parts[3]
    assert "has no window" in parts[4]


def test_a_with_in_a_string_is_no_setting():
    assert settings_clauses("SELECT 'WITH (x)' AS a FROM s -- WITH (y = 'z')") == []
    text = "SELECT a FROM s [ROWS 1] with (model = 'time') EMIT FINAL"
    assert [text[a:b] for a, b in settings_clauses(text)] == ["with (model = 'time')"]


def test_a_profile_under_which_it_cannot_run_says_why():
    text = explain_profiles(STREAM + "SELECT v, AVG(v) AS a FROM s [ROWS 2];", "script", ["flink", "oracle-cep"])
    assert "under flink\n" in text
    assert "under oracle-cep this script cannot run\n  script:2:8: 'v' has no one value in a group" in text


def test_names_of_profiles():
    assert chosen(["flink, Oracle-CEP", "flink"]) == ["flink", "oracle-cep"]
    assert chosen(["flink,all"]) == list(PROFILES)
    with pytest.raises(QueryError, match="Did you mean 'flink'"):
        chosen(["flnk"])


def test_the_command(headrace):
    result = headrace(
        "explain", "-", "--profile", "flink", "-p", "spark", input=STREAM + "SELECT SUM(v) AS x FROM s [SIZE 3 SECONDS];"
    )
    assert result.exit_code == 0
    assert "under flink, spark" in result.stdout
    assert headrace("explain", "-", "--profile", "oracle", input=STREAM + "SELECT v FROM s;").exit_code == 2
