"""The folder of a partition: segments named by their first offset, and beside each a few places in it, to find others by.

An index says of some offsets at which byte their frames begin. It is a hint: what it says is held against the segment, which is
read from its beginning where there is none. So nothing is lost where it is.
"""

from __future__ import annotations

import fcntl
import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from headrace.errors import LogError
from headrace.log.frames import HEAD_BYTES, Rest, goes_on, parse
from headrace.log.log import At

SEGMENT, INDEX = ".log", ".index"
TOPIC = "topic.json"  # a topic is there while it has this file
ANEW = "put the files back, or delete the topic and create it again"
INDEX_EVERY = 64 * 1024  # bytes
CHUNK = 1 << 20  # bytes that are read at once, where nobody waits for the first of them
_ENTRY = struct.Struct("<QQ")  # an offset, the byte where its frame begins


class TopicGoneError(Exception):
    """The topic was deleted while somebody worked on it."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a partition lies."""

    at: At
    path: str

    def segment(self, base: int) -> str:
        return f"{self.path}/{base:020d}{SEGMENT}"

    def index(self, base: int) -> str:
        return f"{self.path}/{base:020d}{INDEX}"

    def bases(self) -> list[int]:
        """The first offsets of all segments, in order. There always is one; what is made meanwhile may be among them or not."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            raise self.gone() from None
        found = sorted(int(name.removesuffix(SEGMENT)) for name in names if name.endswith(SEGMENT))
        if not found:
            if not os.path.isdir(self.path):
                raise self.gone()
            raise LogError("there is no segment any more", where=self.path, hint=ANEW)
        return found

    def open(self, base: int, flags: int) -> int:
        return os.open(self.segment(base), flags)

    def open_lock(self) -> int:
        """What the lock is taken of: the folder itself."""
        try:
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise self.gone() from None

    def gone(self) -> Exception:
        """Why the folder is not there: the topic was deleted, or somebody has removed a part of it."""
        topic = f"{os.path.dirname(self.path)}/{TOPIC}"
        if os.path.exists(topic) and not os.path.exists(self.path) and os.path.exists(topic):
            return LogError("the folder of this partition is not there any more", where=self.path, hint=ANEW)
        return TopicGoneError()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody appends meanwhile. The lock is the system's, and goes with the process that has it."""
        lock = self.open_lock()
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def note(self, base: int, offset: int, place: int) -> None:
        """Put a place into the index. One that cannot be written is none."""
        with suppress(OSError):
            file = os.open(self.index(base), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                os.write(file, _ENTRY.pack(offset, place))
            finally:
                os.close(file)

    def near(self, file: int, base: int, offset: int) -> tuple[int, int]:
        """The last frame that the index has at or before an offset: its offset, and its place in the open segment."""
        with suppress(OSError), open(self.index(base), "rb") as index:
            data = index.read()
            entries = list(_ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]))
            last = bisect_right(entries, (offset, 2**64))
            for first, place in reversed(entries[max(0, last - 8) : last]):
                if base <= first <= offset and place < 2**62 and _stands(file, first, place):
                    return first, place
        return base, 0

    def damaged(self, base: int, place: int, what: str) -> LogError:
        later = [other for other in self.bases() if other > base]
        give_up = f", or give its records up: trim to offset {later[0]}, and go on from there" if later else ""
        hint = f"put an intact copy of the file in its place{give_up}"
        return LogError(f"damaged at byte {place:,}: {what}", where=self.segment(base), hint=hint)


def _stands(file: int, offset: int, place: int) -> bool:
    """Whether a frame with this offset begins there."""
    head = parse(os.pread(file, HEAD_BYTES, place), offset)
    return head.rest in (Rest.SEAL, Rest.SHORT) and (head.rest is Rest.SEAL or head.lacking > 0)


class Cursor:
    """A place between two frames of a partition, that goes forward as they are read."""

    def __init__(self, folder: Folder, offset: int | None, flags: int = os.O_RDONLY) -> None:
        """Stand at the frame with this offset or shortly before it; without one, shortly before the end.

        An offset before the first segment is for the caller to refuse: there the cursor stands at the beginning of that.
        """
        self.folder, self._flags = folder, flags
        self.file = -1
        self.sealed = False  # stands at a seal behind which no segment has been made yet
        while self.file < 0:
            bases = folder.bases()
            self.base = bases[-1] if offset is None else bases[max(0, bisect_right(bases, offset) - 1)]
            with suppress(FileNotFoundError):  # trimmed meanwhile
                self.file = folder.open(self.base, flags)
        self._closed = self.base != bases[-1]  # has a segment behind it
        self.offset, self.place = folder.near(self.file, self.base, 2**63 if offset is None else offset)

    def read(self, chunk: int, most: int | None = None, *, locked: bool = False) -> list[bytes]:
        """Values of the records from here on, of some whole frames, about a chunk of bytes; none at the end.

        `locked` says that the caller has the lock of the partition.
        """
        wanted = chunk
        while True:
            data = os.pread(self.file, wanted, self.place)
            found = parse(data, self.offset, most)
            if found.values:
                self.place += found.used
                self.offset += len(found.values)
                return found.values
            at_end = len(data) < wanted
            match found.rest:
                case Rest.SEAL:
                    if not self._follow():
                        return []
                case Rest.SHORT if not at_end:
                    wanted = found.lacking
                case Rest.BROKEN:
                    if not self._is_whole_by_now(locked):
                        return []
                case _:
                    self._expect_more(len(data))
                    return []

    @property
    def is_last(self) -> bool:
        """Whether its segment was the last one when it was opened."""
        return not self._closed

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _expect_more(self, left: int) -> None:
        """The file ends here, or in a frame: that is the end of the last segment, and of no other."""
        if self._closed and os.fstat(self.file).st_nlink:
            what = f"expected record {self.offset} or the seal, found {left} bytes and the end of the file"
            raise self.folder.damaged(self.base, self.place, what)

    def _follow(self) -> bool:
        """Go over to the next segment, if it is there. It may be made while we look, and others behind it."""
        later = False  # whether there was one behind it when it was looked for
        while True:
            with suppress(FileNotFoundError):
                self.move(self.folder.open(self.offset, self._flags))
                return True
            bases = self.folder.bases()
            self.sealed = bases[-1] < self.offset
            if self.sealed or self.offset < bases[0]:  # not made yet, or trimmed
                return False
            if later:
                what = f"the segment behind it, {os.path.basename(self.folder.segment(self.offset))}, is not there"
                raise self.folder.damaged(self.base, self.place, what)
            later = self.offset < bases[-1]

    def move(self, file: int) -> None:
        """Stand at the beginning of the segment behind this one."""
        self.close()
        self.file, self.base, self.place, self.sealed = file, self.offset, 0, False
        self._closed = self.base != self.folder.bases()[-1]

    def _is_whole_by_now(self, locked: bool) -> bool:
        """Whether what is broken was only being written. It is so for good if nobody writes, and is damage if more follows."""
        if not locked:
            with self.folder.locked():
                return self._is_whole_by_now(True)
        data = _all_from(self.file, self.place)
        found = parse(data, self.offset, 1)
        if found.values or found.rest is not Rest.BROKEN:
            return True
        if self.base != self.folder.bases()[-1] or goes_on(data):
            raise self.folder.damaged(self.base, self.place, f"expected record {self.offset}, found other bytes")
        return False


def at_end(cursor: Cursor | None, folder: Folder, flags: int = os.O_RDONLY, *, locked: bool = False) -> Cursor:
    """A cursor that has gone to the end, or a new one there, where its segment was trimmed meanwhile."""
    while True:
        if cursor is None or cursor.file < 0:
            cursor = Cursor(folder, None, flags)
        while cursor.read(CHUNK, locked=locked):
            pass
        if os.fstat(cursor.file).st_nlink:
            return cursor
        cursor.close()


def _all_from(file: int, place: int) -> bytes:
    parts = []
    while part := os.pread(file, CHUNK, place):
        parts.append(part)
        place += len(part)
    return b"".join(parts)
