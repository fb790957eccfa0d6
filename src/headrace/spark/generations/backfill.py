"""A query that was added begins complete, though no state has what it needs: its sources are read again, as far as they have been.

Into a checkpoint of Spark's of its own: one batch, over all that the old generation has read up to its last committed batch. The
state it leaves is handed over like that of the old generation; what it says is said to nobody.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from headrace.errors import StateError
from headrace.files.chunks import Chunk
from headrace.files.ledger import Ledger
from headrace.files.listing import base_of, find
from headrace.files.restored import restored
from headrace.plan.stream import FileSource, FrameSource
from headrace.spark.borrowed import PARTITIONS, partitions_for, settings
from headrace.spark.generations.handover import EVOLVES
from headrace.spark.generations.offsets import NAMED, Offsets, read_offsets
from headrace.spark.plan import output_frame
from headrace.spark.sources.consumed import offsets_of, read_of
from headrace.spark.sources.growth import sizes_of
from headrace.spark.storage.storage import Storage, absolute, is_local, join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.plan.stream import Stream
    from headrace.spark.storage.checkpoint import Checkpoint
    from headrace.stages.lower import Lowered

Books = dict[str, list[dict[str, Any]]]  # by stream, the files that are read again, as Spark's log of a source has them
HINT = "--from-now {} lets it begin with nothing; or run it by itself, with a checkpoint of its own"


def can_read_again(query: str, streams: Sequence[Stream], facts: Checkpoint) -> None:
    """Refuse what can be known beforehand to be impossible."""
    for stream in streams:
        why = ""
        if isinstance(stream.source, FrameSource):
            why = "it is a DataFrame"
        elif stream.timestamp is None and not stream.static:
            why = "the time of its rows is when they came, which nobody has kept"
        changed = next((p for p, n in sizes_of((stream,)).items() if facts.sizes.get(p, n) != n), None)
        if changed is not None:
            why = f"{changed} has changed since it was read"
        if why:
            raise _cannot(query, stream, why)


def read_again(
    spark: SparkSession, lowered: Lowered, buckets: int, facts: Checkpoint, storage: Storage, batch: int, folder: str
) -> bool:
    """Fill the stages of a part of a script: what was read up to a batch is read again, in one. Whether there was anything."""
    query, old = lowered.finishes[0].query.name, read_offsets(storage, facts.spark, batch)
    if old.version != NAMED:
        raise StateError(f"query {query!r} cannot be filled: the checkpoint has DataFrames", hint=HINT.format(query))
    upto, streams, lines = offsets_of(old.text), list[Stream](), list[str]()
    for stream in lowered.streams:
        if stream.static:
            streams.append(stream)
            continue
        read = read_of(storage, facts.spark, stream.name, upto[stream.name]) if stream.name in upto else []
        source = _as_it_was_read(stream, facts, storage)
        streams.append(replace(stream, source=source))
        if read:
            own = _found(query, stream, source, read, storage, folder) if source.spooled else _there(query, stream, read)
            _write_book(storage, join(folder, "sources", stream.name), own)
            lines.append(f'{stream.name}:{{"logOffset":0}}')
    if not lines:
        return False
    storage.add(join(folder, "offsets", "0"), Offsets(old.version, old.metadata, tuple(lines)).text.encode())
    needed = {PARTITIONS: str(partitions_for(spark)), EVOLVES: "true"}
    with settings(spark, needed):
        part = replace(lowered, streams=tuple(streams))
        wide = output_frame(spark, part, {}, None, streaming=True, buckets=buckets)
        writer = wide.writeStream.format("noop").option("checkpointLocation", folder).outputMode("append")
        running = writer.trigger(once=True).start()
        try:
            running.awaitTermination()
        finally:
            running.stop()
    return True


def _as_it_was_read(stream: Stream, facts: Checkpoint, storage: Storage) -> FileSource:
    """In place, or from the spool; which of both follows from the books, not from how it is run now."""
    spool = join(facts.path, "spool", stream.rows_of)
    assert not isinstance(stream.source, FrameSource)
    if isinstance(stream.source, FileSource):
        spooled = any(Chunk.parse(name) or name == "_noted.json" for name in storage.names(spool))
        return replace(stream.source, path=spool, spooled=True) if spooled else stream.source
    format = getattr(stream.source, "format", "parquet")  # what is generated is spooled so
    return FileSource(spool, format, getattr(stream.source, "delimiter", None), spooled=True)


def _there(query: str, stream: Stream, read: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for about in read:
        path = _plain(about["path"])
        if is_local(path) and not os.path.exists(path):
            raise _cannot(query, stream, f"{path} is not there any more")
    return read


def _found(
    query: str, stream: Stream, source: FileSource, read: list[dict[str, Any]], storage: Storage, folder: str
) -> list[dict[str, Any]]:
    """The spooled files; those that were let go are made again, beside the others."""
    kept = set(storage.names(source.path))
    by_name = {posixpath.basename(unquote(about["path"])): about for about in read}
    chunks = {name: Chunk.parse(name) for name in by_name}
    gone = [chunk for name, chunk in chunks.items() if name not in kept and chunk is not None]
    lost = next((name for name, chunk in chunks.items() if name not in kept and chunk is None), None)
    if lost is not None:
        raise _cannot(query, stream, f"{lost} is not in its spool any more")
    if gone:
        assert isinstance(stream.source, FileSource)
        path, first = absolute(stream.source.path), dict[int, int]()
        for chunk in chunks.values():
            if chunk is not None:
                first[chunk.seen] = min(first.get(chunk.seen, chunk.offset), chunk.offset)
        ledger = Ledger(storage, source.path, base_of(path), source.format)
        place = join(folder, "again", stream.rows_of)
        for chunk, data in restored(gone, first, ledger.files, (p for p, _ in find(path))):
            if data is None:
                was = ledger.files[chunk.seen].path if chunk.seen in ledger.files else chunk.path
                raise _cannot(query, stream, f"no file holds any more what was read of {was}")
            storage.add(join(place, chunk.name), data)
            by_name[chunk.name] = {**by_name[chunk.name], "path": _uri(join(place, chunk.name))}
    return list(by_name.values())


def _write_book(storage: Storage, place: str, read: list[dict[str, Any]]) -> None:
    lines = (json.dumps({**about, "batchId": 0}, separators=(",", ":")) for about in read)
    storage.add(join(place, "0"), "\n".join(("v1", *lines)).encode())


def _plain(path: str) -> str:
    """A path in Spark's books, as files are opened by it."""
    return absolute(path)


def _uri(path: str) -> str:
    return "file://" + quote(path) if is_local(path) else path


def _cannot(query: str, stream: Stream, why: str) -> StateError:
    return StateError(
        f"query {query!r} cannot be filled from stream {stream.name!r}: {why}", hint=HINT.format(query),
    )  # fmt: skip


