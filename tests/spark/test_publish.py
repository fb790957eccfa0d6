"""Batches on a local disk: every one once and whole, whenever the writer dies; and every output belongs to one checkpoint."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import OutputError, StateError
from headrace.spark.sinks import publish as publishing
from headrace.spark.sinks.publish import begin, finish, publish
from headrace.spark.sinks.signs import claim
from headrace.spark.sinks.sink import Target, Writer
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.spark.storage.lock import Lock
from headrace.spark.storage.storage import LOCAL


def target_at(path: Path, kind: str, *, single: bool, owner: str = "me", compression: str | None = None, ordered: bool = False):
    return Target(0, str(path), kind, ("a", "b"), (0, 1), True, ordered, "counts", owner, single, compression)


def facts_of(owner: str = "me", path: str = "/nowhere") -> Checkpoint:
    return Checkpoint(path, 1, "script", 2, id=owner)


def staged(target: Target, first: int, rows: int) -> list[str]:
    """What two tasks have written of a batch."""
    writer, paths = Writer([target]), []
    for task, (start, end) in enumerate(((first, first + rows // 2), (first + rows // 2, first + rows))):
        numbers = list(range(start, end))
        batch = pa.record_batch(
            {
                "q": pa.array([0] * len(numbers), pa.int32()),
                "sign": pa.array([1] * len(numbers), pa.int8()),
                "o0": pa.array(numbers, pa.int64()),
                "o1": pa.array([f"x,{n}" for n in numbers]),
                **{name: pa.array(numbers, pa.int64()) for name in ("ts", "high", "low", "sub")},
            }
        )
        for _, path in writer.write(iter([batch])).files:
            paths.append(path.replace("000000-", f"{task:06d}-"))  # there is no task here to have a number
            Path(path).rename(paths[-1])
    return paths


class Died(BaseException):
    """As if the process had been killed here."""


def dying(monkeypatch, rng: Random):
    """From a call on that is chosen by chance, nothing that changes the disk is done any more."""
    left = [rng.randrange(12)]

    def dies(real):
        def call(*arguments, **more):
            left[0] -= 1
            if left[0] < 0:
                raise Died
            return real(*arguments, **more)

        return call

    for name in ("rename", "replace", "remove"):
        monkeypatch.setattr(os, name, dies(getattr(os, name)))

    def half(source, out, length=0):
        data = source.read()
        left[0] -= 1
        if left[0] < 0:
            out.write(data[: len(data) // 2])
            out.flush()
            raise Died
        out.write(data)

    monkeypatch.setattr("shutil.copyfileobj", half)
    whole = publishing._store

    def half_a_note(target, note):
        left[0] -= 1
        if left[0] < 0:
            with open(publishing._note(target), "a") as file:
                file.write('{"batch": 7')
            raise Died
        whole(target, note)

    monkeypatch.setattr(publishing, "_store", half_a_note)


def read(target: Target) -> list[str]:
    """The lines of all rows."""
    if target.single:
        data = Path(target.path).read_bytes()
        lines = (gzip.decompress(data) if target.compression else data).decode().splitlines()
        return lines[1:] if target.format == "csv" else lines
    lines = []
    for path in sorted(Path(target.path).glob("batch-*")):
        text = path.read_text().splitlines()
        lines += text[1:] if target.format == "csv" else text
    return lines


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("shape", ["single", "gz", "folder", "ordered"])
def test_every_batch_is_there_once_whenever_the_writer_dies(tmp_path, monkeypatch, kind, shape):
    rng, died = Random(f"{kind} {shape}"), 0
    single = shape != "folder"
    target = target_at(
        tmp_path / f"out.{kind}", kind, single=single, compression="gzip" if shape == "gz" else None, ordered=shape == "ordered"
    )
    claim([target], facts_of(), overwrite=False)
    begin(target)
    for batch in range(12):
        while True:
            files = staged(target, batch * 10, 10)
            with monkeypatch.context() as patch:
                dying(patch, rng)
                try:
                    publish(target, files, batch)
                except Died:
                    died += 1
                    continue  # the process starts again, and Spark runs the batch again
            if rng.random() < 0.3:
                continue  # published, but Spark did not come to note it
            break
    assert died > 5
    numbers = [int(line.split(",")[1]) if kind == "csv" else int(line.split('"a": ')[1].split(",")[0]) for line in read(target)]
    assert numbers == list(range(120))


def test_notes_do_not_grow_for_ever(tmp_path):
    target = target_at(tmp_path / "out.csv", "csv", single=True)
    claim([target], facts_of(), overwrite=False)
    begin(target)
    for batch in range(1000):
        publishing._store(target, {"batch": batch, "from": 10 * batch, "length": 10 * batch + 10})
        assert os.path.getsize(publishing._note(target)) < 2 * publishing.MOST_NOTES
    assert publishing._load(target)["batch"] == 999


def test_a_file_that_is_followed_is_not_touched_by_a_batch_that_is_tried_again(tmp_path):
    target = target_at(tmp_path / "out.csv", "csv", single=True)
    claim([target], facts_of(), overwrite=False)
    begin(target)
    assert Path(target.path).read_text() == '"_op","a","b"\n'
    publish(target, staged(target, 0, 4), 0)
    before = os.stat(target.path)
    publish(target, staged(target, 0, 4), 0)
    after = os.stat(target.path)
    assert (before.st_size, before.st_mtime_ns, before.st_ino) == (after.st_size, after.st_mtime_ns, after.st_ino)


def test_a_file_that_somebody_shortened_is_not_written_to(tmp_path):
    target = target_at(tmp_path / "out.csv", "csv", single=True)
    claim([target], facts_of(), overwrite=False)
    begin(target)
    publish(target, staged(target, 0, 4), 0)
    publish(target, staged(target, 4, 4), 1)
    os.truncate(target.path, 20)
    with pytest.raises(OutputError, match=r"has 20 bytes, and .* were written"):
        publish(target, staged(target, 8, 4), 2)
    with pytest.raises(OutputError, match="has 20 bytes"):
        begin(target)
    os.remove(target.path)
    with pytest.raises(OutputError, match="has 0 bytes"):
        begin(target)


def test_an_older_copy_of_a_checkpoint_is_refused(tmp_path):
    target = target_at(tmp_path / "out.csv", "csv", single=True)
    claim([target], facts_of(), overwrite=False)
    begin(target)
    publish(target, staged(target, 0, 4), 5)
    with pytest.raises(StateError, match="holds batch 5, and the checkpoint is at batch 3"):
        publish(target, staged(target, 0, 4), 3)


def test_a_single_parquet_file_comes_at_the_end(tmp_path):
    target = target_at(tmp_path / "out.parquet", "parquet", single=True)
    claim([target], facts_of(), overwrite=False)
    begin(target)
    for batch in range(3):
        publish(target, staged(target, batch * 4, 4), batch)
    publish(target, staged(target, 8, 4), 2)
    assert not Path(target.path).exists()
    schema = pa.schema({"_op": pa.string(), "a": pa.int64(), "b": pa.string()})
    finish(target, schema)
    assert pq.read_table(target.path).column("a").to_pylist() == list(range(12))
    assert os.listdir(tmp_path / ".out.parquet.headrace") == ["_headrace.json"]
    empty = target_at(tmp_path / "empty.parquet", "parquet", single=True)
    claim([empty], facts_of(), overwrite=False)
    finish(empty, schema)
    assert pq.read_table(empty.path).schema == schema


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
@pytest.mark.parametrize("single", [True, False])
class TestOutputsBelongToOneCheckpoint:
    def made(self, tmp_path, kind, single, owner="me"):
        target = target_at(tmp_path / (f"out.{kind}" if single else "out"), kind, single=single, owner=owner)
        claim([target], facts_of(owner), overwrite=False)
        begin(target)
        publish(target, staged(target, 0, 4), 0)
        if single:
            finish(target, pa.schema({"_op": pa.string(), "a": pa.int64(), "b": pa.string()}))
        return target

    def test_its_own_run_may_go_on(self, tmp_path, kind, single):
        target = self.made(tmp_path, kind, single)
        before = sorted(os.listdir(tmp_path))
        claim([target], facts_of(), overwrite=False)
        claim([target], facts_of(), overwrite=True)  # it is not another's, so it stays
        assert sorted(os.listdir(tmp_path)) == before

    def test_another_is_refused_and_told_what_to_do(self, tmp_path, kind, single):
        target = self.made(tmp_path, kind, single)
        with pytest.raises(OutputError, match="holds the output of another run") as refused:
            claim([target_at(Path(target.path), kind, single=single, owner="other")], facts_of("other"), overwrite=False)
        assert "--overwrite" in refused.value.hint

    def test_overwrite_empties_it_first(self, tmp_path, kind, single):
        target = self.made(tmp_path, kind, single)
        again = self.remade(target, kind, single)
        assert [p for p in tmp_path.rglob("batch-*")] == []
        if single:
            assert not Path(target.path).exists() or read(again) == []
        publish(again, staged(again, 100, 2), 0)
        with pytest.raises(OutputError, match="taken over by another run"):
            publish(target, staged(target, 0, 4), 1)

    def remade(self, target, kind, single):
        again = target_at(Path(target.path), kind, single=single, owner="other")
        claim([again], facts_of("other"), overwrite=True)
        begin(again)
        return again

    def test_what_headrace_did_not_write_is_never_touched(self, tmp_path, kind, single):
        if single:
            letter = tmp_path / f"out.{kind}"
            letter.write_text("dear")
            target = target_at(letter, kind, single=True)
        else:
            target = self.made(tmp_path, kind, single=False)
            letter = tmp_path / "out" / "letter.csv"
            letter.write_text("dear")
            target = target_at(tmp_path / "out", kind, single=False, owner="other")
        before = sorted(p for p in tmp_path.rglob("*"))
        for overwrite in (False, True):
            with pytest.raises(OutputError, match=r"Headrace did not write"):
                claim([target], facts_of(target.owner), overwrite=overwrite)
        assert sorted(p for p in tmp_path.rglob("*")) == before
        assert letter.read_text() == "dear"

    def test_one_refused_output_leaves_all_others_alone(self, tmp_path, kind, single):
        target = self.made(tmp_path / "a", kind, single) if (tmp_path / "a").mkdir() is None else None
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "letter").write_text("dear")
        before = sorted(p for p in tmp_path.rglob("*"))
        others = [
            target_at(Path(target.path), kind, single=single, owner="other"),
            target_at(tmp_path / "b", kind, single=False, owner="other"),
        ]
        with pytest.raises(OutputError, match="did not write: letter"):
            claim(others, facts_of("other"), overwrite=True)
        assert sorted(p for p in tmp_path.rglob("*")) == before

    def test_what_a_run_is_writing_is_not_overwritten(self, tmp_path, kind, single):
        checkpoint = str(tmp_path / "state")
        target = target_at(tmp_path / (f"out.{kind}" if single else "out"), kind, single=single)
        lock = Lock(checkpoint, LOCAL)
        claim([target], facts_of(path=checkpoint), overwrite=False)  # nothing is written yet
        other = target_at(Path(target.path), kind, single=single, owner="other")
        for overwrite in (False, True):
            with pytest.raises(OutputError, match=f"process {os.getpid()} on .* is writing into"):
                claim([other], facts_of("other"), overwrite=overwrite)
        lock.release()
        claim([other], facts_of("other"), overwrite=False)

    def test_the_other_kind_of_place(self, tmp_path, kind, single):
        path = tmp_path / f"out.{kind}"
        path.mkdir() if single else path.write_text("x")
        with pytest.raises(OutputError, match="is a directory, and a path" if single else "is a file, and files"):
            claim([target_at(path, kind, single=single)], facts_of(), overwrite=True)


def test_another_format_or_query_of_the_same_run(tmp_path):
    target = target_at(tmp_path / "out", "csv", single=False)
    claim([target], facts_of(), overwrite=False)
    with pytest.raises(OutputError, match="holds csv of this run, and now json is asked for"):
        claim([target_at(tmp_path / "out", "json", single=False)], facts_of(), overwrite=False)
    with pytest.raises(OutputError, match="holds the rows of 'counts', another query"):
        claim([Target(0, target.path, "csv", (), (), False, False, "late", "me")], facts_of(), overwrite=False)


def test_unsigned_output_of_a_checkpoint_that_did_not_sign_is_adopted(tmp_path):
    target = target_at(tmp_path / "out", "csv", single=False)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "batch-0000000000-0000.csv").write_text("a\n")
    with pytest.raises(OutputError, match="the output of another run"):
        claim([target], facts_of(), overwrite=False)
    claim([target], Checkpoint("/nowhere", 1, "script", 2, id="me", adopts=True), overwrite=False)
    assert sorted(os.listdir(tmp_path / "out")) == ["_headrace.json", "batch-0000000000-0000.csv"]
