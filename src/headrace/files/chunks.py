"""The names of chunks: what of a followed file lies in one, so that names alone say how far each file has been read.

A chunk holds whole records of one file. What was spooled is what has a name in the folder, and nothing else has to be kept in
step with that: whatever is killed, and when, the next run goes on behind the last name.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from hashlib import blake2b

LOOK = 256  # how many bytes at either end tell what has been read of a file from that of another
MOST_PATH = 80  # letters of a path in a name, which may have 255 in all; of a longer one the end is kept
CUT = "~~"  # begins what is left of a path that is too long
_NAME = re.compile(
    r"(?P<seen>\d{13})-(?P<offset>\d{15})-(?P<length>\d{8})-(?P<line>\d{11})-(?P<lines>\d{8})"
    r"-(?P<device>[0-9a-f]+)-(?P<inode>[0-9a-f]+)-(?P<head>[0-9a-f]{8})(?P<tail>[0-9a-f]{8})-(?P<taken>[0-9a-f]+)-(?P<path>.*)\.(?P<ending>[a-z]+)"
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some bytes of a file that is followed.

    `seen` is when the file was first seen, in milliseconds, made different for each file: it is the file's number, and
    the high half of the place of its rows. `head` and `tail` tell the bytes that the file begins with, and those before
    the end of the chunk. `taken` is when a file that is read whole was changed last, if it ends here; else 0.
    """

    seen: int
    device: int
    inode: int
    offset: int
    length: int
    line: int  # how many lines of the file lie before it
    lines: int  # and in it
    head: str
    tail: str
    path: str  # below the folder that files are looked for in; escaped
    ending: str
    taken: int = 0

    @property
    def end(self) -> int:
        return self.offset + self.length

    @property
    def name(self) -> str:
        """The name that says all this. Names of one file are in its order, and files in the order they were seen in."""
        return (
            f"{self.seen:013d}-{self.offset:015d}-{self.length:08d}-{self.line:011d}-{self.lines:08d}"
            f"-{self.device:x}-{self.inode:x}-{self.head}{self.tail}-{self.taken:x}-{self.path}.{self.ending}"
        )

    @staticmethod
    def parse(name: str) -> Chunk | None:
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        of = found.groupdict()
        return Chunk(
            int(of["seen"]), int(of["device"], 16), int(of["inode"], 16), int(of["offset"]), int(of["length"]), int(of["line"]),
            int(of["lines"]), of["head"], of["tail"], of["path"], of["ending"], int(of["taken"], 16),
        )  # fmt: skip


def escape(path: str) -> str:
    """A path as part of a name, in letters that stand for themselves everywhere.

    >>> escape("web/a b.csv"), unescape("web~a_20b.csv")
    ('web~a_20b.csv', 'web/a b.csv')
    """
    out = "".join(
        "~" if c == "/" else c if c.isascii() and (c.isalnum() or c in ".-") else "".join(f"_{b:02x}" for b in os.fsencode(c))
        for c in path
    )
    return out if len(out) <= MOST_PATH else CUT + out[-MOST_PATH + len(CUT) :]


def unescape(text: str) -> str:
    plain = re.sub(rb"_([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), text.replace("~", "/").encode())
    return os.fsdecode(plain)


def told(data: bytes) -> str:
    return blake2b(data, digest_size=4).hexdigest()


@dataclass(frozen=True, slots=True)
class Origin:
    """What the first record of data in a file was where it came from. A header line at the top of the file is no data."""

    file: str  # the name that users know
    line: int  # the number of its first line there, from 1
    high: int  # its place (decision 0005); the following ones have the same high half,
    low: int  # and a low half that is larger by as many bytes as they stand behind it


def origin_of(path: str) -> Origin | None:
    """The origin of a file, by its path; None for a file that is its own."""
    chunk = Chunk.parse(os.path.basename(path))
    return None if chunk is None else Origin(unescape(chunk.path), chunk.line + 1, chunk.seen, chunk.offset)
