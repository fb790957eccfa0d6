"""Whose output is it? A sign in the directory, or beside the file, names the checkpoint that it belongs to (decisions/0018)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from headrace.errors import OutputError
from headrace.spark.sinks.formats import FORMATS
from headrace.spark.storage.lock import holder_of
from headrace.spark.storage.storage import LOCAL, Storage, join, parent, read_facts, storage_of, write_facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.sinks.sink import Target
    from headrace.spark.storage.checkpoint import Checkpoint

SIGN = "_headrace.json"
STAGING = "_staging"
# What Headrace writes into a directory: batches, what is not published yet, the sign, and by way of Spark files and their log.
OURS = re.compile(
    rf"batch-\d{{10,}}-\d{{4,}}\.({'|'.join(form.ending for form in FORMATS.values())})"
    r"|_staging|_spark_metadata|_headrace\.json~?|\._headrace\.json\..*"
    r"|part-\d{5,}-[0-9a-f-]{36}(-c\d+)?\.[\w.]+|\..*\.crc"
)
OTHER_PLACE = "name another place"


def home(target: Target) -> str:
    """The directory that is the run's own: of a directory itself, of a single file a hidden one beside it."""
    if not target.single:
        return target.path
    folder, name = parent(target.path)
    return join(folder, f".{name}.headrace")


def signed_by(target: Target, storage: Storage = LOCAL) -> bool:
    """Whether an output is still that of the run. What is shown has no sign: it lies under the checkpoint."""
    if not target.owner:
        return True
    sign = read_facts(storage, join(home(target), SIGN))
    return sign is not None and sign["checkpoint"] == target.owner


def claim(targets: list[Target], facts: Checkpoint, *, overwrite: bool, spark: SparkSession | None = None) -> None:
    """Sign all outputs; refuse those of others before anything is touched. With `overwrite`, what others wrote goes first."""
    emptied = [(t, judge(t, facts, overwrite=overwrite, storage=storage_of(t.path, spark))) for t in targets if t.owner]
    for target, paths in emptied:
        storage = storage_of(target.path, spark)
        for path in paths:
            storage.delete(path)
        write_facts(storage, join(home(target), SIGN), _sign(target, facts))


def _sign(target: Target, facts: Checkpoint) -> dict[str, Any]:
    return {"checkpoint": facts.id, "path": facts.path, "query": target.name, "format": target.format}


def judge(target: Target, facts: Checkpoint, *, overwrite: bool, storage: Storage) -> list[str]:
    """What must be deleted before a run may write here; an error if it may not."""
    _check_kind(target, storage)
    sign = read_facts(storage, join(home(target), SIGN))
    there = _there(target, storage)
    if sign is not None and sign["checkpoint"] == facts.id:
        _check_same(target, sign)
        return [join(home(target), STAGING)]
    foreign = [name for name in there if not _is_ours(target, name, sign)]
    if foreign:
        raise OutputError(_foreign(target, foreign), hint=f"{OTHER_PLACE}, or move it away: Headrace removes only what it wrote")
    if sign is None and facts.adopts:
        return []
    owner = sign["path"] if sign is not None else ""
    busy = holder_of(storage_of(owner), owner) if "://" not in owner and os.path.isdir(owner) else None
    if busy is not None:
        hint = f"stop it, or {OTHER_PLACE}"
        raise OutputError(f"process {busy.get('pid')} on {busy.get('host')} is writing into {target.path!r}", hint=hint)
    if there and not overwrite:
        whose = f", of the checkpoint {owner!r}" if sign is not None and _lasting(owner) else ""
        hint = f"run with --overwrite to replace it (in Python: overwrite=True), or {OTHER_PLACE}"
        raise OutputError(f"{target.path!r} holds the output of another run{whose}", hint=hint)
    return [target.path, home(target)] if target.single else [join(target.path, name) for name in storage.names(target.path)]


def _check_kind(target: Target, storage: Storage) -> None:
    if target.single and storage.is_folder(target.path):
        hint = f"write '{target.path}/' for files in a directory, or {OTHER_PLACE}"
        raise OutputError(f"{target.path!r} is a directory, and a path with an ending is one file", hint=hint)
    if not target.single and storage.exists(target.path) and not storage.is_folder(target.path):
        raise OutputError(f"{target.path!r} is a file, and files are to go into a directory of that name", hint=OTHER_PLACE)


def _there(target: Target, storage: Storage) -> list[str]:
    """What somebody would miss: the file, or what is in the directory beside our own books."""
    if target.single:
        return [parent(target.path)[1]] if storage.exists(target.path) else []
    books = (SIGN, STAGING, "_spark_metadata")
    return [name for name in storage.names(target.path) if not name.lstrip(".").startswith(books)]


def _is_ours(target: Target, name: str, sign: dict[str, Any] | None) -> bool:
    return sign is not None if target.single else OURS.fullmatch(name) is not None


def _check_same(target: Target, sign: dict[str, Any]) -> None:
    if sign["query"] != target.name:
        raise OutputError(f"{target.path!r} holds the rows of {sign['query']!r}, another query of this run", hint=OTHER_PLACE)
    if sign["format"] != target.format:
        hint = "go back to the format that it was begun with, or start anew with another checkpoint"
        raise OutputError(f"{target.path!r} holds {sign['format']} of this run, and now {target.format} is asked for", hint=hint)


def _foreign(target: Target, names: list[str]) -> str:
    if target.single:
        return f"{target.path!r} is there, and Headrace did not write it"
    some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"{target.path!r} holds what Headrace did not write: {some}"


def _lasting(path: str) -> bool:
    """Whether the checkpoint can be gone on with: one that nobody named is gone with its run."""
    return "://" in path or os.path.isdir(path)
