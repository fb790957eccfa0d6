"""State as bytes: versioned Arrow. A line of JSON says what is in it, then arrays of one length share an Arrow record batch.

The format number stands first and the fingerprint of the program that wrote a state in its head, so that a checkpoint of
another version or another query is refused by name, never misread. The schema of a record batch follows from the JSON, which is
several times faster than Arrow's own stream format for values as small as these.
"""

from __future__ import annotations

import hashlib
import json
import struct
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.changes.rows import to_bytes
from headrace.errors import StateError
from headrace.program.written import write

FORMAT = 7
MAGIC = b"HRST"
_PREFIX = struct.Struct("<4sHBxI")  # magic, format, compressed?, length of the JSON
_LENGTH = struct.Struct("<Q")
_TYPES = {np.dtype(t).str: pa.from_numpy_dtype(t) for t in ("i1", "u1", "i2", "i4", "u4", "i8", "u8", "f4", "f8")}


@lru_cache(maxsize=256)
def fingerprint(program: object) -> str:
    """Identifies what wrote a state: equal programs, equal fingerprints, in every process."""
    return hashlib.sha256(write(program).encode()).hexdigest()[:16]


def encode(arrays: dict[str, Any], *, compress: bool = False) -> bytes:
    """Pack named arrays, byte strings and what JSON can hold; batches of Arrow as byte strings."""
    plain: dict[str, Any] = {}
    shapes: dict[str, list[int]] = {}
    groups: dict[int, dict[str, np.ndarray]] = {}
    blobs: dict[str, bytes] = {}
    for name, value in arrays.items():
        if isinstance(value, np.ndarray):
            if value.ndim > 1:
                shapes[name] = list(value.shape)
            flat = np.ascontiguousarray(value).reshape(-1)
            groups.setdefault(len(flat), {})[name] = flat
        elif isinstance(value, bytes):
            blobs[name] = value
        elif isinstance(value, pa.RecordBatch):
            blobs[name] = to_bytes(value)
        else:
            plain[name] = value
    sections = [[n, [[name, a.dtype.str] for name, a in group.items()]] for n, group in groups.items()]
    about = {"plain": plain, "shapes": shapes, "sections": sections, "blobs": [[n, len(b)] for n, b in blobs.items()]}
    text = json.dumps(about, separators=(",", ":")).encode()
    body = []
    for group in groups.values():
        data = pa.RecordBatch.from_arrays([pa.array(a) for a in group.values()], names=list(group)).serialize()
        body += [_LENGTH.pack(data.size), data]
    content = b"".join([*body, *blobs.values()])
    if compress:
        content = _LENGTH.pack(len(content)) + pa.compress(content, "lz4", asbytes=True)
    return b"".join((_PREFIX.pack(MAGIC, FORMAT, compress, len(text)), text, content))


def decode(data: bytes, what: str = "state") -> dict[str, Any]:
    """Unpack what `encode` packed. Arrays are read-only views of `data`."""
    if len(data) < _PREFIX.size or data[:4] != MAGIC:
        raise StateError(f"{what} cannot be read", hint="the checkpoint is damaged or not one of Headrace")
    _, found, compressed, length = _PREFIX.unpack_from(data)
    if found != FORMAT:
        raise StateError(
            f"{what} was written in format {found}, and this version reads format {FORMAT}",
            hint="run the version of Headrace that wrote the checkpoint, or start with a new checkpoint directory",
        )
    start = _PREFIX.size + length
    about = json.loads(data[_PREFIX.size : start])
    content = pa.py_buffer(data)[start:]
    if compressed:
        (size,) = _LENGTH.unpack_from(data, start)
        content = pa.decompress(content[_LENGTH.size :], size, "lz4")
    return _arrays(about, content)


def _arrays(about: dict[str, Any], content: pa.Buffer) -> dict[str, Any]:
    out: dict[str, Any] = about["plain"]
    at = 0
    for _, columns in about["sections"]:
        (size,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size
        schema = pa.schema([(name, _TYPES[kind]) for name, kind in columns])
        batch = pa.ipc.read_record_batch(content[at : at + size], schema)
        at += size
        for (name, _), column in zip(columns, batch.columns, strict=True):
            out[name] = column.to_numpy()
    for name, shape in about["shapes"].items():
        out[name] = out[name].reshape(shape)
    for name, size in about["blobs"]:
        out[name] = content[at : at + size].to_pybytes()
        at += size
    return out
