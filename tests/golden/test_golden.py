"""A small checkpoint of every format there was: gone on with, or refused with words, for ever (how they were made: make.py)."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headrace.errors import StateError
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import canonical_row, rows_of_batch, to_micros
from headrace.plan.query import Script
from headrace.sql import parse_script
from headrace.state.codec import FORMAT
from headrace.testing.local import LocalEngine

HERE = Path(__file__).parent
FORMATS = sorted(int(p.name.partition("-")[2]) for p in HERE.glob("format-*"))
REFUSED = [n for n in FORMATS if n < 7]
OUTPUTS = ("sums", "always", "pairs")


def script_of(root: Path) -> Script:
    return parse_script((HERE / "script.cql").read_text().replace("ROOT", str(root)))


def laid_out(number: int, root: Path) -> Path:
    """The checkpoint, as if it had been made in this folder: Spark writes whole paths."""
    shutil.copytree(HERE / f"format-{number}" / "state", root / "state")
    shutil.copytree(HERE / "p", root / "p")
    for file in (root / "state" / "spark").rglob("*"):
        if file.is_file() and ("sources" in file.parts or "_metadata" in file.parts):
            file.write_text(file.read_text().replace(f"/tmp/golden/format-{number}", str(root)))
    return root / "state"


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.name.startswith("headrace.lock")}


def test_there_is_one_of_this_format():
    assert FORMAT in FORMATS
    assert all(sum(p.stat().st_size for p in (HERE / f"format-{n}").rglob("*") if p.is_file()) < 100_000 for n in FORMATS)


@pytest.mark.parametrize("number", REFUSED)
def test_an_old_format_is_refused_with_words(number, tmp_path):
    from headrace.spark.generations.foreseen import foreseen

    state = laid_out(number, tmp_path)
    before = tree(state)
    with pytest.raises(StateError, match=f"has format {number}, and this version reads format {FORMAT}") as refused:
        foreseen(script_of(tmp_path), str(state))
    assert refused.value.hint is not None
    assert tree(state) == before


def test_what_a_run_would_do_with_format_7_is_said_beforehand(tmp_path):
    from headrace.spark.generations.foreseen import foreseen

    state = laid_out(7, tmp_path)
    before, script = tree(state), script_of(tmp_path)
    assert foreseen(script, str(state)) == ["nothing changes: all queries go on"]
    (said,) = foreseen(script, str(state), 2)
    assert said.startswith("refused: ")
    assert said.endswith("does not say of every key in which bucket it belongs: an earlier version began it")
    assert tree(state) == before


def expected(root: Path) -> dict[str, Counter]:
    """What comes after the first two files, by the engine of the tests in one go."""
    engine = LocalEngine(script_of(root), 1)
    batches = []
    for path in sorted((HERE / "p").iterdir()):
        rows = [(at, card, int(shop), float(amount)) for at, card, shop, amount in csv.reader(path.open())]
        times = [to_micros(datetime.fromisoformat(at)) for at, *_ in rows]
        batches.append(Batch(0, {"p": [Arrival((t, *row[1:])) for t, row in zip(times, rows, strict=True)]}))
    outputs = [*(engine.push(batch) for batch in batches), engine.finish(0)][2:]
    return {
        name: Counter(canonical_row(c.row) for o in outputs for q, cs in o.items() if f"/{name}/" in q for c in cs)
        for name in OUTPUTS
    }


def run(spark, root: Path, **how) -> None:
    from headrace.spark.run import start_run

    start_run(spark, script_of(root), {}, checkpoint=str(root / "state"), **how).wait(240)


def test_format_7_is_gone_on_with(spark, tmp_path):
    """Its program has other paths: what it wrote elsewhere it goes on with here. It did not note where keys of it belong."""
    state = laid_out(7, tmp_path)
    before = tree(state)
    with pytest.raises(StateError, match="does not say of every key in which bucket it belongs"):
        run(spark, tmp_path, buckets=2)
    assert tree(state) == before
    run(spark, tmp_path)
    assert not (state / "spark.1").exists()
    for name, rows in expected(tmp_path).items():
        found = [row for file in (tmp_path / name).glob("batch-*") for row in rows_of_batch(pq.read_table(file))]
        assert Counter(map(canonical_row, found)) == rows, name
        assert rows
