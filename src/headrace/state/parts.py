"""What a bucket keeps, in named parts: a step says which it has, and whoever saves it decides when and where to.

A *head* part is small and written whole. A *key* part has something for every number of a table, of which only those that changed
are written, by themselves or in pages. Chunks, and other pages of its own, a step writes to the store itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

if TYPE_CHECKING:
    from headrace.state.chunk import Chunk

State = dict[str, Any]  # arrays, bytes, and what JSON can hold, by name
Which = slice | np.ndarray  # numbers of a table, from one to another or some of them


def numbers_of(which: Which) -> np.ndarray:
    """The numbers, one by one."""
    return np.arange(which.start, which.stop, dtype=np.int32) if isinstance(which, slice) else which


def picked(array: np.ndarray, which: Which) -> np.ndarray:
    """What an array has there: from one number to another a view, else a copy."""
    return array[which] if isinstance(which, slice) else array.take(which, axis=0)


@dataclass(frozen=True, slots=True)
class HeadPart:
    """Something small."""

    name: str
    dump: Callable[[], State]
    load: Callable[[State], None]


@dataclass(frozen=True, slots=True)
class KeyPart:
    """Something for every number of a table; dumped for some of them, and loaded in the place of what they had."""

    name: str
    table: int
    dump_at: Callable[[Which], State]
    load_at: Callable[[Which, State], None]


def grown(array: np.ndarray, size: int, fill: int = 0) -> np.ndarray:
    """The array with room for `size` keys; new ones hold `fill`."""
    if len(array) >= size:
        return array
    out = np.full((size, *array.shape[1:]), fill, array.dtype) if fill else np.zeros((size, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


class KeyArrays:
    """Arrays with something for every number of a table: by the names under which they are saved, their attributes."""

    arrays: ClassVar[dict[str, str]] = {}
    fill: ClassVar[int] = 0  # what a number has of which nothing is known

    def grow(self, size: int) -> None:
        """Make room."""
        for attribute in self.arrays.values():
            setattr(self, attribute, grown(getattr(self, attribute), size, self.fill))

    def reset(self, keys: Which) -> None:
        """Forget these keys."""
        for attribute in self.arrays.values():
            getattr(self, attribute)[keys] = self.fill

    def dump(self, start: int, stop: int) -> State:
        """The keys start..stop."""
        return self.dump_at(slice(start, stop))

    def load(self, start: int, stop: int, state: State) -> None:
        """Put them back."""
        self.load_at(slice(start, stop), state)

    def dump_at(self, which: Which) -> State:
        """What there is of these keys. From one to another it is a view."""
        return {name: picked(getattr(self, attribute), which) for name, attribute in self.arrays.items()}

    def load_at(self, which: Which, state: State) -> None:
        """Put it in the place of what they have."""
        for name, attribute in self.arrays.items():
            getattr(self, attribute)[which] = state[name]


class ChunkStore(Protocol):
    """Where sealed chunks lie."""

    def get(self, chunk: int) -> Chunk | None:
        """A chunk, by its number."""

    def put(self, chunk: int, rows: Chunk) -> None:
        """Keep a chunk, of which nothing changes any more."""

    def delete(self, chunk: int) -> None:
        """Let a chunk go."""


class PageStore(Protocol):
    """Where pages lie."""

    def get_page(self, name: str) -> bytes:
        """A page."""

    def put_page(self, name: str, data: bytes) -> None:
        """Keep a page."""

    def drop_page(self, name: str) -> None:
        """Let a page go."""


class Store(ChunkStore, PageStore, Protocol):
    """Where all that a bucket keeps lies."""


@dataclass(slots=True)
class Handle:
    """A store that others hold on to while it is exchanged: with every batch it may be another handle to the same bytes.

    With several `sides`, one of those that share its chunks by turns.
    """

    store: ChunkStore
    sides: int = 1
    side: int = 0

    def get(self, chunk: int) -> Chunk | None:
        return self.store.get(self.sides * chunk + self.side)

    def put(self, chunk: int, rows: Chunk) -> None:
        self.store.put(self.sides * chunk + self.side, rows)

    def delete(self, chunk: int) -> None:
        self.store.delete(self.sides * chunk + self.side)
