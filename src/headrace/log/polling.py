"""Polling several partitions at once, and sleeping where there is nothing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from headrace.errors import LogError
from headrace.log.log import At, Record
from headrace.log.reading import Reader
from headrace.log.segments import TopicGoneError
from headrace.log.topics import Topic, Topics
from headrace.log.waking import Waiting
from headrace.log.words import deleted

LOOK_AGAIN_S = 0.5  # where nobody was woken: who appended may have been killed before he woke anybody
LOOK_OFTEN_S = 0.01  # where no pipe could be made


class Poller:
    """Everything that one who polls has open."""

    def __init__(self, topics: Topics) -> None:
        self._all = topics
        self._topics: dict[str, Topic] = {}
        self._readers: dict[At, Reader] = {}
        self._waiting = Waiting()
        self._turn = 0

    def poll(self, offsets: Mapping[At, int], timeout: float, most: int) -> list[Record]:
        until = time.monotonic() + timeout
        look: Iterable[At] = offsets
        most = max(most, 1)
        while True:
            try:
                records = self._take(offsets, look, most)
                left = until - time.monotonic()
                if records or left <= 0:
                    return records
                if not self._waiting.is_at(offsets.keys()) and self._wait_at(offsets):
                    look = offsets
                    continue
            except TopicGoneError:
                raise self._gone(offsets) from None
            longest = LOOK_AGAIN_S if self._waiting.is_at(offsets.keys()) else LOOK_OFTEN_S
            look = self._waiting.wait(min(left, longest)) or offsets

    def close(self) -> None:
        self._waiting.close()
        for name in list(self._topics):
            self._forget(name)

    def _take(self, offsets: Mapping[At, int], look: Iterable[At], most: int) -> list[Record]:
        """Records of some of the partitions. If one has more than enough, the next call begins with another."""
        for name in {at.topic for at in offsets}:
            topic = self._topics.get(name)
            if topic is not None and not topic.is_there():
                raise TopicGoneError
        records: list[Record] = []
        ats = list(look)
        first = self._turn % len(ats) if ats else 0
        for at in ats[first:] + ats[:first]:
            reader = self._readers.get(at) or self._open(at)
            records += reader.take(offsets[at], most - len(records))
            if len(records) >= most:
                self._turn += 1
                break
        return records

    def _open(self, at: At) -> Reader:
        topic = self._topics.get(at.topic)
        if topic is None:
            topic = self._topics[at.topic] = self._all.open(at.topic)
        reader = self._readers[at] = Reader(topic, topic.folder(at))
        return reader

    def _wait_at(self, offsets: Mapping[At, int]) -> bool:
        """Be woken at these partitions, and let go of others. Whether some are new, which have to be looked at once more."""
        for at in self._readers.keys() - offsets.keys():
            self._readers.pop(at).close()
        for name in self._topics.keys() - {at.topic for at in offsets}:
            self._forget(name)
        return self._waiting.at({at: self._readers[at].folder for at in offsets})

    def _gone(self, offsets: Mapping[At, int]) -> LogError:
        """Say which topic was deleted, and forget it: the next poll finds the one that is there then, if any."""
        asked = {at.topic for at in offsets}
        gone = [name for name, topic in self._topics.items() if name in asked and not topic.is_there()]
        for name in gone:
            self._forget(name)
        return deleted(gone, self._all.root)

    def _forget(self, name: str) -> None:
        for at in [at for at in self._readers if at.topic == name]:
            self._waiting.leave(at)
            self._readers.pop(at).close()
        self._topics.pop(name).close()
