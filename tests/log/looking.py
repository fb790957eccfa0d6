"""What tests of the log in files look at: its folder, and all that can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headrace.log.files import FileLog
from headrace.log.log import At, Record

AT = At("t", 0)


def folder(files) -> Path:
    return Path(files.address) / "topics" / "t" / "0"


def segments(files) -> list[Path]:
    return sorted(folder(files).glob("*.log"))


def read(files, begin: int = 0) -> list[bytes]:
    log = files.open()
    return [r.value for r in all_records(log, begin)]


def all_records(log: FileLog, begin: int) -> Iterator[Record]:
    while records := log.poll({AT: begin}, 0.0):
        yield from records
        begin = records[-1].offset + 1


def filled(log: FileLog, count: int = 30) -> list[bytes]:
    values = [f"{number}".encode() * 20 for number in range(count)]
    for place in range(0, count, 3):
        log.append(AT, values[place : place + 3])
    return values


def pipes(files) -> list[str]:
    return [p.name for p in folder(files).iterdir() if p.is_fifo()]
