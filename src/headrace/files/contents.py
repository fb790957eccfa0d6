"""What a followed file holds, as bytes by their place: of a compressed file, of what it was before."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import os
import signal
import zlib
from typing import IO, Any

PACKED = (".gz", ".bz2", ".zst")
SKIP = 1 << 22


class Plain:
    """A file as it is. It can be read to its end though it has been renamed or deleted."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))

    def read(self, count: int, offset: int) -> bytes:
        """Up to so many bytes from here on; fewer only where the file ends."""
        data = os.pread(self._fd, count, offset)
        while 0 < len(data) < count and (more := os.pread(self._fd, count - len(data), offset + len(data))):
            data += more
        return data

    def status(self) -> os.stat_result:
        return os.fstat(self._fd)

    def is_being_written(self) -> bool:
        """Whether somebody has it open for writing, or that cannot be known.

        The kernel leases a file for reading only while nobody has.
        """
        try:
            fcntl.fcntl(self._fd, fcntl.F_SETSIG, signal.SIGURG)  # for whoever opens it meanwhile; nobody minds this one
            fcntl.fcntl(self._fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(self._fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except (OSError, AttributeError):
            return True
        return False

    def close(self) -> None:
        os.close(self._fd)


class Packed:
    """A compressed file, read from its beginning on. One that is not all there yet raises EOFError at its end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: IO[bytes] | Any = None
        self._start, self._held = 0, b""  # what was read last, and where that begins

    def read(self, count: int, offset: int) -> bytes:
        """As `Plain.read`. Cheap where it goes on, or back no further than the beginning of what was read last."""
        try:
            if self._file is None or offset < self._start:
                self.close()
                self._file, self._start, self._held = _opened(self._path), 0, b""
            while self._start + len(self._held) < offset:
                self._start += len(self._held)
                self._held = self._file.read(min(SKIP, offset - self._start))
                if not self._held:
                    return b""
            self._start, self._held = offset, self._held[offset - self._start :]
            while len(self._held) < count and (more := self._file.read(count - len(self._held))):
                self._held += more
        except (EOFError, OSError, zlib.error) as error:  # an end that is missing, in three words; or no such file at all
            self.close()
            raise EOFError(str(error)) from error
        return self._held[:count]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _opened(path: str) -> IO[bytes] | Any:
    if path.endswith(".gz"):
        return gzip.open(path)
    if path.endswith(".bz2"):
        return bz2.open(path)
    import pyarrow as pa

    return pa.input_stream(path, compression="zstd")


Content = Plain | Packed


def opened(path: str) -> Content:
    return Packed(path) if path.endswith(PACKED) else Plain(path)
