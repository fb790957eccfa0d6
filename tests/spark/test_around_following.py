"""Around following: chunks that Spark has read are deleted, what cannot be followed is watched, what changed is told."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import StateError
from headrace.exchange.pack import segments_of
from headrace.files.following import Kind
from headrace.notices import HeadraceWarning
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream
from headrace.program.stage import Disorder
from headrace.spark.exchange.pack import Numbering, Packing, _placed
from headrace.spark.sources.consumed import Consumed
from headrace.spark.sources.following import FileSpool, followed
from headrace.spark.sources.growth import refuse_changed, tell_changed
from headrace.spark.sources.prepare import TIME
from headrace.spark.sources.rejects import Words
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.spark.storage.storage import LOCAL
from headrace.state.codec import FORMAT


class FakeSpark:
    """Writes what Spark writes into a checkpoint: the log of each source, planned batches, committed batches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("commits", "offsets", "sources/p", "sources/q"):
            (folder / name).mkdir(parents=True)
        self.logged: dict[str, list[dict]] = {"p": [], "q": []}
        self.batch = -1

    def log(self, source: str, entry: int, *names: str, compact: bool = False) -> None:
        """One entry of the log of a source; every so often one holds all before it."""
        own = [{"path": f"file:///spool/{source}/{n}", "timestamp": 1, "batchId": entry} for n in names]
        self.logged[source] += own
        lines = ["v1", *map(json.dumps, self.logged[source] if compact else own)]
        (self.folder / f"sources/{source}/{entry}{'.compact' if compact else ''}").write_text("\n".join(lines))

    def plan(self, **entries: int) -> None:
        self.batch += 1
        offsets = [f'{name}:{{"logOffset":{entry}}}' for name, entry in entries.items()]
        (self.folder / f"offsets/{self.batch}").write_text("\n".join(["v2", '{"conf":{}}', *offsets]))

    def commit(self) -> None:
        (self.folder / f"commits/{self.batch}").write_text("v1\n{}")


def test_what_committed_batches_have_read(tmp_path):
    spark = FakeSpark(tmp_path)
    consumed = Consumed(LOCAL, str(tmp_path))
    spark.log("p", 0, "a", "b%20c")
    spark.log("q", 0, "x")
    spark.plan(p=0)
    assert consumed.names() == []  # planned is not committed
    spark.commit()
    assert consumed.names() == ["a", "b c"]
    assert consumed.names() == []
    spark.log("p", 1, "d", compact=True)
    spark.log("p", 2, "e")
    spark.plan(p=2, q=0)
    spark.commit()
    spark.log("p", 3, "f")
    spark.plan(p=3, q=0)
    assert consumed.names() == ["d", "e", "x"]
    again = Consumed(LOCAL, str(tmp_path))
    assert again.names() == []  # not before the query has gone on
    spark.commit()
    assert again.names() == ["a", "b c", "d", "e", "f", "x"]


def test_chunks_are_deleted_when_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.spark.sources.following.FORGET", 1)
    spark, log, folder = FakeSpark(tmp_path / "spark"), tmp_path / "a.json", tmp_path / "spool"
    log.write_text("")

    def spool() -> FileSpool:
        return FileSpool(LOCAL, str(folder), "p", str(log), Kind("json"), str(tmp_path / "spark"), follow=True)

    def chunks(count: int) -> list[str]:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = sorted(p.name for p in folder.iterdir() if p.name[0] not in "._")
            if len(found) == count:
                return found
            time.sleep(0.01)
        raise AssertionError(found)

    running, read = spool(), []
    for number in range(6):
        with log.open("a") as file:
            file.write(f'{{"id": {number}}}\n')
        (name,) = chunks(1)
        read.append((folder / name).read_text())
        spark.log("p", number, name)
        spark.plan(p=number)
        if number == 2:  # killed before the batch is committed: the chunk is still there
            running.stop()
            running = spool()
            assert chunks(1) == [name]
        spark.commit()
        assert chunks(0) == []
    running.stop()
    assert running.error is None
    assert read == [f'{{"id": {number}}}\n' for number in range(6)]


def stream_of(path: Path, format: str) -> Stream:
    return Stream("p", FileSource(str(path), format), Schema.of(id="INT"))


def facts_of(root: Path, sizes: dict[str, int] | None = None) -> Checkpoint:
    return Checkpoint(str(root / "state"), FORMAT, "", 1, sizes=sizes or {})


def test_what_cannot_be_followed_is_watched(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.spark.sources.following.WATCH_S", 0.02)
    said: list[str] = []
    monkeypatch.setattr("headrace.spark.sources.following.warn", lambda text, where: said.append(f"{where}: {text}"))
    stream, file = stream_of(tmp_path / "in", "parquet"), tmp_path / "in" / "a.parquet"
    file.parent.mkdir()
    file.write_bytes(b"12345")
    source, watch = followed(stream, stream.source, facts_of(tmp_path, {str(file): 4}), LOCAL, follow=True)
    assert source == stream.source
    deadline = time.monotonic() + 30
    while not said and time.monotonic() < deadline:
        time.sleep(0.01)
    watch.stop()
    assert said[0].startswith(
        f"stream 'p': {file} had 4 bytes when it was first seen, and has 5 now: parquet files are read whole"
    )
    assert len(said) == 1
    said.clear()
    assert followed(stream, stream.source, facts_of(tmp_path), LOCAL, follow=False) == (stream.source, None)
    away = stream_of("s3a://bucket/in", "csv")
    assert followed(away, away.source, facts_of(tmp_path), LOCAL, follow=True) == (away.source, None)
    assert "files in another file system are read whole" in said.pop()
    text = stream_of(tmp_path / "in", "csv")
    offsets = tmp_path / "state" / "spark" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1")
    source, watch = followed(text, text.source, facts_of(tmp_path), LOCAL, follow=True)
    watch.stop()
    assert source == text.source
    assert "this checkpoint was begun without --follow" in said.pop()


def test_a_stream_that_was_followed_is_followed_to_the_end(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("id\n1\n2")
    stream = stream_of(log, "csv")
    source, spool = followed(stream, stream.source, facts_of(tmp_path), LOCAL, follow=True)
    spool.stop()
    assert source == FileSource(str(tmp_path / "state/spool/p"), "csv", spooled=True)
    source, spool = followed(stream, stream.source, facts_of(tmp_path), LOCAL, follow=False)
    spool.wait()
    texts = [p.read_text() for p in sorted((tmp_path / "state/spool/p").iterdir()) if p.name[0] not in "._"]
    assert "".join(text.removeprefix("id\n") for text in texts) == "1\n2\n"


def test_what_changed_while_it_was_read_is_told(tmp_path, recwarn):
    file = tmp_path / "a.csv"
    file.write_text("1\n")
    facts, streams = Checkpoint(str(tmp_path), 1, "", 1), (stream_of(file, "csv"),)
    refuse_changed(facts, streams)
    tell_changed(facts.sizes, streams)
    assert not recwarn.list
    with file.open("a") as more:
        more.write("2\n")
    tell_changed(facts.sizes, streams)
    assert "had 2 bytes when the run began, and 4 when it ended" in str(recwarn.pop(HeadraceWarning).message)
    with pytest.raises(StateError, match="had 2 bytes when this run began, and has 4 now"):
        refuse_changed(facts, streams)


def judged(places: str, high: list[int], low: list[int], ts: list[int]) -> tuple[list[tuple[int, int]], int]:
    """The runs of rows that a task sees, and how many rows it takes to be late."""
    columns = {"_high": pa.array(high, pa.int64()), "_low": pa.array(low, pa.int64()), TIME: pa.array(ts, pa.int64())}
    batch, numbering = pa.RecordBatch.from_pydict(columns), Numbering(places)
    found = numbering.place(batch)
    disorder = Disorder(1, single_partition=True)
    packing = Packing("p", disorder, places, (), (), 0, Words((), Schema.of(id="INT")))
    segments, behind = segments_of(_placed(packing, numbering, batch, *found, 0, found), disorder)
    return [segment.place for segment in segments], int(behind.sum())


def test_parts_of_a_file_that_come_out_of_order_are_runs_of_their_own():
    """Spark packs the larger chunk first; rows of the earlier one are not late because of that."""
    high, ts = [7] * 5 + [8], [40, 50, 60, 10, 20, 70]
    assert judged("rows", high, [300, 310, 320, 100, 110, 5], ts) == ([(7, 300), (7, 100), (8, 5)], 0)
    assert judged("lines", high, [300, 300, 300, 100, 100, 5], ts) == ([(7, 300), (7, 100), (8, 5)], 0)
    assert judged("rows", [7] * 5, [1, 2, 3, 4, 5], [40, 50, 60, 10, 20]) == ([(7, 1)], 2)  # one run that is out of order
