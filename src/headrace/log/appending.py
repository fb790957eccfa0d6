"""Putting records at the end of a partition, under its lock."""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import suppress

from headrace.errors import SystemFailure
from headrace.log.frames import Body, framed, seal
from headrace.log.segments import INDEX_EVERY, Cursor, Folder, TopicGoneError, at_end
from headrace.log.topics import Topic
from headrace.log.waking import Waiters


class Appender:
    """The end of a partition, as one process knows it. Threads may share it; processes each have their own."""

    def __init__(self, topic: Topic, folder: Folder, segment_bytes: int) -> None:
        self.topic, self.folder, self._segment_bytes = topic, folder, segment_bytes
        self._guard = threading.Lock()
        self._waiters = Waiters(folder.path)
        self._end: Cursor | None = None
        self._noted = 0
        self._lock = folder.open_lock()

    def append(self, body: Body) -> int:
        """The offset of the first of the records."""
        with self._guard:
            if self._lock < 0:
                raise TopicGoneError
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            try:
                if not self.topic.is_there():
                    raise TopicGoneError
                end = self._find_end()
                first = end.offset
                if body.count:
                    self._put(end, body)
                    self._look()
            finally:
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            self._waiters.wake()
            return first

    def close(self) -> None:
        with self._guard:
            self._waiters.close()
            if self._end is not None:
                self._end.close()
                self._end = None
            if self._lock >= 0:
                os.close(self._lock)
                self._lock = -1

    def _look(self) -> None:
        """Who waits. The records are there: what goes wrong from here on is no failure of theirs."""
        with suppress(OSError):
            self._waiters.look(os.fstat(self._lock).st_mtime_ns)

    def _find_end(self) -> Cursor:
        """Go over what others have appended, and cut off what one left half who was killed."""
        end = self._end
        if end is not None and end.file >= 0:
            size = os.fstat(end.file).st_size
            if size == end.place:
                return end
            if size < end.place:
                raise self.folder.damaged(end.base, size, f"expected the end at byte {end.place:,}, where it has been")
        end = self._end = at_end(end, self.folder, os.O_RDWR | os.O_APPEND, locked=True)
        if end.sealed:
            self._begin_segment(end)
        elif os.fstat(end.file).st_size > end.place:
            os.ftruncate(end.file, end.place)
        return end

    def _put(self, end: Cursor, body: Body) -> None:
        frame = framed(end.offset, body)
        if end.place and end.place + len(frame) > self._segment_bytes:
            self._write(end, seal(end.offset))
            self._begin_segment(end)
        self._write(end, frame)
        if end.place - self._noted >= INDEX_EVERY:
            self.folder.note(end.base, end.offset, end.place)
            self._noted = end.place
        end.place += len(frame)
        end.offset += body.count

    def _write(self, end: Cursor, data: bytes) -> None:
        """All of it or nothing."""
        try:
            written = os.write(end.file, data)
            while written < len(data):
                written += os.write(end.file, data[written:])
        except OSError as error:
            with suppress(OSError):  # then whoever appends next cuts it off
                os.ftruncate(end.file, end.place)
            raise refused(error, "nothing was appended", self.folder.path) from error

    def _begin_segment(self, end: Cursor) -> None:
        """All that lies before a segment is on the disk when it is made: only the last one can be short after a loss of power."""
        try:
            os.fsync(end.file)
            os.fsync(self._lock)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
            file = os.open(self.folder.segment(end.offset), flags, 0o666)
        except FileNotFoundError:
            raise TopicGoneError from None
        except OSError as error:
            raise refused(error, "nothing was appended", self.folder.path) from error
        end.move(file)
        self._noted = 0


def refused(error: OSError, what: str, where: str) -> SystemFailure:
    """The system does not let us write."""
    full = "make room there, or trim what nobody needs any more, and try again"
    return SystemFailure(f"{what}: {error.strerror}", where=where, hint=full)
