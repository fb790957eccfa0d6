"""What has been spooled of every file: read from the names of chunks, and from what was noted before chunks were deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from headrace.files.chunks import CUT, Chunk, escape, unescape
from headrace.files.contents import Packed, Plain

NOTED = "_noted.json"


class Storage(Protocol):
    """Where chunks lie: a file system, whose paths are whole."""

    def names(self, folder: str) -> list[str]:
        """What lies in a folder, in order; nothing if there is none."""

    def read(self, path: str) -> bytes | None:
        """A small file as it was last written; None if there is none."""

    def write(self, path: str, data: bytes) -> None:
        """Put a small text in the place of what was there. It must end in the only line break it has.

        Whatever kills the writer, `read` gives the old text or the new one.
        """

    def add(self, path: str, data: bytes) -> None:
        """Write a file under a new name. Who lists its folder sees all of it or nothing."""

    def delete(self, path: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens if it is not there."""


@dataclass(slots=True)
class Followed:
    """A file that is followed: which it is, and how far it has been read."""

    seen: int
    device: int
    inode: int
    first_path: str  # where it was first seen
    offset: int = 0
    line: int = 0
    head: str = ""
    tail: str = ""
    taken: int = 0
    gone: bool = False  # and whoever asked has been told so
    path: str = ""  # where it is, or was last
    # From here on only what is known now.
    size: int = -1
    changed: int = -1  # its time of modification
    last: bytes = b""  # those before the place up to which it has been read
    header: bytes | None = None
    content: Plain | Packed | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """It is where it was first seen, until that is known better."""
        self.path = self.path or self.first_path

    @property
    def identity(self) -> tuple[int, int]:
        return self.device, self.inode

    @property
    def rotated(self) -> bool:
        """Whether it has another name than the one it was seen under first."""
        return self.path != self.first_path

    def close(self) -> None:
        if self.content is not None:
            self.content.close()
            self.content = None


def noted_format(storage: Storage, folder: str) -> str | None:
    """How the files are written that are followed into a folder; None if none are."""
    noted = storage.read(f"{folder}/{NOTED}")
    return None if noted is None else str(json.loads(noted)["format"])


def noted_files(storage: Storage, folder: str) -> dict[int, Followed]:
    """What was noted of files before chunks of theirs were deleted, or when they had moved."""
    noted = storage.read(f"{folder}/{NOTED}")
    return {} if noted is None else {row[0]: Followed(*row) for row in json.loads(noted)["files"]}


class Ledger:
    """The folder of chunks."""

    def __init__(self, storage: Storage, folder: str, base: str, format: str) -> None:
        """What earlier runs have left; a chunk that was not finished is dropped. Paths in names begin at `base`."""
        self.storage, self.folder, self.base, self.format = storage, folder, base, format
        self.files = noted_files(storage, folder)
        self.chunks: dict[str, int] = {}  # those that lie there, and how long they are
        for name in storage.names(folder):
            chunk = Chunk.parse(name)
            if chunk is not None:
                self._count(chunk)
            elif name.startswith(".") and Chunk.parse(name[1:].rsplit(".", 2)[0]) is not None:
                storage.delete(f"{folder}/{name}")
        self.files = dict(sorted(self.files.items()))

    def _count(self, chunk: Chunk) -> None:
        self.chunks[chunk.name] = chunk.length
        file = self.files.get(chunk.seen)
        if file is None:
            path = os.path.join(self.base, unescape(chunk.path))
            file = self.files[chunk.seen] = Followed(chunk.seen, chunk.device, chunk.inode, path)
        if chunk.end > file.offset:
            file.offset, file.head, file.tail, file.taken = chunk.end, chunk.head, chunk.tail, chunk.taken
            file.device, file.inode = chunk.device, chunk.inode
            file.line = chunk.line + chunk.lines

    def name_of(self, file: Followed) -> str:
        """A file as chunks call it. A name that is too long for theirs is noted before there are any."""
        name = escape(os.path.relpath(file.first_path, self.base))
        if name.startswith(CUT) and not file.offset:
            self.note()
        return name

    def publish(self, chunk: Chunk, data: bytes) -> None:
        self.storage.add(f"{self.folder}/{chunk.name}", data)
        self.chunks[chunk.name] = chunk.length

    def forget(self, done: Iterable[str]) -> None:
        """Delete chunks that have been read by whoever they are for. What their names say is noted first."""
        gone = [name for name in done if name in self.chunks]
        if gone:
            self.note()
        for name in gone:
            self.storage.delete(f"{self.folder}/{name}")
            del self.chunks[name]

    def note(self) -> None:
        """What names of chunks do not say: what became of files since, and of chunks that are to be deleted."""
        rows = [
            [f.seen, f.device, f.inode, f.first_path, f.offset, f.line, f.head, f.tail, f.taken, f.gone, f.path]
            for f in self.files.values()
        ]  # fmt: skip
        self.storage.write(f"{self.folder}/{NOTED}", json.dumps({"format": self.format, "files": rows}).encode() + b"\n")
