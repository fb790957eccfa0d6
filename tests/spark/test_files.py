"""Files as users have them, all in one run: headers of their own, keys in any case, arrays, nanoseconds, no endings."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copyfile

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from case_driver import read_sink

import headrace as hr
from headrace.errors import DataError
from headrace.notices import HeadraceWarning
from headrace.spark.run import start_run
from headrace.sql import parse_script

SCRIPT = """
CREATE STREAM p (id INT, card STRING, merchant STRING, at TIMESTAMP) SOURCE FILE('{}/csv') TIMESTAMP BY at DELAY 1 MINUTE;
CREATE STREAM j (id INT, s STRUCT<Aa: INT>, m MAP<STRING, INT>, at TIMESTAMP) SOURCE FILE('{}/json')
    TIMESTAMP BY at DELAY 1 MINUTE;
CREATE STREAM n (id BIGINT, at TIMESTAMP, zoned TIMESTAMP, plain TIMESTAMP_NTZ) SOURCE FILE('{}/parquet')
    TIMESTAMP BY at DELAY 1 MINUTE;
CREATE TABLE shops (merchant STRING, city STRING) SOURCE FILE('{}/shops');
SELECT id, card, merchant FROM p EMIT FINAL INTO FILE('{}/out/p');
SELECT file, line, row, reason FROM rejected(p) INTO FILE('{}/out/bad');
SELECT id, s.aa AS aa, m['K'] AS k FROM j EMIT FINAL INTO FILE('{}/out/j');
SELECT file, line, row, reason FROM rejected(j) INTO FILE('{}/out/bad_json');
SELECT id, unix_micros(at) AS a, unix_micros(zoned) AS z, CAST(plain AS STRING) AS n, 10 / (id - 3) AS q FROM n
    EMIT FINAL INTO FILE('{}/out/n');
SELECT line, row, reason FROM rejected(n) INTO FILE('{}/out/bad_parquet');
SELECT p.id, shops.city FROM p [NOW], shops WHERE p.merchant = shops.merchant EMIT FINAL INTO FILE('{}/out/cities');
"""
TIME = "2024-01-01 00:00:00"


@pytest.fixture(scope="module")
def outputs(spark, tmp_path_factory):
    """What one run over all of them gave."""
    root = tmp_path_factory.mktemp("files")
    for name in ("csv", "json", "parquet", "shops"):
        (root / name).mkdir()
    (root / "csv/a").write_bytes(
        f'\ufeffid,card,merchant,at\r\n1,c1,"m\r\n1",{TIME}\r\n\r\nx,c,m,{TIME}\r\n2,"c ""2""",m2,{TIME}'.encode()
    )
    (root / "csv/b").write_text(
        f'"ID",MERCHANT,extra,card,"at"\n3,m3,,c3,{TIME}\n4,m4\n5,m5,,c5,soon\n6,m6,,c6,{TIME}\n7,m7,,c7, 12:00:17\n'
    )
    lines = [{"ID": 1, "S": {"AA": 2}, "M": {"k": 1, "K": 3}, "At": TIME}, {"id": 2, "at": TIME}, {"id": "three", "at": TIME}]
    lines += [{"id": 8, "at": "12:00:17"}, {"id": 9, "at": 1704067200}, {"id": 10, "at": TIME, "s": {"aa": "x"}}]
    (root / "json/lines").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (root / "json/array").write_text(json.dumps([{"id": 4, "at": TIME}, {"Id": 5, "s": {"Aa": 6}, "AT": TIME}], indent=2))
    (root / "json/objects").write_text("\n".join(json.dumps({"id": i, "at": TIME}, indent=2) for i in (6, 7)))
    times = pd.to_datetime(["1969-12-31 23:59:59.123456789", TIME, TIME], format="ISO8601")
    frame = pd.DataFrame({"id": [2, 1, 3], "at": times, "zoned": times.tz_localize("UTC"), "plain": times})
    frame.to_parquet(root / "parquet/part", version="2.6")
    (root / "shops/x").write_text("city,Merchant\nRome,m3\nOslo,m6\n")
    script = parse_script(SCRIPT.replace("{}", str(root)))
    start_run(spark, script, {}, checkpoint=str(root / "checkpoint"), buckets=2).wait(300)
    return lambda name: sorted(read_sink(root / "out" / name))


def named(rows):
    """With the name of the file, not its path."""
    return [(Path(row[0]).name, *row[1:]) for row in rows]


def test_every_csv_file_is_read_by_its_own_header(outputs):
    assert outputs("p") == [(1, "c1", "m\r\n1"), (2, 'c "2"', "m2"), (3, "c3", "m3"), (6, "c6", "m6")]


def test_a_rejected_row_says_where_what_and_why(outputs):
    assert named(outputs("bad")) == [
        ("a", 5, f"x,c,m,{TIME}", "column 'id' is INT, and here is 'x'"),
        ("b", 3, "4,m4", "it has 2 fields, and 5 were expected: ID, MERCHANT, extra, card, at"),
        ("b", 4, "5,m5,,c5,soon", "column 'at' is TIMESTAMP, and here is 'soon'"),
        ("b", 6, "7,m7,,c7, 12:00:17", "column 'at' is TIMESTAMP, and here is ' 12:00:17'"),  # not one of today
    ]


def test_json_in_three_dialects_and_any_case(outputs):
    assert outputs("j") == [(1, 2, 3), (2, None, None), (4, None, None), (5, 6, None), (6, None, None), (7, None, None)]
    assert [(line, reason) for _, line, _, reason in named(outputs("bad_json"))] == [
        (3, "column 'id' is INT, and here is \"three\""),
        (4, "column 'at' is TIMESTAMP, and here is '12:00:17'"),
        (5, "column 'at' is TIMESTAMP, and here is '1704067200'"),  # seconds or milliseconds, who knows
        (6, 'column \'s\' is STRUCT<Aa: INT>, and here is {"aa": "x"}'),
    ]
    assert outputs("bad_json")[0][2] == json.dumps({"id": "three", "at": TIME})


def test_nanoseconds_are_read_to_the_microsecond_they_are_in(outputs):
    second = 1704067200_000_000
    before = -876_544
    assert outputs("n") == [(1, second, second, TIME, -5.0), (2, before, before, "1969-12-31 23:59:59.123456", -10.0)]


def test_a_row_of_parquet_that_an_expression_fails_on(outputs):
    ((line, row, reason),) = outputs("bad_parquet")
    assert line == 3
    assert json.loads(row)["id"] == 3
    assert reason.endswith("failed, with id = 3")


def test_a_table_is_read_the_same_way(outputs):
    assert outputs("cities") == [(3, "Rome"), (6, "Oslo")]


def test_parquet_of_duckdb_and_spark(spark, tmp_path):
    """Written by others: whole numbers, times and texts come out as they went in, and bytes that are no text are rejected."""
    rows = f"SELECT CAST(1 AS BIGINT) AS id, TIMESTAMP '{TIME}' AS at, 'x' AS name"
    (tmp_path / "duck").mkdir()
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/duck/part' (FORMAT parquet)")
    spark.sql(rows).write.parquet(str(tmp_path / "spark"))
    (tmp_path / "bytes").mkdir()
    times = pa.array([1704067200_000_000] * 2, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": [1, 2], "at": times, "name": [b"x", b"x\xff"]}), tmp_path / "bytes/part")
    script = "".join(
        f"CREATE STREAM {n} (id BIGINT, at TIMESTAMP, name STRING) SOURCE FILE('{tmp_path}/{n}') TIMESTAMP BY at DELAY 0;"
        f"SELECT id, name, unix_micros(at) AS t FROM {n} EMIT FINAL INTO FILE('{tmp_path}/out/{n}');"
        for n in ("duck", "spark", "bytes")
    )
    script += f"SELECT reason, line FROM rejected(bytes) INTO FILE('{tmp_path}/out/bad');"
    start_run(spark, parse_script(script), {}, checkpoint=str(tmp_path / "checkpoint"), buckets=2).wait(300)
    for name in ("duck", "spark", "bytes"):
        assert read_sink(tmp_path / "out" / name) == [(1, "x", 1704067200_000_000)]
    assert read_sink(tmp_path / "out/bad") == [("column 'name' is STRING, and its bytes are no UTF-8", 2)]


def test_a_run_that_rejects_too_much_fails(spark, tmp_path):
    """What was good is out nevertheless, and the error names a row."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text(f"id,at\n1,{TIME}\nx,{TIME}\n2,{TIME}\n")
    script = parse_script(
        f"CREATE STREAM p (id INT, at TIMESTAMP) SOURCE FILE('{tmp_path}/in') TIMESTAMP BY at DELAY 0;"
        f"SELECT id FROM p EMIT FINAL INTO FILE('{tmp_path}/out');"
    )
    run = start_run(spark, script, {}, checkpoint=str(tmp_path / "checkpoint"), buckets=2, max_rejected=0.3)
    with pytest.raises(DataError, match=r"1 of 3 rows of p were rejected, for example a, line 3: column 'id' is INT"):
        run.wait(300)
    assert sorted(read_sink(tmp_path / "out")) == [(1,), (2,)]
    (done,) = [event for event in run.poll(0) if getattr(event, "rows_in", 0)]
    assert [(count.stream, count.read, count.rejected) for count in done.streams] == [("p", 3, 1)]


def test_static_frames_that_reject_everything_fail(spark, tmp_path):
    frame = spark.createDataFrame([(1, None), (2, None)], "id INT, at TIMESTAMP")
    run = hr.start({str(tmp_path / "out"): hr.stream(frame, "at", "1 second", name="p")})
    with pytest.raises(DataError, match="all 2 rows of p were rejected, for example the timestamp at is NULL"):
        run.wait()


ODD = (
    "[x]",
    "{y,z}",
    "q?",
    "st*r",
    "b\\s",
    "co:lon",
    "sp ace%41ü#",
)  # all that a name may have, and a pattern means something by


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_rows_come_once_whatever_files_are_called_and_folders_are_beside_them(spark, tmp_path, kind):
    """In a directory, by a pattern, one by one; and what is not read is said."""
    folder = tmp_path / "in"
    odd = [name for name in ODD if ":" not in name or kind != "parquet"]  # which Spark cannot read then
    for name in (*odd, "a", "key=1/b", "key=2/c", "other/key=3/d", "third/key=4/e"):
        write_row(folder / f"{name}.{kind}", name)
    every = sorted([*odd, "a"])
    sources = {"dir": folder, "star": folder / f"*.{kind}", "deep": folder / "key=*" / "*"}
    sources |= {f"one{i}": folder / f"{name}.{kind}" for i, name in enumerate(every)}
    sources["plain"] = tmp_path / "plain"
    copyfile(folder / f"a.{kind}", sources["plain"])
    script = "".join(
        f"CREATE STREAM {s} (name STRING, at TIMESTAMP) SOURCE FILE('{path}') TIMESTAMP BY at DELAY 0;"
        f"SELECT name FROM {s} EMIT FINAL INTO FILE('{tmp_path}/out/{s}');"
        for s, path in sources.items()
    ).replace("\\", "\\\\")
    with pytest.warns(HeadraceWarning, match=r"'dir': files in folders are not read: key=1, key=2, other, \.\.\. SOURCE FILE"):
        start_run(spark, parse_script(script), {}, checkpoint=str(tmp_path / "checkpoint"), buckets=2).wait(300)
    found = {s: sorted(name for (name,) in read_sink(tmp_path / "out" / s)) for s in sources}
    alone = {f"one{i}": [name] for i, name in enumerate(every)}
    assert found == {"dir": every, "star": every, "deep": ["key=1/b", "key=2/c"], "plain": ["a"], **alone}


def write_row(file: Path, name: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    match file.suffix:
        case ".csv":
            file.write_text(f'name,at\n"{name}",{TIME}\n')
        case ".json":
            file.write_text(json.dumps({"name": name, "at": TIME}))
        case _:
            pd.DataFrame({"name": [name], "at": pd.to_datetime([TIME])}).to_parquet(file)


def test_a_script_that_reads_no_frames_runs_in_the_session_there_is(spark, tmp_path):
    (tmp_path / "a.csv").write_text(f"id,at\n1,{TIME}\n")
    script = (
        f"CREATE STREAM p (id INT, at TIMESTAMP) SOURCE FILE('{tmp_path}/a.csv') TIMESTAMP BY at DELAY 0;SELECT id FROM p INTO o;"
    )
    assert [tuple(row) for row in hr.sql(script).to_df("o").select("id").collect()] == [(1,)]
    written = script.replace("INTO o", f"INTO FILE('{tmp_path}/out/')")
    hr.sql(written).start().wait(120)
    assert read_sink(tmp_path / "out") == [("+", 1)]
