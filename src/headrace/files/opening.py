"""Files as bytes: where they are, and unpacked if they are compressed, which their first bytes say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import FileSystem

UNPACK: dict[bytes, Callable[[BinaryIO], Any]] = {  # by the first bytes of a compressed file
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
    b"\x28\xb5\x2f\xfd": lambda raw: pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"),
    b"\x04\x22\x4d\x18": lambda raw: pa.CompressedInputStream(pa.PythonFile(raw, "r"), "lz4"),
}
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, pa.ArrowInvalid)  # what a damaged compressed file raises
HEAD = 6


def has_scheme(path: str) -> bool:
    return "://" in path


def local_path(path: str) -> str | None:
    """The path on this machine, also of `file:/..`, as Spark writes it; None if it is elsewhere."""
    if path.startswith("file:"):
        return path.removeprefix("file:").removeprefix("//")
    return None if has_scheme(path) else path


def remote(path: str) -> tuple[FileSystem, str] | None:
    """Arrow's file system for a path with a scheme; None if it has none for it, or cannot reach it."""
    scheme = urlsplit(path).scheme
    try:
        system, inner = FileSystem.from_uri(path.replace(f"{scheme}://", "s3://", 1) if scheme in ("s3a", "s3n") else path)
        system.get_file_info(inner)
    except (pa.ArrowException, OSError, ValueError, NotImplementedError):
        return None
    return system, inner


def open_file(path: str, content: bytes | None = None) -> BinaryIO:
    """The bytes of a file, unpacked. With `content`, they are at hand already."""
    if content is not None:
        raw: BinaryIO = io.BytesIO(content)
    elif (local := local_path(path)) is not None:
        raw = open(local, "rb")  # noqa: SIM115  whoever asks closes it
    else:
        reached = remote(path)
        if reached is None:
            raise OSError(f"cannot open {path}")
        raw = cast("BinaryIO", reached[0].open_input_file(reached[1]))
    head = raw.read(HEAD)
    raw.seek(0)
    return next((unpack(raw) for magic, unpack in UNPACK.items() if head.startswith(magic)), raw)
