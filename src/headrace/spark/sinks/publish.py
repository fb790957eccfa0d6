"""Batches of files on a local file system, seen once and whole: a batch that is tried again replaces what its first try left.

A directory gets files of the batch, by rename. A single file of text grows: it is cut to the length that was noted with the last
batch, so that what a kill left half written goes, and the new one is put behind. A file of parquet cannot grow: its batches wait
in a hidden directory beside it until the input has ended.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace.errors import OutputError, StateError
from headrace.spark.sinks.formats import FORMATS, assemble, header_of, read_arrow, shape, write_table
from headrace.spark.sinks.signs import STAGING, home, signed_by

if TYPE_CHECKING:
    from headrace.spark.sinks.sink import Target

LENGTH = "lengths.jsonl"
PARTS = "parts"
MOST_NOTES = 1 << 14  # bytes


def staging(target: Target) -> str:
    return os.path.join(home(target), STAGING)


def publish(target: Target, staged: list[str], batch: int) -> None:
    """Make the files of a batch visible; what an earlier try of this batch published goes first."""
    if not signed_by(target):
        hint = "give every run an output of its own, and stop one of them"
        raise OutputError(f"{target.path!r} has been taken over by another run", hint=hint)
    files = _merged(target, staged) if target.ordered and staged else sorted(staged)
    missing = next((path for path in files if not os.path.exists(path)), None)
    if missing is not None:
        hint = "on a cluster, name a path that all machines share, for example one that begins with s3a:// or hdfs://"
        raise OutputError(f"rows for {target.path!r} were written on another machine: {missing} is not here", hint=hint)
    if target.grows:
        _append(target, files, batch)
    else:
        _rename(_folder(target), files, batch, FORMATS[target.format].ending)


def _folder(target: Target) -> str:
    return os.path.join(home(target), PARTS) if target.single else target.path


def _merged(target: Target, staged: list[str]) -> list[str]:
    table = pa.concat_tables(map(read_arrow, staged)).sort_by([(part, "ascending") for part in ("ts", "high", "low", "sub")])
    merged = os.path.join(staging(target), os.path.basename(staged[0]) + "-merged")
    write_table(merged, shape(target, table), target.format, header=not target.single, compression=target.compression)
    for path in staged:
        os.remove(path)
    return [merged]


def _rename(folder: str, files: list[str], batch: int, ending: str) -> None:
    os.makedirs(folder, exist_ok=True)
    # The files of a batch are numbered without gaps, also after a kill: they come from the first on, and go from the last back.
    number = 0
    while os.path.exists(_batch_file(folder, batch, number, ending)):
        number += 1
    for old in reversed(range(number)):
        os.remove(_batch_file(folder, batch, old, ending))
    for number, path in enumerate(files):
        os.rename(path, _batch_file(folder, batch, number, ending))


def _batch_file(folder: str, batch: int, number: int, ending: str) -> str:
    return os.path.join(folder, f"batch-{batch:010d}-{number:04d}.{ending}")


def begin(target: Target) -> None:
    """A single file of text is there from the start, with its header, so that it can be followed."""
    if not target.grows:
        return
    if os.path.exists(_note(target)):
        size = os.path.getsize(target.path) if os.path.exists(target.path) else 0
        _check_length(target, size, _load(target)["from"])
        return
    header = header_of(target)
    with open(target.path, "wb") as file:
        file.write(header)
    _store(target, {"batch": -1, "from": len(header), "length": len(header)})


def _append(target: Target, files: list[str], batch: int) -> None:
    note = _load(target)
    if batch < note["batch"]:
        hint = "the checkpoint is an older copy: run with the newest, or into another file"
        raise StateError(f"{target.path!r} holds batch {note['batch']}, and the checkpoint is at batch {batch}", hint=hint)
    start = note["from"] if batch == note["batch"] else note["length"]
    with open(target.path, "r+b") as out:
        size = out.seek(0, os.SEEK_END)
        _check_length(target, size, start)
        if batch == note["batch"] and size == note["length"] and _same(out, start, files):
            end = size  # tried again after it was written: who follows the file sees nothing of it
        else:
            if size > start:
                out.truncate(start)
            out.seek(start)
            for path in files:
                with open(path, "rb") as part:
                    shutil.copyfileobj(part, out, 1 << 20)
            end = out.tell()
    if (note["batch"], note["length"]) != (batch, end):
        _store(target, {"batch": batch, "from": start, "length": end})
    for path in files:
        os.remove(path)


def _check_length(target: Target, size: int, written: int) -> None:
    if size < written:
        message = f"{target.path!r} has {size} bytes, and {written} were written: somebody has taken it away or shortened it"
        raise OutputError(message, hint="put it back, or start anew with another checkpoint and --overwrite")


def _same(out: Any, start: int, files: list[str]) -> bool:
    out.seek(start)
    for path in files:
        with open(path, "rb") as part:
            while piece := part.read(1 << 20):
                if out.read(len(piece)) != piece:
                    return False
    return not out.read(1)


def _note(target: Target) -> str:
    return os.path.join(home(target), LENGTH)


def _load(target: Target) -> dict[str, int]:
    with open(_note(target), encoding="utf-8") as file:
        found: dict[str, int] = json.loads(file.read().rpartition("\n")[0].rpartition("\n")[2])
    return found


def _store(target: Target, note: dict[str, int]) -> None:
    """One more line: a rename for every batch would have the file system write at once. Now and then a new file, of one line."""
    path, line = _note(target), json.dumps(note) + "\n"
    size = os.path.getsize(path) if os.path.exists(path) else 0
    if 0 < size < MOST_NOTES:
        with open(path, "r+", encoding="utf-8") as file:
            whole = file.read().rpartition("\n")[0]
            file.seek(len(whole) + 1)  # over what a kill left of the last
            file.truncate()
            file.write(line)
        return
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(line)
    os.replace(path + ".tmp", path)


def reopen(target: Target) -> None:
    """The input had ended, and there may be more: a file that was put together is the first part of what it will be."""
    parts, fresh = _folder(target), os.path.join(home(target), "reopened")
    if not target.single or target.grows or os.path.isdir(parts) or not os.path.exists(target.path):
        return
    shutil.rmtree(fresh, ignore_errors=True)
    os.makedirs(fresh)
    shutil.copyfile(target.path, os.path.join(fresh, f"before.{FORMATS[target.format].ending}"))
    os.rename(fresh, parts)


def finish(target: Target, schema: pa.Schema) -> None:
    """The input has ended: put the batches of a single parquet file together. Done again after a kill, it is the same file."""
    if target.single and not target.grows:
        parts, done = _folder(target), os.path.join(home(target), "assembled")
        hidden = os.path.join(home(target), "whole")
        if os.path.isdir(parts) or not os.path.exists(target.path):
            names = sorted(os.listdir(parts), key=_first_before) if os.path.isdir(parts) else []
            assemble(target, [os.path.join(parts, name) for name in names], schema, hidden)
            os.replace(hidden, target.path)
        shutil.rmtree(done, ignore_errors=True)
        if os.path.isdir(parts):
            os.rename(parts, done)
        shutil.rmtree(done, ignore_errors=True)
    shutil.rmtree(staging(target), ignore_errors=True)


def _first_before(name: str) -> tuple[bool, str]:
    return not name.startswith("before"), name
