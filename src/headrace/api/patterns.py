"""Patterns in Python: `hr.seq(hr.event(shelf, "s"), ~hr.event(checkout, "c"), hr.event(exit, "e"), within="5 hours")`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from headrace.api.run import merge_frames
from headrace.api.stream import Stream
from headrace.api.texts import duration, read
from headrace.errors import QueryError, unknown
from headrace.plan.nodes import Scan
from headrace.plan.patterns import Pattern, Place, Selection, Spill
from headrace.sql.bind.columns import project
from headrace.sql.bind.pattern import Drawn, place_of
from headrace.sql.errors import Span, Text
from headrace.sql.parse.items import items
from headrace.sql.parse.syntax import Item, Star
from headrace.sql.parse.tokens import Cursor, tokenize

SELECTIONS = {s.name.lower(): s for s in Selection}
NOWHERE = Span(0, 0)


@dataclass(frozen=True)
class Event:
    """One place of a sequence. `~event` must not be there; `event.repeated()` stands for all events that fit, at least one."""

    stream: Stream | str
    name: str | None = None
    negated: bool = False
    several: bool = False

    def __invert__(self) -> Event:
        return replace(self, negated=not self.negated)

    def repeated(self) -> Event:
        """All events that fit between their neighbours, at least one."""
        return replace(self, several=True)

    def place(self, streams: Mapping[str, Any]) -> Place:
        """The place in the plan; a stream that is given by name is one of these."""
        node = _stream(self.stream, streams).node
        name = self.name
        if name is None and isinstance(self.stream, str):
            name = self.stream
        elif name is None and isinstance(node, Scan):
            name = node.stream.name
        if name is None:
            raise QueryError("an event of a stream that is derived needs a name", hint="hr.event(stream, 'a')")
        if self.negated and self.several:
            raise QueryError(f"{name!r} must not be there, so it does not repeat", hint="one is enough to forbid a result")
        return place_of(name, node, negated=self.negated, repeated=self.several)


def event(stream: Stream | str, name: str | None = None) -> Event:
    """An event of a stream, or of a stream that `hr.seq(.., shelf=stream)` gives by name; `name` is what conditions call it."""
    return Event(stream, name)


def seq(
    *events: Event,
    within: str | int | timedelta,
    where: str | None = None,
    select: str = "any",
    returns: str | Sequence[str] = "*",
    memory: int | None = None,
    together: int = 1,
    wait: str | int | timedelta | None = None,
    **streams: Any,
) -> Stream:
    """Events that follow one another, the last no more than `within` after the first.

    `where` are conditions over the columns of the events, such as `'s.id = e.id'`. `select` says which of the events that fit
    are taken: 'any' (every combination), 'next' (the first behind the one before it) or 'strict' (nothing in between).
    `returns` are the columns of a result: `['s.id', 'e.at - s.at AS dwell']`; `*` is all of them, as `s_id` and so on.
    `memory` is how many events a bucket may have in memory; older ones lie outside. A late event that needs those waits until
    `together` such events do, or `wait` has passed.
    """
    for given in events:
        if not isinstance(given, Event):
            raise QueryError(f"seq takes events, got {type(given).__name__}", hint="hr.seq(hr.event(stream, 'a'), ..)")
    places = tuple(e.place(streams) for e in events)
    Pattern(places, 1)  # refuses places that do not go together, by their names
    selection = SELECTIONS.get(select.lower())
    if selection is None:
        raise QueryError(unknown("selection", select, SELECTIONS))
    drawn = Drawn(Text(""), [(place, NOWHERE) for place in places])
    text, columns = _columns(returns)
    bound = drawn.columns(columns, text)
    if where is not None:
        said, value, alias = read(where, "where")
        if alias is not None:
            raise said.error("a condition has no name", Span(0, len(where)))
        drawn.add(value, said)
    spill = _spill(memory, together, None if wait is None else duration(wait, "wait"))
    found = drawn.node(duration(within, "within"), selection, spill)
    node = project(columns, Span(0, len(text.sql)), found, drawn.shown(text), bound)
    return Stream(node, merge_frames(*(_stream(e.stream, streams).frames for e in events)))


def _stream(given: Stream | str, streams: Mapping[str, Any]) -> Stream:
    found = given
    if isinstance(given, str):
        if given not in streams:
            raise QueryError(unknown("stream", given, streams), hint=f"hr.seq(.., {given}=stream) gives it a name")
        found = streams[given]
    if not isinstance(found, Stream):
        raise QueryError(f"an event is of a stream, got {type(found).__name__}", hint="hr.stream(df, ..) makes one")
    return found


def _spill(memory: int | None, together: int, wait: int | None) -> Spill | None:
    if memory is not None:
        return Spill(memory, together, wait)
    if together != 1 or wait is not None:
        raise QueryError(
            "late events wait for what is outside memory, and everything is in it", hint="give memory=100_000, events"
        )
    return None


def _columns(returns: str | Sequence[str]) -> tuple[Text, tuple[Item | Star, ...]]:
    sql = returns if isinstance(returns, str) else ", ".join(returns)
    text = Text(sql, "returns")
    cursor = Cursor(text, tokenize(text), len(sql.rstrip()))
    found = items(cursor, (), ())
    if not cursor.done:
        raise cursor.expected("',' or the end")
    return text, found
