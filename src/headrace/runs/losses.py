"""How many rows of each stream were read and rejected, and how many may be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headrace.errors import DataError, QueryError

LOUD = 0.01  # a larger share of rejected rows is worth more than a line among others
ENOUGH = 1_000  # rows of a stream that goes on, before the share of those that are rejected says anything


@dataclass(frozen=True, slots=True)
class StreamRows:
    """Rows of a stream."""

    stream: str
    read: int
    rejected: int = 0
    example: str = ""  # where one of the rejected rows stood, and why it was rejected

    @property
    def share(self) -> float:
        """Of the rows that were read, those that were rejected."""
        return self.rejected / self.read if self.read else 0.0

    def __str__(self) -> str:
        some = "all" if self.rejected == self.read else f"{self.rejected:,} of"
        return f"{some} {self.read:,} rows of {self.stream} were rejected, for example {self.example}"


def added(counts: Iterable[StreamRows]) -> tuple[StreamRows, ...]:
    """The counts of many batches, by stream."""
    found: dict[str, StreamRows] = {}
    for one in counts:
        old = found.get(one.stream, StreamRows(one.stream, 0))
        found[one.stream] = StreamRows(one.stream, old.read + one.read, old.rejected + one.rejected, old.example or one.example)
    return tuple(found.values())


def share_of(text: str) -> float:
    """A share as written: `0.05`, `5%`.

    >>> share_of("5%"), share_of("0.5")
    (0.05, 0.5)
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise QueryError(f"{text!r} is not a share", hint="write one from 0 to 1, or with a percent sign: --max-rejected 5%")
    return share


def too_many(counts: Iterable[StreamRows], most: float | None, *, ended: bool) -> DataError | None:
    """The error that too many rejected rows are: all rows of a stream, or more than a given share.

    Of a stream that goes on, enough rows must have come first; that all were rejected says nothing before its end.
    """
    for count in counts:
        all_of_it = ended and 0 < count.read == count.rejected
        over = most is not None and count.share > most and (ended or count.read >= ENOUGH)
        if over or (all_of_it and most is None):
            bound = f"; at most {most:.3%} may be (max_rejected)" if over and most is not None else ""
            return DataError(str(count) + bound, where=f"stream {count.stream!r}", hint=how_to_see(count.stream))
    return None


def how_to_see(stream: str) -> str:
    """The query that shows what was rejected."""
    return f"see them with: SELECT * FROM rejected({stream});"
