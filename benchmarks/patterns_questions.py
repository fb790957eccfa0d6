"""The questions that Headrace and Flink are both asked: how each says them, and their matches by hand.

Every payment that begins a pattern gives one match, with the next of its card that goes on, and so on to the last, if that comes
in time: SEQ .. NEXT MATCH here, `A X*? D` with SKIP TO NEXT ROW there. What must not be in between is `!(payments n)` here, and
there the rows that X may be: all but those. Which payments are meant is told by their amounts, no two places by the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from . import engine
from .payments import Payments, table

if TYPE_CHECKING:
    from collections.abc import Sequence

MINUTES = 60
MATCHES_PER_EVENT = (0.01, 0.1, 0.3, 1.0)
LATE_SECONDS, LATE_SHARE = 10.0, 0.1
ENDS, GOES_ON, FORBIDS = (0.8, 1.0), (0.6, 0.8), (0.5, 0.52)  # shares of the payments, by amount
BEGINS = 0.1  # where it is not what is varied


@dataclass(frozen=True)
class Place:
    """A payment of the pattern, or one that must not be there: more than `above`, at most `upto`."""

    letter: str
    above: float | None = None
    upto: float | None = None
    negated: bool = False

    def condition(self, name: str) -> str:
        said = [f"{name}.amount {op} {x!r}" for op, x in ((">", self.above), ("<=", self.upto)) if x is not None]
        return " AND ".join(said)

    def fits(self, amount: np.ndarray) -> np.ndarray:
        out = np.ones(len(amount), np.bool_)
        if self.above is not None:
            out &= amount > self.above
        if self.upto is not None:
            out &= amount <= self.upto
        return out


@dataclass(frozen=True)
class Question:
    """A pattern over payments. With `late`, some rows come late, and both engines wait for them."""

    name: str
    places: tuple[Place, ...]
    late: bool = False

    @property
    def positive(self) -> list[Place]:
        return [p for p in self.places if not p.negated]

    @property
    def columns(self) -> list[str]:
        """Of a match: the card, and the ids of its payments."""
        return ["card", *(f"{p.letter}_id" for p in self.positive)]

    @property
    def delay_seconds(self) -> float:
        return LATE_SECONDS if self.late else 0.0

    def headrace(self, data: Path) -> str:
        """As Headrace is asked. Where rows come late, only final matches are given out, as Flink does."""
        named = [(p, f"payments {p.letter}") for p in self.places]
        sequence = ", ".join(f"!({text})" if p.negated else text for p, text in named)
        first, *others = self.places
        tests = [f"{first.letter}.card = {p.letter}.card" for p in others]
        tests += [said for p in self.places if (said := p.condition(p.letter))]
        ids = ", ".join(f"{p.letter}.id AS {p.letter}_id" for p in self.positive)
        select = f"""EVENT SEQ({sequence}) NEXT MATCH WHERE {" AND ".join(tests)} WITHIN {MINUTES} MINUTES
            RETURN {first.letter}.card AS card, {ids} EMIT {"FINAL" if self.late else "CHANGES"}"""
        return engine.script(data, select, self.delay_seconds)

    def flink(self) -> dict[str, object]:
        """As Flink is asked: arguments of `rivals/flink_match.py`.

        In front of a place in the middle a gap has no row that fits it: of several matches that end with one row, Flink does not
        give the one whose gaps are shortest, as the standard has it for `*?`.
        """
        pattern, defined = [], []
        forbidden: list[Place] = []
        for place in self.places:
            if place.negated:
                forbidden.append(place)
                continue
            if pattern:
                gap = f"X{len(pattern) // 2}"
                pattern.append(f"{gap}*?")
                passed_by = forbidden if place is self.places[-1] else [*forbidden, place]
                if passed_by:
                    defined.append(f"{gap} AS " + " AND ".join(f"NOT ({p.condition(gap)})" for p in passed_by))
                forbidden = []
            name = place.letter.upper()
            pattern.append(name)
            if said := place.condition(name):
                defined.append(f"{name} AS {said}")
        ids = ", ".join(f"{p.letter.upper()}.id AS {p.letter}_id" for p in self.positive)
        said = {"pattern": " ".join(pattern), "define": ", ".join(defined), "measures": ids, "columns": ",".join(self.columns)}
        return {"minutes": MINUTES, "delay_seconds": self.delay_seconds, **said}

    def by_hand(self, spec: Payments) -> np.ndarray:
        """The slow and obvious answer: card and ids of every match, a row each, sorted."""
        rows = table(spec)
        at, card = rows["at"].cast("int64").to_numpy(), rows["card"].to_numpy()
        order = np.lexsort((at, card))
        at, card, amount, ids = at[order], card[order], rows["amount"].to_numpy()[order], rows["id"].to_numpy()[order]
        end = len(card)
        found = [np.flatnonzero(self.places[0].fits(amount))]
        sure = np.ones(len(found[0]), np.bool_)
        forbidden: list[Place] = []
        for place in self.places[1:]:
            if place.negated:
                forbidden.append(place)
                continue
            following = np.append(np.flatnonzero(place.fits(amount)), end)
            after = following[np.searchsorted(following, found[-1], side="right").clip(max=len(following) - 1)]
            sure &= after < end
            for p in forbidden:
                before = np.cumsum(np.append(0, p.fits(amount)))
                sure &= before[np.minimum(after, end)] == before[np.minimum(found[-1] + 1, end)]
            forbidden = []
            found.append(np.minimum(after, end - 1))
        first, last = found[0], found[-1]
        sure &= (card[first] == card[last]) & (at[last] - at[first] <= MINUTES * 60_000_000)
        return in_order(np.column_stack([card[first], *(ids[f] for f in found)])[sure])


def in_order(matches: np.ndarray) -> np.ndarray:
    """Matches in one order, whatever order they came in."""
    return np.asarray(matches[np.lexsort(matches.T[::-1])])


def difference(found: np.ndarray, wanted: np.ndarray) -> str | None:
    """What is wrong with matches, or None."""
    ours, theirs = ({tuple(row) for row in some.tolist()} for some in (found, wanted))
    if len(found) == len(wanted) and ours == theirs:
        return None
    missing, surplus = sorted(theirs - ours)[:3], sorted(ours - theirs)[:3]
    return f"{len(found):,} matches, by hand {len(wanted):,}; missing {missing}, too many {surplus}"


def stream(rows: int, files: int, late: bool = False) -> Payments:
    """36 payments of a card in an hour, and enough hours that windows end."""
    disorder = {"late_share": LATE_SHARE, "late_max_seconds": LATE_SECONDS} if late else {}
    return Payments(rows=rows, files=files, cards=max(1, rows // 100), events_per_second=rows / 10_000.0, **disorder)


def questions(spec: Payments, rates: Sequence[float] = MATCHES_PER_EVENT) -> list[Question]:
    """Two payments in order, with so many matches a payment; three; two with none of a kind between; two with disorder."""
    amounts = table(spec)["amount"].to_numpy()

    def share(letter: str, low: float, high: float, *, negated: bool = False) -> Place:
        bounds = [float(np.quantile(amounts, q)) if 0.0 < q < 1.0 else None for q in (low, high)]
        return Place(letter, *bounds, negated)

    def begins(rate: float) -> Place:
        return share("a", 0.0, min(rate, 1.0))

    ends = share("d", *ENDS)
    two = [Question(f"two, {rate:g} a payment", (begins(rate), ends)) for rate in rates]
    return [
        *two,
        Question("three in order", (begins(BEGINS), share("b", *GOES_ON), ends)),
        Question("two, none between", (begins(BEGINS), share("n", *FORBIDS, negated=True), ends)),
        Question("two, 10% late", (begins(BEGINS), ends), late=True),
    ]
