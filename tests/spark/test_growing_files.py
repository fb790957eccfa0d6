"""Files that grow under --follow, on Spark: alone and in a directory, rotated, over restarts, every row once and none late."""

from __future__ import annotations

import gzip
import shutil
import time
from pathlib import Path

import pytest
from case_driver import read_sink

from headrace.errors import StateError
from headrace.spark.run import start_run
from headrace.sql import parse_script

SCRIPT = """
CREATE STREAM one (id INT, text STRING, at TIMESTAMP) SOURCE FILE('{}/one/log.csv') TIMESTAMP BY at DELAY 0 SECONDS;
CREATE STREAM many (id INT, text STRING, at TIMESTAMP) SOURCE FILE('{}/many') TIMESTAMP BY at DELAY 10 MINUTES;
SELECT id, text FROM one EMIT FINAL IN ORDER INTO FILE('{}/one_out');
SELECT id, text FROM many EMIT FINAL INTO FILE('{}/many_out');
SELECT id FROM late(one) INTO FILE('{}/late_one');
SELECT id FROM late(many) INTO FILE('{}/late_many');
SELECT row FROM rejected(one) INTO FILE('{}/bad_one');
SELECT row FROM rejected(many) INTO FILE('{}/bad_many');
"""


class Log:
    """Appends numbered rows to files, as programs that write logs do."""

    def __init__(self, root: Path, name: str) -> None:
        self.folder, self.out, self.late = root / name, root / f"{name}_out", root / f"late_{name}"
        self.bad = root / f"bad_{name}"
        self.folder.mkdir()
        self.number = 0

    def append(self, name: str, count: int, *, header: str = "id,text,at\n", ends: bool = True) -> None:
        path = self.folder / name
        lines = "" if path.exists() else header
        for _ in range(count):
            self.number += 1
            stamp = f"2026-03-02 10:{self.number // 60:02d}:{self.number % 60:02d}"
            cells = {"id": str(self.number), "text": f'"a ""{self.number}""\nb"', "at": stamp}
            names = (path.read_text().splitlines()[0] if path.exists() else header.strip()).split(",")
            lines += ",".join(cells[n] for n in names) + "\n"
        with path.open("a", encoding="utf-8") as file:
            file.write(lines if ends else lines[:-1])

    def rows(self) -> list[tuple]:
        return [(n, f'a "{n}"\nb') for n in range(1, self.number + 1)]


def wait_for(run, *logs: Log) -> None:
    """Until all rows of these have come, as far as they can be final."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and run.error is None and any(len(read_sink(log.out)) < log.number - 1 for log in logs):
        time.sleep(0.2)
    assert run.error is None


def test_files_that_grow(spark, tmp_path):
    script = parse_script(SCRIPT.replace("{}", str(tmp_path)))
    one, many = Log(tmp_path, "one"), Log(tmp_path, "many")

    def start(follow: bool = True):
        return start_run(spark, script, {}, checkpoint=str(tmp_path / "checkpoint"), follow=follow, buckets=2)

    one.append("log.csv", 3)
    many.append("a.csv", 2)
    many.append("b.csv", 2, header="at,id,text\n")
    run = start()
    wait_for(run, one)
    one.append("log.csv", 2)  # cat >> log.csv
    many.append("a.csv", 2)
    many.append("b.csv", 2)
    wait_for(run, one)
    one.append("log.csv", 1)
    (one.folder / "log.csv").rename(one.folder / "log.csv.1")  # rotation, with a row that nobody has read yet
    one.append("log.csv", 2)
    shutil.copy(many.folder / "b.csv", many.folder / "b.csv.1")  # and the other kind
    (many.folder / "b.csv").write_text("")
    many.append("c.csv", 3)
    wait_for(run, one)
    run.stop()
    one.append("log.csv", 2)
    (one.folder / "log.csv").rename(one.folder / "log.csv.2")
    one.append("log.csv", 1, header="text,at,id\n")
    many.append("a.csv", 1)
    packed = many.folder / "c.csv"
    (many.folder / "c.csv.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    many.append("d.csv", 1, ends=False)
    run = start()
    wait_for(run, one)
    one.append("log.csv", 3)
    wait_for(run, one)
    run.stop()
    one.append("log.csv", 1, ends=False)
    start(follow=False).wait(200)
    assert read_sink(one.bad) == read_sink(many.bad) == []
    assert read_sink(one.out) == one.rows()
    assert sorted(read_sink(many.out)) == many.rows()
    assert read_sink(one.late) == read_sink(many.late) == []
    start(follow=False).wait(200)  # there is nothing more to do
    with (one.folder / "log.csv").open("a") as file:
        file.write("\n")
    one.append("log.csv", 2)
    start(follow=False).wait(200)  # what has ended goes on
    assert read_sink(one.out) == one.rows()
    assert read_sink(one.late) == read_sink(one.bad) == []
    left = [p.name for p in (tmp_path / "checkpoint" / "spool" / "one").iterdir() if p.name[0] not in "._"]
    assert len(left) < 40


def test_a_run_is_not_resumed_on_a_file_that_has_grown(spark, tmp_path):
    """It would miss what was added."""
    log = Log(tmp_path, "one")
    (tmp_path / "many").mkdir()
    log.append("log.csv", 3)
    script = parse_script(SCRIPT.replace("{}", str(tmp_path)))

    def start():
        return start_run(spark, script, {}, checkpoint=str(tmp_path / "checkpoint"), buckets=2)

    start().stop()
    log.append("log.csv", 1)
    with pytest.raises(StateError, match=r"had 113 bytes when this run began, and has 147 now|has ended"):
        start()
