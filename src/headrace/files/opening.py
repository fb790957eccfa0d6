"""Files as bytes: where they are, and unpacked if they are compressed, which their first bytes say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from typing import BinaryIO, cast
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import FileSystem

PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\x00": "xz", b"\x04\x22\x4d\x18": "lz4"}
BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, pa.ArrowInvalid)  # what a damaged compressed file raises
HEAD = 6


def has_scheme(path: str) -> bool:
    return "://" in path


def local_path(path: str) -> str | None:
    """The path on this machine, also of `file:/..`, as Spark writes it; None if it is elsewhere."""
    if path.startswith("file:"):
        rest = path[len("file:") :]
        return rest[2:] if rest.startswith("//") else rest
    return None if has_scheme(path) else path


def remote(path: str) -> tuple[FileSystem, str] | None:
    """Arrow's file system for a path with a scheme; None if it has none for it, or cannot reach it."""
    from pyarrow.fs import FileSystem

    scheme = urlsplit(path).scheme
    try:
        system, inner = FileSystem.from_uri(path.replace(f"{scheme}://", "s3://", 1) if scheme in ("s3a", "s3n") else path)
        system.get_file_info(inner)
    except (pa.ArrowException, OSError, ValueError, NotImplementedError):
        return None
    return system, inner


def packed_as(head: bytes) -> str | None:
    return next((kind for magic, kind in PACKED.items() if head.startswith(magic)), None)


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
    kind = packed_as(_peek(raw))
    return raw if kind is None else unpacked(raw, kind)


def _peek(raw: BinaryIO) -> bytes:
    head = raw.read(HEAD)
    raw.seek(0)
    return head


def unpacked(raw: BinaryIO, kind: str) -> BinaryIO:
    """A stream of what a compressed stream holds."""
    match kind:
        case "gzip":
            return cast("BinaryIO", gzip.GzipFile(fileobj=raw))
        case "bz2":
            return cast("BinaryIO", bz2.BZ2File(raw))
        case "xz":
            return cast("BinaryIO", lzma.LZMAFile(raw))
        case _:
            return cast("BinaryIO", pa.CompressedInputStream(pa.PythonFile(raw, "r"), kind))
