"""Chunks of followed files that were let go, made again from the files, where these still hold what was read of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, suppress

from headrace.files.chunks import Chunk
from headrace.files.contents import Content, opened
from headrace.files.identity import is_same
from headrace.files.ledger import Followed


def restored(
    gone: Iterable[Chunk], first: dict[int, int], files: dict[int, Followed], there: Iterable[str]
) -> Iterator[tuple[Chunk, bytes | None]]:
    """Every chunk with its bytes; None where no file holds them any more.

    `first` has the place of the first chunk of every file: what stands before it is the header. `files` is where files were last,
    and `there` which there are: rotation may have given them other names.
    """
    by_file: dict[int, list[Chunk]] = {}
    for chunk in gone:
        by_file.setdefault(chunk.seen, []).append(chunk)
    names = list(there)
    for seen, chunks in by_file.items():
        known = [files[seen].path, files[seen].first_path] if seen in files else []
        last = max(chunks, key=lambda c: c.end)
        content = _holding(last, dict.fromkeys((*known, *names)))
        if content is None:
            yield from ((chunk, None) for chunk in chunks)
            continue
        with closing(content):
            header = content.read(first[seen], 0)
            for chunk in chunks:
                data = content.read(chunk.length, chunk.offset)
                whole = len(data) == chunk.length and is_same(_as_read(chunk, ""), content)
                yield chunk, header + data + (b"" if data.endswith(b"\n") else b"\n") if whole else None


def _holding(chunk: Chunk, paths: Iterable[str]) -> Content | None:
    """A file that is, as far as this chunk reaches, what was read."""
    for path in paths:
        with suppress(OSError, EOFError):
            content = opened(path)
            if is_same(_as_read(chunk, path), content):
                return content
            content.close()
    return None


def _as_read(chunk: Chunk, path: str) -> Followed:
    return Followed(chunk.seen, chunk.device, chunk.inode, path, chunk.end, head=chunk.head, tail=chunk.tail)
