"""The few things that are asked of a file system, and the local one. `hadoop.py` has every other that Spark can write to.

What a checkpoint says about itself, commands, spools and the signs on outputs go through here. So does the sink where it runs in
Python workers, which have no way to Hadoop's file systems: it writes to local ones only (decisions/0019).
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from headrace.files import ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


class Storage(ledger.Storage, Protocol):
    """A file system. Paths are whole: those of the local one plain, those of others with their scheme."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""

    def whole(self, path: str) -> bytes | None:
        """A file that was written once, by anybody; None if there is none."""

    def make(self, folder: str) -> None:
        """Make a folder, and those above it."""

    def fetch(self, path: str, here: str) -> None:
        """Copy a file to a local path."""

    def send(self, here: str, path: str) -> None:
        """Copy a local file, in the place of what was there."""


def scheme_of(path: str) -> str | None:
    """The name of a path's file system.

    >>> scheme_of("s3a://bucket/out"), scheme_of("out/x.csv"), scheme_of("file:/tmp/x")
    ('s3a', None, 'file')
    """
    found = _SCHEME.match(path)
    return found[1].lower() if found else None


def is_local(path: str) -> bool:
    return scheme_of(path) in (None, "file")


def absolute(path: str) -> str:
    """A path that means the same wherever it is read: a local one from the root and without its scheme, others as they are.

    >>> absolute("file:///tmp/a%20b/../c"), absolute("s3a://bucket/out/")
    ('/tmp/c', 's3a://bucket/out')
    """
    if not is_local(path):
        return path.rstrip("/")
    return os.path.abspath(unquote(urlsplit(path).path) if scheme_of(path) else path)


def join(folder: str, *names: str) -> str:
    """A path below a folder; all file systems put / between names."""
    return posixpath.join(folder, *names)


def parent(path: str) -> tuple[str, str]:
    """The folder that a file lies in, and its name."""
    return posixpath.split(path)


class LocalStorage:
    """The file system of this machine, by its own calls: quick, and a rename is all or nothing."""

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(folder))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def read(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    whole = read

    def add(self, path: str, data: bytes) -> None:
        """As `Storage.add`: aside under a hidden name, on the disk, then into its place."""
        folder, name = os.path.split(path)
        os.makedirs(folder, exist_ok=True)
        hidden = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        try:
            with open(hidden, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(hidden, path)
        except BaseException:
            if os.path.exists(hidden):
                os.remove(hidden)
            raise

    write = add

    def make(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.remove(path)

    def fetch(self, path: str, here: str) -> None:
        shutil.copyfile(path, here)

    def send(self, here: str, path: str) -> None:
        shutil.copyfile(here, path)


LOCAL = LocalStorage()


def storage_of(path: str, spark: SparkSession | None = None) -> Storage:
    """The file system of a path. Those that are not local are reached through a session."""
    if is_local(path):
        return LOCAL
    from headrace.spark.storage.hadoop import HadoopStorage

    assert spark is not None, f"{path} can only be reached from the driver"
    return HadoopStorage(spark)


def read_facts(storage: Storage, path: str) -> dict[str, Any] | None:
    text = storage.read(path)
    return None if text is None else json.loads(text)


def write_facts(storage: Storage, path: str, facts: dict[str, Any]) -> None:
    """Put a small JSON object in the place of what was there: after a kill it is the old one or the new one."""
    storage.write(path, (json.dumps(facts) + "\n").encode())
