"""An added query begins complete, though no state has what it needs: its sources are read again, as far as they have been.

Into a checkpoint of Spark's of its own, up to the last batch that the old generation has committed. The state this leaves is
handed over like that of the old generation; what it says is said to nobody. All that can be in the way is known before anything
is written.

Whether a row is late follows from the rows that came before it. What is read at once is judged in the order of places: so it
is one batch as long as files came in that order, and one more for each time that one came behind another that stands after it.
"""

from __future__ import annotations

import json
import os
import posixpath
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from headrace.errors import StateError
from headrace.files.chunks import Chunk, unescape
from headrace.files.ledger import noted_files, noted_format
from headrace.files.listing import find
from headrace.files.restored import Gone, look_for, restored
from headrace.plan.stream import FileSource, FrameSource, HostSource, Stream
from headrace.spark.borrowed import PARTITIONS, activate, partitions_for, settings
from headrace.spark.generations.cells import last_committed
from headrace.spark.generations.handover import EVOLVES
from headrace.spark.generations.offsets import NAMED, Offsets, read_offsets
from headrace.spark.plan import output_frame
from headrace.spark.sources.consumed import offsets_of, read_of
from headrace.spark.sources.growth import sizes_of
from headrace.spark.sources.prepare import needs_now
from headrace.spark.storage.storage import Storage, absolute, is_local, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.storage.checkpoint import Checkpoint
    from headrace.stages.lower import Lowered

About = dict[str, Any]  # a file, as Spark's log of a source has it
Place = Callable[[About], tuple[int, ...]]  # where the rows of a file stand, as far as that is known of all of them
COMPACT = "spark.sql.streaming.fileSource.log.compactInterval"  # how many entries of a log there are for Spark to make them one
MOST_PASSES = 9


@dataclass(frozen=True, slots=True)
class Book:
    """What is read again of a stream, batch by batch; chunks that were let go are made anew first."""

    stream: Stream
    passes: tuple[tuple[About, ...], ...]
    gone: tuple[Gone, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """All that is read again for a part of a script, in a folder of its own under the checkpoint."""

    part: Lowered  # with its sources as they were read
    folder: str
    log: Offsets | None = None
    books: tuple[Book, ...] = ()

    @property
    def passes(self) -> int:
        return max((len(book.passes) for book in self.books), default=0)


# ---- before anything is written -------------------------------------------------------------------------------------


def plan_reading(part: Lowered, facts: Checkpoint, storage: Storage, folder: str) -> Reading:
    """What has to be read, or a `StateError`: it cannot be, or is not any more what was read."""
    last = last_committed(storage, facts.spark)
    if last is None:
        return Reading(part, folder)
    log = read_offsets(storage, facts.spark, last)
    if log.version != NAMED:
        raise _cannot(part, None, "the script reads DataFrames, and they cannot be read again")
    if any(stage.doors for stage in part.stages):
        raise _cannot(part, None, "nobody has kept which rows came together, and USING KSLACK goes by that")
    upto, streams, books = offsets_of(log.text), list[Stream](), list[Book]()
    for stream in part.streams:
        if stream.static:
            _same_table(part, stream, facts)
            streams.append(stream)
        elif stream.name in upto:  # of others nothing has come yet
            _refuse_kind(part, stream)
            streams.append(replace(stream, source=_as_it_was_read(stream, facts, storage)))
            books.append(_book(part, streams[-1], facts, storage, upto[stream.name], folder))
    return Reading(replace(part, streams=tuple(streams)), folder, log, tuple(books))


def _refuse_kind(part: Lowered, stream: Stream) -> None:
    if needs_now(stream):
        what = "its time is that" if stream.timestamp is None else "IDLE, AHEAD and END AFTER go by that"
        raise _cannot(part, stream, f"nobody has kept when its rows came, and {what}")


def _same_table(part: Lowered, stream: Stream, facts: Checkpoint) -> None:
    for path, size in sizes_of((stream,)).items():
        if facts.sizes.get(path, size) != size:
            raise _cannot(part, stream, f"{path} has changed since it was read")


def _as_it_was_read(stream: Stream, facts: Checkpoint, storage: Storage) -> FileSource:
    """In place, or from the spool; which of both follows from what lies there, not from how it is run now."""
    spool, source = join(facts.path, "spool", stream.rows_of), stream.source
    assert not isinstance(source, FrameSource)
    if isinstance(source, FileSource):
        followed = noted_format(storage, spool)
        return source if followed is None else replace(source, path=spool, format=followed, spooled=True)
    if isinstance(source, HostSource):
        return FileSource(spool, source.format, source.delimiter, spooled=True)
    return FileSource(spool, "parquet", spooled=True)  # what is generated is spooled so


def _book(part: Lowered, stream: Stream, facts: Checkpoint, storage: Storage, upto: int, folder: str) -> Book:
    read = read_of(storage, facts.spark, stream.name, upto)
    if {about["batchId"] for about in read} != set(range(upto + 1)):
        raise StateError(
            f"{facts.spark!r} does not say any more what was read of {stream.name!r}", hint="the checkpoint is damaged"
        )
    assert isinstance(stream.source, FileSource)
    gone: tuple[Gone, ...] = ()
    place: Place = _written
    if stream.source.spooled:
        read, gone = _spooled(part, stream, storage, read, folder)
        place = _followed
    else:
        _unchanged(part, stream, read)
    passes = tuple(in_passes(read, place)) if stream.bounded else (tuple(read),)
    if len(passes) > MOST_PASSES:
        why = f"its files grew side by side, and were read by turns {len(passes)} times; {MOST_PASSES} can be repeated"
        raise _cannot(part, stream, why)
    return Book(stream, passes, gone)


def _unchanged(part: Lowered, stream: Stream, read: list[About]) -> None:
    """Files that are read in place stand where they stood, and are as old as they were: their rows stand by that."""
    for about in read:
        path = absolute(about["path"])
        if not is_local(path):
            continue
        if not os.path.exists(path):
            raise _cannot(part, stream, f"{path} is not there any more")
        if os.stat(path).st_mtime_ns // 1_000_000 != about["timestamp"]:
            raise _cannot(part, stream, f"{path} has changed since it was read")


def _spooled(
    part: Lowered, stream: Stream, storage: Storage, read: list[About], folder: str
) -> tuple[list[About], tuple[Gone, ...]]:
    """The files where they lie in the spool; of those that were let go, where they are made again, and from what."""
    assert isinstance(stream.source, FileSource)
    spool, chunks = stream.source.path, dict[str, Chunk]()
    kept, moved = set(storage.names(spool)), list[About]()
    for about in read:
        name = posixpath.basename(unquote(about["path"]))
        chunk = Chunk.parse(name)
        if chunk is not None:
            chunks[name] = chunk
        elif name not in kept:
            raise _cannot(part, stream, f"{name} is not in its spool any more")
        lies = spool if name in kept else _made_again(folder, stream)
        moved.append({**about, "path": _uri(join(lies, name))})
    return moved, tuple(_found(part, stream, storage, chunks, kept))


def _found(part: Lowered, stream: Stream, storage: Storage, chunks: dict[str, Chunk], kept: set[str]) -> Iterator[Gone]:
    lost = [chunk for name, chunk in chunks.items() if name not in kept]
    if not lost:
        return
    asked = next(s.source for s in part.streams if s.name == stream.name)
    assert isinstance(stream.source, FileSource)
    assert isinstance(asked, FileSource)
    files, first = noted_files(storage, stream.source.path), dict[int, int]()
    for chunk in chunks.values():
        first[chunk.seen] = min(first.get(chunk.seen, chunk.offset), chunk.offset)
    for gone in look_for(lost, first, files, [name for name, _ in find(absolute(asked.path))]):
        if gone.path is None:
            file = files.get(gone.chunks[0].seen)
            name = unescape(gone.chunks[0].path) if file is None else file.first_path
            raise _cannot(part, stream, f"no file holds any more what was read of {name}")
        yield gone


def _written(about: About) -> tuple[int, ...]:
    return (int(about["timestamp"]),)


def _followed(about: About) -> tuple[int, ...]:
    """Of a socket, or of what is generated, files are as old as they came."""
    chunk = Chunk.parse(posixpath.basename(unquote(about["path"])))
    return _written(about) if chunk is None else (chunk.seen, chunk.offset)


def in_passes(read: list[About], place: Place) -> Iterator[tuple[About, ...]]:
    """Cut where a file came behind one that stands after it."""
    held: list[About] = []
    for _, came in groupby(sorted(read, key=lambda about: about["batchId"]), key=lambda about: about["batchId"]):
        some = list(came)
        if held and min(map(place, some)) <= max(map(place, held)):
            yield tuple(held)
            held = []
        held += some
    yield tuple(held)


def _cannot(part: Lowered, stream: Stream | None, why: str) -> StateError:
    readers = {q for s in part.stages for q in s.queries if stream is None or stream.name in {x.name for x in s.sources}}
    names = [f.query.name for f in part.finishes]
    query = next((name for name in names if name in readers), names[0])
    of = "" if stream is None else f" from stream {stream.name!r}"
    hint = f"--from-now {query} lets it begin with nothing; or run it by itself, with a checkpoint of its own"
    return StateError(f"query {query!r} cannot be filled{of}: {why}", hint=hint)


# ---- and then -------------------------------------------------------------------------------------------------------


def read_again(spark: SparkSession, reading: Reading, buckets: int, storage: Storage) -> None:
    """Fill the stages of a part of a script, pass by pass."""
    if not reading.passes:
        return
    for book in reading.books:
        for gone in book.gone:
            for chunk, data in restored(gone):
                if data is None:
                    raise _cannot(reading.part, book.stream, f"{gone.path} has changed since it was read")
                storage.add(join(_made_again(reading.folder, book.stream), chunk.name), data)
    needed = {PARTITIONS: str(partitions_for(spark)), EVOLVES: "true", COMPACT: str(MOST_PASSES + 1)}
    with settings(spark, needed):
        wide = output_frame(spark, reading.part, {}, None, streaming=True, buckets=buckets)
        activate(spark)
        storage.add(join(reading.folder, "metadata"), json.dumps({"id": str(uuid.uuid4())}).encode())
        for number in range(reading.passes):
            _plan(reading, number, storage)
            writer = wide.writeStream.format("noop").option("checkpointLocation", reading.folder).outputMode("append")
            running = writer.trigger(once=True).start()  # the batch that was planned, and nothing that has come since
            try:
                running.awaitTermination()
            finally:
                running.stop()


def _plan(reading: Reading, number: int, storage: Storage) -> None:
    """Write what Spark would have written itself before it ran a batch over these files."""
    assert reading.log is not None
    lines = []
    for book in reading.books:
        if number < len(book.passes):
            files = (json.dumps({**about, "batchId": number}, separators=(",", ":")) for about in book.passes[number])
            storage.add(join(reading.folder, "sources", book.stream.name, str(number)), "\n".join(("v1", *files)).encode())
        lines.append(f'{book.stream.name}:{{"logOffset":{min(number, len(book.passes) - 1)}}}')
    text = replace(reading.log, sources=tuple(lines)).text
    storage.add(join(reading.folder, "offsets", str(number)), text.encode())


def _made_again(folder: str, stream: Stream) -> str:
    return join(folder, "again", stream.rows_of)


def _uri(path: str) -> str:
    """A path as Spark's logs have it."""
    return "file://" + quote(path) if is_local(path) else quote(path, safe=":/")
