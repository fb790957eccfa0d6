"""A run that has ended goes on when its sources have grown: what only the end released is taken back, or it is refused."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from case_driver import read_sink
from test_generations import FILES, Input, batches_of, facts, script_of, tree
from test_generations import QUERIES as OTHERS

from headrace.errors import HeadraceError, StateError
from headrace.oracle.rows import canonical_row
from headrace.spark import run as spark_run
from headrace.spark.generations.foreseen import foreseen
from headrace.spark.run import start_run
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.testing.conformance import Run as LocalRun
from headrace.testing.conformance import drive
from headrace.testing.local import local_engine

QUERIES = {
    "each": "SELECT id, card, COUNT(*) AS n FROM p [RANGE 15 SECONDS] GROUP BY card EMIT CHANGES",
    "looks": "SELECT card, COUNT(*) AS n, SUM(amount) AS s FROM p [SIZE 40 SECONDS] GROUP BY card EMIT CHANGES",
    "chained": "SELECT n, COUNT(*) AS m FROM c [SIZE 40 SECONDS] GROUP BY n EMIT CHANGES",
    "unmet": "EVENT SEQ(p a, !(p b)) WHERE a.card = b.card AND b.amount IS NULL WITHIN 20 SECONDS RETURN a.id AS x EMIT CHANGES",
    "once": "SELECT card, COUNT(*) AS n FROM p [SIZE 40 SECONDS] GROUP BY card EMIT FINAL",
    "short": "SELECT id, card, COUNT(*) AS n FROM p [RANGE 5 SECONDS] GROUP BY card EMIT CHANGES",
    "lost": "SELECT id FROM late(p)",
}
MAIN = ("each", "looks", "chained", "unmet", "lost")


@pytest.fixture(autouse=True)
def queries(monkeypatch):
    for name, text in QUERIES.items():
        monkeypatch.setitem(OTHERS, name, text)


def script(root: Path, *names: str, **endings: str):
    from test_generations import READS

    READS.setdefault("chained", ("t", "c"))
    return script_of(root, *names, endings=endings)


def finish(spark, root: Path, *names: str, endings: dict[str, str] | None = None, **more):
    """To the end of its input, a batch for every file."""
    how = {"buckets": 2, "options": {"maxFilesPerTrigger": "1"}} | more
    return start_run(spark, script(root, *names, **(endings or {})), {}, checkpoint=str(root / "state"), **how).wait(240)


def finish_at_once(spark, root: Path, *names: str) -> None:
    """The same in one batch, and one for the end, where it only matters that it still goes on."""
    finish(spark, root, *names, options={})


def net(changes: list[tuple[int, tuple]]) -> Counter[tuple]:
    total: Counter[tuple] = Counter()
    for sign, row in changes:
        total[row] += sign
    assert min(total.values(), default=0) >= 0
    return +total


@cache
def wanted(name: str, count: int) -> Counter[tuple]:
    """What one run over so many files says, wherever they lie."""
    own = script(Path("/nowhere"), name)
    query, stream = own.queries[0], "t" if name == "chained" else "p"
    outputs = drive(local_engine(own, 2, None), LocalRun(own, tuple(batches_of(stream)[:count]), {}))
    return net([(c.sign, canonical_row(c.row, query.node.schema)) for output in outputs for c in output[query.name]])


def judge(root: Path, count: int, *names: str) -> None:
    """The outputs say what one run over these files says."""
    for name in names:
        schema = script(root, name).queries[0].node.schema
        rows = [(row[0] == "+" or -1, row[1:]) if name != "lost" else (1, row) for row in read_sink(root / name)]
        assert net([(sign, canonical_row(row, schema)) for sign, row in rows]) == wanted(name, count), name


def test_what_has_ended_goes_on(spark, tmp_path):
    given = Input(tmp_path)
    for count in (3, 2, FILES - 5):
        given.write(count)
        finish(spark, tmp_path, *MAIN)
        judge(tmp_path, given.next, *MAIN)
        assert facts(tmp_path)["ended"]
    before = tree(tmp_path)
    assert foreseen(script(tmp_path, *MAIN), str(tmp_path / "state"))[0].endswith("there is nothing to do, but with --follow")
    finish(spark, tmp_path, *MAIN)
    assert tree(tmp_path).keys() == before.keys(), "there is nothing more to do"
    assert any(row[0] == "-" for row in read_sink(tmp_path / "looks"))


def test_what_is_final_is_refused_if_the_end_released_it(spark, tmp_path):
    given = Input(tmp_path)
    given.write(3)
    finish(spark, tmp_path, "once", "each")
    given.write(1)
    before = {p: data for p, data in tree(tmp_path).items() if not p.endswith("headrace.lock")}
    (first, *_) = foreseen(script(tmp_path, "once", "each"), str(tmp_path / "state"))
    assert first.startswith(
        "the run has ended: what only its end released is taken back, and it goes on; if any of that was final"
    )
    for more in ({}, {"follow": True}):
        with pytest.raises(StateError, match=r"its end has released 3 rows of '.*once/', which is EMIT FINAL.*: \('"):
            finish(spark, tmp_path, "once", "each", **more)
    assert {p: data for p, data in tree(tmp_path).items() if not p.endswith("headrace.lock")} == before


def test_what_is_final_goes_on_if_the_end_released_nothing(spark, tmp_path):
    """With HAVING nothing is left of what it would have released."""
    OTHERS["once"] = QUERIES["once"].replace("EMIT", "HAVING COUNT(*) > 1000 EMIT")
    given = Input(tmp_path)
    for count in (3, FILES - 3):
        given.write(count)
        finish(spark, tmp_path, "once", "each")
        judge(tmp_path, given.next, "each")
    assert read_sink(tmp_path / "once") == []


def test_one_file_of_parquet_is_put_together_again(spark, tmp_path):
    given = Input(tmp_path)
    for count in (2, 2):
        given.write(count)
        finish(spark, tmp_path, "looks", endings={"looks": ".parquet"})
    rows = pq.read_table(tmp_path / "looks.parquet").to_pylist()
    have = net([(r.pop("_op") == "+" or -1, canonical_row(tuple(r.values()))) for r in rows])
    assert have == wanted("looks", 4)


def test_it_goes_on_with_another_script_and_other_buckets(spark, tmp_path):
    """What each bucket had released is taken back, whoever has its keys now."""
    given = Input(tmp_path)
    given.write(3)
    finish(spark, tmp_path, "each", "looks", "chained")
    given.write(FILES - 3)
    finish(spark, tmp_path, "short", "looks", "each", "lost", buckets=3)
    assert (facts(tmp_path)["generation"], facts(tmp_path)["buckets"]) == (1, 3)
    assert any(row[0] == "-" for row in read_sink(tmp_path / "looks"))
    judge(tmp_path, FILES, "each", "looks")


def test_it_goes_on_and_is_followed(spark, tmp_path):
    given = Input(tmp_path)
    given.write(3)
    finish(spark, tmp_path, *MAIN)
    given.write(2)
    run = start_run(spark, script(tmp_path, *MAIN), {}, checkpoint=str(tmp_path / "state"), follow=True)
    run.query.processAllAvailable()
    run.stop()
    assert run.error is None
    given.write(FILES - 5)
    finish_at_once(spark, tmp_path, *MAIN)
    judge(tmp_path, FILES, *MAIN)


def killed(*_: object, **__: object) -> None:
    raise OSError("killed")


def moments():
    """When a run is killed around its end, or around going on: what dies there, and whether its last batch was committed."""
    inner, store = spark_run.end_is_said, Checkpoint.store

    def said(*args):
        inner(*args)
        killed()

    def stored(self, storage):
        store(self, storage)
        if self.goes_on:
            killed()

    yield "end to be said", spark_run, "end_is_said", killed, True
    yield "end noted", spark_run, "end_is_said", said, True
    yield "end committed", spark_run, "refresh_tables", killed, True
    yield "end published, not committed", spark_run, "refresh_tables", killed, False
    yield "going on", Checkpoint, "store", stored, True


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize("grows", [False, True])
def test_whenever_it_is_killed(spark, tmp_path, monkeypatch, number, grows):
    moment, owner, name, deed, committed = list(moments())[number]
    given = Input(tmp_path)
    given.write(2)
    if moment == "going on":
        finish_at_once(spark, tmp_path, *MAIN)
        given.write(1)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, deed)
        with pytest.raises(HeadraceError, match="killed"):
            finish_at_once(spark, tmp_path, *MAIN)
    if not committed:
        commits = tmp_path / "state" / "spark" / "commits"
        last = max(int(p.name) for p in commits.iterdir() if p.name.isdigit())
        (commits / str(last)).unlink()
    if grows:
        given.write(2)
    finish(spark, tmp_path, *MAIN)
    judge(tmp_path, given.next, *MAIN)
    given.write(FILES - given.next)
    finish_at_once(spark, tmp_path, *MAIN)
    judge(tmp_path, FILES, *MAIN)


def test_the_batch_that_goes_on_is_killed(spark, tmp_path):
    """It was published, and is tried again, with more in it."""
    given = Input(tmp_path)
    given.write(2)
    finish(spark, tmp_path, *MAIN)
    given.write(2)
    run = start_run(spark, script(tmp_path, *MAIN), {}, checkpoint=str(tmp_path / "state"), follow=True)
    run.query.processAllAvailable()
    run.stop()
    commits = tmp_path / "state" / "spark" / "commits"
    last = max(int(p.name) for p in commits.iterdir() if p.name.isdigit())
    (commits / str(last)).unlink()
    given.write(FILES - 4)
    finish_at_once(spark, tmp_path, *MAIN)
    judge(tmp_path, FILES, *MAIN)
