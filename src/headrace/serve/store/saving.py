"""The save of a partition, as the thread does it that writes: files of what is new, then the commit that names them.

Whatever goes wrong, the last commit stands, and the partition has to be opened anew: it goes on from there with the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

from headrace.runtime.increments import Increment, Lap
from headrace.runtime.save import named
from headrace.serve.store.commits import claim, listed, refuse_stale
from headrace.serve.store.manifest import Increments, Key, Location, Manifest, still_needed, with_chunks
from headrace.serve.store.places import Place
from headrace.serve.store.sealed import HEAD_BYTES, Named, seal
from headrace.state.chunk import Chunk
from headrace.state.codec import encode
from headrace.state.parts import State


@dataclass(frozen=True, slots=True)
class Taken:
    """All that a save has to write. The loop goes on with nothing of it."""

    offset: int
    increments: Sequence[Increment]
    laps: Sequence[Lap]
    chunks: dict[Key, Chunk]
    dropped: Sequence[Key]
    before: Callable[[], object]


@dataclass(frozen=True, slots=True)
class Saved:
    """A commit that is durable."""

    offset: int
    number: int
    chunks: dict[Key, Location]
    bytes: int
    seconds: float
    removed: int  # files that were needed no more


class Saver:
    """Writes the commits of a partition in one epoch."""

    def __init__(self, place: Place, epoch: int) -> None:
        """Claim the partition; `manifest` is what it begins with."""
        self.commits, self.data, self.epoch = place.below("commits"), place.below("data"), epoch
        self.manifest, self.number = claim(self.commits, epoch, self._unused())
        self._swept = False
        self._broken: BaseException | None = None

    def _unused(self) -> int:
        """The first number that this epoch has no file of."""
        names = [Named.of(name) for name in (*self.commits.names(), *self.data.names())]
        return max((n.number + 1 for n in names if n is not None and n.epoch == self.epoch), default=0)

    def write(self, taken: Taken) -> Saved:
        """Make it durable. After an error nothing more is written: what that save had would be lacking."""
        if self._broken is not None:
            raise self._broken
        try:
            return self._write(taken)
        except BaseException as error:
            self._broken = error
            raise

    def _write(self, taken: Taken) -> Saved:
        begun = time.monotonic()
        refuse_stale(self.commits, self.epoch)
        self.number += 1
        size, keys = self._put_keys(taken)
        blobs, (chunks, pages) = self._put_blobs(taken)
        taken.before()
        manifest = self._next(taken, keys, chunks, pages)
        content = seal(self._named("commit"), manifest.write())
        self.commits.put(self._named("commit").name, content)
        refuse_stale(self.commits, self.epoch)  # it stands, and is right; but what others may need is theirs to remove
        removed = self._clean(self.manifest, manifest)
        self.manifest = manifest
        return Saved(taken.offset, self.number, chunks, size + blobs + len(content), time.monotonic() - begun, removed)

    def _named(self, kind: str) -> Named:
        return Named(self.epoch, self.number, kind)

    def _put_keys(self, taken: Taken) -> tuple[int, Named]:
        file = self._named("keys")
        state: State = {}
        for number, increment in enumerate(taken.increments):
            state |= named(str(number), increment.written())
        content = seal(file, encode(state, compress=True))
        self.data.put(file.name, content)
        return len(content), file

    def _put_blobs(self, taken: Taken) -> tuple[int, tuple[dict[Key, Location], dict[str, Location]]]:
        """Chunks and pages, in one file if there are any."""
        file, at, parts = self._named("blobs"), HEAD_BYTES, list[bytes]()

        def place(data: bytes) -> Location:
            nonlocal at
            parts.append(data)
            at += len(data)
            return Location(file, at - len(data), len(data), crc32(data))

        chunks = {key: place(chunk.write()) for key, chunk in taken.chunks.items()}
        put = (
            (f"{i}/{name}", page) for i, increment in enumerate(taken.increments) for name, page in increment.pages.put.items()
        )
        pages = {name: place(page) for name, page in put}
        content = seal(file, b"".join(parts)) if parts else b""
        if parts:
            self.data.put(file.name, content)
        return len(content), (chunks, pages)

    def _next(self, taken: Taken, keys: Named, chunks: dict[Key, Location], pages: dict[str, Location]) -> Manifest:
        last, step = self.manifest, taken.laps[0].step if taken.laps else 0
        dropped = {f"{i}/{name}" for i, increment in enumerate(taken.increments) for name in increment.pages.dropped}
        return Manifest(
            taken.offset,
            tuple(increment.head for increment in taken.increments),
            tuple(taken.laps),
            (*still_needed(last.increments, step), Increments(keys, step)),
            with_chunks(last.chunks, chunks, taken.dropped),
            {name: where for name, where in {**last.pages, **pages}.items() if name not in dropped},
        )

    def _clean(self, last: Manifest, now: Manifest) -> int:
        """Remove what the newest commit does not need; the first time also what others have left. Nobody else has claimed it."""
        mine = self._named("commit")
        gone = [named for named in listed(self.commits) if named < mine]
        for named_ in gone:
            self.commits.remove(named_.name)
        files = last.files - now.files
        if not self._swept:
            there = (Named.of(name) for name in self.data.names())
            files |= {n for n in there if n is not None and n.epoch <= self.epoch} - now.files
            self._swept = True
        for file in files:
            self.data.remove(file.name)
        return len(gone) + len(files)
