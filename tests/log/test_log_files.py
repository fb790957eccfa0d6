"""What only files can suffer: torn ends, flipped bits, full disks, machines that lose power; and who wakes whom."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from child import READY
from hypothesis import given, settings
from hypothesis import strategies as st
from kinds import SMALL_SEGMENT
from test_log import everything, start

from headrace.errors import LogError, SystemFailure
from headrace.log import polling
from headrace.log.files import FileLog
from headrace.log.frames import HEAD_BYTES
from headrace.log.log import At
from headrace.log.segments import INDEX_EVERY, Folder
from headrace.log.waking import Waiters, Waiting

AT = At("t", 0)


@pytest.fixture
def log(files) -> FileLog:
    log = files.open(small=True)
    log.create("t", 1)
    return log


def folder(files) -> Path:
    return Path(files.address) / "topics" / "t" / "0"


def segments(files) -> list[Path]:
    return sorted(folder(files).glob("*.log"))


def read(files, begin: int = 0) -> list[bytes]:
    log = files.open()
    return [r.value for r in all_records(log, begin)]


def all_records(log: FileLog, begin: int):
    while records := log.poll({AT: begin}, 0.0):
        yield from records
        begin = records[-1].offset + 1


def filled(log: FileLog, count: int = 30) -> list[bytes]:
    values = [f"{number}".encode() * 20 for number in range(count)]
    for place in range(0, count, 3):
        log.append(AT, values[place : place + 3])
    return values


@pytest.mark.parametrize("tail", ["cut", "zeros"])
def test_a_torn_end_is_never_seen_and_is_cut_off_by_who_appends_next(files, log, tail):
    log.append(AT, [b"one", b"two"])
    (segment,) = segments(files)
    whole = segment.stat().st_size
    log.append(AT, [b"three", b"four"])
    data = segment.read_bytes()
    for kept in range(whole, len(data)):
        segment.write_bytes(data[:kept] + (bytes(len(data) - kept) if tail == "zeros" else b""))
        if tail == "zeros" and segment.read_bytes() == data:
            continue  # the record ends in nought
        some = FileLog(files.address)
        assert [r.value for r in all_records(some, 0)] == [b"one", b"two"]
        assert some.end(AT) == 2
        assert segment.stat().st_size == (len(data) if tail == "zeros" else kept)
        assert some.append(AT, [b"on"]) == 2
        assert [r.value for r in all_records(some, 0)] == [b"one", b"two", b"on"]
        some.close()


def test_who_reads_sees_what_is_written_behind_a_torn_end(files, log):
    """Of two records the first is in the file alone, then the beginning of another; a reader that waits there goes on."""
    log.append(AT, [b"one"])
    reader = files.open()
    (segment,) = segments(files)
    whole = segment.read_bytes()
    for torn in (whole[:10], whole[: HEAD_BYTES + 2], bytes(3), bytes(90)):
        offset = log.end(AT)
        assert reader.poll({AT: offset}, 0.0) == []
        with segment.open("ab") as file:
            file.write(torn)
        assert reader.poll({AT: offset}, 0.0) == []
        files.open().append(AT, [b"two"])
        assert [r.value for r in reader.poll({AT: offset}, 0.0)] == [b"two"]
        assert log.append(AT, [b"three"]) == offset + 1


def test_a_flipped_bit_is_an_error_that_names_the_file_and_never_a_shorter_log(files, log):
    """Every byte of a closed segment, and those of the last one that have a record behind them."""
    values = filled(log)
    log.close()
    chosen = [segments(files)[1], segments(files)[-1]]
    last_frame = HEAD_BYTES + 3 * (4 + 40)
    tried = 0
    for segment in chosen:
        data = segment.read_bytes()
        for place in range(len(data) - (last_frame if segment == chosen[-1] else 0)):
            damaged = bytearray(data)
            damaged[place] ^= 1 << place % 8
            segment.write_bytes(damaged)
            some = FileLog(files.address)
            with pytest.raises(LogError, match=rf"{segment.name}: damaged at byte") as caught:
                list(all_records(some, 0))
            assert "copy" in caught.value.hint
            if segment == chosen[-1]:
                with pytest.raises(LogError, match="damaged at byte"):
                    some.append(AT, [b"x"])
            some.close()
            tried += 1
        segment.write_bytes(data)
    assert tried > 300
    assert read(files) == values


@pytest.mark.parametrize("harm", ["cut", "removed"])
def test_a_segment_that_is_cut_short_or_gone_is_an_error(files, log, harm):
    filled(log)
    log.close()
    segment = segments(files)[1]
    if harm == "removed":
        segment.unlink()
    else:
        data = segment.read_bytes()
        os.truncate(segment, len(data) - HEAD_BYTES)  # all of its records are there, but not the seal
    with pytest.raises(LogError, match="damaged at byte"):
        read(files)


def test_a_log_that_lost_its_end_is_an_error_for_who_had_read_it(files, log):
    log.append(AT, [b"one", b"two"])
    with pytest.raises(LogError, match="ends at 2"):
        log.poll({AT: 3}, 0.0)


def test_segments_are_of_the_size_that_was_asked_and_go_when_nobody_needs_them(files, log):
    values = filled(log, 90)
    paths = segments(files)
    assert len(paths) > 10
    assert max(p.stat().st_size for p in paths) <= SMALL_SEGMENT + HEAD_BYTES
    reader = files.open()
    assert reader.poll({AT: 40}, 0.0, most=1)[0].value == values[40]
    for offset in (0, 2, 3, 41, 90, 1_000):
        log.trim(AT, offset)
        begin = log.begin(AT)
        assert begin <= min(offset, 90)
        assert read(files, begin) == values[begin:]
    assert len(segments(files)) == 1
    with pytest.raises(LogError, match=rf"offset 41 is gone: the log begins at {begin}"):
        reader.poll({AT: 41}, 0.0)
    assert [r.value for r in reader.poll({AT: begin}, 0.0)] == values[begin:]
    assert log.append(AT, [b"on"]) == 90


def test_who_is_behind_by_segments_that_are_gone_appends_at_the_end(files, log):
    behind = files.open(small=True)
    assert behind.append(AT, [b"x"]) == 0
    filled(log)
    log.trim(AT, 31)
    assert len(segments(files)) == 1
    assert behind.end(AT) == 31
    assert behind.append(AT, [b"y"]) == 31
    assert [r.value for r in log.poll({AT: 31}, 0.0)] == [b"y"]


def test_a_seal_without_a_segment_behind_it_is_where_a_killed_appender_was(files, log):
    values = filled(log)
    last = segments(files)[-1]
    base = int(last.stem)
    log.close()
    last.unlink()
    some, other = files.open(small=True), files.open(small=True)
    assert some.end(AT) == base
    assert other.poll({AT: base}, 0.0) == []
    assert some.append(AT, [b"on"]) == base
    assert other.poll({AT: base}, 0.0)[0].value == b"on"
    assert read(files) == [*values[:base], b"on"]


@pytest.mark.parametrize("index", ["whole", "gone", "torn", "wrong"])
def test_any_offset_is_found_whatever_the_index_says(files, index):
    log = FileLog(files.address)  # one segment
    log.create("t", 1)
    values = [f"{number} ".encode().ljust(500, b"x") for number in range(1_000)]
    for place in range(0, 1_000, 5):
        log.append(AT, values[place : place + 5])
    (path,) = folder(files).glob("*.index")
    assert path.stat().st_size // 16 == sum(map(len, values)) // INDEX_EVERY
    match index:
        case "gone":
            path.unlink()
        case "torn":
            os.truncate(path, path.stat().st_size - 5)
        case "wrong":
            path.write_bytes(bytes(b ^ 0x11 for b in path.read_bytes()))
    for offset in (0, 1, 499, 500, 640, 998, 999):
        some = files.open()
        assert some.poll({AT: offset}, 0.0, most=1)[0].value == values[offset]
        assert some.end(AT) == 1_000
    assert files.open().append(AT, [b"on"]) == 1_000
    log.close()


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Files cannot grow beyond this: a write that would is short, as it is where the disk is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_where_the_disk_is_full_nothing_half_is_left(files):
    log = files.open()
    log.create("t", 1)
    log.append(AT, [b"one"])
    (segment,) = segments(files)
    size, reader = segment.stat().st_size, files.open()
    for room in (0, 1, HEAD_BYTES, HEAD_BYTES + 20):
        with file_limit(size + room), pytest.raises(SystemFailure, match="nothing was appended") as caught:
            log.append(AT, [b"two" * 10, b"three" * 10])
        assert "room" in caught.value.hint
        assert segment.stat().st_size == size
    assert [r.value for r in reader.poll({AT: 0}, 0.0)] == [b"one"]
    assert log.append(AT, [b"two"]) == 1
    assert read(files) == [b"one", b"two"]


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


@settings(max_examples=settings.default.max_examples * 2)
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


def pipes(files) -> list[str]:
    return [p.name for p in folder(files).iterdir() if p.is_fifo()]


def test_who_waits_is_woken_and_does_not_have_to_look(files, log, monkeypatch):
    monkeypatch.setattr(polling, "LOOK_AGAIN_S", 60.0)
    reader = files.open()
    for number in range(20):
        later = threading.Timer(0.01, log.append, (AT, [b"x"]))
        begin = time.monotonic()
        later.start()
        assert len(reader.poll({AT: number}, 60.0)) == 1
        assert time.monotonic() - begin < 20
        later.join()
    assert len(pipes(files)) == 1
    reader.close()
    assert pipes(files) == []


def test_no_wake_up_is_missed_however_often_one_begins_to_wait(files, monkeypatch):
    """At another partition each time, so that pipes come and go between two looks of the appender."""
    monkeypatch.setattr(polling, "LOOK_AGAIN_S", 60.0)
    log, reader, random, turns = files.open(), files.open(), Random(1), 300
    log.create("t", 2)
    waits = [threading.Event() for _ in range(turns)]

    def append() -> None:
        for number, event in enumerate(waits):
            event.wait()
            time.sleep(random.random() * 0.001)
            log.append(At("t", number % 2), [b"x"])

    appender = threading.Thread(target=append, daemon=True)
    appender.start()
    begin = time.monotonic()
    for number, event in enumerate(waits):
        event.set()
        assert len(reader.poll({At("t", number % 2): number // 2}, 60.0)) == 1
        assert time.monotonic() - begin < 50
    appender.join()


def test_pipes_that_come_within_a_tick_of_the_clock_are_found(files, log):
    """The folder's time of change is the same before and after."""
    where, waiting, now = Folder(AT, str(folder(files))), Waiting(), time.time_ns()
    waiters = Waiters(where.path)
    waiters.look(now)
    assert waiting.at({AT: where})
    waiters.look(now)
    waiters.wake()
    assert waiting.wait(0.0) == [AT]
    waiters.close()
    waiting.close()


def test_who_is_not_woken_looks_himself(files, log, monkeypatch):
    monkeypatch.setattr(polling, "LOOK_AGAIN_S", 0.02)
    reader = files.open()
    assert reader.poll({AT: 0}, 0.01) == []
    (folder(files) / pipes(files)[0]).unlink()
    later = threading.Timer(0.05, log.append, (AT, [b"x"]))
    later.start()
    assert len(reader.poll({AT: 0}, 20.0)) == 1
    later.join()


def test_the_pipe_of_a_dead_reader_is_removed(files, log):
    child = start(files, "poll", "t", 1, 10)
    assert child.stdout.read(1) == READY
    log.append(AT, [b"before"])
    while not pipes(files):
        time.sleep(0.01)
    log.append(AT, [b"alive"])
    assert len(pipes(files)) == 1
    child.kill()
    child.communicate()
    log.append(AT, [b"dead"])
    assert pipes(files) == []


def test_a_pipe_that_is_full_keeps_nobody_from_appending(files, log, monkeypatch):
    reader = files.open()
    reader.poll({AT: 0}, 0.01)
    log.append(AT, [b"x"])
    pipe = os.open(folder(files) / pipes(files)[0], os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(4096))
    os.close(pipe)
    assert log.append(AT, [b"y"]) == 1
    assert len(reader.poll({AT: 0}, 1.0)) == 2
    assert reader.poll({AT: 2}, 0.01) == []


def test_an_idle_reader_costs_next_to_nothing(files):
    log = files.open()
    log.create("t", 10)
    offsets = {At("t", number): 0 for number in range(10)}
    log.poll(offsets, 0.0)
    begin = time.thread_time()
    assert log.poll(offsets, 0.6) == []
    assert time.thread_time() - begin < 0.03


def test_a_reader_goes_on_in_a_topic_that_was_made_anew_only_after_it_was_told(files, log):
    reader, other = files.open(), files.open()
    log.append(AT, [b"old"] * 5)
    assert len(reader.poll({AT: 0}, 0.0)) == 5
    other.delete("t")
    other.create("t", 1)
    assert log.append(AT, [b"new"] * 7) == 0  # who appends means the topic that is there
    with pytest.raises(LogError, match="deleted"):
        reader.poll({AT: 5}, 0.0)
    assert [r.offset for r in reader.poll({AT: 5}, 0.0)] == [5, 6]
    assert everything(log, AT) == [b"new"] * 7


def test_what_a_killed_process_left_of_a_deletion_is_swept(files, log):
    log.append(AT, [b"x"])
    (folder(files).parent / "topic.json").unlink()  # deleting begins with this
    (Path(files.address) / "aside" / "left").mkdir()
    for some in (log, files.open()):
        assert some.topics() == {}
        with pytest.raises(LogError, match="does not exist"):
            some.append(AT, [b"y"])
    log.create("t", 2)
    assert log.topics() == {"t": 2}
    assert log.end(AT) == 0
    assert list((Path(files.address) / "aside").iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(files, tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(LogError, match="not empty"):
        FileLog(str(tmp_path))
    files.open()
    (Path(files.address) / "log.json").write_text('{"format": 99}')
    with pytest.raises(LogError, match="format is 99"):
        files.open()


def test_a_torn_note_of_a_group_is_none(files, log):
    log.commit("units", {AT: 3})
    assert files.open().committed("units") == {AT: 3}
    (Path(files.address) / "groups" / "units.json").write_text("{")
    assert log.committed("units") == {}
    log.commit("units", {AT: 4})
    assert log.committed("units") == {AT: 4}


def test_threads_append_through_one_handle(files):
    log = files.open()
    log.create("t", 1)
    threads = [threading.Thread(target=lambda n=n: [log.append(AT, [b"%d" % n]) for _ in range(100)]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(everything(log, AT)) == sorted(b"%d" % n for n in range(4) for _ in range(100))


def test_who_may_not_write_is_told_by_the_system(files, log, monkeypatch):
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(folder(files)))

    other = files.open()
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SystemFailure, match="Permission denied"):
        other.append(AT, [b"x"])
