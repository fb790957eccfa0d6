"""The few things that the store asks of a file system: list a folder, read a file, write one in one go, remove one.

Nothing is renamed and nothing is written twice, so object stores do as well as disks. On a local disk what was put survives the
machine; elsewhere it does what is promised there. All others are reached through Arrow: the processes of units have no JVM.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from headrace.errors import StateError, SystemFailure

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://?")
_FLAT = {"s3", "gcs", "abfs"}  # no folders: a file is there with all of its path
_ALIKE = {"s3a": "s3", "s3n": "s3"}  # as Hadoop calls them
P = ParamSpec("P")
R = TypeVar("R")


class Place(Protocol):
    """A folder, there or not. Any number of threads may use it."""

    path: str

    def below(self, *names: str) -> Place:
        """A folder in it."""

    def names(self) -> list[str]:
        """Of its files; none where there is no folder."""

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes | None:
        """A file, or so many bytes of it at most; None if there is none."""

    def put(self, name: str, data: bytes) -> None:
        """Write a file that nobody has written before. A kill leaves nothing, or the beginning of it."""

    def remove(self, name: str) -> None:
        """Remove a file; nothing where there is none."""


def told(method: Callable[P, R]) -> Callable[P, R]:
    """What the system refuses is said as our errors are."""

    @wraps(method)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            where = error.filename if isinstance(error.filename, str) else getattr(args[0], "path", None)
            raise SystemFailure(f"the store cannot work there: {error.strerror or error}", where=where) from error

    return asked


def place_of(path: str) -> Place:
    """The folder that a path names: a local one, or a URL of any file system that Arrow knows."""
    scheme = _SCHEME.match(path)
    if scheme is None or scheme[1] == "file":
        return LocalPlace(os.path.abspath(unquote(urlsplit(path).path) if scheme else path))
    known = _ALIKE.get(scheme[1].lower(), scheme[1].lower())
    try:
        system, inner = fs.FileSystem.from_uri(_in_one_put(known, known + path[len(scheme[1]) :]))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        hint = "name a folder of this machine, or a URL of s3://, gs://, hdfs:// or abfs://"
        raise StateError(f"the store cannot be at {path}: {error}", hint=hint) from None
    return ArrowPlace(system, inner)


def _in_one_put(scheme: str, url: str) -> str:
    """On S3, a file as small as ours is one request, not the three of one that may become large.

    >>> _in_one_put("s3", "s3://bucket/serving?region=eu-north-1")
    's3://bucket/serving?region=eu-north-1&allow_delayed_open=true'
    """
    if scheme != "s3" or "allow_delayed_open" in url:
        return url
    return f"{url}{'&' if urlsplit(url).query else '?'}allow_delayed_open=true"


class LocalPlace:
    """A folder on a disk of this machine, or mounted here."""

    def __init__(self, path: str) -> None:
        self.path = path

    def below(self, *names: str) -> LocalPlace:
        return LocalPlace(os.path.join(self.path, *names))

    @told
    def names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return os.listdir(self.path)
        return []

    @told
    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes | None:
        try:
            with open(f"{self.path}/{name}", "rb", buffering=0) as file:
                file.seek(start)
                return file.read() if size is None else file.read(size)
        except FileNotFoundError:
            return None

    @told
    def put(self, name: str, data: bytes) -> None:
        try:
            file = self._create(name)
        except FileNotFoundError:
            self._make()
            file = self._create(name)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        finally:
            os.close(file)
        _sync(self.path)

    @told
    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(f"{self.path}/{name}")

    def _create(self, name: str) -> int:
        return os.open(f"{self.path}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)

    def _make(self) -> None:
        """Make the folder, and note it in those above it."""
        above = self.path
        while not os.path.isdir(above):
            above = os.path.dirname(above)
        os.makedirs(self.path, exist_ok=True)
        below = self.path
        while below != above:
            below = os.path.dirname(below)
            _sync(below)


def _sync(folder: str) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class ArrowPlace:
    """A folder on any file system of Arrow."""

    def __init__(self, system: fs.FileSystem, path: str) -> None:
        self.system, self.path = system, path.rstrip("/")
        self._made = system.type_name in _FLAT

    def below(self, *names: str) -> ArrowPlace:
        return ArrowPlace(self.system, "/".join((self.path, *names)))

    @told
    def names(self) -> list[str]:
        found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True))
        return [info.base_name for info in found if info.type == fs.FileType.File]

    @told
    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes | None:
        try:
            with self.system.open_input_file(f"{self.path}/{name}") as file:
                data: bytes = file.read() if size is None else file.read_at(size, start)
                return data
        except FileNotFoundError:
            return None

    @told
    def put(self, name: str, data: bytes) -> None:
        if not self._made:
            self.system.create_dir(self.path, recursive=True)
            self._made = True
        with self.system.open_output_stream(f"{self.path}/{name}", compression=None) as file:
            file.write(data)

    @told
    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.system.delete_file(f"{self.path}/{name}")
