"""Definitions that only Spark can show: delimiters, sockets, nested types. The rest is in `tests/queries/definitions`."""

from __future__ import annotations

import datetime as dt
import os
import socket
import threading
from pathlib import Path

import pytest
from case_driver import FIRST_WRITTEN, read_sink

from headrace.spark.run import start_run
from headrace.sql import parse_script


def write(folder: Path, name: str, *rows: str) -> None:
    """A file of text; files are as old as they are many."""
    folder.mkdir(parents=True, exist_ok=True)
    written = FIRST_WRITTEN + len(list(folder.iterdir()))
    (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    os.utime(folder / name, (written, written))


def run(spark, sql: str, root: Path) -> None:
    """Run a script whose paths stand below `root` to the end of its input, a file a batch."""
    text = sql.replace("{}", str(root))
    options = {"maxFilesPerTrigger": "1"}
    start_run(spark, parse_script(text), {}, checkpoint=str(root / "checkpoint"), buckets=2, options=options).wait(240)


def test_delimiters_at_every_level(spark, tmp_path):
    """FILE(path, delimiter): the same disordered rows behind ';', a tab and '|', with a header and without."""
    for name, mark in (("semicolons", ";"), ("tabs", "\t"), ("bars", "|")):
        header = ["at", "card", "x"] if name == "bars" else None
        for number, rows in enumerate(([(2, "a", 1), (4, "a,b", 2)], [(3, "a", 4)], [(9, "a", 8)])):
            lines = [mark.join(header)] if header else []
            lines += [mark.join((f"1970-01-01 00:00:{second:02d}", card, str(x))) for second, card, x in rows]
            write(tmp_path / name, f"{number}.csv", *lines)
    run(
        spark,
        """
        CREATE SCHEMA payment (at Datetime, card String, x Int);
        CREATE STREAM a payment SOURCE FILE('{}/semicolons', ';') TIMESTAMP BY at DELAY 2 SECONDS;
        CREATE STREAM b payment SOURCE FILE('{}/tabs', '\\t') TIMESTAMP BY at DELAY 2 SECONDS;
        CREATE STREAM c payment SOURCE FILE('{}/bars', DELIMITER => '|') TIMESTAMP BY at DELAY 2 SECONDS;
        SELECT card, SUM(x) AS s FROM a [RANGE 3 SECONDS] EMIT CHANGES INTO FILE('{}/changes');
        SELECT card, SUM(x) AS s FROM b [RANGE 3 SECONDS] EMIT FINAL INTO FILE('{}/final');
        SELECT card, SUM(x) AS s FROM c [RANGE 3 SECONDS] EMIT FINAL IN ORDER INTO FILE('{}/in_order');
        """,
        tmp_path,
    )
    want = [("a", 1), ("a", 5), ("a,b", 7), ("a", 8)]
    total: dict[tuple[str, int], int] = {}
    for op, card, s in read_sink(tmp_path / "changes"):
        total[card, s] = total.get((card, s), 0) + (1 if op == "+" else -1)
    assert {row for row, n in total.items() if n} == set(want)
    assert sorted(read_sink(tmp_path / "final")) == sorted(want)
    assert read_sink(tmp_path / "in_order") == want


NESTED = """
CREATE SCHEMA deep (place STRUCT<x: Int, deep STRUCT<y: ARRAY<Double>>>, more MAP<String, Long>);
CREATE SCHEMA event (at Datetime, tags ARRAY<STRING>);
CREATE STREAM s deep EXTENDS event SOURCE FILE('{}/in', 'json') TIMESTAMP BY at DELAY 2 SECONDS;
"""


def test_nested_types(spark, tmp_path):
    """ARRAY, STRUCT, MAP, DATE, DECIMAL, CHAR as columns of JSON lines: read, taken apart, grouped by, aggregated and written."""
    write(
        tmp_path / "in", "a.json",
        '{"at": "1970-01-01T00:00:02Z", "tags": ["a", "b"], "place": {"x": 1, "deep": {"y": [1.5, 2]}}, "more": {"k": 7},'
        ' "price": 1.25, "day": "2024-02-29", "code": "ab"}',
        '{"at": "1970-01-01T00:00:05Z", "tags": [], "place": {"x": 1, "deep": {"y": []}}, "more": {"l": 9},'
        ' "price": 3, "day": "2024-03-01", "code": "c"}',
    )  # fmt: skip
    write(
        tmp_path / "in", "b.json",
        '{"at": "1970-01-01T00:00:04Z", "tags": ["c"], "place": {"x": 2, "deep": {"y": [4]}}, "more": {"k": 1, "l": 2},'
        ' "price": 0.5}',
    )  # fmt: skip
    run(
        spark,
        NESTED
        + """
        CREATE STREAM t (at TIMESTAMP, price DECIMAL(10, 2), day DATE, code CHAR)
          SOURCE FILE('{}/in', FORMAT => 'json') TIMESTAMP BY at DELAY 2 SECONDS;
        SELECT tags, place, more FROM s EMIT FINAL IN ORDER INTO FILE('{}/whole');
        SELECT SIZE(tags) AS n, place.deep.y AS y, try_element_at(more, 'k') AS k FROM s
          EMIT FINAL IN ORDER INTO FILE('{}/parts');
        SELECT place.x AS x, COUNT(*) AS n, SUM(try_element_at(more, 'k')) AS s FROM s [RANGE 4 SECONDS] GROUP BY place.x
          EMIT FINAL INTO FILE('{}/sums');
        SELECT code, day, SUM(price) AS s, MAX(day) AS d FROM t [UNBOUNDED] EMIT FINAL IN ORDER INTO FILE('{}/prices');
        """,
        tmp_path,
    )
    assert read_sink(tmp_path / "whole") == [
        (["a", "b"], {"x": 1, "deep": {"y": [1.5, 2.0]}}, [("k", 7)]),
        (["c"], {"x": 2, "deep": {"y": [4.0]}}, [("k", 1), ("l", 2)]),
        ([], {"x": 1, "deep": {"y": []}}, [("l", 9)]),
    ]
    assert read_sink(tmp_path / "parts") == [(2, [1.5, 2.0], 7), (1, [4.0], 1), (0, [], None)]
    assert sorted(read_sink(tmp_path / "sums")) == [(1, 1, 7), (1, 2, 7), (2, 1, 1)]
    assert [(code, str(s), d) for code, _, s, d in read_sink(tmp_path / "prices")] == [
        ("ab", "1.25", dt.date(2024, 2, 29)), (None, "1.75", dt.date(2024, 2, 29)), ("c", "4.75", dt.date(2024, 3, 1)),
    ]  # fmt: skip


@pytest.mark.parametrize("column", ["tags", "place", "more"])
def test_a_nested_value_that_is_null(spark, tmp_path, column):
    write(tmp_path / "in", "a.json", '{"at": "1970-01-01T00:00:02Z"}')
    run(spark, NESTED + f"SELECT {column} FROM s EMIT FINAL INTO FILE('{{}}/out');", tmp_path)
    assert read_sink(tmp_path / "out") == [(None,)]


def test_a_socket_at_every_level(spark, tmp_path):
    """HOST(host, port) with a delimiter: three queries of one socket, out of order, and the end of the connection is the end."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            for second, number in ((2, 1), (4, 2), (3, 4), (9, 8)):
                connection.sendall(f"1970-01-01 00:00:{second:02d};{number}\n".encode())

    thread = threading.Thread(target=serve)
    thread.start()
    sql = """
        CREATE STREAM p (at TIMESTAMP, x INT) SOURCE HOST('127.0.0.1', PORT, ';') TIMESTAMP BY at DELAY 20 SECONDS;
        SELECT x, SUM(x) AS s FROM p [RANGE 3 SECONDS] EMIT CHANGES INTO FILE('{}/changes');
        SELECT x, SUM(x) AS s FROM p [RANGE 3 SECONDS] EMIT FINAL INTO FILE('{}/final');
        SELECT x, SUM(x) AS s FROM p [RANGE 3 SECONDS] EMIT FINAL IN ORDER INTO FILE('{}/in_order');
    """
    with server:
        run(spark, sql.replace("PORT", str(server.getsockname()[1])), tmp_path)
        thread.join()
    want = [(1, 1), (4, 5), (2, 7), (8, 8)]
    total: dict[tuple[int, int], int] = {}
    for op, x, s in read_sink(tmp_path / "changes"):
        total[x, s] = total.get((x, s), 0) + (1 if op == "+" else -1)
    assert {row for row, n in total.items() if n} == set(want)
    assert sorted(read_sink(tmp_path / "final")) == sorted(want)
    assert read_sink(tmp_path / "in_order") == want
