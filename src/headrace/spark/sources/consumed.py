"""What Spark has read for good: the files in the logs of its file sources, up to the last batch that was committed."""

from __future__ import annotations

import json
import posixpath
from typing import Any
from urllib.parse import unquote

from headrace.spark.storage.storage import Storage


class Consumed:
    """Reads Spark's side of a checkpoint, and only what is new in it."""

    def __init__(self, storage: Storage, folder: str) -> None:
        """Of the query whose checkpoint this folder is. Nothing is told before it goes on: whoever starts it looks at files."""
        self.storage, self.folder = storage, folder
        self._commit = self._last_commit()
        self._read: dict[str, int] = {}  # per source: up to which entry of its log

    def names(self) -> list[str]:
        commit = self._last_commit()
        if commit <= self._commit:
            return []
        self._commit = commit
        text = self.storage.whole(f"{self.folder}/offsets/{self._commit}") or b""
        found: list[str] = []
        for source, entry in offsets_of(text.decode()).items():
            found += self._entries(source, entry)
        return found

    def _last_commit(self) -> int:
        return max((int(n) for n in self.storage.names(f"{self.folder}/commits") if n.isdigit()), default=-1)

    def _entries(self, source: str, upto: int) -> list[str]:
        found = read_of(self.storage, self.folder, source, upto, self._read.get(source))
        self._read[source] = upto
        return [posixpath.basename(unquote(about["path"])) for about in found]


def read_of(storage: Storage, folder: str, source: str, upto: int, after: int | None = None) -> list[dict[str, Any]]:
    """What the log of a file source says of the files up to an entry, behind another one.

    Every so often Spark puts all that was before into one.
    """
    folder, found = f"{folder}/sources/{source}", list[dict[str, Any]]()
    there = {int(n.split(".")[0]): n for n in storage.names(folder) if n.split(".")[0].isdigit()}
    first = max((i for i, n in there.items() if "." in n and i <= upto), default=0) if after is None else after + 1
    for number in sorted(i for i in there if first <= i <= upto):
        lines = (storage.whole(f"{folder}/{there[number]}") or b"").decode().splitlines()[1:]
        found += [about for about in map(json.loads, lines) if after is None or about["batchId"] >= first]
    return found


def offsets_of(text: str) -> dict[str, int]:
    """Up to which entry of its log each file source has been read: by its name, or its number if it has none."""
    out = {}
    for number, line in enumerate(text.splitlines()[2:]):
        name, _, value = (str(number), "", line) if line.startswith("{") else line.partition(":")
        try:
            offset = json.loads(value)
        except ValueError:
            continue
        if isinstance(offset, dict) and isinstance(offset.get("logOffset"), int):
            out[name] = offset["logOffset"]
    return out
