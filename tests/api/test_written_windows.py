"""`hr.window(text)` makes the plan that SQL makes of the same window."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.api.stream import Stream
from headrace.errors import QueryError
from headrace.plan.nodes import Project, Scan, WindowReport
from headrace.sql import parse_script

SOURCE = "CREATE STREAM s (at TIMESTAMP, k STRING, x INT, id INT) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;"
FORMS = (
    ("SIZE 2 EVERY 4 PARTITIONED BY k", {}, ""),
    ("SIZE 100 EVERY 1 HOUR", {}, ""),
    ("SIZE 10 ON id EVERY 5 ON id WHERE x > 1", {}, ""),
    ("SIZE 10 SECONDS EVERY 5 SECONDS SYSTEM", {}, ""),
    ("DELTA 10 ON ABS(x - first.x)", {}, ""),
    ("SESSION 5 MINUTES", {}, ""),
    ("LANDMARK FROM '2026-01-01' EVERY 1 HOUR", {}, ""),
    ("FIXED FROM '2026-01-01' TO '2026-01-02'", {}, ""),
    ("SIZE 5 SECONDS EVERY 1 SECOND", {"profile": "flink"}, "WITH (profile = 'flink')"),
    ("SIZE 5 SECONDS EVERY 1 SECOND", {"report": "change"}, "WITH (report = 'change')"),
    ("SIZE 3 SECONDS", {"origin": "1970-01-01 00:00:01"}, "WITH (origin = '1970-01-01 00:00:01')"),
    ("ROWS 1", {"model": "time"}, "WITH (model = 'time')"),
    ("ROWS 2", {"batch_by": "x"}, "BATCH BY x"),
    ("RANGE 5 SECONDS SYSTEM", {}, ""),
)


def core(node):
    return core(node.input) if isinstance(node, Project) else node


@pytest.mark.parametrize(("text", "options", "clauses"), FORMS)
def test_the_same_plan(text, options, clauses):
    script = parse_script(f"{SOURCE} SELECT k, COUNT(*) AS n FROM s [{text}] GROUP BY k {clauses};")
    stream = Stream(Scan(script.streams[0]))
    ours = stream.window(hr.window(text, **options)).group_by("k").agg(n=hr.count())
    assert core(ours.node) == core(script.queries[0].node)


def test_the_columns_of_a_look():
    stream = Stream(Scan(parse_script(f"{SOURCE} SELECT k FROM s;").streams[0]))
    found = stream.window(hr.window("SIZE 2 PARTITIONED BY k")).agg(n=hr.count())
    assert isinstance(core(found.node), WindowReport)
    assert found.node.schema.names == ("k", "window_end", "n")


def test_errors_have_their_place():
    stream = Stream(Scan(parse_script(f"{SOURCE} SELECT k FROM s;").streams[0]))
    with pytest.raises(QueryError, match="expected the size of the window"):
        stream.window(hr.window("SIZE x")).agg(n=hr.count())
    with pytest.raises(QueryError, match="profile 'flnk' does not exist"):
        hr.window("SIZE 2", profile="flnk")
