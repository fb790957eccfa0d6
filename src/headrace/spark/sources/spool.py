"""Sources that Spark cannot replay are spooled to files under the checkpoint first; what was spooled is accepted.

Spark's own socket source replays a failed batch empty. A spool file is moved into place whole, and Spark's file source reads it
exactly once, whatever fails.
"""

from __future__ import annotations

import io
import os
import socket
import threading
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headrace.errors import HeadraceError, SourceError
from headrace.files.headers import layout_of
from headrace.generate import events, parse_options
from headrace.plan.stream import FileSource, GenerateSource, HostSource, Source, Stream
from headrace.spark.failures import Places, explain_failure
from headrace.spark.storage.checkpoint import Checkpoint
from headrace.spark.storage.storage import Storage, join, storage_of
from headrace.stages.lower import Lowered

FILE_ROWS = 100_000
FLUSH_S = 0.2


class Spool:
    """A thread that writes what a source gives to numbered files."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = folder, name
        self.error: Exception | None = None
        self._stop = threading.Event()
        self.storage = storage_of(folder, SparkSession.getActiveSession())
        self.storage.make(folder)
        self._thread = threading.Thread(target=self._guarded, name=f"spool-{name}", daemon=True)
        self._thread.start()

    def _guarded(self) -> None:
        try:
            self.run()
        except (OSError, HeadraceError) as error:
            self.error = explain_failure(error, Places(self.folder))

    def run(self) -> None:
        """Read the source to its end, or until stopped."""

    def next_number(self) -> int:
        """The number of the next file; numbers go on over restarts."""
        numbers = [int(n.split(".")[0]) for n in self.storage.names(self.folder) if n[0].isdigit()]
        return max(numbers, default=-1) + 1

    def publish(self, data: bytes, number: int, ending: str) -> None:
        self.storage.add(join(self.folder, f"{number:012d}.{ending}"), data)

    def wait(self) -> None:
        self._thread.join()
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(5)


class SocketSpool(Spool):
    """Lines from a socket. When the other side goes away, what came is kept; with `follow` it is tried again."""

    def __init__(self, folder: str, stream: Stream, source: HostSource, *, follow: bool) -> None:
        self.source, self.follow, self.schema = source, follow, stream.schema
        super().__init__(folder, stream.rows_of)

    def run(self) -> None:
        while not self._stop.is_set():
            try:
                connection = socket.create_connection((self.source.host, self.source.port), timeout=5)
            except OSError as error:
                if self.follow and self.next_number() > 0:
                    self._stop.wait(1)
                    continue
                raise SourceError(
                    f"cannot connect to {self.source.host}:{self.source.port}: {error}", where=f"stream {self.name!r}",
                    hint="start the program that sends the rows first",
                ) from error  # fmt: skip
            with connection:
                self._read(connection)
            if not self.follow:
                return

    def _read(self, connection: socket.socket) -> None:
        connection.settimeout(FLUSH_S)
        self._header: bytes | None = None  # what a connection begins with is known when its first lines are there
        rest, due = b"", time.monotonic() + FLUSH_S
        while not self._stop.is_set():
            try:
                piece = connection.recv(1 << 20)
                if not piece:
                    break
                rest += piece
            except TimeoutError:
                pass
            if time.monotonic() >= due or len(rest) > 1 << 22:
                rest, due = self._write(rest), time.monotonic() + FLUSH_S
        self._write(rest + b"\n" if rest and not rest.endswith(b"\n") else rest)

    def _write(self, data: bytes) -> bytes:
        lines, newline, rest = data.rpartition(b"\n")
        if not newline:
            return data
        whole = lines + b"\n"
        if self._header is None:
            layout = layout_of(whole, self.source.delimiter, self.schema) if self.source.format == "csv" else None
            self._header = whole[: layout.skip] if layout is not None and layout.headed else b""
        else:  # every file is read by its own header
            whole = self._header + whole
        self.publish(whole, self.next_number(), "txt")
        return rest


class GeneratorSpool(Spool):
    """Generated events: all of them at once, or at their own rate with `follow`."""

    def __init__(self, folder: str, stream: Stream, source: GenerateSource, *, follow: bool) -> None:
        self.source, self.follow = source, follow
        super().__init__(folder, stream.rows_of)

    def run(self) -> None:
        options = parse_options(self.source.kind, self.source.options)
        total = None if self.follow else options.rows
        at_once = max(1, min(FILE_ROWS, int(options.row_rate))) if self.follow else FILE_ROWS
        number = self.next_number()
        first = number * at_once
        while not self._stop.is_set() and (total is None or first < total):
            count = at_once if total is None else min(at_once, total - first)
            file = io.BytesIO()
            pq.write_table(pa.Table.from_batches([events(self.source.kind, options, first, count)]), file)
            self.publish(file.getvalue(), number, "parquet")
            first, number = first + count, number + 1
            if self.follow:
                self._stop.wait(count / options.row_rate)


def spooled(lowered: Lowered, facts: Checkpoint, storage: Storage, *, follow: bool) -> tuple[Lowered, list[Spool]]:
    """The script with its sockets, generators and files that grow replaced by the folders they are spooled to."""
    from headrace.spark.sources.following import followed

    sources: dict[str, Source] = {}  # the same stream by time and by arrival is one spool
    spools: list[Spool] = []
    for stream in lowered.streams:
        if stream.rows_of in sources:
            continue
        folder = os.path.join(facts.path, "spool", stream.rows_of)
        match stream.source:
            case HostSource() as source:
                spools.append(SocketSpool(folder, stream, source, follow=follow))
                sources[stream.rows_of] = FileSource(folder, source.format, source.delimiter, spooled=True)
            case GenerateSource() as source:
                spools.append(GeneratorSpool(folder, stream, source, follow=follow))
                sources[stream.rows_of] = FileSource(folder, "parquet", spooled=True)
            case FileSource() as source:
                sources[stream.rows_of], spool = followed(stream, source, facts, storage, follow=follow)
                spools += [spool] if spool is not None else []
            case _:
                sources[stream.rows_of] = stream.source
    streams = tuple(replace(s, source=sources[s.rows_of]) for s in lowered.streams)
    return replace(lowered, streams=streams), spools
