"""The log as it is meant: lists in memory. It judges the implementations, and shares nothing with them but the types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.errors import LogError
from headrace.log.log import At, Record


@dataclass
class Partition:
    values: list[bytes] = field(default_factory=list)
    begin: int = 0


class MemoryLog:
    """Handles share it; what one has done the others see."""

    def __init__(self) -> None:
        self._topics: dict[str, list[Partition]] = {}
        self._groups: dict[str, dict[At, int]] = {}

    def create(self, topic: str, partitions: int) -> None:
        if len(self._topics.setdefault(topic, [Partition() for _ in range(partitions)])) != partitions:
            raise LogError("another number of partitions")

    def delete(self, topic: str) -> None:
        self._topics.pop(topic, None)
        for noted in self._groups.values():
            for at in [at for at in noted if at.topic == topic]:
                del noted[at]

    def topics(self) -> dict[str, int]:
        return {name: len(partitions) for name, partitions in self._topics.items()}

    def append(self, at: At, values: Sequence[bytes]) -> int:
        partition = self._partition(at)
        partition.values += values
        return len(partition.values) - len(values)

    def poll(self, offsets: Mapping[At, int], timeout: float, most: int = 1000) -> list[Record]:
        """All there are: who gives fewer may choose which, but of each partition the first."""
        for at, offset in offsets.items():
            if not self.begin(at) <= offset <= self.end(at):
                raise LogError("there is no such offset")
        return [
            Record(at, number, value)
            for at, offset in offsets.items()
            for number, value in enumerate(self._partition(at).values[offset:], offset)
        ]

    def begin(self, at: At) -> int:
        return self._partition(at).begin

    def end(self, at: At) -> int:
        return len(self._partition(at).values)

    def sync(self, ats: Iterable[At]) -> None:
        for at in ats:
            self._partition(at)

    def commit(self, group: str, offsets: Mapping[At, int]) -> None:
        for at in offsets:
            self._partition(at)
        self._groups.setdefault(group, {}).update(offsets)

    def committed(self, group: str) -> dict[At, int]:
        return dict(self._groups.get(group, {}))

    def trim(self, at: At, offset: int) -> None:
        """Everything that may go; an implementation keeps more (`keep`)."""
        partition = self._partition(at)
        partition.begin = max(partition.begin, min(offset, len(partition.values)))

    def keep(self, at: At, begin: int) -> None:
        self._partition(at).begin = begin

    def close(self) -> None:
        """Nothing to let go of."""

    def _partition(self, at: At) -> Partition:
        try:
            return self._topics[at.topic][at.partition]
        except (KeyError, IndexError):
            raise LogError("there is no such partition") from None
