"""One side of a hop over the log, in a process of its own: who appends, or who polls. It imports the log and nothing else."""

from __future__ import annotations

import json
import struct
import sys
import threading
import time

from headrace.log.files import FileLog
from headrace.log.log import At, Log

TOPIC = "hop"
STAMP = struct.Struct("<qq")  # when it was due and when it was sent, in nanoseconds of the clock that all processes share
KINDS = ("files", "kafka")


def open_log(kind: str, address: str) -> Log:
    """An address is a folder, or brokers and a prefix."""
    if kind == "files":
        return FileLog(address)
    from headrace.log.kafka import KafkaLog

    return KafkaLog(*address.split("/"))


def run(arguments: list[str]) -> None:
    """What the other end of the pipe says on standard input is the moment to begin; what was measured goes to standard output."""
    asked = json.loads(arguments[1])
    log = open_log(asked["log"], asked["address"])
    print(json.dumps({"append": append, "poll": poll}[arguments[0]](log, asked)))
    log.close()


def begin() -> int:
    print("ready", flush=True)
    return int(sys.stdin.readline())


def append(log: Log, asked: dict) -> dict:
    """Open loop: an event is due when it is due, whatever became of the one before."""
    padding = bytes(asked["size"] - STAMP.size)
    ats = [At(TOPIC, number) for number in range(asked["partitions"])]
    for at in ats:
        log.append(at, [STAMP.pack(0, 0) + padding])  # opens what has to be open; not measured
    taken = []
    start, step, busy = begin(), 1_000_000_000 / asked["rate"], 0.0
    for number in range(asked["events"]):
        if number == asked["warm_up"]:
            busy = time.process_time()
        due = start + int(number * step)
        while (left := due - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)
        sent = time.monotonic_ns()
        log.append(ats[number % len(ats)], [STAMP.pack(due, sent) + padding])
        taken.append(time.monotonic_ns() - sent)
    return {"cpu": time.process_time() - busy, "append_ns": taken[asked["warm_up"] :]}


def poll(log: Log, asked: dict) -> dict:
    offsets = {At(TOPIC, number): 0 for number in range(asked["partitions"])}
    begin()
    from_due, from_sent, polls, seen, busy, before = [], [], 0, 0, 0.0, time.process_time()
    end = time.monotonic() + asked["idle"]
    offsets = {at: log.end(at) for at in offsets}
    while (left := end - time.monotonic()) > 0:
        assert log.poll(offsets, left) == []
    idle = time.process_time() - before
    print("idle", flush=True)
    over = threading.Event()
    if asked["sync"]:
        threading.Thread(target=sync, args=(log, list(offsets), asked["sync"], over), daemon=True).start()
    while seen < asked["events"]:
        records = log.poll(offsets, 5.0)
        now = time.monotonic_ns()
        polls += 1
        for record in records:
            offsets[record.at] = record.offset + 1
            due, sent = STAMP.unpack_from(record.value)
            seen += 1
            if seen == asked["warm_up"]:
                busy = time.process_time()
            if seen > asked["warm_up"]:
                from_due.append(now - due)
                from_sent.append(now - sent)
    over.set()
    return {"cpu": time.process_time() - busy, "idle": idle, "polls": polls, "from_due_ns": from_due, "from_sent_ns": from_sent}


def sync(log: Log, ats: list[At], every: float, over: threading.Event) -> None:
    while not over.wait(every):
        log.sync(ats)
