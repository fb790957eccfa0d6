"""Where results go: files, tables, the console, other queries."""

from __future__ import annotations

import fnmatch
import os
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.errors import QueryError
from headrace.plan.stream import FileSource, Stream

ENDINGS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
TEXTS = ("csv", "json")
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}  # files of these can be put one after the other


def alternatives(words: Iterable[str]) -> str:
    """For messages.

    >>> alternatives(("a", "b", "c"))
    'a, b or c'
    """
    *most, last = dict.fromkeys(words)
    return f"{', '.join(most)} or {last}" if most else last


WRITTEN = f"{alternatives(ENDINGS)}, text also with {alternatives(COMPRESSIONS)} behind it"


@dataclass(frozen=True, slots=True)
class FileSink:
    """`INTO FILE(path)`: exactly once. A path with an ending is one file, any other a directory of files, published by batch."""

    path: str
    format: str = "parquet"  # one of FORMATS

    def __post_init__(self) -> None:
        if not self.path.strip("/ "):
            hint = "for example FILE('out/') or FILE('out.csv')"
            raise QueryError(f"FILE({self.path!r}) names no file and no directory", hint=hint)
        if self.format not in FORMATS:
            raise QueryError(f"FILE cannot write {self.format!r}", hint=alternatives(FORMATS))
        named = named_format(self.path)
        if named is not None and named != self.format:
            message = f"FILE({self.path!r}, {self.format!r}) says two formats: the ending of the path is that of {named}"
            raise QueryError(message, hint=f"leave one of them out, or write '{self.path}/' for a directory")
        if self.compression is not None and self.format not in TEXTS:
            hint = f"a file can end in {WRITTEN}"
            raise QueryError(f"FILE({self.path!r}) cannot be written: {self.format} is compressed inside", hint=hint)

    @staticmethod
    def of(path: str, format: str | None = None) -> FileSink:
        """The sink that a path means, with the format that is named, else that of its ending, else parquet.

        >>> FileSink.of("counts.csv").single, FileSink.of("counts/").format, FileSink.of("counts.json.gz").compression
        (True, 'parquet', 'gzip')
        """
        ending = _ending(path)
        if format is None and ending and named_format(path) is None:
            hint = f"a file can end in {WRITTEN}; for a directory write '{path}/'"
            raise QueryError(f"FILE({path!r}) cannot be written: {ending!r} is no format that is known", hint=hint)
        return FileSink(path, (format or named_format(path) or "parquet").lower())

    @property
    def single(self) -> bool:
        """Whether one file was asked for, not a directory."""
        return bool(_ending(self.path))

    @property
    def compression(self) -> str | None:
        """How a single file is compressed, by its ending."""
        return COMPRESSIONS.get(_ending(self.path))

    def __str__(self) -> str:
        return f"FILE('{self.path}', '{self.format}')"


@dataclass(frozen=True, slots=True)
class TableSink:
    """`INTO TABLE name`: a Spark table over files published by batch."""

    name: str

    def __str__(self) -> str:
        return f"TABLE {self.name}"


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """No INTO, or `INTO CONSOLE`: the rows are shown, at least once."""

    def __str__(self) -> str:
        return "CONSOLE"


@dataclass(frozen=True, slots=True)
class StreamSink:
    """`INTO name`: a named stream that other queries may read; shown if nothing reads it."""

    name: str

    def __str__(self) -> str:
        return self.name


CONSOLE = ConsoleSink()
Sink = FileSink | TableSink | ConsoleSink | StreamSink


def _ending(path: str) -> str:
    """What stands behind the last dot of a file's name; nothing for a directory, which ends in / or has no dot."""
    return posixpath.splitext(posixpath.basename(path))[1].lower()


def named_format(path: str) -> str | None:
    """The format that the ending of a file names, with that of a compression behind it or without.

    >>> named_format("a/b.csv.gz"), named_format("v1.2/out"), named_format("x.xlsx")
    ('csv', None, None)
    """
    ending = _ending(path)
    if ending in COMPRESSIONS:
        return ENDINGS.get(_ending(posixpath.splitext(path)[0]))
    return ENDINGS.get(ending)


def check_apart(sink: Sink, before: Iterable[Sink], streams: Iterable[Stream]) -> None:
    """Refuse an output that would lie in the way of another, or of a source, by any spelling of their paths."""
    if not isinstance(sink, FileSink):
        return
    for other in before:
        if isinstance(other, FileSink):
            _check_two(other, sink)
    for stream in streams:
        if isinstance(stream.source, FileSource) and _reads(stream.source.path, sink):
            raise QueryError(
                f"stream {stream.name!r} would read what is written into {sink.path!r}: its source is {stream.source.path!r}",
                hint="give INTO another place",
            )


def _check_two(one: FileSink, other: FileSink) -> None:
    a, b = _normal(one.path), _normal(other.path)
    if a == b:
        raise QueryError(f"two queries write into {other}", hint="give one of them another INTO")
    if _inside(a, b) or _inside(b, a):
        inner, outer = (one, other) if _inside(a, b) else (other, one)
        hint = "give each a directory of its own"
        raise QueryError(f"{inner.path!r} lies inside {outer.path!r}, which another query writes", hint=hint)


def _reads(source: str, sink: FileSink) -> bool:
    """Whether a source has the files of a sink among its own: the path, a directory that a single file lies in, or a pattern."""
    read, written = _normal(source), _normal(sink.path)
    if read == written or _inside(read, written) or fnmatch.fnmatchcase(written, read):
        return True
    return sink.single and posixpath.dirname(written) == read


def _normal(path: str) -> str:
    if "://" in path:
        scheme, _, rest = path.partition("://")
        return f"{scheme.lower()}://{posixpath.normpath(rest)}"
    return os.path.realpath(path.removeprefix("file:"))  # links followed


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
