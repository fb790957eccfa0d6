"""Files of the store: who wrote them stands in their name and in a head, checksums say whether they are whole.

A file that is cut short, or ends in the noughts that a loss of power leaves, is torn: it was being written. One that is as long
as it should be and says something else is damaged (as in the log, decisions/0029).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from zlib import crc32

from headrace.errors import StateError

FORMAT = 1
MAGIC = b"HRSV"
END = b"\xe5"
_HEAD = struct.Struct("<4sHxxqqqI")  # magic, format, epoch, number, length and checksum of what follows
_SUM = struct.Struct("<I")  # checksum of the head
HEAD_BYTES = _HEAD.size + _SUM.size
_NAME = re.compile(r"(\d{12,})-(\d{12,})\.(commit|keys|blobs)")
DAMAGED = "put an intact copy in its place; or remove the folder of the partition, and it is computed anew from the whole log"


@dataclass(frozen=True, slots=True, order=True)
class Named:
    """A file: the epoch of who wrote it, the how manyth of his commits it is of, and what it is."""

    epoch: int
    number: int
    kind: str

    @property
    def name(self) -> str:
        return f"{self.epoch:012d}-{self.number:012d}.{self.kind}"

    @staticmethod
    def of(name: str) -> Named | None:
        """None: it is no file of the store.

        >>> Named.of("000000000007-000000000012.keys"), Named.of("notes.txt")
        (Named(epoch=7, number=12, kind='keys'), None)
        """
        found = _NAME.fullmatch(name)
        return Named(int(found[1]), int(found[2]), found[3]) if found else None


def seal(named: Named, content: bytes) -> bytes:
    head = _HEAD.pack(MAGIC, FORMAT, named.epoch, named.number, len(content), crc32(content))
    return b"".join((head, _SUM.pack(crc32(head)), content, END))


def unseal(named: Named, data: bytes, where: str) -> memoryview | None:
    """What was sealed; None: the file is torn. Of one that is damaged it says so."""
    if len(data) < HEAD_BYTES:
        return None
    magic, found, epoch, number, length, checksum = _HEAD.unpack_from(data)
    if _SUM.unpack_from(data, _HEAD.size)[0] != crc32(data[: _HEAD.size]):
        refuse_damaged(named, data, where, "its head is not what was written")
        return None
    if magic != MAGIC or (epoch, number) != (named.epoch, named.number):
        raise damaged(named, where, f"it is another file: that of commit {number} in epoch {epoch}")
    if found > FORMAT:
        hint = "install the version of Headrace that wrote it, or a later one"
        raise StateError(f"{named.name} has format {found}, and this version knows {FORMAT}", where=where, hint=hint)
    if len(data) < HEAD_BYTES + length + len(END):
        return None
    content = memoryview(data)[HEAD_BYTES : HEAD_BYTES + length]
    if len(data) > HEAD_BYTES + length + len(END) or crc32(content) != checksum or not data.endswith(END):
        refuse_damaged(named, data, where, "its checksum is not that of what was written")
        return None
    return content


def refuse_damaged(named: Named, data: bytes, where: str, what: str) -> None:
    """What does not end in noughts is not torn."""
    if not data.endswith(b"\0"):
        raise damaged(named, where, what)


def damaged(named: Named, where: str, what: str) -> StateError:
    return StateError(f"{named.name} is damaged: {what}", where=where, hint=DAMAGED)
