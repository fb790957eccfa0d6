"""`headrace compare`, over the runtime in this process in the place of Spark."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from headrace.cli.compare.side_by_side import MOST_COMPARED, align, side_by_side, table_lines
from headrace.errors import DataError
from headrace.plan.query import ConsoleSink, Emit
from headrace.runs.events import RowsEvent
from headrace.testing.engine import Arrival, Batch
from headrace.testing.local import LocalEngine


@pytest.fixture
def local(engine, fake, tmp_path, monkeypatch):
    """Reads CSV, runs in this process, and plays back what came out."""

    def start_script(script, checkpoint, follow, verbose):
        engine.calls.append(script)
        running = LocalEngine(script, buckets=2)
        rows = {}
        for stream in script.streams:
            with open(stream.source.path) as file:
                read = [tuple(row.values()) for row in csv.DictReader(file)]
            rows[stream.name] = [Arrival(tuple(value(v, f.type) for v, f in zip(r, stream.schema.fields))) for r in read]
        outputs = [running.push(Batch(1_000_000, rows)), running.finish(1_000_000)]
        return fake.handle([[event(q, out[q.name]) for out in outputs for q in script.queries if out[q.name]]])

    engine.start_script = start_script
    monkeypatch.chdir(tmp_path)
    return engine


def value(text, kind):
    match kind:
        case "TIMESTAMP":
            return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
        case "DOUBLE":
            return float(text)
    return int(text)


def event(query, changes):
    signs = {"_op": ["+" if c.sign > 0 else "-" for c in changes]} if query.emit is Emit.CHANGES else {}
    columns = {f.name: [c.row[i] for c in changes] for i, f in enumerate(query.node.schema.fields)}
    batch = pa.record_batch(signs | columns)
    return RowsEvent(query.name, tuple(batch.schema.names), batch)


STREAM = "CREATE STREAM s (at TIMESTAMP, value DOUBLE) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;\n"
EXAMPLES = {  # of section 3.1 of the thesis: the window, (second, value) in order of arrival, and the rows of each profile
    1: ("[SIZE 3 SECONDS]", [(10, 10), (12, 30), (11, 20), (13, 40), (15, 60), (14, 50), (16, 70)],
        {"oracle-cep": [20, 50, 70], "flink": [15, 40, 65], "spark": [15, 40, 65], "streambase": [20, 50, 70]}),
    2: ("[SIZE 5 SECONDS EVERY 1 SECOND]", [(31, 20), (30, 10), (36, 30)],
        {"oracle-cep": [10, 15, 20, 30], "coral8": [10, 15, 20, 30], "flink": [10, 15, 15, 15, 15, 20, 30, 30, 30, 30, 30]}),
    3: ("[SIZE 1]", [(10, 10), (10, 20), (11, 30), (12, 40), (12, 50), (12, 60), (12, 70), (13, 80)],
        {"oracle-cep": [20, 30, 70, 80], "flink": [10, 20, 30, 40, 50, 60, 70, 80], "coral8": [10, 20, 30, 40, 50, 60, 70, 80]}),
}  # fmt: skip


def write(sql, rows):
    Path("x.cql").write_text(STREAM + sql)
    Path("s.csv").write_text("at,value\n" + "".join(f"1970-01-01 00:00:{second:02},{v}\n" for second, v in rows))


def compared(headrace, profiles, *more):
    result = headrace("compare", "x.cql", "--profiles", profiles, "--format", "json", *more)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("number", EXAMPLES)
def test_the_examples_of_the_thesis(local, headrace, number):
    window, rows, expected = EXAMPLES[number]
    write(f"SELECT AVG(value) AS avg FROM s {window} INTO averages;", rows)
    lines = compared(headrace, ",".join(expected))
    for profile, averages in expected.items():
        assert [line["profiles"][profile]["avg"] for line in lines if line["profiles"][profile]] == averages
    for line in lines:
        assert line["query"] == "averages"
        assert line["same"] == (len({str(row) for row in line["profiles"].values()}) == 1)
    assert compared(headrace, ",".join(expected), "--differences") == [line for line in lines if not line["same"]]


def test_a_table_with_columns_for_each_profile(local, headrace):
    write("SELECT AVG(value) AS avg FROM s [SIZE 1] INTO averages;", EXAMPLES[3][1])
    result = headrace("compare", "x.cql", "-p", "flink", "-p", "oracle-cep,coral8")
    assert (
        result.stdout
        == """\
query averages: 4 of 8 rows are the same under all of these profiles
  flink | oracle-cep | coral8
    avg |        avg |    avg
*  10.0 |            |   10.0
   20.0 |       20.0 |   20.0
   30.0 |       30.0 |   30.0
*  40.0 |            |   40.0
*  50.0 |            |   50.0
*  60.0 |            |   60.0
   70.0 |       70.0 |   70.0
   80.0 |       80.0 |   80.0
"""
    )


def test_what_differs_is_marked_on_a_terminal():
    shown = side_by_side("q", ("card", "n"), {"flink": [("a", 1), ("b", 2)], "spark": [("a", 3)]})
    console = Console(force_terminal=True, color_system="standard", highlight=False, file=io.StringIO())
    for line in table_lines(shown):
        console.print(line)
    head, names, first, second = console.file.getvalue().splitlines()
    assert "flink" in head
    assert "card" in names
    yellow = [re.findall(r"\x1b\[1;33m(\S[^\x1b]*)", line) for line in (first, second)]
    assert [[cell.strip() for cell in cells] for cells in yellow] == [["*", "3"], ["*", "b", "2"]]


def test_rows_of_one_window_stand_beside_each_other(local, headrace):
    write("SELECT window_start, window_end, SUM(value) AS s FROM s [SIZE 3 SECONDS];", [(3, 1), (4, 2), (7, 4)])
    result = headrace("compare", "x.cql", "-p", "headrace,flink", "-q")
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "query query1: 1 of 3 rows are the same under all of these profiles",
        "  headrace                                        | flink",
        "  window_start          window_end              s | window_start          window_end              s",
        "* 1970-01-01 00:00:00Z  1970-01-01 00:00:03Z  1.0 |",
        "* 1970-01-01 00:00:03Z  1970-01-01 00:00:06Z  2.0 | 1970-01-01 00:00:03Z  1970-01-01 00:00:06Z  3.0",
        "  1970-01-01 00:00:06Z  1970-01-01 00:00:09Z  4.0 | 1970-01-01 00:00:06Z  1970-01-01 00:00:09Z  4.0",
    ]


def test_everything_is_run_as_one_script_that_writes_nothing(local, headrace):
    write(
        """
        SELECT AVG(value) AS a FROM s [SIZE 1] INTO FILE('out/');
        SELECT AVG(value) AS a FROM s [SIZE 1] EMIT CHANGES INTO TABLE t;
        SELECT AVG(value) AS a FROM s [SIZE 1] EMIT FINAL INTO c;
        SELECT AVG(value) AS a FROM s [SIZE 1] WITH (profile = 'flink') INTO d;
        """,
        [(1, 1), (1, 2)],
    )
    lines = compared(headrace, "headrace,oracle-cep")
    (script,) = local.calls
    assert len(script.queries) == 8
    assert {q.sink for q in script.queries} == {ConsoleSink()}
    assert [q.emit for q in script.queries[:4]] == [Emit.FINAL_IN_ORDER, Emit.CHANGES, Emit.FINAL_IN_ORDER, Emit.FINAL_IN_ORDER]
    assert not Path("out").exists()
    by_query = {q: [line for line in lines if line["query"] == q] for q in ("out/", "t", "c", "d")}
    assert [len(found) for found in by_query.values()] == [2, 2, 2, 2]
    assert all(line["same"] for line in by_query["d"])
    assert by_query["t"][1]["profiles"]["headrace"] == {"_op": "+", "a": 2.0}


def test_a_stream_that_is_never_final_is_compared_by_its_changes(local, headrace):
    write("SELECT AVG(value) AS a FROM s [SIZE 1] EMIT CHANGES;", [(1, 1)])
    path = Path("x.cql")
    path.write_text(path.read_text().replace("DELAY 1 SECOND", "DELAY UNBOUNDED"))
    assert compared(headrace, "headrace,coral8")[0]["profiles"]["coral8"] == {"_op": "+", "a": 1.0}


def test_no_rows(local, headrace):
    write("SELECT value FROM s WHERE value > 100;", [(1, 1)])
    result = headrace("compare", "x.cql", "-p", "headrace,flink")
    assert result.stdout == "query query1: no rows under any of these profiles\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "flink"], "there is nothing to compare with one profile"),
        (["-p", "flink,oracel-cep"], "Did you mean 'oracle-cep'"),
        (["-p", "all", "--format", "xml"], "format 'xml' does not exist"),
        (["-p", "flink,oracle-cep"], "x.cql:2:8: under the profile oracle-cep, 'value' has no one value in a group"),
    ],
)
def test_what_cannot_be_compared(local, headrace, arguments, message):
    write("SELECT value, AVG(value) AS a FROM s [ROWS 2];", [])
    result = headrace("compare", "x.cql", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_an_engine_that_cannot_run_it_is_named_and_not_compared(local, headrace):
    over = "SELECT value, SUM(value) OVER (ORDER BY at RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW) AS s FROM s;"
    write(over, [(1, 1), (3, 2), (3, 4)])
    result = headrace("compare", "x.cql", "-p", "headrace,flink,spark,coral8")
    assert result.exit_code == 0
    assert (
        result.stdout.splitlines()[0] == "query query1: the same under all of these profiles, 3 rows; spark, coral8 cannot run it"
    )
    assert "under spark this script cannot run: spark cannot run OVER (..) (x.cql:2:15)" in result.stderr
    assert [line["profiles"]["headrace"]["s"] for line in compared(headrace, "headrace,flink,spark")] == [1.0, 7.0, 7.0]
    assert {line["profiles"]["spark"] for line in compared(headrace, "headrace,flink,spark")} == {"cannot"}
    alone = headrace("compare", "x.cql", "-p", "flink,spark")
    assert alone.exit_code == 2
    assert "fewer than two of these profiles can run this script" in alone.stderr


def test_a_script_without_a_query(local, headrace):
    write("SHOW STREAMS;", [])
    assert "there is no query to compare" in headrace("compare", "x.cql", "-p", "flink,spark").stderr


def test_a_run_that_fails(local, engine, fake, headrace):
    write("SELECT value FROM s;", [])
    engine.start_script = lambda *arguments: fake.handle([[]], DataError("no such file"))
    assert headrace("compare", "x.cql", "-p", "flink,spark").exit_code == 1


def test_profiles_are_needed(headrace):
    assert "--profiles" in headrace("compare", "x.cql").stderr


def test_long_outputs():
    many = [(n,) for n in range(int(MOST_COMPARED**0.5) + 1)]
    lines = align([many, many[1:]])
    assert [line.rows for line in lines[:2]] == [((0,), None), ((1,), (1,))]
    assert sum(line.same for line in lines) == len(many) - 1


@given(st.lists(st.lists(st.tuples(st.integers(0, 3)), max_size=8), min_size=2, max_size=4))
def test_every_row_is_there_once_and_in_order(outputs):
    lines = align(outputs)
    for n, rows in enumerate(outputs):
        assert [line.rows[n] for line in lines if line.rows[n] is not None] == rows
    assert all(any(row is not None for row in line.rows) for line in lines)


def test_windows_of_rows_without_an_end_come_last():
    assert [line.rows for line in align([[(None, 1), (2, 1)], [(2, 1)]], end=0)] == [((2, 1), (2, 1)), ((None, 1), None)]
