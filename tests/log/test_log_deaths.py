"""Processes that end between any two calls to the system, and machines that lose power: what is found then."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import SMALL_SEGMENT
from looking import AT, all_records

from headrace.log.files import FileLog
from headrace.log.log import At


class Disk:
    """What is on the disk for sure: files and folders as they were when they were last synced."""

    def __init__(self, monkeypatch) -> None:
        self.files: dict[int, bytes] = {}
        self.folders: dict[int, dict[str, int]] = {}
        monkeypatch.setattr(os, "fsync", self.fsync)

    def fsync(self, file: int) -> None:
        status = os.fstat(file)
        if stat.S_ISDIR(status.st_mode):
            path = os.readlink(f"/proc/self/fd/{file}")
            self.folders[status.st_ino] = {e.name: e.inode() for e in os.scandir(path) if not e.name.startswith("waiting-")}
        else:
            path = os.readlink(f"/proc/self/fd/{file}")
            self.files[status.st_ino] = Path(path).read_bytes()

    def lost(self, now: Path, then: Path, random: Random) -> None:
        """What may be found after a loss of power: of what was not synced any part, noughts in the place of the rest of it."""
        inode = now.stat().st_ino
        if now.is_dir():
            then.mkdir()
            names = self.folders.get(inode, {})
            for path in now.iterdir():
                if path.name in names or random.random() < 0.5:
                    self.lost(path, then / path.name, random)
            return
        synced, data = self.files.get(inode, b""), now.read_bytes()
        size = random.randint(len(synced), len(data))
        kept = random.randint(len(synced), size)
        then.write_bytes(data[:kept] + bytes(size - kept))


@settings(max_examples=min(2 * settings.default.max_examples, 600))
@given(seed=st.integers(0, 2**32))
def test_what_was_synced_survives_the_machine(tmp_path_factory, seed):
    random, root = Random(seed), tmp_path_factory.mktemp("machine")
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk = Disk(monkeypatch)
        log, values, synced = FileLog(str(root / "now"), SMALL_SEGMENT), [], 0
        log.create("t", 1)
        for number in range(random.randint(1, 40)):
            some = [f"{number} {n} ".encode() * random.choice((1, 20)) for n in range(random.randint(1, 3))]
            log.append(AT, some)
            values += some
            if random.random() < 0.2:
                log.sync([AT])
                synced = len(values)
        log.close()
        disk.lost(root / "now", root / "then", random)
    log = FileLog(str(root / "then"), SMALL_SEGMENT)
    found = [r.value for r in all_records(log, 0)]
    assert len(found) >= synced
    assert found == values[: len(found)]
    assert log.append(AT, [b"on"]) == len(found)
    assert [r.value for r in all_records(log, 0)] == [*found, b"on"]
    log.close()
    shutil.rmtree(root)


class KilledError(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process at the n-th thing that it asks of the system: before that, or when half of it is written."""

    CALLS = ("write", "ftruncate", "fsync", "open", "rename", "replace", "unlink", "mkfifo", "mkdir", "rmdir")

    def __init__(self, monkeypatch, at: int) -> None:
        self.left, self.before = at, ""
        for name in self.CALLS:
            monkeypatch.setattr(os, name, self.wrapped(name, getattr(os, name)))

    def wrapped(self, name: str, call):
        def asked(*args, **how):
            self.left -= 1
            if self.left < 0:
                self.before = name
                if name == "write" and self.left == -1:
                    call(args[0], args[1][: len(args[1]) // 2])
                raise KilledError(name)
            return call(*args, **how)

        return asked


def live(log: FileLog, done: list) -> None:
    """Everything that a log is asked for; what is done is noted, and what is being done before that."""

    def do(what: str, method, *arguments) -> None:
        done.append((what, arguments, False))
        method(*arguments)
        done[-1] = (what, arguments, True)

    do("create", log.create, "t", 1)
    for number in range(9):
        do("append", log.append, AT, [b"%d" % number * 30, b"x" * 70][: 1 + number % 2])
        if number == 3:
            log.poll({AT: 0}, 0.0)
            log.poll({AT: log.end(AT)}, 0.001)
    do("trim", log.trim, AT, 6)
    do("commit", log.commit, "units", {AT: 5})
    do("create", log.create, "u", 2)
    do("delete", log.delete, "u")


def test_a_process_may_be_killed_between_any_two_calls(files, monkeypatch):
    """Whoever comes next finds all that was done, what was being done wholly or not at all, and can go on."""
    stopped = set()
    for moment in range(1_000):
        files.begin_anew()
        log, done = files.open(small=True), []
        with monkeypatch.context() as own:
            killer = Killer(own, moment)
            with suppress(KilledError):
                live(log, done)
        if killer.left >= 0:
            break
        stopped.add(f"{done[-1][0]} {killer.before}")
        check_lived(files.open(small=True), done)
    assert moment > 80
    least = {"append write", "append fsync", "append open", "create rename", "delete unlink", "trim unlink", "commit replace"}
    assert least <= stopped


def check_lived(log: FileLog, done: list) -> None:
    ways = {name: [over for what, arguments, over in done if (what, arguments[0]) == ("create", name)] for name in ("t", "u")}
    topics = log.topics()
    assert ("t" in topics) or ways["t"] == [False]
    values = [(arguments[1], over) for what, arguments, over in done if what == "append"]
    log.create("t", 1)
    begin = log.begin(AT)
    found = [r.value for r in all_records(log, begin)]
    sure = [value for some, over in values if over for value in some]
    maybe = sure + [value for some, over in values if not over for value in some]
    assert found in (sure[begin:], maybe[begin:])
    assert begin <= 6
    assert log.append(AT, [b"on"]) == begin + len(found)
    assert [r.value for r in all_records(log, begin)] == [*found, b"on"]
    commits = [over for what, _, over in done if what == "commit"]
    assert log.committed("units") in ([{}], [{}, {AT: 5}], [{AT: 5}])[len(commits) + sum(commits)]
    deleted = [over for what, _, over in done if what == "delete"]
    assert ("u" in topics) in (
        [True, False] if ways["u"] == [False] or deleted == [False] else [ways["u"] == [True] and not deleted]
    )
    for _ in range(2):
        log.create("u", 2)
        assert log.append(At("u", 1), [b"new"]) == 0
        log.delete("u")
    assert log.topics() == {"t": 1}
    log.close()
