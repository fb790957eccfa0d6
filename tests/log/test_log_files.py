"""What only files can suffer: torn ends, flipped bits, full disks, segments and folders that somebody has changed."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from kinds import SMALL_SEGMENT
from looking import AT, all_records, filled, folder, read, segments
from test_log import everything

from headrace.errors import LogError, SystemFailure
from headrace.log.files import FileLog
from headrace.log.frames import HEAD_BYTES
from headrace.log.segments import INDEX_EVERY


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


@pytest.fixture
def switch_often() -> Iterator[None]:
    """Threads interrupt each other at every turn."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_segments_come_and_go_while_others_read(files, log, switch_often):
    """A record that is given is the one that was asked for; who is overtaken is told, and goes on from the beginning."""
    over, seen = threading.Event(), 0
    told: list[str] = []

    def append() -> None:
        mine = files.open(small=True)
        for number in range(3_000):
            mine.append(AT, [b"%d" % number])
        over.set()

    def trim() -> None:
        mine = files.open(small=True)
        while not over.is_set():
            mine.trim(AT, mine.end(AT) - 20)

    threads = [threading.Thread(target=work) for work in (append, trim)]
    for thread in threads:
        thread.start()
    offset, random = 0, Random(0)
    while not over.is_set() or log.end(AT) > offset:
        if random.random() < 0.3:
            offset = log.begin(AT)  # which is about to go
        try:
            for record in log.poll({AT: offset}, 0.01, most=random.choice((1, 10))):
                assert (record.offset, record.value) == (offset, b"%d" % offset)
                offset += 1
                seen += 1
        except LogError as error:
            told.append(error.message)
            offset = log.begin(AT)
    for thread in threads:
        thread.join()
    assert seen > 300
    assert len(told) > 1
    assert [text for text in told if "is gone: the log begins at" not in text] == []


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
