"""Who waits is woken, who is not looks himself, and waiting costs nothing."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from random import Random

from child import READY
from looking import AT, folder, pipes
from test_log import start

from headrace.log import polling
from headrace.log.log import At
from headrace.log.segments import Folder
from headrace.log.waking import Waiters, Waiting


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
    while not pipes(files):
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
    while not pipes(files):  # where the machine is busy the time may be over before anybody waits
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
