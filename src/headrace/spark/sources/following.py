"""Files under `--follow`: text is followed through a spool; whatever cannot be is watched, so that nothing is missed silently."""

from __future__ import annotations

import time
from dataclasses import replace

from headrace.files.following import Follower, Kind
from headrace.files.headers import layout_of
from headrace.files.ledger import noted_format
from headrace.files.listing import base_of, find
from headrace.notices import warn
from headrace.plan.stream import FileSource, Stream
from headrace.spark.sources.consumed import Consumed
from headrace.spark.sources.spool import Spool
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.spark.storage.storage import Storage, absolute, is_local, join

POLL_S = 0.1
SHARE = 10  # of a core's time, at most one part goes into looking
FORGET = 32  # chunks, or so many bytes of them, that wait to be deleted
FORGET_BYTES = 64 << 20
WATCH_S = 1.0


def followed(
    stream: Stream, source: FileSource, facts: Checkpoint, storage: Storage, *, follow: bool
) -> tuple[FileSource, Spool | None]:
    """Where the rows of a stream are read from, and who brings them there.

    A stream whose files were followed once is followed ever after.
    """
    folder, where = join(facts.path, "spool", stream.rows_of), f"stream {stream.name!r}"
    known = noted_format(storage, folder)
    # In the generation that a stream comes with it is new, though others are not.
    begun = bool(storage.names(join(facts.spark, "offsets" if facts.generation == 0 else f"sources/{stream.name}")))
    if stream.static or not (follow or known):
        return source, None
    if not is_local(source.path):
        why = "files in another file system are read whole, when they are first seen"
        warn(f"{why}: one that grows is not read again", where=where)
        return source, None
    path, format = absolute(source.path), known or source.format
    text = format in ("csv", "json")
    if known or (text and not begun):
        kind = Kind("json") if format == "json" else _csv(stream, source)
        spool = FileSpool(storage, folder, stream.rows_of, path, kind, facts.spark, follow=follow)
        return replace(source, path=folder, format=format, spooled=True), spool
    why = f"{format} files are read whole, once"
    if text:
        why = "this checkpoint was begun without --follow, and its files are read whole, once"
        warn(f"{why}: one that grows is not read again. A new checkpoint follows them", where=where)
    return source, Watch(folder, stream.rows_of, path, facts.sizes, why)


def _csv(stream: Stream, source: FileSource) -> Kind:
    def header(head: bytes) -> int:
        layout = layout_of(head, source.delimiter, stream.schema)
        return layout.skip if layout.headed else 0

    return Kind("csv", source.delimiter, header)


class FileSpool(Spool):
    """The files of a stream, followed into chunks. Without `follow` they are read to their end as it is now."""

    def __init__(
        self, storage: Storage, folder: str, name: str, path: str, kind: Kind, spark_folder: str, *, follow: bool
    ) -> None:
        self.path, self.follow = path, follow
        self._consumed = Consumed(storage, spark_folder)
        self._follower = Follower(storage, folder, kind, base_of(path), lambda: find(path), lambda t: warn(t, where=where))
        where = f"stream {name!r}"
        if noted_format(storage, folder) is None:
            self._follower.ledger.note()  # whoever resumes this checkpoint knows that files were followed from the start
        super().__init__(folder, name)

    def run(self) -> None:
        try:
            while not self._stop.is_set():
                began = time.thread_time()
                self._forget()
                full = self._follower.step(ending=not self.follow)
                if not self.follow and not full:
                    return
                self._stop.wait(POLL_S if full else max(POLL_S, SHARE * (time.thread_time() - began)))
        finally:
            self._follower.close()

    def _forget(self) -> None:
        chunks = self._follower.ledger.chunks
        if len(chunks) >= FORGET or sum(chunks.values()) >= FORGET_BYTES:
            self._follower.ledger.forget(self._consumed.names())


class Watch(Spool):
    """Files that Spark reads whole, once: whoever changes one is told that this is not seen."""

    def __init__(self, folder: str, name: str, path: str, sizes: dict[str, int], why: str) -> None:
        self.path, self.sizes, self.why = path, dict(sizes), why
        self._told: set[str] = set()
        super().__init__(folder, name)

    def run(self) -> None:
        while not self._stop.is_set():
            for path, status in find(self.path):
                size = self.sizes.setdefault(path, status.st_size)
                if size != status.st_size and path not in self._told:
                    self._told.add(path)
                    warn(
                        f"{path} had {size} bytes when it was first seen, and has {status.st_size} now: {self.why}, so what was"
                        " added may not be read. Write files under another name and rename them when they are whole",
                        where=f"stream {self.name!r}",
                    )
            self._stop.wait(WATCH_S)
