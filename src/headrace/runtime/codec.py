"""State as bytes: one versioned Arrow message that holds arrays of any length by name.

The format number and the fingerprint of the program that wrote a value stand in the metadata, so that a checkpoint of another
version or another query is refused by name, never misread.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa

from headrace.errors import StateError

FORMAT = 1
_CODECS = {level: pa.ipc.IpcWriteOptions(compression=level) for level in ("lz4", "zstd")}
_PLAIN = pa.ipc.IpcWriteOptions()


def fingerprint(program: object) -> str:
    """Identifies what wrote a state: equal programs, equal fingerprints, in every process."""
    return hashlib.sha256(repr(program).encode()).hexdigest()[:16]


def encode(arrays: dict[str, np.ndarray | bytes | int | str], *, compression: str | None = None) -> bytes:
    """Pack named arrays, byte strings and scalars."""
    columns: list[pa.Array] = []
    scalars: dict[str, Any] = {}
    names: list[str] = []
    for name, value in arrays.items():
        if isinstance(value, np.ndarray):
            shape = value.shape
            flat = pa.array(np.ascontiguousarray(value).reshape(-1))
            columns.append(pa.LargeListArray.from_arrays(pa.array([0, len(flat)], pa.int64()), flat))
            if len(shape) > 1:
                scalars[f"{name}#shape"] = list(shape)
        elif isinstance(value, bytes):
            columns.append(pa.array([value], pa.large_binary()))
        else:
            scalars[name] = value
            continue
        names.append(name)
    meta = {"headrace.format": str(FORMAT), "headrace.scalars": json.dumps(scalars)}
    columns.append(pa.array([True]))
    names.append("#")
    batch = pa.RecordBatch.from_arrays(columns, names=names).replace_schema_metadata(meta)
    sink = pa.BufferOutputStream()
    options = _CODECS[compression] if compression else _PLAIN
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def decode(data: bytes, what: str = "state") -> dict[str, Any]:
    """Unpack what `encode` packed. Arrays are read-only views of `data`."""
    try:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
            meta = {k.decode(): v.decode() for k, v in (reader.schema.metadata or {}).items()}
    except (pa.ArrowInvalid, OSError, StopIteration) as error:
        raise StateError(f"{what} cannot be read: {error}", hint="the checkpoint is damaged or not one of Headrace") from error
    found = meta.get("headrace.format")
    if found != str(FORMAT):
        raise StateError(
            f"{what} was written in format {found}, and this version reads format {FORMAT}",
            hint="run the version of Headrace that wrote the checkpoint, or start with a new checkpoint directory",
        )
    out: dict[str, Any] = json.loads(meta["headrace.scalars"])
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == "#":
            continue
        if pa.types.is_large_binary(column.type):
            out[name] = column[0].as_py()
            continue
        flat = column.flatten().to_numpy(zero_copy_only=False)
        shape = out.pop(f"{name}#shape", None)
        out[name] = flat.reshape(shape) if shape else flat
    return out
