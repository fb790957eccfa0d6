"""A partition that a unit has: its task processors, and their saves.

What is called here belongs to the thread of the loop, but for `Chunks.get`, which any thread may ask. The writer has its own
(`saving.py`) and is handed what it needs; what it has done comes back by the future that `save` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from headrace.errors import StateError
from headrace.log.log import At
from headrace.program.stage import Stage
from headrace.runtime.increments import Lap, restore, steps_for, take
from headrace.runtime.processor import TaskProcessor
from headrace.runtime.save import of
from headrace.serve.store.commits import refuse_stale
from headrace.serve.store.manifest import Key, Location
from headrace.serve.store.places import Place
from headrace.serve.store.saving import Saved, Saver, Taken
from headrace.serve.store.sealed import DAMAGED, Named, damaged, unseal
from headrace.serve.store.writer import Writer
from headrace.state.chunk import Chunk
from headrace.state.codec import decode
from headrace.state.parts import State
from headrace.state.reservoir import ChunkCache

READERS = 8  # files that are read at once


class Files:
    """The files of a partition, read as somebody who may be stale."""

    def __init__(self, place: Place, epoch: int) -> None:
        self.commits, self.data, self.epoch = place.below("commits"), place.below("data"), epoch

    def state(self, file: Named) -> State:
        """A file of what changed."""
        data = self._there(file, self.data.read(file.name))
        content = unseal(file, data, self.data.path)
        if content is None:
            raise damaged(file, self.data.path, f"only {len(data):,} bytes are left of it")
        return decode(bytes(content), file.name)

    def blob(self, where: Location) -> bytes:
        """A chunk or a page."""
        data = self._there(where.file, self.data.read(where.file.name, where.start, where.size))
        if crc32(data) != where.checksum or len(data) != where.size:
            raise damaged(
                where.file, self.data.path, f"the {where.size:,} bytes from byte {where.start:,} are not what was written"
            )
        return data

    def _there(self, file: Named, data: bytes | None) -> bytes:
        """What a commit needs is there, but for one who was not told that he is stale."""
        if data is None:
            refuse_stale(self.commits, self.epoch)
            raise StateError(f"{file.name} is gone, and the newest commit needs it", where=self.data.path, hint=DAMAGED)
        return data


@dataclass(slots=True)
class Kept:
    """The chunks of all processors of a partition: those that are not written yet, and where the others lie."""

    written: dict[Key, Location]
    fresh: dict[Key, Chunk] = field(default_factory=dict)  # sealed, and in no commit that is known to be durable
    under_way: dict[Key, Chunk] = field(default_factory=dict)  # of these, those that the writer has
    dropped: list[Key] = field(default_factory=list)  # written, or being so, and needed no more


@dataclass(frozen=True, slots=True)
class Chunks:
    """Those of one task processor, as it asks for them."""

    owner: int
    files: Files
    kept: Kept

    def get(self, chunk: int) -> Chunk | None:
        key = (self.owner, chunk)
        found = self.kept.fresh.get(key)
        if found is not None:
            return Chunk(found.ts, list(found.columns))
        where = self.kept.written.get(key)
        return None if where is None else Chunk.read(self.files.blob(where), f"chunk {chunk}")

    def put(self, chunk: int, rows: Chunk) -> None:
        self.kept.fresh[self.owner, chunk] = rows

    def delete(self, chunk: int) -> None:
        key, kept = (self.owner, chunk), self.kept
        kept.fresh.pop(key, None)
        if kept.written.pop(key, None) is not None or key in kept.under_way:
            kept.dropped.append(key)


class Partition:
    """The task processors of a partition, and how far its log has been taken in when they were last saved."""

    def __init__(
        self, place: Place, at: At, epoch: int, stages: Sequence[Stage[Any]], writer: Writer, cache: ChunkCache, chunk_rows: int
    ) -> None:  # fmt: skip
        self.at, self.epoch, self._writer, self._saver = at, epoch, writer, Saver(place, epoch)
        manifest = self._saver.manifest
        self.offset = manifest.offset  # of the next record to be taken in, by the newest commit
        self._laps = list(manifest.laps)
        self._files = Files(place, epoch)
        self._chunks = Kept(manifest.locations())
        owner = (at, epoch, self._saver.number)
        self.processors = [
            TaskProcessor(stage, Chunks(i, self._files, self._chunks), cache, (*owner, i), chunk_rows)
            for i, stage in enumerate(stages)
        ]
        self._saving: Future[Saved] | None = None
        self._restore(manifest.heads)

    def _restore(self, heads: Sequence[State]) -> None:
        """Be as the newest commit says."""
        if not heads:
            self._laps = [Lap()] * len(self.processors)
            return
        if len(heads) != len(self.processors):
            what = f"the state of {self.at} is of {len(heads)} stages, and the script has {len(self.processors)} there"
            raise StateError(what, where=self._files.commits.path, hint="serve the script that wrote it")
        manifest = self._saver.manifest
        with ThreadPoolExecutor(READERS) as readers:
            states = list(readers.map(self._files.state, (i.file for i in manifest.increments)))
            blobs = dict(zip(manifest.pages, readers.map(self._files.blob, manifest.pages.values()), strict=True))
        for number, (processor, head) in enumerate(zip(self.processors, heads, strict=True)):
            own = f"{number}/"
            pages = {name.removeprefix(own): page for name, page in blobs.items() if name.startswith(own)}
            restore(processor, head, [of(state, str(number)) for state in states], pages)

    def save(self, offset: int, before: Callable[[], object] = lambda: None) -> Future[Saved] | None:
        """Have it saved that all records before this offset are taken in; None while a save of this process is under way.

        The future is done when the commit is durable, and then the log may be trimmed; or it has the error, and then the
        partition has to be opened anew. `before` is called before the commit counts, by the thread that writes: to make durable
        what it says of the log, and have out what was answered.
        """
        self._settle()
        if self._writer.busy:
            return None
        steps, increments = steps_for(self.processors), []
        for i, processor in enumerate(self.processors):
            increment, self._laps[i] = take(processor, self._laps[i], steps)
            increments.append(increment)
        chunks = self._chunks
        chunks.under_way.update(chunks.fresh)
        taken = Taken(offset, increments, list(self._laps), dict(chunks.fresh), chunks.dropped.copy(), before)
        chunks.dropped.clear()
        self._saving = self._writer.begin(lambda: self._saver.write(taken))
        return self._saving

    def _settle(self) -> None:
        """Take note of what the writer has done. What it could not do is an error here, too."""
        if self._saving is None or not self._saving.done():
            return
        saved, chunks = self._saving.result(), self._chunks
        # A thread that loads looks among the fresh ones first: it finds a chunk in either place.
        for key, where in saved.chunks.items():
            if key in chunks.fresh:
                chunks.written[key] = where
                del chunks.fresh[key]
        chunks.under_way.clear()
        self.offset, self._saving = saved.offset, None
