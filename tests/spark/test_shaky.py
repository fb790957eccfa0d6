"""On a file system that cannot rename, whatever moment it dies at: every batch is published once, by one manifest.

When it dies, nothing of a run can be written or read any more, not even to tidy up, as if all its processes had been killed. The
same session starts the run again, which is what makes many deaths affordable.
"""

from __future__ import annotations

import csv
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
import shaky

from headrace.errors import HeadraceError, InUseError, OutputError
from headrace.runs.events import RowsEvent
from headrace.spark.run import start_run
from headrace.spark.sinks.batches import Listed, published
from headrace.spark.sinks.sink import Target
from headrace.spark.storage.lock import Lock, holder_of
from headrace.spark.storage.storage import storage_of, write_facts
from headrace.sql import parse_script

START = datetime(2026, 1, 1, tzinfo=UTC)
FILES, ROWS = 12, 4
DEATHS = int(os.environ.get("HEADRACE_DEATHS", "8"))
SCRIPT = """
CREATE STREAM p (id INT, card STRING, at TIMESTAMP) SOURCE FILE('{0}/in/') TIMESTAMP BY at DELAY 1 SECOND;
SELECT id, card, COUNT(*) AS n FROM p [RANGE 1 HOUR] GROUP BY card EMIT FINAL IN ORDER INTO FILE('shaky://{0}/out.csv');
SELECT id, card FROM p EMIT FINAL INTO FILE('shaky://{0}/folder/');
SELECT id, card FROM p EMIT FINAL INTO FILE('shaky://{0}/lines/', 'json');
SELECT id, card FROM p EMIT FINAL INTO FILE('shaky://{0}/out.parquet');
SELECT id, card FROM p EMIT FINAL INTO FILE('{0}/local.csv');
SELECT id FROM p EMIT FINAL;
"""


@pytest.fixture(scope="module")
def system(spark, java_classes):
    controls = shaky.install(spark, java_classes)
    controls.revive()
    yield controls
    controls.revive()


def write_input(root: Path) -> None:
    (root / "in").mkdir()
    for number in range(FILES):
        lines = [f'{i},"c,{i % 3}",{START + timedelta(seconds=i)}' for i in range(number * ROWS, number * ROWS + ROWS)]
        (root / "in" / f"{number:02d}.csv").write_text("id,card,at\n" + "\n".join(lines) + "\n")
        os.utime(root / "in" / f"{number:02d}.csv", (1_700_000_000 + number,) * 2)


def unpublished(spark, folder: str, root: Path) -> int:
    """How many files with rows lie there that no manifest lists: the run died between writing and publishing."""
    listed = {path.rpartition("/")[2] for path in published(spark, f"shaky://{root}/{folder}")}
    return len([p for p in (root / folder).glob("part-*") if p.name not in listed])


def test_whenever_it_dies_every_batch_is_published_once(spark, system, tmp_path):
    write_input(tmp_path)
    script, rng = parse_script(SCRIPT.format(tmp_path)), Random(int(os.environ.get("HEADRACE_SEED", "0")))
    deaths: list[str] = []
    between = 0
    while True:
        # Some deaths at any change, some just before a manifest is written, some while it is moved to its place.
        moment = rng.choice(("any", "any", "create", "rename", "renamed")) if len(deaths) < DEATHS else "none"
        before = system.changes()
        run = failure = None
        try:
            if moment == "any":
                system.dieAfter(rng.randrange(260))
            elif moment != "none":
                system.dieOn(f"{moment} shaky:{tmp_path}/folder/_spark_metadata/")
            run = start_run(
                spark, script, {}, checkpoint=f"shaky://{tmp_path}/state", buckets=2, options={"maxFilesPerTrigger": "1"}
            )
            run.wait(240)
        except HeadraceError as error:
            failure = error
        assert failure is None or system.isDead(), failure
        if run is not None and not run.done:
            run.stop()
        system.revive()
        if moment == "none":
            break
        lost = unpublished(spark, "folder", tmp_path) + unpublished(spark, "lines", tmp_path)
        between += lost > 0
        deaths.append(f"{moment} after {system.changes() - before} changes, {lost} files not published")
        if run is not None and run.error is None:
            break  # it came to its end before it could die
    print(*deaths, sep="\n")
    assert between >= DEATHS // 4, deaths
    check(spark, tmp_path)


def check(spark, root: Path) -> None:
    every = list(range(FILES * ROWS))
    with (root / "out.csv").open(newline="") as file:
        rows = [(int(r["id"]), r["card"], int(r["n"])) for r in csv.DictReader(file)]
    assert rows == [(i, f"c,{i % 3}", i // 3 + 1) for i in every]
    assert sorted(r.id for r in spark.read.parquet(f"shaky://{root}/folder").collect()) == every
    assert sorted(r.id for r in spark.read.json(f"shaky://{root}/lines").collect()) == every
    assert sorted(pq.read_table(root / "out.parquet").column("id").to_pylist()) == every
    listed = [path.removeprefix("shaky:") for path in published(spark, f"shaky://{root}/folder")]
    assert sorted(i for path in listed for i in pq.read_table(path).column("id").to_pylist()) == every
    with (root / "local.csv").open(newline="") as file:
        assert sorted(int(r["id"]) for r in csv.DictReader(file)) == every
    assert not list(root.glob("shaky:*")), "nothing by the name of the scheme on the local disk"


def test_ownership_and_locks_hold_there_too(spark, system, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.csv").write_text(f"id,card,at\n1,a,{START}\n")
    root = f"shaky://{tmp_path}"
    text = SCRIPT.split(";")[0] + "; SELECT id FROM p EMIT FINAL INTO FILE('shaky://{0}/folder/'); SELECT id FROM p;"
    script = parse_script(text.format(tmp_path))
    run = start_run(spark, script, {}, checkpoint=f"{root}/state", follow=True, buckets=2)
    try:
        with pytest.raises(InUseError, match=f"process {os.getpid()} on"):
            start_run(spark, script, {}, checkpoint=f"{root}/state", follow=True, buckets=2)
        run.query.processAllAvailable()
    finally:
        run.stop()
    assert run.error is None
    shown = [event for event in run.poll(0) if isinstance(event, RowsEvent)]
    assert shown, "what has no place of its own is shown"
    with pytest.raises(OutputError, match="holds the output of another run"):
        start_run(spark, script, {}, checkpoint=f"{root}/other", buckets=2)
    assert spark.read.parquet(f"{root}/folder").count() == 0 or spark.read.parquet(f"{root}/folder").count() == 1
    start_run(spark, script, {}, checkpoint=f"{root}/other", buckets=2, overwrite=True).wait(120)
    assert [r.id for r in spark.read.parquet(f"{root}/folder").collect()] == [1]


def test_a_lease_of_a_process_that_is_gone_is_nobodys(spark, system, tmp_path):
    root = f"shaky://{tmp_path}/state"
    storage = storage_of(root, spark)
    lock = Lock(root, storage)
    held = holder_of(storage, root)
    lock.release()
    other = {"pid": os.getppid()}
    cases = (
        (other, True),
        ({"pid": 2**22 + 1}, False),
        ({"host": "elsewhere"}, True),
        ({**other, "renewed": 0}, False),
        ({}, False),
    )
    for change, alive in cases:
        write_facts(storage, lock.place, {**held, **change})
        assert (holder_of(storage, root) is not None) == alive, change
    Lock(root, storage).release()


def test_facts_survive_a_death_at_any_change(spark, system, tmp_path):
    storage = storage_of(f"shaky://{tmp_path}", spark)
    path = f"shaky://{tmp_path}/facts.json"
    write_facts(storage, path, {"number": 0})
    for number in range(1, 7):
        system.dieAfter(number % 4)
        try:
            write_facts(storage, path, {"number": number})
        except Exception:
            assert system.isDead()
        system.revive()
        found = storage.read(path)
        assert found in (b'{"number": %d}\n' % number, b'{"number": %d}\n' % (number - 1))
        write_facts(storage, path, {"number": number})


def test_spools_lie_there_too(spark, system, tmp_path):
    text = f"""
        CREATE STREAM ticks SOURCE GENERATE('ticks', rows => 300) TIMESTAMP BY at DELAY 5 SECONDS;
        SELECT symbol, at FROM ticks EMIT FINAL INTO FILE('shaky://{tmp_path}/out/');
    """
    start_run(spark, parse_script(text), {}, checkpoint=f"shaky://{tmp_path}/state", buckets=2).wait(240)
    assert spark.read.parquet(f"shaky://{tmp_path}/out").count() == 300
    assert len(list((tmp_path / "state" / "spool" / "ticks").glob("*.parquet"))) == 1


def test_whenever_a_change_of_the_script_dies_one_generation_counts(spark, system, tmp_path):
    write_input(tmp_path)
    rng, deaths = Random(int(os.environ.get("HEADRACE_SEED", "0"))), 0
    more = "SELECT id, SUM(id) AS s FROM p [ROWS 2] EMIT FINAL INTO FILE('shaky://{0}/rows/');"
    how = {"checkpoint": f"shaky://{tmp_path}/state", "buckets": 2, "options": {"maxFilesPerTrigger": "1"}}
    run = start_run(spark, parse_script(SCRIPT.format(tmp_path)), {}, **how)
    while len(list((tmp_path / "state/spark/commits").glob("[0-9]*"))) < 3 and run.error is None:
        time.sleep(0.05)
    run.stop()
    assert run.error is None
    # The last batch was published, and not committed: the next generation plans it anew, and withdraws what is listed.
    max((tmp_path / "state/spark/commits").glob("[0-9]*"), key=lambda p: int(p.name)).unlink()
    script = parse_script((SCRIPT + more).format(tmp_path))
    changes = None
    while changes is None:
        before = system.changes()
        if deaths < DEATHS // 2:
            system.dieAfter(4 + 25 * deaths + rng.randrange(25))  # about 120 changes make a generation
        try:
            start_run(spark, script, {}, **how, from_now=("rows",)).stop()
            changes = system.changes() - before
        except HeadraceError:
            assert system.isDead()
            deaths += 1
        changes = None if system.isDead() else changes
        system.revive()
    print(f"{deaths} deaths, then {changes} changes")
    assert deaths == DEATHS // 2
    start_run(spark, script, {}, **how).wait(240)
    assert not (tmp_path / "state/spark").exists()
    check(spark, tmp_path)


@pytest.mark.parametrize("number", [3, 1238, 1239, 1240])
def test_an_output_that_comes_late_lists_what_it_has(spark, system, tmp_path, number):
    target = Target(0, f"shaky://{tmp_path}/out", "parquet", ("x",), (0,), False, False)
    for batch in range(number, number + 12):
        Listed(spark, target).add(spark.createDataFrame([(0, 1, batch)], "q INT, sign TINYINT, o0 INT"), batch, 1)
    assert listed(spark, target.path) == list(range(number, number + 12))
    assert len(list((tmp_path / "out" / "_spark_metadata").glob("[0-9]*"))) < 25
    Listed(spark, target).withdraw(number + 11)
    assert listed(spark, target.path) == list(range(number, number + 11)), "also if that was the one that had all before it"


def listed(spark, path: str) -> list[int]:
    return sorted(r.x for r in spark.read.parquet(path).collect())
