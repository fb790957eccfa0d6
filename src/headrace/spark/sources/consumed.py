"""What Spark has read for good: the files in the logs of its file sources, up to the last batch that was committed."""

from __future__ import annotations

import json
import posixpath
from urllib.parse import unquote

from headrace.files.ledger import Storage


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
        text = self.storage.read(f"{self.folder}/offsets/{self._commit}") or b""
        found: list[str] = []
        for source, entry in _offsets(text.decode()).items():
            found += self._entries(source, entry)
        return found

    def _last_commit(self) -> int:
        return max((int(n) for n in self.storage.names(f"{self.folder}/commits") if n.isdigit()), default=-1)

    def _entries(self, source: str, upto: int) -> list[str]:
        """The files in a log up to this entry. Every so often Spark puts all that was before into one."""
        folder, begun = f"{self.folder}/sources/{source}", source in self._read
        there = {int(n.split(".")[0]): n for n in self.storage.names(folder) if n.split(".")[0].isdigit()}
        first = self._read[source] + 1 if begun else max((i for i, n in there.items() if "." in n and i <= upto), default=0)
        found = []
        for number in sorted(i for i in there if first <= i <= upto):
            for line in (self.storage.read(f"{folder}/{there[number]}") or b"").decode().splitlines()[1:]:
                about = json.loads(line)
                if not begun or about["batchId"] >= first:
                    found.append(posixpath.basename(unquote(about["path"])))
        self._read[source] = upto
        return found


def _offsets(text: str) -> dict[str, int]:
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
