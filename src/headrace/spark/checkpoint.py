"""What a checkpoint says about itself: which script wrote it, with how many buckets, and whether its input has ended."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from headrace.errors import StateError
from headrace.plan.stream import FileSource
from headrace.runtime.codec import FORMAT, fingerprint
from headrace.spark.files import existing

if TYPE_CHECKING:
    from headrace.plan.stream import Stream
    from headrace.stages.lower import Lowered

NAME = "headrace.json"


@dataclass(slots=True)
class Checkpoint:
    """The facts, as they lie in the directory."""

    path: str
    format: int
    script: str
    buckets: int
    ended: bool = False
    files: tuple[str, ...] = ()  # what the sources held when the input ended

    def store(self) -> None:
        """Write the facts, all or nothing."""
        os.makedirs(self.path, exist_ok=True)
        hidden = os.path.join(self.path, f".{NAME}")
        with open(hidden, "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, os.path.join(self.path, NAME))


def identity(lowered: Lowered) -> str:
    """What must stay the same for a checkpoint to be resumed: the stages, which hold state, and the order of the outputs."""
    return fingerprint((lowered.stages, tuple(f.query.name for f in lowered.finishes)))


def files_of(streams: tuple[Stream, ...]) -> tuple[str, ...]:
    """The files that the sources hold now."""
    found: list[str] = []
    for stream in streams:
        if isinstance(stream.source, FileSource):
            found += existing(stream.source.path, f"stream {stream.name!r}")
    return tuple(sorted(os.path.abspath(f) for f in found))


def open_checkpoint(path: str, lowered: Lowered, buckets: int) -> Checkpoint:
    """The checkpoint in this directory, new or resumed; refused where it belongs to something else."""
    file = os.path.join(path, NAME)
    if not os.path.exists(file):
        if os.path.isdir(path) and set(os.listdir(path)) - {f".{NAME}"}:  # a kill may have left our half-written facts
            raise StateError(
                f"{path!r} is not empty and not a checkpoint of Headrace",
                hint="name an empty or a new directory with --checkpoint",
            )
        fresh = Checkpoint(path, FORMAT, identity(lowered), buckets)
        fresh.store()
        return fresh
    with open(file, encoding="utf-8") as source:
        facts = json.load(source)
    old = Checkpoint(**{**facts, "path": path, "files": tuple(facts["files"])})
    if old.format != FORMAT:
        raise StateError(
            f"the checkpoint {path!r} has format {old.format}, and this version reads format {FORMAT}",
            hint="run the version of Headrace that wrote it, or name a new directory",
        )
    if old.script != identity(lowered):
        raise StateError(
            f"the checkpoint {path!r} belongs to another script, or this one has changed since",
            hint="name a new directory with --checkpoint, or go back to the script that wrote it",
        )
    return old
