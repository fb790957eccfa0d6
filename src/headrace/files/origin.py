"""Where the rows of a file come from, if that is another file than the one they are read from."""

from __future__ import annotations

import os
from dataclasses import dataclass

from headrace.files.chunks import Chunk, unescape


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
