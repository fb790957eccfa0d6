"""When the results of a pattern may leave under EMIT FINAL: what the frontiers of its units decide (decisions/0013)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.oracle.admission import Event, Outcome
from headrace.oracle.patterns import Choice, Found, Results, choices_of, shown, units, units_below
from headrace.oracle.rows import Row
from headrace.plan.nodes import Node, base_streams, retracts, settles, waits_for_peers
from headrace.plan.patterns import Pattern, Selection
from headrace.plan.query import Emit
from headrace.plan.stream import Stream
from headrace.plan.time import END_OF_TIME, START_OF_TIME


@dataclass(frozen=True, slots=True)
class Reach:
    """How far each unit is: rows before `frontier` have come; before `order`, all that can stand in front of a row that has."""

    frontier: tuple[int, ...]
    order: tuple[int, ...]


def strict_reach(node: Pattern, outcomes: Mapping[str, Outcome]) -> Reach:
    """By the frontiers of the streams below each unit; the results of some steps come to be known later than their time."""
    frontiers = tuple(_frontier(unit, outcomes) for unit in units(node))
    return Reach(frontiers, frontiers)


def full_reach(node: Pattern, outcomes: Mapping[str, Outcome]) -> Reach:
    """One stream in order has nothing left that stands before what has come: its results may leave one tick earlier."""
    strict = strict_reach(node, outcomes)
    unit = units(node)[0]
    if len(units(node)) > 1 or len(base_streams(unit)) > 1 or settles(unit) or waits_for_peers(unit):
        return strict
    return Reach(strict.frontier, (outcomes[base_streams(node)[0].name].final_before,))


def _frontier(unit: Node, outcomes: Mapping[str, Outcome]) -> int:
    return min(outcomes[stream.name].frontier for stream in base_streams(unit)) - settles(unit)


def decided(node: Pattern, found: Found, outcomes: Mapping[str, Outcome], emit: Emit) -> tuple[Results, Results]:
    """The results that must have left, and those that may have."""
    choices = sorted(choices_of(node, found), key=lambda c: c.key)
    out = []
    for reach in (strict_reach(node, outcomes), full_reach(node, outcomes)):
        if emit.ordered:
            leave = [c for c in choices if not c.forbidden and _is_next(node, c, reach)]
        else:
            leave = [c for c in choices if not c.forbidden and is_decided(node, c, reach)]
        out.append(shown(node, found, leave))
    return out[0], out[1]


def _is_next(node: Pattern, choice: Choice, reach: Reach) -> bool:
    """Whether it is its turn: of all results up to it, wherever they are computed, none is open any more."""
    if node.waits:
        return min(reach.frontier) - node.waits > choice.last
    return min(reach.order) > choice.last


def is_decided(node: Pattern, choice: Choice, reach: Reach) -> bool:
    """Whether no event that may still come, or be taken back, can change it."""
    every = units(node)

    def past(place: int, ts: int, how: tuple[int, ...] = reach.order) -> bool:
        return all(how[every.index(unit)] > ts for unit in units_below(node.places[place].input))

    for i, place in enumerate(node.places):
        after = min((p for p in node.positive if p > i), default=None)
        if place.negated and after is None and not past(i, choice.first + node.within, reach.frontier):
            return False
        if (place.negated or place.repeated) and not past(i, choice.last if after is None else choice.events[after].key[0]):
            return False
    for event in choice.ordered:
        if retracts(every[event.unit]) and reach.order[event.unit] <= event.key[0]:
            return False
    match node.selection:
        case Selection.NEXT:
            return all(past(i, choice.events[i].key[0]) for i in node.positive[1:])
        case Selection.STRICT:
            return len(choice.ordered) == 1 or min(reach.order) > choice.last
    return True


class Slack:
    """The door of USING KSLACK: rows of all streams wait until the largest time of any is more than K past them."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.streams = {stream.name: stream for stream in streams}
        self.bound = START_OF_TIME
        self.rows: dict[str, list[tuple[tuple[int, ...], Row]]] = {name: [] for name in self.streams}
        self.missed: dict[str, tuple[Event, ...]] = {}  # of the last batch: in time for their stream, and late here

    def push(self, outcomes: Mapping[str, Outcome], now: int) -> None:
        """Rows behind what has been taken are late for the query; the clock moves at the end of the batch."""
        seen = []
        for name in self.streams:
            outcome, ahead = outcomes[name], self.streams[name].ahead
            self.rows[name] += [(e.key, e.row) for e in outcome.admitted if e.key[0] >= self.bound]
            self.missed[name] = tuple(e for e in outcome.admitted if e.key[0] < self.bound)
            seen += [e.key[0] for e in (*outcome.admitted, *outcome.late) if ahead is None or e.key[0] <= now + ahead]
        delays = [s.delay for s in self.streams.values()]
        slack = max((d for d in delays if isinstance(d, int)), default=0)
        if seen and all(isinstance(d, int) for d in delays):
            self.bound = max(self.bound, max(seen) - slack)
        if all(outcomes[name].frontier == END_OF_TIME for name in self.streams):
            self.bound = END_OF_TIME

    @property
    def taken(self) -> dict[str, list[tuple[tuple[int, ...], Row]]]:
        """What has been waited for."""
        return {name: [pair for pair in rows if pair[0][0] < self.bound] for name, rows in self.rows.items()}

    def released(self, node: Pattern, found: Found) -> Results:
        """The results over the rows taken, as far as none before them is open."""
        choices = sorted(choices_of(node, found), key=lambda c: c.key)
        return shown(node, found, [c for c in choices if not c.forbidden and c.last + node.waits < self.bound])
