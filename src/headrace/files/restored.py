"""Chunks of followed files that were let go, made again from the files, where these still hold what was read of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass

from headrace.files.chunks import LOOK, Chunk, told
from headrace.files.contents import Content, opened
from headrace.files.identity import Folder, is_same
from headrace.files.ledger import Followed


@dataclass(frozen=True, slots=True)
class Gone:
    """Chunks of one file that were let go, in its order, and the file that holds what was in them; None: none does any more."""

    chunks: tuple[Chunk, ...]
    header: int  # where the first chunk of the file began; what stands before it is the header
    path: str | None


def look_for(gone: Iterable[Chunk], first: dict[int, int], files: dict[int, Followed], there: Iterable[str]) -> Iterator[Gone]:
    """Find the files of chunks. `first` has the place of the first chunk of every file.

    `files` is where they were last, and `there` which there are: rotation may have given them other names meanwhile.
    """
    by_file: dict[int, list[Chunk]] = {}
    for chunk in sorted(gone, key=lambda c: (c.seen, c.offset)):
        by_file.setdefault(chunk.seen, []).append(chunk)
    for seen, chunks in by_file.items():
        yield Gone(tuple(chunks), first[seen], _holder(chunks[-1], _places(files.get(seen), there)))


def restored(gone: Gone) -> Iterator[tuple[Chunk, bytes | None]]:
    """Every chunk with its bytes as they were spooled; None where the file does not hold them (any more)."""
    assert gone.path is not None
    with closing(opened(gone.path)) as content:
        header = _read(content, gone.header, 0)
        for chunk in gone.chunks:
            before = min(LOOK, chunk.offset)
            found = _read(content, before + chunk.length, chunk.offset - before)
            data = found[before:]
            whole = len(data) == chunk.length and told(found[-LOOK:]) == chunk.tail
            yield chunk, header + data + (b"" if data.endswith(b"\n") else b"\n") if whole else None


def _read(content: Content, count: int, offset: int) -> bytes:
    try:
        return content.read(count, offset)
    except EOFError:  # compressed, and damaged
        return b""


def _places(file: Followed | None, there: Iterable[str]) -> Iterator[str]:
    """Where a file may be: where it was, what rotation has made of it there, and wherever files are."""
    if file is not None:
        yield from dict.fromkeys((file.path, file.first_path))
        yield from (path for path, _ in Folder(os.path.dirname(file.path), set()).candidates(file))
    yield from there


def _holder(last: Chunk, places: Iterable[str]) -> str | None:
    """A file that is, up to the end of this chunk, what was read."""
    as_read = Followed(last.seen, last.device, last.inode, "", last.end, head=last.head, tail=last.tail)
    for path in places:
        with suppress(OSError), closing(opened(path)) as content:
            if is_same(as_read, content):
                return path
    return None
