"""Folders of the store as tests need them: in memory, and such that die while they write."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from headrace.serve.store.places import Place


class KilledError(BaseException):
    """The process ends here."""


class MemoryPlace:
    """A folder in memory. `turn` is called before everything that is asked of it."""

    def __init__(
        self, files: dict[str, bytes] | None = None, path: str = "memory", turn: Callable[[], None] = lambda: None
    ) -> None:
        self.files, self.path, self.turn = {} if files is None else files, path, turn

    def below(self, *names: str) -> MemoryPlace:
        return MemoryPlace(self.files, "/".join((self.path, *names)), self.turn)

    def names(self) -> list[str]:
        self.turn()
        return [name.removeprefix(self.path + "/") for name in list(self.files) if name.startswith(self.path + "/")]

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes | None:
        self.turn()
        data = self.files.get(f"{self.path}/{name}")
        return None if data is None else data[start:] if size is None else data[start : start + size]

    def put(self, name: str, data: bytes) -> None:
        self.turn()
        assert f"{self.path}/{name}" not in self.files, "a file is written once"
        self.files[f"{self.path}/{name}"] = data

    def remove(self, name: str) -> None:
        self.turn()
        self.files.pop(f"{self.path}/{name}", None)


class MortalPlace:
    """A folder in which the n-th write or removal is the last thing that its user does, done by half or not at all."""

    def __init__(self, place: Place, random: Random, life: list[int]) -> None:
        self.place, self.path, self.random, self.life = place, place.path, random, life

    def below(self, *names: str) -> MortalPlace:
        return MortalPlace(self.place.below(*names), self.random, self.life)

    def names(self) -> list[str]:
        return self.place.names()

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes | None:
        return self.place.read(name, start, size)

    def put(self, name: str, data: bytes) -> None:
        if self._dies():
            if self.random.random() < 0.8:
                kept = self.random.randrange(len(data))
                self.place.put(name, data[:kept] + bytes(self.random.choice((0, len(data) - kept))))
            raise KilledError(f"while {name} was written")
        self.place.put(name, data)

    def remove(self, name: str) -> None:
        if self._dies():
            raise KilledError(f"before {name} was removed")
        self.place.remove(name)

    def _dies(self) -> bool:
        self.life[0] -= 1
        return self.life[0] < 0
