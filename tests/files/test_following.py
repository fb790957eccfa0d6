"""Files that grow: appended to, renamed, copied, cut short, compressed, and we are killed meanwhile; every record comes once."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.files.chunks import Chunk, Origin, origin_of, unescape
from headrace.files.contents import Plain
from headrace.files.following import Follower, Kind, whole
from headrace.files.identity import is_same

HEADER = b"id,text\n"
CSV = Kind("csv", ",", lambda head: len(HEADER) if head.startswith(HEADER) else 0)


class KilledError(BaseException):
    """The process ends here."""


class Disk:
    """The storage, which kills the process at the n-th thing that is done: before it, half way, or after."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.at = ""

    def _step(self, what: str) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left, self.at = None, what
                raise KilledError(what)

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def read(self, path: str) -> bytes | None:
        return Path(path).read_bytes() if os.path.exists(path) else None

    def write(self, path: str, data: bytes) -> None:
        self.add(path, data)

    def add(self, path: str, data: bytes) -> None:
        self._step("before writing")
        hidden = Path(path).with_name(f".{Path(path).name}.0123456789abcdef.tmp")
        hidden.parent.mkdir(parents=True, exist_ok=True)
        hidden.write_bytes(data[: len(data) // 2])
        self._step("half written")
        hidden.write_bytes(data)
        self._step("written, not published")
        hidden.rename(path)
        self._step("published")

    def delete(self, path: str) -> None:
        self._step("before deleting")
        os.remove(path)
        self._step("deleted")


class World:
    """A folder of logs, a follower that is killed and started again, and a reader of chunks that reads each name once."""

    def __init__(self, root: Path, seed: int, *, single: bool) -> None:
        self.rng, self.single = Random(seed), single
        self.logs, self.spool = root / "logs", root / "spool"
        self.logs.mkdir(parents=True)
        self.spool.mkdir()
        self.disk, self.now = Disk(), 1_000_000.0
        self.number = 0
        self.written: dict[str, list[bytes]] = {}  # by the log that they were written to
        self.half: dict[Path, bytes] = {}  # what is missing of a record that is being written
        self.writers: dict[Path, BinaryIO] = {}  # whoever writes half a record keeps the file open
        self.read: dict[str, bytes] = {}
        self.happened: Counter[str] = Counter()
        self.told: list[str] = []
        self.rotating = False  # one thing at a time
        self.start()

    def find(self):
        paths = [self.logs / "a.csv"] if self.single else sorted(p for p in self.logs.iterdir() if p.name[0] not in "._")
        return [(str(p), p.stat()) for p in paths if p.is_file()]

    def start(self) -> None:
        self.follower = Follower(
            self.disk, str(self.spool), CSV, str(self.logs), self.find, self.told.append, lambda: self.now,
            chunk=self.rng.choice((16, 64, 1 << 20)),
        )  # fmt: skip

    # What writers do

    def record(self) -> bytes:
        self.number += 1
        text = self.rng.choice((b"x", b"y" * 40, b'"two\nlines"', b'"a ""quoted"" one"', b'5" wide', b"\xc3\xa9", b'"\n\n,"'))
        return b"%d,%s\n" % (self.number, text)

    def live(self) -> Path:
        return self.logs / ("a.csv" if self.single else self.rng.choice(("a.csv", "b.csv", "c.csv")))

    def append(self) -> None:
        path, data = self.live(), b""
        if not path.exists():
            data = HEADER
        log = self.written.setdefault(path.name, [])
        if path in self.half:
            rest = self.half.pop(path)
            data += rest
        for _ in range(self.rng.randrange(4)):
            record = self.record()
            log.append(record)
            data += record
        if self.rng.random() < 0.4:
            record = self.record()
            log.append(record)
            cut = self.rng.randrange(1, len(record))
            data, self.half[path] = data + record[:cut], record[cut:]
            self.happened["a half record"] += 1
        self.write(path, data, more=path in self.half)
        os.utime(path, (self.now, self.now))

    def write(self, path: Path, data: bytes, *, more: bool = False) -> None:
        writer = self.writers.pop(path, None) or path.open("ab", buffering=0)
        writer.write(data)
        if more:
            self.writers[path] = writer
        else:
            writer.close()

    def finish(self, path: Path) -> None:
        """What rotation puts aside ends with a whole record, but perhaps without its line end."""
        rest = self.half.pop(path, b"")
        if rest:
            self.write(path, rest[:-1] if self.rng.random() < 0.5 else rest)
            os.utime(path, (self.now, self.now))
            self.happened["no line end when put aside"] += not path.read_bytes().endswith(b"\n")

    def rename(self) -> None:
        path = self.live()
        if path.exists() and len(path.read_bytes()) > len(HEADER) and self.was_seen(path):
            self.finish(path)
            older = path.with_name(path.name + ".1")
            if older.exists():
                older.rename(path.with_name(f"{path.name}.{self.number}"))
            path.rename(older)
            self.happened["renamed"] += 1

    def copy_and_cut(self) -> None:
        path = self.live()
        copy = path.with_name(f"{path.name}.copy{self.number}")
        if path.exists() and not copy.exists() and self.was_seen(path) and len(path.read_bytes()) > len(HEADER) + 1:
            self.finish(path)
            self.rotating = True
            if self.rng.random() < 0.5:
                copy.write_bytes(path.read_bytes()[: self.rng.randrange(len(HEADER) + 1, path.stat().st_size)])
                os.utime(copy, (self.now, self.now))
                if self.is_known(path):
                    self.step()
                    self.happened["looked at while it is copied"] += 1
            shutil.copy(path, copy)
            os.utime(copy, (self.now, self.now))
            if self.is_known(path) and self.rng.random() < 0.5:
                self.step()
                self.happened["looked at before it is cut"] += 1
            with path.open("r+b") as file:
                file.truncate(0)
                if self.rng.random() < 0.5:
                    record = self.record()
                    self.written[path.name].append(record)
                    file.write(HEADER + record)
                elif self.rng.random() < 0.5:
                    file.write(HEADER)
                else:
                    path.unlink()
            self.rotating = False
            self.happened["copied and cut"] += 1

    def was_seen(self, path: Path) -> bool:
        """What is put aside where nobody looks, before anybody has looked, is not there at all."""
        if not self.single:
            return True
        content = Plain(str(path))
        known = [f for f in self.follower.ledger.files.values() if f.inode == path.stat().st_ino and f.offset]
        try:
            return any(is_same(f, content) for f in known)
        finally:
            content.close()

    def is_known(self, path: Path) -> bool:
        """A copy can be told for one only if something of its original has been read."""
        return any(f.path == str(path) and f.offset for f in self.follower.register.live.values())

    def compress(self) -> None:
        old = [p for p in self.logs.iterdir() if p.name.count(".") > 1 and p.suffix not in (".gz", ".bz2") and self.is_known(p)]
        if old:
            path = self.rng.choice(old)
            pack = self.rng.choice((gzip, bz2))
            ending = ".gz" if pack is gzip else ".bz2"
            packed = path.with_name(path.name + ending)
            packed.write_bytes(pack.compress(path.read_bytes()))
            os.utime(packed, (self.now, self.now))
            if self.rng.random() < 0.5:
                self.rotating = True
                self.step()
                self.rotating = False
            path.unlink()
            self.happened["compressed"] += 1

    def delete(self) -> None:
        """A file that is open here can be read after it is gone, if nobody is killed meanwhile."""
        old = [
            f for f in self.follower.register.live.values()
            if f.content is not None and f.path.count(".") > 1 and os.path.exists(f.path) and os.stat(f.path).st_ino == f.inode
            and Path(f.path).read_bytes().endswith(b"\n")
        ]  # fmt: skip
        if old:
            file = self.rng.choice(old)
            if file.path.endswith((".gz", ".bz2")) is False and self.rng.random() < 0.7:
                record = self.record()
                self.written.setdefault("put aside", []).append(record)
                self.write(Path(file.path), record)
                self.happened["deleted before it was read to its end"] += 1
            os.remove(file.path)
            self.disk.left = None
            self.step()
            self.happened["deleted"] += 1

    def touch(self) -> None:
        path = self.live()
        if path.exists():
            os.utime(path, (self.now, self.now))

    # What we do

    def step(self) -> None:
        try:
            self.follower.step()
        except KilledError:
            self.die()

    def consume(self) -> None:
        """As Spark does: what is there by a name that was not there before."""
        for path in self.spool.iterdir():
            if path.name[0] not in "._" and path.name not in self.read:
                self.read[path.name] = path.read_bytes()
                self.happened["chunks"] += 1

    def forget(self) -> None:
        try:
            self.follower.ledger.forget([n for n in self.read if self.rng.random() < 0.8])
            self.happened["forgotten"] += 1
        except KilledError:
            self.die()

    def kill(self) -> None:
        self.disk.left = self.rng.randrange(9)

    def die(self) -> None:
        if self.disk.at:
            self.happened[f"killed: {self.disk.at}"] += 1
        self.disk.left, self.disk.at = None, ""
        self.follower.close()
        for _ in range(self.rng.randrange(3)):
            self.rng.choice((self.consume,) if self.rotating else (self.append, self.rename, self.consume))()
        self.start()
        self.happened["restarted"] += 1

    def pass_time(self) -> None:
        self.now += self.rng.choice((0.1, 1, 10, 100))

    def run(self, events: int) -> None:
        kinds = [
            (self.append, 10), (self.step, 10), (self.consume, 4), (self.forget, 2), (self.rename, 1), (self.copy_and_cut, 1),
            (self.compress, 1), (self.delete, 1), (self.touch, 1), (self.kill, 2), (self.die, 1), (self.pass_time, 3),
        ]  # fmt: skip
        for _ in range(events):
            self.rng.choices([k for k, _ in kinds], [w for _, w in kinds])[0]()
        self.disk.left = None
        for path in list(self.half):
            self.write(path, self.half.pop(path))
            os.utime(path, (self.now, self.now))
        self.now += 1000
        for _ in range(3):
            self.follower.step()
            self.consume()
            self.now += 1000
        self.follower.step(ending=True)
        self.consume()

    def rows(self) -> dict[int, list[bytes]]:
        """Records by the file they were read from, in its order."""
        out: dict[int, list[bytes]] = {}
        ends: dict[int, int] = {}
        for name in sorted(self.read):
            chunk = Chunk.parse(name)
            assert chunk is not None
            data = self.read[name]
            assert data.startswith(HEADER), name
            assert chunk.offset == ends.get(chunk.seen, len(HEADER)), "no gap, and nothing twice"
            ends[chunk.seen] = chunk.end
            assert len(data) - len(HEADER) - chunk.length in (0, 1)
            assert chunk.line == 1 + b"".join(out.get(chunk.seen, ())).count(b"\n")
            out.setdefault(chunk.seen, []).append(data[len(HEADER) :])
        return out


REACHED = {
    "a half record": 5, "no line end when put aside": 0.2, "renamed": 1, "copied and cut": 0.4,
    "looked at while it is copied": 0.1,
    "looked at before it is cut": 0.1, "compressed": 0.2, "deleted": 0.2, "deleted before it was read to its end": 0.1,
    "restarted": 2, "forgotten": 2, "killed: before writing": 0.2, "killed: half written": 0.2,
    "killed: written, not published": 0.2, "killed: published": 0.1, "killed: before deleting": 0.02,
}  # fmt: skip
WORLDS = int(os.environ.get("HEADRACE_WORLDS", "40"))


@pytest.mark.parametrize("single", [False, True], ids=["folder", "one file"])
def test_every_record_comes_once_whatever_happens(tmp_path, single):
    happened: Counter[str] = Counter()
    for seed in range(WORLDS):
        world = World(tmp_path / str(seed), seed, single=single)
        world.run(60)
        got = Counter(part for parts in world.rows().values() for part in b"".join(parts).splitlines())
        want = Counter(part for log in world.written.values() for record in log for part in record.splitlines())
        assert got == want, (seed, got - want, want - got, world.told)
        happened += world.happened
    print(dict(happened))
    seldom = {what: happened[what] for what, share in REACHED.items() if happened[what] < share * WORLDS}
    assert not seldom, "too seldom to mean anything"


class Logs:
    """A folder that is followed, step by step."""

    def __init__(self, root: Path, kind: Kind = CSV, chunk: int = 1 << 20) -> None:
        self.root, self.kind, self.chunk, self.now, self.told = root, kind, chunk, 1_000_000.0, list[str]()
        (root / "logs").mkdir()
        self.start()

    def start(self) -> None:
        logs = self.root / "logs"
        self.follower = Follower(
            Disk(), str(self.root / "spool"), self.kind, str(logs), lambda: [(str(p), p.stat()) for p in logs.iterdir()],
            self.told.append, lambda: self.now, self.chunk,
        )  # fmt: skip

    def append(self, name: str, data: bytes) -> Path:
        path = self.root / "logs" / name
        with path.open("ab") as file:
            file.write(data)
        os.utime(path, (self.now, self.now))
        return path

    def step(self) -> list[tuple[Chunk, bytes]]:
        """Look once; all chunks so far."""
        self.follower.step()
        names = [n for n in Disk().names(str(self.root / "spool")) if n[0] not in "._"]
        return [(chunk, (self.root / "spool" / n).read_bytes()) for n in names if (chunk := Chunk.parse(n))]


def test_a_chunk_says_where_its_rows_stand(tmp_path):
    logs = Logs(tmp_path)
    logs.append("a b.csv", HEADER + b'1,"x\ny"\n')
    logs.step()
    logs.append("a b.csv", b"2,z\n")
    logs.now += 5
    os.utime(tmp_path / "logs" / "a b.csv", (0, 0))  # its time of modification moves, its place does not
    (first, one), (second, two) = logs.step()
    assert (one, two) == (HEADER + b'1,"x\ny"\n', HEADER + b"2,z\n")
    assert first.seen == second.seen == 1_000_000_000
    assert [(c.offset, c.line, c.lines) for c in (first, second)] == [(8, 1, 2), (16, 3, 1)]
    assert unescape(second.path) == "a b.csv"


def test_files_stand_in_the_order_in_which_they_were_seen(tmp_path):
    logs = Logs(tmp_path)
    logs.append("b.csv", HEADER + b"1,x\n")
    logs.now += 1
    logs.append("a.csv", HEADER + b"2,x\n")
    logs.step()
    logs.append("0.csv", HEADER + b"3,x\n")
    logs.append("b.csv", b"4,x\n")
    assert [data[len(HEADER) :] for _, data in logs.step()] == [b"1,x\n", b"4,x\n", b"2,x\n", b"3,x\n"]


def test_a_name_that_is_too_long_is_known_again(tmp_path):
    logs = Logs(tmp_path)
    name = "é" * 100 + ".csv"
    logs.append(name, HEADER + b"1,x\n")
    logs.step()
    logs.start()
    (tmp_path / "logs" / name).rename(tmp_path / "logs" / (name + ".1"))
    ((chunk, _),) = logs.step()
    assert len(chunk.name) < 216
    assert [f.first_path for f in logs.follower.ledger.files.values()] == [str(tmp_path / "logs" / name)]


def test_no_more_is_spooled_than_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("headrace.files.following.MOST_CHUNKS", 3)
    logs = Logs(tmp_path, chunk=8)
    logs.append("a.csv", HEADER + b"1,abcdef\n" * 5)
    chunks = logs.step()
    assert len(chunks) == 3
    assert len(logs.step()) == 3
    logs.follower.ledger.forget([chunks[0][0].name])
    assert [c.offset for c, _ in logs.step()] == [17, 26, 35]
    logs.start()
    logs.follower.ledger.forget([c.name for c, _ in logs.step()])
    assert [c.offset for c, _ in logs.step()] == [44]


def test_a_last_line_without_an_end(tmp_path):
    """It waits while somebody may write on, and is taken when nobody can."""
    logs = Logs(tmp_path)
    path = logs.append("a.csv", HEADER + b"1,x\n2,y")
    writer = path.open("ab")
    logs.now += 1000
    assert [data for _, data in logs.step()] == [HEADER + b"1,x\n"]
    assert any("its last record does not end" in text for text in logs.told)
    writer.close()
    logs.now = os.stat(path).st_mtime + 1
    logs.step()
    logs.now += 10
    assert [data for _, data in logs.step()] == [HEADER + b"1,x\n", HEADER + b"2,y\n"]


def test_a_quote_that_is_never_closed_does_not_hold_up_the_rest(tmp_path):
    logs = Logs(tmp_path)
    writer = logs.append("a.csv", HEADER).open("ab", buffering=0)
    rows = b"2,x\n" * 300_000
    writer.write(b'1,"x\n' + rows)
    logs.step()
    data = b"".join(data[len(HEADER) :] for _, data in logs.step())
    assert data == b'1,"x\n' + rows
    assert any("a quote or bracket is opened" in text for text in logs.told)
    writer.close()


def test_a_compressed_file_is_read_once_and_says_so_if_it_changes(tmp_path):
    logs = Logs(tmp_path)
    data = HEADER + b"1,x\n2,y"
    path = logs.append("a.csv.gz", gzip.compress(data)[:-6])
    assert logs.step() == []
    assert any("is not whole" in text for text in logs.told)
    path.write_bytes(gzip.compress(data))
    assert [data for _, data in logs.step()] == [data + b"\n"]
    logs.now += 100
    logs.append("a.csv.gz", gzip.compress(b"3,z\n"))
    logs.start()
    assert len(logs.step()) == 1
    assert any("has changed after it was read" in text for text in logs.told)


def test_a_copy_beside_its_original_is_not_read_and_said(tmp_path):
    logs = Logs(tmp_path)
    path = logs.append("a.csv", HEADER + b"1,x\n")
    logs.step()
    shutil.copy(path, path.with_name("a.csv.bak"))
    shutil.copy(path, path.with_name("other.csv"))  # not by its name: a file like any other
    assert sorted(unescape(c.path) for c, _ in logs.step()) == ["a.csv", "other.csv"]
    assert any("a.csv.bak: a copy of" in text for text in logs.told)


def test_what_is_cut_short_without_a_copy_is_said(tmp_path):
    logs = Logs(tmp_path)
    path = logs.append("a.csv", HEADER + b"1,x\n")
    logs.step()
    path.write_bytes(HEADER + b"7,y\n8,z\n")
    assert [data for _, data in logs.step()][-1] == HEADER + b"7,y\n8,z\n"
    assert any("a.csv: followed before, and now gone, cut short or written anew" in text for text in logs.told)


def test_names_say_what_they_are_made_of():
    chunk = Chunk(1, 2, 3, 4, 5, 6, 7, "0123abcd", "deadbeef", "a~b_20c.csv", "csv", 8)
    assert Chunk.parse(chunk.name) == chunk
    assert Chunk.parse("000000000012.txt") is None
    assert origin_of(f"/spool/p/{chunk.name}") == Origin("a/b c.csv", 7, 1, 4)
    assert origin_of("/in/a.csv") is None


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b"a,b\nc", 4), (b'a,"b\nc', 0), (b'a,"b\nc"\n', 8), (b'a,"b""\nc"\nd', 10), (b'5" x\ny"\n', 8), (b'"a"b"\n,"\n', 6),
        (b"", 0), (b'"\n', 0), (b'a;"b\n', 5),
    ],
)  # fmt: skip
def test_records_end_outside_of_quotes(text, count):
    assert whole(text, ",") == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (b'{"a": 1}\n{"a', 9), (b'{"a":\n1}\n{', 9), (b'[{"a": 1},\n{"a": 2}\n', 0), (b'[\n1]\n', 5), (b'{"a": "}\\"{["}\n', 15),
        (b'"{\n}\n', 5), (b"", 0), (b"]]\n{\n", 3),
    ],
)  # fmt: skip
def test_json_ends_outside_of_brackets(text, count):
    assert whole(text, None) == count


@given(st.lists(st.lists(st.text('ab,"\n\r', max_size=5), min_size=1, max_size=3), max_size=6), st.integers(0, 100))
def test_whole_records_are_what_the_csv_module_reads(rows, cut):
    """Of the records that Python writes, those are whole that Python writes before the cut."""
    text, ends = io.StringIO(newline=""), [0]
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        writer.writerow(row)
        ends.append(text.tell())
    assert whole(text.getvalue()[:cut].encode(), ",") == max(end for end in ends if end <= cut)
