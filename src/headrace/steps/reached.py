"""Which results a change may reach.

A row that comes late can change only results of events after it in the total order that it has a key in common with, or, where
rows of all keys are counted, all of them. This finds a set that surely holds them all; comparing what was said with what is to be
said finds those that did change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headrace.state.rows import Rows


@dataclass(slots=True)
class Reached:
    """Indexes, ascending: open rows to be read as they were, and as they are."""

    old: np.ndarray
    new: np.ndarray

    @staticmethod
    def nothing() -> Reached:
        none = np.empty(0, np.int64)
        return Reached(none, none)


def reached(
    tables: set[int] | None, old: Rows, new: Rows, removed: np.ndarray, is_new: np.ndarray, capacities: list[int],
    peers: bool = False,
) -> Reached:  # fmt: skip
    """The rows that a change reaches: those with its keys in these tables; None: every row after it, with `peers` of its time."""
    fresh, gone = is_new.nonzero()[0], removed.nonzero()[0]
    if len(fresh) == 0 and len(gone) == 0:
        return Reached.nothing()
    first_old = min(_before(fresh, is_new), int(gone[0]) if len(gone) else len(old))
    if peers:
        first = min(int(rows.ts[at[0]]) for rows, at in ((new, fresh), (old, gone)) if len(at))
        first_old = min(first_old, int(old.ts.searchsorted(first)))
    if first_old >= len(old):  # everything came after what was there: nothing said before can change
        return Reached(np.empty(0, np.int64), fresh)
    maybe_old = np.zeros(len(old) - first_old, np.bool_)
    maybe_new = np.zeros(len(new) - first_old, np.bool_)
    if tables is None:
        maybe_old[:], maybe_new[:] = True, True
    for table in tables or ():
        marked = np.zeros(capacities[table], np.bool_)
        marked[new.columns[table][fresh]] = True
        marked[old.columns[table][gone]] = True
        maybe_old |= marked[old.columns[table][first_old:]]
        maybe_new |= marked[new.columns[table][first_old:]]
    maybe_old |= removed[first_old:]
    maybe_new |= is_new[first_old:]
    return Reached(maybe_old.nonzero()[0] + first_old, maybe_new.nonzero()[0] + first_old)


def _before(fresh: np.ndarray, is_new: np.ndarray) -> int:
    """How many old rows stand before the first fresh one; rows before it are all old, so its index says it."""
    return int(fresh[0]) if len(fresh) else len(is_new)
