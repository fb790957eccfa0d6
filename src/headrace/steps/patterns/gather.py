"""Patterns of another number of buckets: final events in the total order, and sequences that wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.state.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.state.open_rows import OpenRows
    from headrace.state.parts import State
    from headrace.state.share import Share
    from headrace.steps.patterns.step import PatternStep

WAITING = ("told", "final")


@dataclass(slots=True)
class _Part:
    """What one bucket has: its rows, those of them that go along, its state, and which rows were in memory or never left it."""

    share: Share
    rows: Rows
    mine: np.ndarray
    state: State
    there: np.ndarray
    places: np.ndarray  # of its final rows, and then its open ones, among all of the new bucket; -1: stays behind

    @staticmethod
    def of(share: Share) -> _Part:
        """Of a bucket; places are not known yet."""
        rows, state, old = share.step.kept.rows(), share.step._dump(), share.step
        there = np.ones(len(rows) + len(share.open), np.uint8)
        if "there" in state:
            outside = max(old.kept.oldest, old.frames.stop) - old.kept.oldest
            there[outside:] = np.unpackbits(state["there"], count=len(there) - outside)
        return _Part(share, rows, share.mine(rows.columns), state, there, np.full(len(there), -1, np.int64))


def gather_patterns(new: PatternStep, shares: Sequence[Share], open_: OpenRows) -> State:
    """Final events go into the reservoir at once. Gives the state that links them with the open ones."""
    parts = [_Part.of(share) for share in shares]
    rows = Rows.empty(new.layout)
    for part in parts:
        rows = rows.append(part.share.rows(part.rows))
    order = np.lexsort(rows.keys.columns[::-1])
    place = np.argsort(order)
    new.kept.append(rows, order)
    taken = 0
    for part in parts:
        count, final = int(part.mine.sum()), len(part.rows)
        part.places[:final][part.mine] = place[taken : taken + count]
        going = part.share.places >= 0
        part.places[final:][going] = len(rows) + part.share.places[going]
        taken += count
    spills = new.spec.spill is not None
    there, since = np.zeros(len(rows) + len(open_), np.uint8), np.zeros(len(open_) if spills else 0, np.int64)
    for part in parts:
        going, at = part.places >= 0, part.share.places
        there[part.places[going]] = part.there[going]
        if spills:
            since[at[at >= 0]] = part.state["since"][at >= 0]
    states = [part.state for part in parts]
    out = new.kept.dump() | {"fresh": max(s["fresh"] for s in states), "furthest": max(s["furthest"] for s in states)}
    out |= {"stop": 0, "since": since} | ({"there": np.packbits(there)} if spills else {})
    for name in WAITING:
        found = [(part.places[part.state[name]], part.state[f"{name}_until"]) for part in parts]
        places, until = (np.concatenate(columns) for columns in zip(*found, strict=True))
        whole = (places >= 0).all(axis=1)
        out |= {name: places[whole], f"{name}_until": until[whole]}
    new.ready.parts = [ready for part in parts if part.share.home for ready in part.share.step.ready.parts]
    return out
