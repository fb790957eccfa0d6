"""Joins once more, as the set of all pairs that meet, from docs/language.md alone: to judge the oracle.

"Every row meets the rows of the other stream that came before it and are in their window then; a pair stands where its
later row stands." Written before the oracle of joins was opened. Each pair is asked for itself: no state, no order of evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from policy_brute import Row

BEFORE_ALL = -(10**18)  # the time of the rows of a table: "read whole before anything else begins"


@dataclass(frozen=True)
class Side:
    """A stream with its window. `preserved`: its rows are shown alone if they met none."""

    rows: Sequence[Row]  # in the total order of the stream
    kind: str  # range, rows, unbounded, now, size
    size: int = 0
    lag: int = 0
    every: int = 0
    where: Callable[[Row], Any] = lambda row: True
    partition: Callable[[Row], Any] = lambda row: ()
    preserved: bool = False


Pair = tuple[Row | None, Row | None]


def pairs(left: Side, right: Side, on: Callable[[Row, Row], Any]) -> list[tuple[int, str, Pair]]:
    """All results with their time: pairs, and rows of a preserved side that met none, with nothing beside them.

    Between them stands what lets them be told: the later row (`row`), or the clock that has passed that time (`clock`)."""
    sides = (left, right)
    inside = [[r for r in side.rows if side.where(r) is True] for side in sides]
    met: list[set[Row]] = [set(), set()]
    out: list[tuple[int, str, Pair]] = []
    for a, b in product(*inside):
        at = _looked_at(sides, a, b) if left.every else _meet(sides, inside, a, b)
        if at is not None and on(a, b) is True:
            out.append((at, "row", (a, b)))
            met[0].add(a)
            met[1].add(b)
    for i, side in enumerate(sides):
        alone = [r for r in inside[i] if side.preserved and r not in met[i]]
        # "shown with NULLs when it leaves its window": that of [NOW] a microsecond after it came, there is no shorter time
        out += [(r.t + (side.size if side.kind == "range" else 1), "clock", (r, None) if i == 0 else (None, r)) for r in alone]
    return out


def _meet(sides: tuple[Side, Side], inside: Sequence[Sequence[Row]], a: Row, b: Row) -> int | None:
    """The time of the pair, if the earlier row is in its window when the later one comes; at one time the left goes first."""
    a_first = a.t <= b.t
    early, late = (a, b) if a_first else (b, a)
    side, others = (sides[0], inside[0]) if a_first else (sides[1], inside[1])
    return late.t if _in_window(side, others, early, late, a_first) else None


def _in_window(side: Side, rows: Sequence[Row], early: Row, late: Row, first: bool) -> bool:
    match side.kind:
        case "range":
            return late.t - side.lag - side.size < early.t <= late.t - side.lag
        case "now":
            return early.t == late.t
        case "rows":
            came = [r for r in rows if (r.t <= late.t if first else r.t < late.t)]
            own = [r for r in came if side.partition(r) == side.partition(early)]
            return early in own[-side.size :]
    return True


def _looked_at(sides: tuple[Side, Side], a: Row, b: Row) -> int | None:
    """ "A pair is told once, if there is a look at which both rows are in their windows"; it stands with its later row."""
    every = sides[0].every
    first = -(-max(a.t, b.t) // every) * every
    last = min(a.t + sides[0].size, b.t + sides[1].size)  # a look at u holds (u - size, u]
    return max(a.t, b.t) if first < last else None
