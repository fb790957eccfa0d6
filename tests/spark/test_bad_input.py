"""Bad input, end to end: each kind gets a clear error or the rejected stream, and nothing already accepted is lost."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_driver import FIRST_WRITTEN, read_sink

from headrace.errors import DataError, QueryError, SourceError, StateError, SystemFailure
from headrace.spark.run import start_run
from headrace.sql import SqlError, parse_script


def lines(folder: Path, name: str, *rows: str) -> None:
    """A file of text; files are as old as they are many."""
    folder.mkdir(parents=True, exist_ok=True)
    written = FIRST_WRITTEN + len(list(folder.iterdir()))
    (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    os.utime(folder / name, (written, written))


def start(spark, sql, root, **options):
    """Start a script whose paths stand below `root`."""
    text = sql.replace("{}", str(root))
    return start_run(spark, parse_script(text), {}, checkpoint=str(root / "checkpoint"), buckets=2, **options)


def test_rows_that_cannot_be_used_are_rejected_with_the_reason(compiled, spark, tmp_path):
    """A malformed row, a wrong type, a null or absurd timestamp, an expression that fails on one row: one script has them all."""
    lines(
        tmp_path / "csv", "a.csv",
        "1970-01-01 00:00:10,1,5", "1970-01-01 00:00:11,2,abc", "1970-01-01 00:00:12,3", "not a time,4,5", ",5,5",
        '1970-01-01 00:00:13,6,"never closed', "1970-01-01 00:00:14,7,5,too many", "300000-01-01 00:00:00,8,5",
    )  # fmt: skip
    lines(tmp_path / "csv", "b.csv", "1970-01-01 00:00:15,9,5")
    lines(
        tmp_path / "json", "a.json",
        '{"t": 10000, "id": 1, "x": 5}', '{"t": 11000, "id": 2', '{"t": 12000, "id": 3}', '{"t": "soon", "id": 4}', '{"id": 5}',
        "nonsense", '{"t": 9223372036854775807, "id": 7, "x": 1}', '{"t": 13000, "id": "eight"}', '{"t": 14000, "id": 9, "x": 1}',
    )  # fmt: skip
    lines(
        tmp_path / "fails",
        "a.csv",
        "1970-01-01 00:00:10,1,2",
        "1970-01-01 00:00:11,2,0",
        "1970-01-01 00:00:12,3,4",
        "1970-01-01 00:00:13,4,",
    )
    run = start(
        spark,
        """
        CREATE STREAM c (at TIMESTAMP, id INT, x INT) SOURCE FILE('{}/csv') TIMESTAMP BY at DELAY 1 MINUTE;
        CREATE STREAM j (t BIGINT, id INT, x INT) SOURCE FILE('{}/json', 'json') TIMESTAMP BY t DELAY 1 MINUTE;
        CREATE STREAM f (at TIMESTAMP, id INT, x INT) SOURCE FILE('{}/fails') TIMESTAMP BY at DELAY 1 MINUTE;
        SELECT id, COUNT(*) AS n FROM c [UNBOUNDED] EMIT FINAL INTO FILE('{}/good_csv');
        SELECT * FROM rejected(c) INTO FILE('{}/bad_csv');
        SELECT id, COUNT(*) AS n FROM j [UNBOUNDED] EMIT FINAL INTO FILE('{}/good_json');
        SELECT row, reason FROM rejected(j) INTO FILE('{}/bad_json');
        SELECT id, SUM(100 / x) AS s FROM f [UNBOUNDED] EMIT FINAL INTO FILE('{}/good_fails');
        SELECT row, reason FROM rejected(f) INTO FILE('{}/bad_fails');
        """,
        tmp_path,
    )
    run.wait(240)
    good, bad = sorted(read_sink(tmp_path / "good_csv")), read_sink(tmp_path / "bad_csv")
    assert good == [(1, 1), (9, 2)]
    assert len(bad) == 7
    assert {row[2] for row in bad} == {"c"}
    assert len({row[3] for row in bad}) == 7
    why = {row[0]: row[1] for row in bad}
    assert why == {
        "1970-01-01 00:00:11,2,abc": "column 'x' is INT, and here is 'abc'",
        "1970-01-01 00:00:12,3": "it has 2 fields, and 3 were expected: at, id, x",
        "not a time,4,5": "column 'at' is TIMESTAMP, and here is 'not a time'",
        ",5,5": "the timestamp at is NULL",
        '1970-01-01 00:00:13,6,"never closed': "a quote is never closed",
        "1970-01-01 00:00:14,7,5,too many": "it has 4 fields, and 3 were expected: at, id, x",
        "300000-01-01 00:00:00,8,5": "column 'at' is TIMESTAMP, and here is '300000-01-01 00:00:00'",
    }
    assert [(Path(row[4]).name, row[5]) for row in sorted(bad, key=lambda row: row[5])] == [
        ("a.csv", line) for line in (2, 3, 4, 5, 6, 7, 8)
    ]
    assert sorted(read_sink(tmp_path / "good_json")) == [(1, 1), (3, 2), (9, 3)]
    bad = read_sink(tmp_path / "bad_json")
    assert {text: reason for text, reason in bad} == {
        '{"t": 11000, "id": 2': "it is not JSON: Expecting ',' delimiter: line 1 column 21 (char 20)",
        '{"t": "soon", "id": 4}': "column 't' is BIGINT, and here is \"soon\"",
        '{"id": 5}': "the timestamp t is NULL",
        "nonsense": "it is not a JSON object",
        '{"t": 9223372036854775807, "id": 7, "x": 1}': "the timestamp t is outside years 1 to 9999, with t = 9223372036854775807",
        '{"t": 13000, "id": "eight"}': "column 'id' is INT, and here is \"eight\"",
    }
    assert sorted(read_sink(tmp_path / "good_fails")) == [(1, 50.0), (3, 75.0), (4, 75.0)]
    ((text, reason),) = read_sink(tmp_path / "bad_fails")
    assert text == "1970-01-01 00:00:11,2,0"
    assert re.fullmatch(r"the expression 100 / \(?x\)? failed, with x = 0", reason)
    counted = [event for event in run.poll(1) if hasattr(event, "rejected")]
    assert sum(event.rejected for event in counted) == 7 + 6 + 1


GUARDED = """
CREATE STREAM p (at TIMESTAMP, a INT, b INT) SOURCE FILE('{}/in', ',') TIMESTAMP BY at DELAY 1 SECOND;
SELECT a, a / b AS q FROM p WHERE b <> 0 EMIT FINAL INTO FILE('{}/rows');
SELECT a, SUM(a / b) FILTER (WHERE b <> 0) AS s FROM p [UNBOUNDED] EMIT FINAL IN ORDER INTO FILE('{}/sums');
SELECT a, SUM(a / b) AS s FROM (SELECT * FROM p WHERE b <> 0) [UNBOUNDED] EMIT FINAL INTO FILE('{}/inner');
SELECT a FROM p EMIT FINAL INTO FILE('{}/all');
SELECT row, reason FROM rejected(p) INTO FILE('{}/rejected');
"""


def test_where_guards_what_stands_behind_it(compiled, spark, tmp_path):
    """A row that a query does not use cannot fail in it."""
    lines(tmp_path / "in", "a.csv", "1970-01-01 00:00:01,6,2", "1970-01-01 00:00:02,1,0", "1970-01-01 00:00:03,8,4")
    start(spark, GUARDED, tmp_path).wait(120)
    assert sorted(read_sink(tmp_path / "rows")) == [(6, 3.0), (8, 2.0)]
    assert read_sink(tmp_path / "sums") == [(6, 3.0), (1, 3.0), (8, 5.0)]
    assert sorted(read_sink(tmp_path / "inner")) == [(6, 3.0), (8, 5.0)]
    assert sorted(read_sink(tmp_path / "all")) == [(1,), (6,), (8,)]
    assert read_sink(tmp_path / "rejected") == []


def test_two_expressions_that_share_what_fails_on_one_row(compiled, spark, tmp_path):
    """Spark would compute the part that they share once, outside of both attempts, and the whole query would fail."""
    lines(tmp_path / "csv", "a.csv", "1970-01-01 00:00:10,7", "1970-01-01 00:00:11,abc", "1970-01-01 00:00:12,8")
    sql = """
        CREATE STREAM s (at TIMESTAMP, t STRING) SOURCE FILE('{}/csv') TIMESTAMP BY at;
        SELECT CAST(t AS INT) AS a, CAST(t AS INT) + 1 AS b FROM s WHERE CAST(t AS INT) + 2 > 0 EMIT FINAL INTO FILE('{}/out');
        SELECT reason FROM rejected(s) INTO FILE('{}/rejected');
    """
    start(spark, sql, tmp_path).wait(120)
    assert read_sink(tmp_path / "out") == [(7, 8), (8, 9)]
    assert len(read_sink(tmp_path / "rejected")) == 1


def test_a_header_that_lacks_a_column(spark, tmp_path):
    lines(tmp_path / "in", "a.csv", "at,id", "1970-01-01 00:00:10,1")
    with pytest.raises(DataError, match=r"a\.csv has no column 'x'; its header says: at, id"):
        start(spark, f"CREATE STREAM p (at TIMESTAMP, id INT, x INT) {REST}", tmp_path)


REST = """SOURCE FILE('{}/in') TIMESTAMP BY at DELAY 0;
SELECT id, COUNT(*) AS n FROM p [RANGE 1 SECOND] EMIT FINAL INTO FILE('{}/out');"""


def test_parquet_that_lacks_a_column_or_has_another_type(spark, tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(
        pa.table({"at": pa.array([10_000_000], pa.timestamp("us", "UTC")), "id": ["text"]}), tmp_path / "in" / "a.parquet"
    )
    sql = "CREATE STREAM p (at TIMESTAMP, id INT) " + REST.replace("/in'", "/in', 'parquet'")
    with pytest.raises(DataError, match=r"(?s)\bid\b"):
        start(spark, sql, tmp_path).wait(120)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "CREATE STREAM p (at TIMESTAMP, id INT) SOURCE FILE('x.csv') TIMESTAMP BY at DELAY 0; SELECT idd FROM p",
            "Did you mean 'id'",
        ),
        (
            "CREATE STREAM p (at TIMESTAMP, id INT) SOURCE FILE('x.csv') TIMESTAMP BY at DELAY 0; SELECT id FROM pp",
            "Did you mean 'p'",
        ),
        (
            "CREATE STREAM p (at TIMESTAMP, id INT) SOURCE FILE('x.csv') TIMESTAMP BY at;"
            " SELECT COUNT(*) AS n FROM p [RANGE 1 SECOND]",
            "add DELAY",
        ),
        (
            "CREATE STREAM p (at TIMESTAMP, id INT) SOURCE FILE('x.csv') TIMESTAMP BY at DELAY UNBOUNDED;"
            " SELECT COUNT(*) AS n FROM p [RANGE 1 SECOND] EMIT FINAL",
            "would never emit",
        ),
    ],
)
def test_what_can_be_seen_in_the_text_is_refused_there(sql, message):
    with pytest.raises(SqlError, match=message):
        parse_script(sql)


def test_a_function_that_spark_does_not_accept(spark, tmp_path):
    lines(tmp_path / "in", "a.csv", "1970-01-01 00:00:10,1")
    sql = "CREATE STREAM p (at TIMESTAMP, id INT) " + REST.replace("SELECT id,", "SELECT array_max(id) AS m,")
    with pytest.raises(QueryError, match="array_max"):
        start(spark, sql, tmp_path)


def test_a_source_that_does_not_exist(spark, tmp_path):
    sql = "CREATE STREAM p (at TIMESTAMP, id INT) " + REST
    with pytest.raises(DataError, match="there is no file"):
        start(spark, sql.replace("/in'", "/nowhere/x.csv'"), tmp_path)
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_of_another_query(spark, tmp_path):
    lines(tmp_path / "in", "a.csv", "1970-01-01 00:00:10,1")
    sql = "CREATE STREAM p (at TIMESTAMP, id INT) " + REST
    start(spark, sql, tmp_path).wait(120)
    assert read_sink(tmp_path / "out") == [(1, 1)]
    with pytest.raises(StateError, match="cannot begin complete: it needs rows of the last 2 seconds"):
        start(spark, sql.replace("1 SECOND", "2 SECONDS"), tmp_path)
    start(spark, sql, tmp_path).wait(120)  # the same again has nothing to do
    assert read_sink(tmp_path / "out") == [(1, 1)]
    lines(tmp_path / "in", "b.csv", "1970-01-01 00:00:11,2")
    start(spark, sql, tmp_path).wait(120)  # the end had released nothing, so it goes on
    assert read_sink(tmp_path / "out") == [(1, 1), (2, 1)]


def test_a_directory_that_is_no_checkpoint(spark, tmp_path):
    lines(tmp_path / "in", "a.csv", "1970-01-01 00:00:10,1")
    lines(tmp_path / "checkpoint", "letter.txt", "dear all")
    with pytest.raises(StateError, match="not a checkpoint of Headrace"):
        start(spark, "CREATE STREAM p (at TIMESTAMP, id INT) " + REST, tmp_path)


HOST = """CREATE STREAM p (at TIMESTAMP, id INT) SOURCE HOST('127.0.0.1', PORT) TIMESTAMP BY at DELAY 1 MINUTE;
SELECT id, COUNT(*) AS n FROM p [UNBOUNDED] EMIT FINAL INTO FILE('{}/out');
SELECT row, reason FROM rejected(p) INTO FILE('{}/bad');"""


def test_a_socket_that_goes_away_keeps_what_it_sent(spark, tmp_path):
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"1970-01-01 00:00:10,1\n1970-01-01 00:00:11,2\n1970-01-01 00:0")  # and away, within a line

    thread = threading.Thread(target=serve)
    thread.start()
    with server:
        start(spark, HOST.replace("PORT", str(server.getsockname()[1])), tmp_path).wait(120)
        thread.join()
    assert sorted(read_sink(tmp_path / "out")) == [(1, 1), (2, 2)]
    assert read_sink(tmp_path / "bad") == [("1970-01-01 00:0", "it has 1 field, and 2 were expected: at, id")]


def test_a_socket_that_nobody_listens_on(spark, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(SourceError, match=f"cannot connect to 127.0.0.1:{port}"):
        start(spark, HOST.replace("PORT", str(port)), tmp_path).wait(120)


@pytest.fixture
def small_disk(tmp_path):
    """A file system with almost no room; `grow()` gives it some."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if not made or made.returncode:
        pytest.skip("cannot mount a small file system here")

    def grow() -> None:
        subprocess.run([mount, "-o", "remount,size=64m", str(place)], check=True)

    yield place, grow
    subprocess.run(["umount", "-l", str(place)], check=False)


def test_a_full_disk(spark, tmp_path, small_disk):
    """The run stops and says so; with room again it goes on where it was, and every row is there once."""
    place, grow = small_disk
    for number in range(4):
        lines(
            tmp_path / "in", f"{number}.csv", *(f"1970-01-01 00:{number:02d}:{i % 60:02d},{number * 500 + i}" for i in range(500))
        )
    sql = (
        "CREATE STREAM p (at TIMESTAMP, id INT) SOURCE FILE('{}/in') TIMESTAMP BY at DELAY 10 MINUTES;"
        "SELECT id, COUNT(*) AS n FROM p [UNBOUNDED] EMIT CHANGES INTO FILE('DISK/out')"
    ).replace("DISK", str(place))
    with pytest.raises(SystemFailure, match="the disk is full: "):
        start(spark, sql, tmp_path, options={"maxFilesPerTrigger": "1"}).wait(120)
    grow()
    start(spark, sql, tmp_path, options={"maxFilesPerTrigger": "1"}).wait(120)
    total: dict[int, int] = {}
    for op, key, _ in read_sink(place / "out"):
        total[key] = total.get(key, 0) + (1 if op == "+" else -1)
    assert total == dict.fromkeys(range(2000), 1)
