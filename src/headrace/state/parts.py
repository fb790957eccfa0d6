"""What a bucket keeps, in named parts: a step says which it has, and whoever saves it decides when and where to.

A *head* part is small and written whole. A *key* part has something for every number of a table, and is written page by page, of
which only those that changed are. Chunks, and other pages of its own, a step writes to the store itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

State = dict[str, Any]  # arrays, bytes, and what JSON can hold, by name


@dataclass(frozen=True, slots=True)
class HeadPart:
    """Something small."""

    name: str
    dump: Callable[[], State]
    load: Callable[[State], None]


@dataclass(frozen=True, slots=True)
class KeyPart:
    """Something for every number of a table; dumped and loaded from one number to another."""

    name: str
    table: int
    dump: Callable[[int, int], State]
    load: Callable[[int, int, State], None]


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

    def reset(self, keys: np.ndarray) -> None:
        """Forget these keys."""
        for attribute in self.arrays.values():
            getattr(self, attribute)[keys] = self.fill

    def dump(self, start: int, stop: int) -> State:
        """The keys start..stop."""
        return {name: getattr(self, attribute)[start:stop] for name, attribute in self.arrays.items()}

    def load(self, start: int, stop: int, state: State) -> None:
        """Put them back."""
        for name, attribute in self.arrays.items():
            getattr(self, attribute)[start:stop] = state[name]


class ChunkStore(Protocol):
    """Where sealed chunks lie."""

    def get(self, chunk: int) -> bytes | None:
        """The bytes of a chunk."""

    def put(self, chunk: int, data: bytes) -> None:
        """Keep a chunk."""

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

    def get(self, chunk: int) -> bytes | None:
        return self.store.get(self.sides * chunk + self.side)

    def put(self, chunk: int, data: bytes) -> None:
        self.store.put(self.sides * chunk + self.side, data)

    def delete(self, chunk: int) -> None:
        self.store.delete(self.sides * chunk + self.side)
