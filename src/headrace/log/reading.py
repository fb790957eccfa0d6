"""Reading a partition one record after the other, as far as it is whole."""

from __future__ import annotations

import os

from headrace.log.log import Record
from headrace.log.segments import Cursor, Folder, TopicGoneError
from headrace.log.topics import Topic
from headrace.log.words import before_begin, behind_end

CHUNK = 1 << 18  # bytes


class Reader:
    """Where somebody reads a partition. Going on costs no search; another offset costs a look into one segment."""

    def __init__(self, topic: Topic, folder: Folder) -> None:
        self.topic, self.folder = topic, folder
        self._cursor: Cursor | None = None
        self._values: list[bytes] = []  # read, and not given yet
        self._given = 0  # of these
        self._offset = -1  # of the next one

    def take(self, offset: int, most: int) -> list[Record]:
        """Records from an offset on, at most so many; none at the end."""
        cursor = self._cursor
        if cursor is None or offset != self._offset:
            cursor = self._find(offset)
        status = os.fstat(cursor.file)
        if not status.st_nlink:  # trimmed
            cursor = self._find(offset)
        if self._given == len(self._values):
            if status.st_nlink and status.st_size == cursor.place and cursor.is_last:
                return []
            self._values, self._given = cursor.read(CHUNK), 0
        values = self._values[self._given : self._given + most]
        self._given += len(values)
        self._offset = offset + len(values)
        at = self.folder.at
        return [Record(at, number, value) for number, value in enumerate(values, offset)]

    def close(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
            self._cursor = None

    def _find(self, offset: int) -> Cursor:
        """Stand before an offset, which has to be there or to be the next one."""
        self.close()
        if not self.topic.is_there():
            raise TopicGoneError
        begin = self.folder.bases()[0]
        if offset < begin:
            raise before_begin(self.folder.at, offset, begin)
        cursor = Cursor(self.folder, offset)
        if cursor.base > offset:  # trimmed meanwhile
            cursor.close()
            return self._find(offset)
        values: list[bytes] = []
        skipped = 0
        try:
            while cursor.offset < offset:
                skipped = offset - cursor.offset
                values = cursor.read(CHUNK, skipped + 1)
                if not values:
                    break
        except BaseException:
            cursor.close()
            raise
        if cursor.offset < offset:
            trimmed = not os.fstat(cursor.file).st_nlink
            cursor.close()
            if trimmed:
                return self._find(offset)
            raise behind_end(self.folder.at, offset, cursor.offset)
        self._cursor, self._values, self._given, self._offset = cursor, values, skipped, offset
        return cursor
