"""Processes that append and poll, as tests start and kill them: `child.py append|poll kind address ..`.

One that appends says on standard output, in 8 bytes, how many of its records have been appended; one that polls what it has seen.
"""

from __future__ import annotations

import os
import sys
from random import Random
from zlib import crc32

from kinds import open_log

from headrace.log.log import At

READY = b"R"


def values_of(name: str, first: int, count: int) -> list[bytes]:
    """Records say who appended them, which of his they are, which was the last of the same call; some have several pages."""
    random = Random(f"{name}/{first}")
    last = first + count - 1
    return [f"{name} {number} {last} ".encode().ljust(random.choice((20, 100, 9_000)), b"x") for number in range(first, last + 1)]


def append(kind: str, address: str, topic: str, partition: str, name: str, count: str) -> None:
    log, at, random, done = open_log(kind, address), At(topic, int(partition)), Random(name), 0
    os.write(1, READY)
    while done < int(count):
        some = min(random.choice((1, 1, 1, 5)), int(count) - done)
        log.append(at, values_of(name, done, some))
        done += some
        os.write(1, done.to_bytes(8, "little"))


def poll(kind: str, address: str, topic: str, partitions: str, count: str) -> None:
    """Until it has so many records."""
    log = open_log(kind, address)
    offsets, sums, seen = {At(topic, p): 0 for p in range(int(partitions))}, {}, 0
    os.write(1, READY)
    while seen < int(count):
        for record in log.poll(offsets, 10.0):
            assert record.offset == offsets[record.at], f"a gap at {record}"
            offsets[record.at] += 1
            sums[record.at] = crc32(record.value, sums.get(record.at, 0))
            seen += 1
    print(sorted((at.partition, offset, sums.get(at, 0)) for at, offset in offsets.items()))
    log.close()


if __name__ == "__main__":
    {"append": append, "poll": poll}[sys.argv[1]](*sys.argv[2:])
