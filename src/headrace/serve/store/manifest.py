"""What a commit says: how far the log is taken in, what is small of the state, and which files have the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.runtime.increments import STEPS, Lap
from headrace.runtime.save import named, of
from headrace.serve.store.sealed import Named
from headrace.state.codec import decode, encode
from headrace.state.parts import State

Key = tuple[int, int]  # which task processor of the partition, and the number of its chunk
INDEX = np.dtype([
    ("owner", np.int32), ("chunk", np.int64), ("epoch", np.int64), ("number", np.int64),
    ("start", np.int64), ("size", np.int64), ("checksum", np.uint32),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Location:
    """Where something lies in a file."""

    file: Named
    start: int
    size: int
    checksum: int

    @property
    def written(self) -> list[int]:
        return [self.file.epoch, self.file.number, self.start, self.size, self.checksum]

    @staticmethod
    def of(epoch: int, number: int, start: int, size: int, checksum: int) -> Location:
        return Location(Named(epoch, number, "blobs"), start, size, checksum)


@dataclass(frozen=True, slots=True)
class Increments:
    """A file of what changed, and how many steps had been made with it."""

    file: Named
    step: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A commit. `offset` is that of the first record that has not been taken in."""

    offset: int = 0
    heads: tuple[State, ...] = ()  # per task processor
    laps: tuple[Lap, ...] = ()
    increments: tuple[Increments, ...] = ()  # the oldest first
    chunks: np.ndarray = field(default_factory=lambda: np.zeros(0, INDEX))
    pages: dict[str, Location] = field(default_factory=dict)  # by "processor/name"

    def write(self) -> bytes:
        about: State = {
            "offset": self.offset,
            "processors": len(self.heads),
            "laps": [[lap.step, list(lap.upto)] for lap in self.laps],
            "increments": [[i.file.epoch, i.file.number, i.step] for i in self.increments],
            "pages": [[name, *location.written] for name, location in self.pages.items()],
        }
        about |= {f"chunks.{name}": np.ascontiguousarray(self.chunks[name]) for name in INDEX.names or ()}
        for number, head in enumerate(self.heads):
            about |= named(f"head.{number}", head)
        return encode(about, compress=True)

    @staticmethod
    def read(content: bytes, what: str) -> Manifest:
        state = decode(content, what)
        columns = of(state, "chunks")
        chunks = np.zeros(len(columns["chunk"]), INDEX)
        for name, column in columns.items():
            chunks[name] = column
        return Manifest(
            state["offset"],
            tuple(of(state, f"head.{number}") for number in range(state["processors"])),
            tuple(Lap(step, tuple(upto)) for step, upto in state["laps"]),
            tuple(Increments(Named(epoch, number, "keys"), step) for epoch, number, step in state["increments"]),
            chunks,
            {name: Location.of(*where) for name, *where in state["pages"]},
        )

    @property
    def files(self) -> set[Named]:
        """All that it needs."""
        found = {i.file for i in self.increments} | {location.file for location in self.pages.values()}
        places = np.unique(self.chunks[["epoch", "number"]])
        return found | {Named(int(epoch), int(number), "blobs") for epoch, number in places}

    def locations(self) -> dict[Key, Location]:
        """Where chunks lie."""
        names = list(INDEX.names or ())
        rows: Iterable[tuple[Any, ...]] = zip(*(self.chunks[name].tolist() for name in names), strict=True)
        return {(owner, chunk): Location.of(*where) for owner, chunk, *where in rows}


def still_needed(increments: Sequence[Increments], step: int) -> tuple[Increments, ...]:
    """Those of which not all numbers have been written again, once so many steps are made."""
    return tuple(i for i in increments if i.step + STEPS > step)


def with_chunks(chunks: np.ndarray, put: dict[Key, Location], dropped: Sequence[Key]) -> np.ndarray:
    """The index of chunks, with some more and without others."""
    kept = np.ones(len(chunks), np.bool_)
    for owner, chunk in dropped:
        kept &= (chunks["owner"] != owner) | (chunks["chunk"] != chunk)
    more = np.array([(*key, *location.written) for key, location in put.items()], INDEX)
    return np.concatenate((chunks[kept], more))
