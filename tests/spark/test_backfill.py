"""A query that was added is filled: its sources are read again, and it answers as one that was there from the start."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from case_driver import read_sink
from test_generations import (
    FILES,
    READS,
    STREAMS,
    Death,
    Input,
    after,
    batches_of,
    facts,
    go_on,
    made,
    net,
    script_of,
    tree,
)
from test_generations import QUERIES as OTHERS
from test_growing_files import Log, wait_for

from headrace.errors import StateError
from headrace.oracle.rows import Row, canonical_row, to_micros
from headrace.plan.time import SECOND
from headrace.spark.generations import backfill
from headrace.spark.generations.backfill import in_passes
from headrace.spark.generations.foreseen import foreseen
from headrace.spark.run import start_run
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.sql import parse_script
from headrace.testing.conformance import Run as LocalRun
from headrace.testing.conformance import drive
from headrace.testing.local import local_engine

QUERIES = {
    "brief": "SELECT id, card, COUNT(*) AS n FROM r [RANGE 5 SECONDS] GROUP BY card EMIT FINAL",
    "tiny": "SELECT id, COUNT(*) AS n FROM t [ROWS 2] EMIT FINAL",
    "steps": "SELECT window_end, n, COUNT(*) AS m FROM c [SIZE 10 SECONDS] GROUP BY n EMIT FINAL",
    "placed": "SELECT p.id AS id, towns.town AS town FROM p JOIN towns ON p.card = towns.name EMIT CHANGES",
}
READ = {"brief": ("r",), "tiny": ("t",), "steps": ("t", "c"), "placed": ("p", "towns")}
LONGER = OTHERS["sums"].replace("15 SECONDS", "40 SECONDS")
FILLED = ("changes", "others", "steps", "placed", "sums")


@pytest.fixture(autouse=True)
def queries(monkeypatch):
    monkeypatch.setitem(STREAMS, "towns", "CREATE TABLE towns (name STRING, town STRING) SOURCE FILE('{root}/towns.csv');")
    for name, text in QUERIES.items():
        monkeypatch.setitem(OTHERS, name, text)
        monkeypatch.setitem(READS, name, READ[name])


def whole(root: Path, name: str, wanted: Callable[[Row], bool]) -> Counter[tuple]:
    """What a query says of some rows, if it was there from the start."""
    own = script_of(root, name)
    (query,), (stream, *_) = own.queries, READS.get(name, ("p",))
    batches = tuple(batches_of(stream))
    if name == "placed":
        towns = {"a": "Aach", "b": "Bonn"}
        rows = [(1, (a.values[0], towns[a.values[1]])) for b in batches for a in b.rows["p"] if a.values[1] in towns]
    else:
        outputs = drive(local_engine(own, 2, None), LocalRun(own, batches, {}))
        rows = [(c.sign, c.row) for output in outputs for c in output[query.name]]
    return net([(sign, canonical_row(row, query.node.schema)) for sign, row in rows if wanted(row)])


def shown(root: Path, name: str) -> Counter[tuple]:
    query = script_of(root, name).queries[0]
    rows = [(row[0] == "+" or -1, row[1:]) if query.emit.early else (1, row) for row in read_sink(root / name)]
    return net([(sign, canonical_row(row, query.node.schema)) for sign, row in rows])


def state(root: Path) -> dict[str, bytes]:
    return {path: data for path, data in tree(root).items() if not path.endswith("headrace.lock")}


def test_added_queries_are_filled_from_files_that_are_there(spark, tmp_path, monkeypatch):
    """One is refused without a word, and where a file is gone or has changed; then killed, again and again; then it is complete.

    Files came behind others that stand after them: read in the order of places, most of their rows would be late.
    """
    (tmp_path / "towns.csv").write_text("a,Aach\nb,Bonn\n")
    given = Input(tmp_path)
    given.write(2)
    old, new, how = ("sums", "brief", "tiny"), ("tiny", *FILLED), {"checkpoint": str(tmp_path / "state")}
    run = start_run(spark, script_of(tmp_path, *old), {}, follow=True, buckets=2, **how)
    run.query.processAllAvailable()
    given.write(2, older=20)
    run.query.processAllAvailable()
    run.stop()
    said = read_sink(tmp_path / "sums")
    monkeypatch.setitem(OTHERS, "sums", LONGER)
    assert sum("--backfill" in line for line in foreseen(script_of(tmp_path, *new), str(tmp_path / "state"))) == len(FILLED)
    before, asked = state(tmp_path), {"backfill": FILLED, "buckets": 3}
    first = tmp_path / "p" / "0000.parquet"
    written = first.stat().st_mtime
    with pytest.raises(StateError, match="cannot begin complete") as refused:
        go_on(spark, tmp_path, *new)
    assert "--backfill" in str(refused.value.hint)
    first.rename(tmp_path / "away")
    with pytest.raises(StateError, match=r"cannot be filled from stream 'p': .*0000.parquet is not there any more"):
        go_on(spark, tmp_path, *new, **asked)
    (tmp_path / "away").rename(first)
    os.utime(first, (written + 5, written + 5))
    with pytest.raises(StateError, match=r"0000.parquet has changed since it was read"):
        go_on(spark, tmp_path, *new, **asked)
    os.utime(first, (written, written))
    assert state(tmp_path) == before
    dying(monkeypatch, spark, tmp_path, new, asked)
    assert (facts(tmp_path)["generation"], facts(tmp_path)["buckets"]) == (1, 3)
    given.write(FILES - 4)
    start_run(spark, script_of(tmp_path, *new), {}, **how).wait(240)
    assert made(tmp_path) == ["program.1", "spark.1"]
    judge(tmp_path, said)


def dying(monkeypatch, spark, root: Path, new: tuple[str, ...], asked: dict) -> None:
    """Without room, killed when the sources are half read, and when the new generation has just begun to count."""
    before = tree(root / "state" / "spark")

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(backfill, "output_frame", fail)
        with pytest.raises(Exception, match="no space left"):
            go_on(spark, root, *new, **asked)
    assert made(root) == ["program.0", "spark"], "what fails leaves nothing behind"
    plan = backfill._plan

    def half_read(reading, number, storage) -> None:
        if number:
            raise Death
        plan(reading, number, storage)

    for owner, name, deed in ((backfill, "_plan", half_read), (Checkpoint, "store", after(Checkpoint.store))):
        assert facts(root)["generation"] == 0
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, deed)
            with pytest.raises(Death):
                go_on(spark, root, *new, **asked)
        assert tree(root / "state" / "spark") == before, name
        assert "backfill.1" in made(root), name


def judge(root: Path, said: list[Row]) -> None:
    """Queries that were added say of what came after them what they would have said, had they been there from the start."""
    read = {name: [a.values for b in batches_of(name)[:4] for a in b.rows[name]] for name in "prt"}
    latest = {name: max(to_micros(values[3]) for values in rows) for name, rows in read.items()}
    for name, stream in (("changes", "p"), ("others", "r")):
        seen = {values[0] for values in read[stream]}
        assert shown(root, name) == whole(root, name, lambda row, seen=seen: row[0] not in seen), name
    assert shown(root, "placed") == whole(root, "placed", lambda row: row[0] * SECOND > latest["p"])
    assert shown(root, "steps") == whole(root, "steps", lambda row: to_micros(row[0]) > latest["t"])
    final = {row[0] for row in said}
    assert 0 < len(final) < len(read["p"])
    own = script_of(root, "sums").queries[0].node.schema
    was = Counter(canonical_row(row, own) for row in said)
    assert shown(root, "sums") == was + whole(root, "sums", lambda row: row[0] not in final), "it was changed: there is no gap"


LOGGED = """
CREATE STREAM one (id INT, text STRING, at TIMESTAMP) SOURCE FILE('{root}/one/log.csv') TIMESTAMP BY at DELAY 0 SECONDS;
SELECT id, text FROM one EMIT FINAL INTO FILE('{root}/one_out');
"""
COUNTED = "SELECT id, COUNT(*) AS n FROM one [RANGE 10 MINUTES] EMIT CHANGES INTO FILE('{root}/counted');"


def test_an_added_query_is_filled_from_a_followed_file_that_was_rotated(spark, tmp_path, monkeypatch):
    """What was spooled of it has been let go, so it is restored from the file, whatever that is called now."""
    monkeypatch.setattr("headrace.spark.sources.following.FORGET", 1)
    log, spool = Log(tmp_path, "one"), tmp_path / "state" / "spool" / "one"

    def start(text: str, follow: bool = True, **more):
        script = parse_script(text.replace("{root}", str(tmp_path)))
        return start_run(spark, script, {}, checkpoint=str(tmp_path / "state"), follow=follow, buckets=2, **more)

    log.append("log.csv", 3)
    run = start(LOGGED)
    for count in (0, 2):
        log.append("log.csv", count)
        wait_for(run, log)
        wait_until_let_go(run, spool)
    run.stop()
    file, rotated = log.folder / "log.csv", log.folder / "log.csv.1"
    file.rename(rotated)
    log.append("log.csv", 2)
    data, before = rotated.read_bytes(), state(tmp_path / "state")
    filled = {"backfill": ("counted",)}
    for other in (None, data.replace(b'""5""', b'""6""')):
        rotated.unlink()
        if other is not None:
            rotated.write_bytes(other)
        with pytest.raises(StateError, match=r"no file holds any more what was read of .*/one/log.csv"):
            start(LOGGED + COUNTED, **filled)
        assert state(tmp_path / "state") == before
        rotated.write_bytes(data)
    start(LOGGED + COUNTED, follow=False, **filled).wait(200)
    assert read_sink(log.out) == log.rows()
    assert net([(row[0] == "+" or -1, row[1:]) for row in read_sink(tmp_path / "counted")]) == Counter([(6, 6), (7, 7)])


def wait_until_let_go(run, spool: Path) -> None:
    deadline = time.monotonic() + 60
    while any(name[0] not in "._" for name in os.listdir(spool)):
        assert time.monotonic() < deadline
        assert run.error is None
        time.sleep(0.05)


def test_what_came_behind_others_that_stand_after_it_is_read_in_a_pass_of_its_own():
    def cut(*came: int) -> list[list[int]]:
        read = [{"batchId": number, "timestamp": written} for number, written in enumerate(came)]
        return [[a["timestamp"] for a in some] for some in in_passes(read, lambda a: (a["timestamp"],))]

    assert cut(1, 2, 5) == [[1, 2, 5]]
    assert cut(1, 5, 2, 3, 4, 4) == [[1, 5], [2, 3, 4], [4]]
    together = [{"batchId": 0, "timestamp": 7}, {"batchId": 0, "timestamp": 3}]
    assert list(in_passes(together, lambda a: (a["timestamp"],))) == [tuple(together)]
