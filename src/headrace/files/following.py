"""Files that grow, followed as `tail -F` follows them: whole records into chunks, every byte once, over renames and restarts."""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from headrace.files.chunks import LOOK, Chunk, told
from headrace.files.contents import Content, Packed, Plain, opened
from headrace.files.identity import Register, is_same
from headrace.files.ledger import Followed, Ledger, Storage
from headrace.files.listing import Found

CHUNK = 8 << 20
HEAD = 1 << 16
MOST_QUOTED = 1 << 20  # a quote or bracket that is not closed within so many bytes was no opening one
MOST_RECORD = 32 << 20
QUIET_S = 5.0  # a last line is whole, though it does not end, when nobody has the file open, and nothing has come for so long
PATIENCE_S = 60.0  # or for so long, of a file that rotation has put aside
MOST_OPEN = 200
MOST_CHUNKS = 256  # that wait to be read: few enough for a folder of them to be listed in one call to the system
MOST_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Kind:
    """How the files of a stream are written. `header` says how many of the first bytes name the columns."""

    ending: str  # csv | json
    delimiter: str | None = None
    header: Callable[[bytes], int] = lambda head: 0


@dataclass(frozen=True, slots=True)
class Piece:
    """The next records of a file."""

    offset: int
    data: bytes
    header: bytes  # the line of their file that names its columns; empty if there is none
    is_last: bool = False  # of a compressed file


class Follower:
    """Follows files for as long as it is asked: `step` looks at all of them once."""

    def __init__(
        self, storage: Storage, folder: str, kind: Kind, base: str, find: Callable[[], Iterable[Found]],
        tell: Callable[[str], None], now: Callable[[], float] = time.time, chunk: int = CHUNK,
    ) -> None:  # fmt: skip
        """Go on where the chunks in the folder end.

        `find` gives the files there are, all below `base`; `tell` is told what a user should know.
        """
        self.kind, self.now, self.chunk = kind, now, chunk
        self._find, self._tell_user = find, tell
        self._told: set[str] = set()
        self.ledger = Ledger(storage, folder, base, kind.ending)
        self.register = Register(self.ledger.files.values(), self.tell)
        self._last_seen = max(self.ledger.files, default=0)
        self._open: OrderedDict[int, Followed] = OrderedDict()
        self._unread: dict[int, Followed] = {}  # files with bytes that have not been spooled

    def step(self, *, ending: bool = False) -> bool:
        """Look for what is new, and spool it as far as there is room. Whether some of it is left for want of room.

        Where everything ends (`ending`), a last line is whole, with a line end or without.
        """
        for file in self.register.look(list(self._find()), self._begin):
            self._unread[file.seen] = file
        if self.register.moved:
            self.ledger.note()
            self.register.moved = False
        full = False
        for seen in sorted(self._unread):
            file = self._unread[seen]
            if seen in self.register.lost:
                del self._unread[seen]
            elif full or self._spool(file, ending):
                full = True
            elif seen in self.register.adrift:
                if self._is_finished(file):
                    self.register.finished(file)
            elif file.size == file.offset or file.taken:
                del self._unread[seen]
        return full

    def tell(self, text: str) -> None:
        """Everything once."""
        if text not in self._told:
            self._told.add(text)
            self._tell_user(text)

    def close(self) -> None:
        for file in self.ledger.files.values():
            file.close()

    def _begin(self, path: str, status: os.stat_result) -> Followed:
        """A new file. When it was first seen is its number, so no two have the same."""
        self._last_seen = max(self._last_seen + 1, int(self.now() * 1000))
        file = Followed(self._last_seen, status.st_dev, status.st_ino, path)
        self.ledger.files[file.seen] = file
        return file

    def _content(self, file: Followed) -> Content:
        """The file, open. Those that were read last stay so: they may be renamed or deleted before they are read again."""
        if file.content is None:
            file.content = opened(file.path)
        self._open[file.seen] = file
        self._open.move_to_end(file.seen)
        for seen, other in list(self._open.items())[: max(0, len(self._open) - MOST_OPEN)]:
            if seen not in self.register.adrift:
                del self._open[seen]
                other.close()
        return file.content

    def _is_finished(self, file: Followed) -> bool:
        """Whether what a file ends with now is what it will end with, as far as anybody can tell."""
        content = self._content(file)
        quiet = self.now() - (content.status().st_mtime if isinstance(content, Plain) else file.changed / 1e9)
        put_aside = file.rotated or file.seen in self.register.adrift
        if quiet >= QUIET_S and isinstance(content, Plain) and not content.is_being_written():
            return True
        if quiet >= PATIENCE_S and not put_aside:
            self.tell(f"{file.path}: its last record does not end (yet); it is read when it does, or the file is put aside")
        return quiet >= PATIENCE_S and put_aside

    # Reading

    def _spool(self, file: Followed, ending: bool) -> bool:
        """Publish what is new in a file; whether there was no room for some of it."""
        try:
            content = self._content(file)
            while True:
                if len(self.ledger.chunks) >= MOST_CHUNKS or sum(self.ledger.chunks.values()) >= MOST_BYTES:
                    return True
                piece = self._next(file, content, ending)
                if piece is None:
                    return False
                if not isinstance(content, Packed) and not is_same(file, content):
                    file.size = -1  # it was cut short or written anew meanwhile: the next look will tell
                    return False
                self._publish(file, content, piece)
        except OSError as error:
            self.tell(f"{file.path}: cannot be read: {error.strerror or error}")
            file.close()
        except EOFError as error:
            self.tell(f"{file.path}: is not whole ({error}); it is read when it is")
        return False

    def _next(self, file: Followed, content: Content, ending: bool) -> Piece | None:
        """The next records of a file; None if it has no more that are whole."""
        packed = isinstance(content, Packed)
        if packed and file.taken:
            self._say_if_changed(file)
            return None
        header = self._header(file, content)
        if header is None and not (packed or ending or self._is_finished(file)):
            return None
        header = header or b""
        begin = file.offset or len(header)
        count, end = self.chunk, 0
        while not end:
            data = content.read(count + 1, begin)
            at_end, data = len(data) <= count, data[:count]
            end = whole(data, self.kind.delimiter)
            if at_end and end < len(data) and (packed or ending or self._is_finished(file)):
                end = len(data)
            elif not end and len(data) >= MOST_QUOTED and b"\n" in data and not data.lstrip().startswith(b"["):
                end = data.find(b"\n") + 1
                self.tell(f"{file.path}: byte {begin}: a quote or bracket is opened and not closed; its line is read for itself")
            elif not end and len(data) >= MOST_RECORD:
                end = len(data)
                self.tell(f"{file.path}: byte {begin}: a record of more than {MOST_RECORD >> 20} MiB is cut")
            elif not end and at_end:
                file.taken = self._time(file) if packed else 0
                return None
            count *= 2
        return Piece(begin, data[:end], header, packed and at_end and end == len(data))

    def _header(self, file: Followed, content: Content) -> bytes | None:
        """What names the columns of a file; empty if nothing does, None if that cannot be told yet."""
        if file.header is None:
            head = content.read(HEAD, 0)
            records = head[: whole(head, self.kind.delimiter)]
            if records.strip():
                file.header = head[: self.kind.header(records)]
        return file.header

    def _time(self, file: Followed) -> int:
        return file.changed // 1_000_000

    def _say_if_changed(self, file: Followed) -> None:
        if file.taken != self._time(file):
            self.tell(f"{file.path}: has changed after it was read; a compressed file is read once, so what is new in it is not")

    def _publish(self, file: Followed, content: Content, piece: Piece) -> None:
        """Let a piece be seen, under a name that says what it is."""
        near = min(LOOK, file.offset)
        before = file.last if len(file.last) == near else content.read(near, file.offset - near)
        line = file.line
        if not file.offset:  # the header stands before all chunks, and is part of none
            before, line = piece.header, piece.header.count(b"\n")
        # As long as fewer bytes have been read than are looked at, those before are all there are.
        head = told((before + piece.data)[:LOOK]) if file.offset < LOOK else file.head
        last = (before + piece.data[-LOOK:])[-LOOK:]
        ends = piece.data.endswith(b"\n")
        lines = piece.data.count(b"\n") + (not ends)
        taken = self._time(file) if piece.is_last else 0
        chunk = Chunk(
            file.seen, file.device, file.inode, piece.offset, len(piece.data), line, lines, head, told(last),
            self.ledger.name_of(file), self.kind.ending, taken,
        )  # fmt: skip
        self.ledger.publish(chunk, piece.header + piece.data + (b"" if ends else b"\n"))
        file.head, file.tail, file.last, file.taken = head, chunk.tail, last, taken
        file.offset, file.line = chunk.end, line + lines


def whole(text: bytes, delimiter: str | None) -> int:
    """How many bytes of a text that begins with a record are whole records.

    A record ends with its line; in CSV (which has a delimiter) not within quotes, in JSON not within brackets.
    """
    from headrace.kernels.text import records  # compiled code is loaded where files are followed

    if delimiter is None:
        return int(records.last_json_end(np.frombuffer(text, np.uint8)))
    return int(records.last_end(np.frombuffer(text, np.uint8), ord(delimiter))) if b'"' in text else text.rfind(b"\n") + 1
