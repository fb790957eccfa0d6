"""Where Spark has got to in every source, and its books about it: carried over from one checkpoint of Spark's to another.

A line of the offset log is for a source: `name:{..}` where sources have names, else by its place, `-` where it has read nothing.
Sources keep books of their own, such as which files they have seen, in `sources/<name or number>`.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import StateError
from headrace.program.script import ScriptProgram
from headrace.spark.exchange.control import CONTROL_SOURCE, TICK_SOURCE
from headrace.spark.storage.storage import Storage, join

NAMED, UNNAMED = "v2", "v1"
NOTHING = "-"


@dataclass(frozen=True, slots=True)
class Offsets:
    """An entry of the offset log."""

    version: str
    metadata: str
    sources: tuple[str, ...]

    @staticmethod
    def of(text: str) -> Offsets:
        """As Spark wrote it."""
        version, metadata, *sources = text.splitlines()
        if version not in (NAMED, UNNAMED):
            raise StateError(f"Spark's offset log has version {version!r}, and {UNNAMED} and {NAMED} are known")
        return Offsets(version, metadata, tuple(sources))

    @property
    def text(self) -> str:
        """As Spark reads it."""
        return "\n".join((self.version, self.metadata, *self.sources))


def read_offsets(storage: Storage, folder: str, batch: int) -> Offsets:
    """Of one batch."""
    found = storage.whole(join(folder, "offsets", str(batch)))
    if found is None:
        raise StateError(f"{folder!r} has no offsets of batch {batch}", hint="the checkpoint is damaged")
    return Offsets.of(found.decode())


def continued(old: Offsets, was: ScriptProgram, fresh: Offsets, now: ScriptProgram) -> Offsets:
    """How the new generation begins: as it was planned by Spark itself, but with its sources where the old ones have got to."""
    if old.version != fresh.version:
        raise StateError("the sources of this checkpoint were DataFrames and now are none, or the other way round", hint=_HINT)
    if old.version == NAMED:
        kept = tuple(line for line in old.sources if line.partition(":")[0] in now.sources)
        return Offsets(fresh.version, fresh.metadata, kept)
    return Offsets(fresh.version, fresh.metadata, _by_place(old.sources, was.sources, now.sources))


def _by_place(lines: tuple[str, ...], was: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    """DataFrames are any number of sources without names, so they must be the same ones; ours come after them."""
    own = (CONTROL_SOURCE, TICK_SOURCE)
    if [s for s in was if s not in own] != [s for s in now if s not in own]:
        raise StateError("the script reads other DataFrames than before, or in another order", hint=_HINT)
    theirs = len(lines) - sum(s in own for s in was)
    of = dict(zip((s for s in was if s in own), lines[theirs:], strict=True))
    return (*lines[:theirs], *(of.get(s, NOTHING) for s in now if s in own))


_HINT = "name a new directory with --checkpoint, or go back to the script that wrote it"


def carry_over(storage: Storage, old: str, batch: int, was: ScriptProgram, new: str, now: ScriptProgram) -> None:
    """Have a checkpoint of Spark's, whose batch 0 is done, go on in its sources where another one stands after a batch."""
    begun = continued(read_offsets(storage, old, batch), was, read_offsets(storage, new, 0), now)
    storage.delete(join(new, "sources"))
    for name in storage.names(join(old, "sources")):
        if begun.version == UNNAMED or name in now.sources:
            _copy(storage, join(old, "sources", name), join(new, "sources", name))
    place = join(new, "offsets", "0")
    storage.delete(join(new, "offsets", ".0.crc"))  # a sum of what Spark wrote, on a local disk
    storage.delete(place)
    storage.add(place, begun.text.encode())


def _copy(storage: Storage, old: str, new: str) -> None:
    """A folder with small files, without sums and what was written by halves."""
    for name in storage.names(old):
        if name.startswith("."):
            continue
        if storage.is_folder(join(old, name)):
            _copy(storage, join(old, name), join(new, name))
            continue
        data = storage.whole(join(old, name))
        if data is not None:
            storage.add(join(new, name), data)
