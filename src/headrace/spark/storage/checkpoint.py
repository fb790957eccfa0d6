"""What a checkpoint says about itself: which script wrote it, with how many buckets, and whether its input has ended.

Whoever changes what its state is of makes a new generation of it: another checkpoint of Spark in the same one of ours.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import asdict, dataclass, field

from headrace.errors import StateError
from headrace.files.listing import existing
from headrace.plan.stream import FileSource, Stream
from headrace.spark.storage.lock import NAME, refuse_other_things
from headrace.spark.storage.storage import LOCAL, Storage, join, read_facts, write_facts
from headrace.stages.lower import Lowered
from headrace.state.codec import FORMAT, fingerprint


@dataclass(slots=True)
class Checkpoint:
    """The facts, as they lie in the directory."""

    path: str
    format: int
    script: str
    buckets: int
    ended: bool = False
    ending: bool = False  # the end has been said, and buckets stand before it; see `spark/ended.py`
    goes_on: bool = False  # it was none: what it released is taken back
    files: tuple[str, ...] = ()  # what the sources held when the input ended
    sizes: dict[str, int] = field(default_factory=dict)  # of files that are read in place, when they were first seen
    id: str = field(default_factory=lambda: uuid.uuid4().hex)  # what its outputs are signed with
    adopts: bool = False  # a version that did not sign wrote it, and outputs without a sign
    generation: int = 0  # how often its program has changed
    first_batch: int = 0  # what Spark calls batch 0 in this generation is published under this number

    @property
    def spark(self) -> str:
        """Where Spark keeps what it knows of this generation."""
        return join(self.path, "spark" if self.generation == 0 else f"spark.{self.generation}")

    def store(self, storage: Storage) -> None:
        """Write the facts, all or nothing."""
        write_facts(storage, join(self.path, NAME), asdict(self))


def identity(lowered: Lowered) -> str:
    """What must stay the same for a checkpoint to be resumed: the stages, which hold state, and the order of the outputs."""
    return fingerprint((lowered.stages, tuple(f.query.name for f in lowered.finishes)))


def files_of(streams: tuple[Stream, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for stream in streams:
        if isinstance(stream.source, FileSource):
            found += existing(stream.source.path, f"stream {stream.name!r}")
    return tuple(sorted(os.path.abspath(f) for f in found))


def open_checkpoint(path: str, lowered: Lowered, buckets: int, storage: Storage = LOCAL) -> Checkpoint:
    """The checkpoint in this directory, new or resumed; refused where it belongs to something else."""
    old = read_checkpoint(path, storage)
    if old is None:
        return new_checkpoint(path, lowered, buckets, storage)
    if old.script != identity(lowered):
        raise another_script(path)
    return old


def another_script(path: str) -> StateError:
    """Why a checkpoint is not gone on with."""
    hint = "name a new directory with --checkpoint, or go back to the script that wrote it"
    return StateError(f"the checkpoint {path!r} belongs to another script, or this one has changed since", hint=hint)


def new_checkpoint(path: str, lowered: Lowered, buckets: int, storage: Storage) -> Checkpoint:
    """One that nothing has happened in."""
    fresh = Checkpoint(path, FORMAT, identity(lowered), buckets)
    fresh.store(storage)
    return fresh


def read_checkpoint(path: str, storage: Storage) -> Checkpoint | None:
    """The checkpoint that is in this directory, whichever script wrote it; None if there is none."""
    refuse_other_things(storage, path)
    facts = read_facts(storage, join(path, NAME))
    if facts is None:
        return None
    old = Checkpoint(**{**facts, "path": path, "files": tuple(facts["files"]), "adopts": facts.get("adopts", "id" not in facts)})
    if old.format != FORMAT:
        hint = "run the version of Headrace that wrote it, or name a new directory"
        raise StateError(f"the checkpoint {path!r} has format {old.format}, and this version reads format {FORMAT}", hint=hint)
    if "id" not in facts:
        old.store(storage)
    return old
