"""The input has ended, and may go on: a bucket is kept as it stood before the end, beside what the end alone released.

Nothing that the end has moved is stored: no frontier at infinity, no row that one stage gave another because of it. Whoever goes
on takes back what the end has given to sinks, and it is as if the end had not been (decisions/0028).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.changes.changes import Changes, read_changes, write_changes
from headrace.errors import StateError
from headrace.exchange.heads import AFTER_THE_END, OF_THE_END, RowsHead, read_head
from headrace.plan.query import Emit
from headrace.state.codec import decode, encode

if TYPE_CHECKING:
    from headrace.exchange.heads import Cell
    from headrace.exchange.host import VersionedStore
    from headrace.state.chunk import Chunk
    from headrace.state.parts import Store
    from headrace.steps.step import Results

ENDED = b"ended "  # how the version of such a bucket begins; then who has said so
RELEASED = "released"  # the page that has what the end released
MOST_FINAL = 100  # rows that are remembered of a query that takes nothing back: they are only told
MOST_TOLD = 3

Sinks = Mapping[str, Emit]  # the queries that sinks wait for


@dataclass(frozen=True, slots=True)
class Released:
    """What the end alone released of a query: all of it, or, where nothing is taken back, the first rows."""

    query: str
    emit: Emit
    count: int
    changes: Changes


def parted(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """What a batch has for a bucket, and what is there because the input has ended."""
    return [c for c in cells if OF_THE_END not in c[0]], [c for c in cells if OF_THE_END in c[0]]


def nothing_more(cells: Sequence[Cell]) -> None:
    """A bucket that has ended lets time pass, and refuses rows: they stay unread, for whoever goes on."""
    if any(isinstance(read_head(line), RowsHead) for line, _ in cells):
        raise StateError(AFTER_THE_END, hint="run again with the same checkpoint, and it goes on")


def released_of(results: Results, sinks: Sinks) -> list[Released]:
    """What the end has given to sinks."""
    by_query: dict[str, list[Changes]] = {}
    for query, changes in results:
        if query in sinks and len(changes):
            by_query.setdefault(query, []).append(changes)
    out = []
    for query, parts in by_query.items():
        whole, emit = Changes.merge(parts), sinks[query]
        kept = whole if emit.early else whole.take(np.arange(min(len(whole), MOST_FINAL)))
        out.append(Released(query, emit, len(whole), kept))
    return out


def write_released(released: Sequence[Released]) -> bytes:
    about = [[one.query, one.emit.name, one.count] for one in released]
    return encode({"released": about, **{str(i): write_changes(one.changes) for i, one in enumerate(released)}})


def read_released(page: bytes) -> list[Released]:
    state = decode(page, "what the end released")
    return [Released(q, Emit[emit], n, read_changes(state[str(i)])) for i, (q, emit, n) in enumerate(state["released"])]


def taken_back(released: Iterable[Released]) -> Results:
    """The other way round, the last first: a `-` follows the `+` that it cancels.

    Whoever goes on has made sure that of what is final nothing was shown: HAVING has dropped it, and will again.
    """
    back = [(one.query, one.changes.take(np.arange(len(one.changes))[::-1])) for one in released if one.emit.early]
    return [(query, Changes(-changes.sign, changes.keys, changes.rows)) for query, changes in back]


def carry_over(olds: Iterable[VersionedStore], new: VersionedStore, continued: Mapping[str, str]) -> None:
    """A bucket of a changed script, which was just made of some that have ended, has ended too: of the queries that go on.

    `olds`: each of them once, whichever buckets take over its keys.
    """
    ended = [old for old in olds if (old.version(sure=False) or b"").startswith(ENDED)]
    if not ended:
        return
    now = {was: name for name, was in continued.items()}
    released = [one for old in ended for one in read_released(old.get_page(RELEASED)) if one.query in now]
    new.put_page(RELEASED, write_released([replace(one, query=now[one.query]) for one in released]))
    new.put_head(new.head(), ended[0].version(sure=False) or b"")


def refuse_final(query: str, count: int, rows: Sequence[object]) -> None:
    """What is final has been said for good."""
    first = ", ".join(str(row) for row in rows[:MOST_TOLD]) + (", .." if count > MOST_TOLD else "")
    raise StateError(
        f"the run has ended, and its end has released {count} row{'s' * (count > 1)} of {query!r}, which is EMIT FINAL and takes"
        f" nothing back: {first}",
        hint="name a new checkpoint directory; a script whose sources grow runs with --follow, or under EMIT CHANGES",
    )


@dataclass(slots=True)
class Aside:
    """A store that is read, and not written: what is put or let go is remembered for as long as this is."""

    store: Store
    chunks: dict[int, Chunk | None] = field(default_factory=dict)

    def get(self, chunk: int) -> Chunk | None:
        return self.chunks[chunk] if chunk in self.chunks else self.store.get(chunk)

    def put(self, chunk: int, rows: Chunk) -> None:
        self.chunks[chunk] = rows

    def delete(self, chunk: int) -> None:
        self.chunks[chunk] = None

    def get_page(self, name: str) -> bytes:
        return self.store.get_page(name)

    def put_page(self, name: str, data: bytes) -> None:
        raise AssertionError(f"page {name} was to be written after the end")

    def drop_page(self, name: str) -> None:
        raise AssertionError(f"page {name} was to be dropped after the end")
