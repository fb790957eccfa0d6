"""A script that changes goes on with its checkpoint: stages keep their state, sources their place, outputs their rows."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from case_driver import FIRST_WRITTEN, read_sink, write_file

from headrace.errors import StateError
from headrace.oracle.rows import canonical_row, from_micros
from headrace.plan.schema import Schema
from headrace.plan.time import SECOND
from headrace.spark.generations import evolve, offsets
from headrace.spark.generations.foreseen import foreseen
from headrace.spark.plan import BUCKETS
from headrace.spark.run import Run, start_run
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.spark.storage.storage import LocalStorage
from headrace.sql import parse_script
from headrace.testing.conformance import Run as LocalRun
from headrace.testing.conformance import drive
from headrace.testing.disorder import disordered
from headrace.testing.engine import Batch
from headrace.testing.local import local_engine

FILES = 8
SCHEMA = Schema.of(id="INT", card="STRING", amount="DOUBLE", at="TIMESTAMP")
COLUMNS = "(id INT, card STRING, amount DOUBLE, at TIMESTAMP)"
STREAMS = {
    "p": "CREATE STREAM p {columns} SOURCE FILE('{root}/p', 'parquet') TIMESTAMP BY at DELAY 2 SECONDS;",
    "r": "CREATE STREAM r {columns} SOURCE FILE('{root}/r', 'csv') TIMESTAMP BY at DELAY 1 MINUTE;",
    "t": "CREATE STREAM t {columns} SOURCE FILE('{root}/t', 'parquet') TIMESTAMP BY at DELAY 2 SECONDS;",
    "c": "CREATE STREAM c AS SELECT id, card, COUNT(*) AS n FROM t [RANGE 20 SECONDS] GROUP BY card;",
}
QUERIES = {
    "sums": "SELECT id, card, SUM(amount) AS s, MIN(amount) AS lo FROM p [RANGE 15 SECONDS] GROUP BY card EMIT FINAL",
    "changes": "SELECT id, card, COUNT(DISTINCT amount) AS d FROM p [RANGE 1 MINUTE] GROUP BY card EMIT CHANGES",
    "order": "SELECT id, SUM(amount) AS s FROM p [ROWS 5] EMIT FINAL IN ORDER",
    "pairs": "SELECT a.id AS x, b.id AS y FROM p [RANGE 3 SECONDS] a JOIN p [RANGE 3 SECONDS] b ON a.card = b.card EMIT FINAL",
    "others": "SELECT id, card, COUNT(*) AS n FROM r [RANGE 1 MINUTE] GROUP BY card EMIT FINAL",
    "cascade": "SELECT n, COUNT(*) AS m FROM c [SIZE 10 SECONDS] GROUP BY n EMIT FINAL",
}
READS = {"others": ("r",), "cascade": ("t", "c")}
MAIN = ("sums", "changes", "order", "pairs")


def script_of(root: Path, *names: str, endings: dict[str, str] | None = None):
    streams = dict.fromkeys(s for name in names for s in READS.get(name, ("p",)))
    texts = [STREAMS[s].format(root=root, columns=COLUMNS) for s in streams]
    texts += [f"{QUERIES[name]} INTO FILE('{root}/{name}{(endings or {}).get(name, '/')}');" for name in names]
    return parse_script("\n".join(texts))


def batches_of(name: str) -> list[Batch]:
    """What comes of a stream, file by file: disordered, but nothing is late."""
    rng = Random(name)
    events = [
        (i * SECOND, (i, rng.choice("abc"), rng.choice((0.1, 0.2, 1e16, -1e16, None)), from_micros(i * SECOND)))
        for i in range(FILES * 6)
    ]
    return disordered(name, events, seed=3, share=0.4, up_to=2 * SECOND, beyond=0, batches=FILES)


class Input:
    """Files of three streams, written one by one."""

    def __init__(self, root: Path) -> None:
        self.root, self.next = root, 0
        for name in "prt":
            (root / name).mkdir(parents=True, exist_ok=True)

    def write(self, count: int, older: int = 0) -> None:
        """The next files of every stream; `older` ones stand before those that are there."""
        for name, ending in (("p", "parquet"), ("r", "csv"), ("t", "parquet")):
            for number, batch in list(enumerate(batches_of(name)))[self.next : self.next + count]:
                rows = [arrival.values for arrival in batch.rows[name]]
                write_file(self.root / name / f"{number:04d}.{ending}", SCHEMA, rows, FIRST_WRITTEN + number - older)
        self.next += count


def go_on(spark, root: Path, *names: str, **more) -> Run:
    """Run a script over all that is there, and stop."""
    how = {"follow": True, "buckets": 2, "options": {"maxFilesPerTrigger": "1"}} | more
    run = start_run(spark, script_of(root, *names), {}, checkpoint=str(root / "state"), **how)
    try:
        run.query.processAllAvailable()
    finally:
        run.stop()
    assert run.error is None
    return run


def finish(spark, root: Path, *names: str, buckets: int | None = None) -> None:
    """Run a script to the end of its input."""
    start_run(
        spark, script_of(root, *names), {}, checkpoint=str(root / "state"),
        options={"maxFilesPerTrigger": "1"}, buckets=buckets,
    ).wait(240)  # fmt: skip


def check(root: Path, *names: str) -> None:
    """The outputs hold what the runtime gives in one go."""
    for name in names:
        script = script_of(root, name)
        (stream, *_) = READS.get(name, ("p",))
        outputs = drive(local_engine(script, 2, None), LocalRun(script, tuple(batches_of(stream)), {}))
        query = script.queries[0]
        want = [(c.sign, canonical_row(c.row, query.node.schema)) for output in outputs for c in output[query.name]]
        got = [(row[0] == "+" or -1, row[1:]) if query.emit.early else (1, row) for row in read_sink(root / name)]
        have = [(sign, canonical_row(row, query.node.schema)) for sign, row in got]
        assert have == want if query.emit.ordered else net(have) == net(want), name


def net(changes: list[tuple[int, tuple]]) -> Counter[tuple]:
    total: Counter[tuple] = Counter()
    for sign, row in changes:
        total[row] += sign
    assert min(total.values()) >= 0
    return +total


def facts(root: Path) -> dict:
    return json.loads((root / "state" / "headrace.json").read_text())


def test_queries_come_and_go(spark, tmp_path):
    given = Input(tmp_path)
    given.write(2)
    go_on(spark, tmp_path, *MAIN)
    assert (tmp_path / "state" / "program.0").exists()
    given.write(2)
    go_on(spark, tmp_path, "others", "pairs", "order", "cascade", "sums", "changes")  # one more level, stages in another order
    assert (facts(tmp_path)["generation"], facts(tmp_path)["first_batch"]) == (1, 1)
    given.write(FILES - 4)
    finish(spark, tmp_path, *MAIN, "others", buckets=3)  # one level less
    assert (facts(tmp_path)["generation"], facts(tmp_path)["buckets"]) == (2, 3)
    assert made(tmp_path) == ["program.2", "spark.2"]
    assert not (tmp_path / "state" / "spool" / "t").exists(), "nobody reads it any more"
    check(tmp_path, *MAIN, "others")


def made(root: Path) -> list[str]:
    """What generations have left under the checkpoint."""
    kinds = ("spark", "program", "handover", "backfill")
    return sorted(p.name for p in (root / "state").iterdir() if p.name.startswith(kinds))


class Death(BaseException):
    """Nothing more happens, as if all processes had been killed."""


def die(*_: object, **__: object) -> None:
    raise Death


def after(inner, *then):
    """A function that dies after it has done its work, and more."""

    def outer(*args, **kwargs):
        inner(*args, **kwargs)
        for deed in then:
            deed()
        raise Death

    return outer


def before_the_switch(root: Path):
    """Moments at which a change can be killed, in their order: what dies there."""
    new = root / "state" / "spark.1"
    uncommitted = lambda: (new / "commits" / "0").unlink()  # noqa: E731
    yield "program written", evolve, "store_program", after(evolve.store_program)
    yield "facts to be written", Checkpoint, "store", die
    yield "cells being written", evolve, "run_handover", after(lambda *a, **k: shutil.rmtree(root / "state" / "handover.1"))
    yield "cells written", evolve, "run_handover", die
    yield "batch begun", evolve, "run_handover", after(evolve.run_handover, uncommitted)
    yield "batch done", evolve, "carry_over", die
    yield "sources carried over", offsets, "_copy", after(offsets._copy)
    yield "offsets to be written", LocalStorage, "add", dying_at(LocalStorage.add, "offsets")
    yield "offsets written", evolve, "store_program", die


def dying_at(inner, word: str):
    def add(self, path, data):
        if word in path:
            raise Death
        inner(self, path, data)

    return add


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_whenever_it_is_killed_one_generation_counts(spark, tmp_path, monkeypatch):
    given = Input(tmp_path)
    given.write(3)
    go_on(spark, tmp_path, *MAIN)
    # Its last batch was published, and not committed: it is planned anew, with more in it, and replaces what was published.
    spark_folder = tmp_path / "state" / "spark"
    (spark_folder / "commits" / "2").unlink()
    given.write(1)
    before, published = tree(spark_folder), tree(tmp_path / "sums")
    for moment, owner, name, deed in before_the_switch(tmp_path):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, deed)
            with pytest.raises(Death):
                go_on(spark, tmp_path, *MAIN, "cascade", buckets=3)
        assert facts(tmp_path)["generation"] == 0, moment
        assert (tree(spark_folder), tree(tmp_path / "sums")) == (before, published), moment
    go_on(spark, tmp_path, *MAIN)  # the old script goes on as if nothing had been
    assert made(tmp_path) == ["program.0", "spark"]
    given.write(1)
    (spark_folder / "commits" / "3").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "store", after(Checkpoint.store, lambda: shutil.rmtree(spark_folder / "offsets")))
        with pytest.raises(Death):
            go_on(spark, tmp_path, *MAIN, "cascade", buckets=3)
    assert (facts(tmp_path)["generation"], facts(tmp_path)["buckets"]) == (1, 3)
    given.write(FILES - 5)
    finish(spark, tmp_path, *MAIN, "cascade")
    assert made(tmp_path) == ["program.1", "spark.1"]
    check(tmp_path, *MAIN, "cascade")


def test_queries_that_are_moved_and_renamed_make_no_generation(spark, tmp_path):
    """What goes on writes where it is told to now."""
    given = Input(tmp_path)
    given.write(3)
    go_on(spark, tmp_path, *MAIN, "others")
    before, written = facts(tmp_path), {name: read_sink(tmp_path / name) for name in MAIN}
    QUERIES["again"] = (
        "  SELECT  id, card,\n sum(amount) AS s, MIN( amount ) AS lo FROM p [RANGE 15 SECONDS] GROUP BY card EMIT FINAL"
    )
    names = ("others", "order", "again", "changes", "pairs")
    assert foreseen(script_of(tmp_path, *names), str(tmp_path / "state")) == ["nothing changes: all queries go on"]
    given.write(FILES - 3)
    run = go_on(spark, tmp_path, *names)
    assert {name.rstrip("/").rpartition("/")[2] for name in run._names.values()} == set(names)
    assert (facts(tmp_path), made(tmp_path)) == (before, ["program.0", "spark"])
    finish(spark, tmp_path, *names[:2], *names[:1:-1])
    assert read_sink(tmp_path / "sums") == written["sums"]
    for file in (tmp_path / "again").glob("batch-*"):
        shutil.copy(file, tmp_path / "sums")
    check(tmp_path, *MAIN, "others")


def test_the_number_of_buckets_alone_changes(spark, tmp_path):
    """By the option, and by the setting, which a run that is not told otherwise keeps to."""
    given = Input(tmp_path)
    given.write(2)
    go_on(spark, tmp_path, *MAIN, "cascade", buckets=4)
    given.write(2)
    said = foreseen(script_of(tmp_path, *MAIN, "cascade"), str(tmp_path / "state"), 1)
    assert said == ["4 buckets become 1: keys take their state along"]
    go_on(spark, tmp_path, *MAIN, "cascade", buckets=1)
    given.write(2)
    spark.conf.set(BUCKETS, "3")
    try:
        go_on(spark, tmp_path, *MAIN, "cascade", buckets=None)
    finally:
        spark.conf.unset(BUCKETS)
    assert (facts(tmp_path)["generation"], facts(tmp_path)["buckets"]) == (2, 3)
    given.write(FILES - 6)
    finish(spark, tmp_path, *MAIN, "cascade")
    finish(spark, tmp_path, *MAIN, "cascade", buckets=5)  # there is nothing left to do
    assert (facts(tmp_path)["generation"], facts(tmp_path)["buckets"]) == (2, 3)
    check(tmp_path, *MAIN, "cascade")


def test_what_cannot_go_on_is_refused_and_changes_nothing(spark, tmp_path):
    Input(tmp_path).write(1)
    go_on(spark, tmp_path, "sums")
    before = tree(tmp_path / "state")
    with pytest.raises(StateError, match="changes/' cannot begin complete: it needs rows of the last 1 minute"):
        go_on(spark, tmp_path, "sums", "changes")
    assert tree(tmp_path / "state") == before
    go_on(spark, tmp_path, "sums", buckets=None)
    assert facts(tmp_path)["generation"] == 0


def test_a_query_from_now_meets_the_rows_of_its_table(spark, tmp_path):
    given = Input(tmp_path)
    (tmp_path / "towns.csv").write_text("a,Aach\nb,Bonn\nc,Celle\n")
    STREAMS["towns"] = "CREATE TABLE towns (name STRING, town STRING) SOURCE FILE('{root}/towns.csv');"
    QUERIES["placed"] = "SELECT p.id AS id, towns.town AS town FROM p JOIN towns ON p.card = towns.name EMIT FINAL"
    READS["placed"] = ("p", "towns")
    given.write(3)
    go_on(spark, tmp_path, "sums")
    given.write(2)
    go_on(spark, tmp_path, "sums", "placed", from_now=("placed",))
    given.write(FILES - 5)
    finish(spark, tmp_path, "sums", "placed", buckets=3)
    check(tmp_path, "sums")
    came = [a.values for batch in batches_of("p")[3:] for a in batch.rows["p"]]
    towns = {"a": "Aach", "b": "Bonn", "c": "Celle"}
    assert Counter(read_sink(tmp_path / "placed")) == Counter((id, towns[card]) for id, card, *_ in came)


def test_a_query_begins_complete_or_from_now(spark, tmp_path):
    """What is held of the last 15 seconds is enough for 10 of them; a minute begins with nothing, and stays apart."""
    given = Input(tmp_path)
    given.write(4)
    go_on(spark, tmp_path, "sums")
    QUERIES["short"] = "SELECT id, card, MAX(amount) AS hi FROM p [RANGE 10 SECONDS] GROUP BY card EMIT FINAL"
    given.write(2)
    said = [
        line.rpartition("/: ")[2] for line in foreseen(script_of(tmp_path, "short", "changes", "sums"), str(tmp_path / "state"))
    ]
    assert [line.partition(":")[0].partition(",")[0] for line in said] == ["goes on", "begins", "refused"]
    run = go_on(spark, tmp_path, "short", "changes", "sums", from_now=("changes",))
    assert [name.rpartition("/changes")[2] for name in run.progress.filling] == ["/"], "not a minute yet, of which it says so"
    given.write(FILES - 6)
    run = go_on(spark, tmp_path, "changes", "short", "sums", buckets=3)
    assert len(run.progress.filling) == 1, "other buckets remember since when"
    finish(spark, tmp_path, "changes", "short", "sums")
    assert facts(tmp_path)["generation"] == 2
    check(tmp_path, "sums")
    whole = LocalRun(script_of(tmp_path, "short"), tuple(batches_of("p")), {})
    outputs = drive(local_engine(whole.script, 2, None), whole)
    seen = {arrival.values[0] for batch in batches_of("p")[:4] for arrival in batch.rows["p"]}
    want = [c.row for output in outputs for c in output[whole.script.queries[0].name] if c.row[0] not in seen]
    assert Counter(read_sink(tmp_path / "short")) == Counter(want)
    assert {row[1] for row in read_sink(tmp_path / "changes")} & seen == set()
