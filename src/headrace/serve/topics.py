"""Which topics the events of a script go to: one for each entity, some of the keys that its queries are grouped by (003, 3.2).

Stages over the same streams share a topic where the smaller of their keys part the rows of both: what is grouped by card, and by
card and merchant, are both parted by card. A stage that needs no key goes along with a topic that is there anyway.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import QueryError
from headrace.program.stage import Anywhere, ByHash, Stage

_ODD = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 100
Key = tuple[str, ...]  # of what rows are parted by: one expression over each of the streams
Place = tuple[str, ...]  # the streams of a stage


@dataclass(frozen=True, slots=True)
class Topic:
    """Where the events of some streams go, for some stages."""

    name: str
    streams: Place
    by: tuple[Key, ...] | None  # events with equal keys meet; without keys, all of them; None: they need not
    stages: tuple[int, ...]

    def partitions(self, most: int) -> int:
        """How many it has, where there may be so many."""
        return 1 if self.by == () else most


def topics_of(stages: Sequence[Stage[Any]], chosen: Mapping[str, Iterable[str]] | None = None) -> tuple[Topic, ...]:
    """The fewest topics that part the rows of all stages, in the order in which stages first need them.

    `chosen` are keys for streams that are read alone, in the words of the script, instead of those found here.
    """
    wanted = [_route(stage) for stage in stages]
    keyed = [(place, route) for place, route in wanted if route is not None]
    found: dict[tuple[Place, tuple[Key, ...] | None], list[int]] = {}
    for number, (place, route) in enumerate(wanted):
        if route is None:
            continue
        smaller = [r for p, r in keyed if p == place and r and set(r) <= set(route)]
        best = min(smaller, key=lambda r: (len(r), r), default=route)
        if chosen and len(place) == 1 and place[0] in chosen:
            best = _chosen(place[0], route, chosen[place[0]])
        found.setdefault((place, best), []).append(number)
    for number, (place, route) in enumerate(wanted):
        if route is None:
            along = next((key for key in found if key[0] == place and key[1] is not None), (place, None))
            found.setdefault(along, []).append(number)
    names = _named(found)
    return tuple(Topic(names[key], *key, tuple(sorted(some))) for key, some in found.items())


def _route(stage: Stage[Any]) -> tuple[Place, tuple[Key, ...] | None]:
    """The streams of a stage, and what parts its rows, in an order of its own."""
    place = tuple(source.name for source in stage.sources)
    match stage.route:
        case ByHash(inputs=inputs):
            return place, tuple(sorted(tuple(e.sql for e in stage.inputs[i].exprs) for i in inputs))
        case Anywhere():
            return place, None
    return place, ()


def _chosen(stream: str, route: tuple[Key, ...], names: Iterable[str]) -> tuple[Key, ...]:
    """What somebody wants events of a stream to be parted by; refused where rows that must meet would not."""
    wanted = tuple(sorted((name,) for name in names))
    if not set(wanted) <= set(route):
        has = ", ".join(key[0] for key in route) or "no key"
        hint = f"a topic of {stream!r} can be by {has}" if route else f"leave the topic of {stream!r} to be found"
        asked = ", ".join(key[0] for key in wanted)
        raise QueryError(f"events of stream {stream!r} cannot be parted by {asked}: a query is grouped by {has}", hint=hint)
    return wanted


def _named(found: Iterable[tuple[Place, tuple[Key, ...] | None]]) -> dict[tuple[Place, tuple[Key, ...] | None], str]:
    """As people call them: the streams and the entity, in letters that every log allows, each its own."""
    out: dict[tuple[Place, tuple[Key, ...] | None], str] = {}
    for place, by in found:
        keys = "-".join("_".join(dict.fromkeys(key)) for key in by or ())
        name = _ODD.sub("_", "-".join(dict.fromkeys(place)) + (f".{keys}" if keys else ""))[:_LONGEST]
        number = itertools.count(2)
        while name in out.values():
            name = f"{name[:_LONGEST]}-{next(number)}"
        out[place, by] = name
    return out
