"""What serving asks of its messaging layer (003, 3.1): topics of partitions, appended to at their end, polled from any offset.

The contract, held against every implementation by one suite:
- Records of a partition have the offsets 0, 1, 2, .. in the order in which they were appended; an offset never means another
  record. Records of one `append` stand together.
- `append` returns once the records can be polled by everybody, and survive the death of this process. They survive that of the
  machine once `sync` has returned; on Kafka, if there is another machine that has them. An append that fails has not been done;
  on Kafka, that is not known.
- Any number of processes append to a partition at once; any number poll it, each from its own offset. A process that is killed
  at any moment leaves whole records only.
- `poll` gives records of several partitions, of each in order and without gaps, and returns at once when there are some.
- An offset before `begin` is gone (`trim`), and asking for it is an error that says so; one at `end` waits; one behind it is an
  error, too: what had been read was lost before it was synced.
- A topic that is deleted while somebody polls it is an error for him. One that is made anew under its name is another. On Kafka
  he may be told a moment later, but by `sync` for sure: who syncs before he keeps what he made of records is never wrong.
- Any number of threads append through one of these; one at a time polls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.errors import LogError

_NAME = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True, order=True)
class At:
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"topic {self.topic!r}, partition {self.partition}"


@dataclass(frozen=True, slots=True)
class Record:
    """What was appended, and where it stands."""

    at: At
    offset: int
    value: bytes


class Log(Protocol):
    """Files (`files.py`, the default) or Kafka (`kafka.py`)."""

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic; nothing where it is there with as many partitions, an error where it has others."""

    def delete(self, topic: str) -> None:
        """Remove a topic with all its records; nothing where there is none."""

    def topics(self) -> dict[str, int]:
        """The topics that are there, with their numbers of partitions."""

    def append(self, at: At, values: Sequence[bytes]) -> int:
        """Put records at the end. Gives the offset of the first of them."""

    def poll(self, offsets: Mapping[At, int], timeout: float, most: int = 1000) -> list[Record]:
        """Records from these offsets on; waits for the first of them, so many seconds at most."""

    def begin(self, at: At) -> int:
        """The first offset that is still there."""

    def end(self, at: At) -> int:
        """The offset that the next record gets."""

    def sync(self, ats: Iterable[At]) -> None:
        """All records that are there now survive the machine."""

    def commit(self, group: str, offsets: Mapping[At, int]) -> None:
        """Note for others how far a group is; what it goes on from lies with its state."""

    def committed(self, group: str) -> dict[At, int]:
        """What was noted last."""

    def trim(self, at: At, offset: int) -> None:
        """Records before this offset may go, as far as they lie in parts of which nothing else is needed."""

    def close(self) -> None:
        """Let go of files and connections."""


def checked_name(what: str, name: str) -> str:
    """A name that a topic or a group may have, here and on Kafka.

    >>> checked_name("topic", "payments.card")
    'payments.card'
    """
    if not _NAME.fullmatch(name):
        hint = "letters of ASCII, digits, '.', '_' and '-', at most 200"
        raise LogError(f"{name!r} is no name of a {what}", hint=hint)
    return name
