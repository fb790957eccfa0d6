"""What a bucket keeps, in named parts: a step says which it has, and whoever saves it decides when and where to.

A *head* part is small and written whole. A *key* part has something for every number of a table, and is written page by page, of
which only those that changed are. Chunks, and other pages of its own, a step writes to the store itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

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
    """A store that others hold on to while it is exchanged: with every batch it may be another handle to the same bytes."""

    store: Store

    def get(self, chunk: int) -> bytes | None:
        return self.store.get(chunk)

    def put(self, chunk: int, data: bytes) -> None:
        self.store.put(chunk, data)

    def delete(self, chunk: int) -> None:
        self.store.delete(chunk)
