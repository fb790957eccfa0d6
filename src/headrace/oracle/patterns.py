"""Sequence patterns, from their definition (001 IV; decisions/0013): all choices of events, and what forbids each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, pairwise
from typing import Any

from headrace.oracle.admission import Key
from headrace.oracle.aggregates import Call
from headrace.oracle.rows import Row
from headrace.oracle.scalar import evaluate, holds
from headrace.oracle.ties import choice_key
from headrace.plan.expr import Expr, all_of
from headrace.plan.nodes import Filter, Late, Merge, Node, Project, Rejected, base_streams
from headrace.plan.patterns import Pattern, Selection

Results = list[tuple[Key, Row]]
Found = Mapping[Node, Results]  # the rows of every unit


@dataclass(frozen=True, slots=True)
class Placed:
    """A row of a unit, seen at a place of the pattern: its key in the order of all units, and its columns there."""

    key: Key
    unit: int
    row: Row


Events = dict[int, Placed]  # by place


@dataclass(slots=True)
class Choice:
    """An event for each place that is not negated; of a repeated one the first of its group, at the end of a pattern the last."""

    events: Events
    groups: dict[int, list[int]] = field(default_factory=dict)  # by repeated place: which of its events
    forbidden: list[Placed] = field(default_factory=list)  # by these

    @property
    def ordered(self) -> list[Placed]:
        return [self.events[place] for place in sorted(self.events)]

    @property
    def first(self) -> int:
        """When it begins."""
        return self.ordered[0].key[0]

    @property
    def last(self) -> int:
        """When it ends."""
        return self.ordered[-1].key[0]

    @property
    def key(self) -> Key:
        """It stands where its last event stands, with the keys of the others as the last part."""
        return choice_key(*(e.key for e in self.ordered))


def units(node: Pattern) -> tuple[Node, ...]:
    """What brings the rows of a pattern, in the order in which it names them."""
    return tuple(dict.fromkeys(unit for place in node.places for unit in units_below(place.input)))


def units_below(node: Node) -> tuple[Node, ...]:
    """Filters, columns and merges change neither the place nor the identity of a row: what they stand on does."""
    match node:
        case Filter() | Project():
            return units_below(node.input)
        case Merge(inputs=inputs):
            return tuple(unit for child in inputs for unit in units_below(child))
        case Late() | Rejected():
            raise NotImplementedError("patterns over late(s) and rejected(s) have no oracle: their time is not settled")
    return (node,)


def matched(node: Pattern, found: Found, clock: int) -> Results:
    """The results that nothing forbids; those that a negation ends, once the clock is past it."""
    choices = choices_of(node, found)
    told = [c for c in choices if not c.forbidden and is_told(node, c, clock)]
    return shown(node, found, told)


def is_told(node: Pattern, choice: Choice, clock: int) -> bool:
    """Whether a negation at the end has been waited for."""
    return not node.waits or choice.first + node.within < clock


def shown(node: Pattern, found: Found, choices: Sequence[Choice]) -> Results:
    """The columns of the single events, and the aggregates over the groups."""
    places = {place.name: i for i, place in enumerate(node.places)}
    events = {i: _fitting(node, found, i) for i in {places[name] for name, _ in node.groups}}
    calls = [
        (i, Call(call, node.places[i].input.schema, [e.row for e in events[i]], node.schema.field(call.name).type))
        for i, call in ((places[name], call) for name, call in node.groups)
    ]
    out: Results = []
    for choice in choices:
        single = [v for i in sorted(choice.events) if i not in choice.groups for v in choice.events[i].row]
        out.append((choice.key, (*single, *(call.over(choice.groups[i]) for i, call in calls))))
    return sorted(out, key=lambda pair: pair[0])


def choices_of(node: Pattern, found: Found) -> list[Choice]:
    """Every choice of events in order, in time, and for which the conditions hold; each with the events that forbid it."""
    events = {i: _fitting(node, found, i) for i in range(len(node.places))}
    choices = _singles(node, events)
    for i, place in enumerate(node.places):
        if place.repeated:
            choices = _grouped(node, events, choices, i)
    choices = [c for c in choices if c.last - c.first <= node.within]
    for i, place in enumerate(node.places):
        if place.negated:
            _forbid_negated(node, events, choices, i)
    match node.selection:
        case Selection.NEXT:
            _forbid_next(node, events, choices)
        case Selection.STRICT:
            _forbid_between(node, found, events, choices)
    return choices


def _fitting(node: Pattern, found: Found, place: int) -> list[Placed]:
    """The events that are by themselves what the place asks for, in order."""
    here = node.places[place]
    rows = _seen(node, found, here.input)
    keep = holds(here.where, here.input.schema, [e.row for e in rows])
    return sorted((e for e, fits in zip(rows, keep, strict=True) if fits), key=lambda e: e.key)


def _seen(node: Pattern, found: Found, below: Node, filtered: bool = True) -> list[Placed]:
    """The rows of all units below a place, in the columns it has there."""
    match below:
        case Filter(input=deeper, predicate=predicate):
            rows = _seen(node, found, deeper, filtered)
            keep = holds(predicate, deeper.schema, [e.row for e in rows]) if filtered else [True] * len(rows)
            return [e for e, kept in zip(rows, keep, strict=True) if kept]
        case Project(input=deeper, items=items):
            rows = _seen(node, found, deeper, filtered)
            values = evaluate([e for _, e in items], deeper.schema, [e.row for e in rows])
            return [Placed(e.key, e.unit, row) for e, row in zip(rows, values, strict=True)]
        case Merge(inputs=inputs):
            return [e for child in inputs for e in _seen(node, found, child, filtered)]
    every = units(node)
    unit = every.index(below)
    rank = sum(len(base_streams(u)) for u in every[:unit])
    return [Placed((ts, (rank << 50) + high, *rest), unit, row) for (ts, high, *rest), row in found[below]]


def _keys(node: Pattern, place: int, rows: Sequence[Placed]) -> list[Row]:
    """What is equal in all events of a result, and in those that forbid one: for every row its values."""
    exprs = [exprs[place] for exprs in keys_of(node)]
    values = evaluate(exprs, node.scope, [_scope_row(node, {place: e}) for e in rows]) if exprs else [()] * len(rows)
    return [tuple(map(_comparable, row)) for row in values]


@cache
def keys_of(node: Pattern) -> tuple[tuple[Expr, ...], ...]:
    """The keys of a pattern, asked for again and again."""
    return node.keys


def _comparable(value: Any) -> Any:
    """Values are the same where = says so: NaN is equal to NaN."""
    return "NaN" if isinstance(value, float) and value != value else value


def _scope_row(node: Pattern, events: Events) -> Row:
    """The columns of all places; those of places without an event are NULL, and nobody looks at them."""
    row: list[Any] = []
    for i, place in enumerate(node.places):
        row += events[i].row if i in events else (None,) * len(place.input.schema.fields)
    return tuple(row)


def _meet(node: Pattern, conditions: Sequence[Expr], chosen: Sequence[Events]) -> list[bool]:
    """For every choice of events, whether the conditions hold."""
    if not conditions or not chosen:
        return [True] * len(chosen)
    return holds(all_of(tuple(conditions)), node.scope, [_scope_row(node, events) for events in chosen])


@cache
def conditions_of(node: Pattern) -> tuple[tuple[set[int], Expr], ...]:
    """All conditions between events, with their places; equalities are closed between events that must be there."""
    out = [(set(node.places_of(c)), c) for c in node.where]
    for terms in node.classes:
        for (one, left), (other, right) in combinations(terms, 2):
            places = [node.places[one], node.places[other]]
            if one != other and not any(p.negated for p in places) and not all(p.repeated for p in places):
                out.append(({one, other}, Expr.of(f"{left} = {right}")))
    return tuple(out)


def _singles(node: Pattern, events: Mapping[int, list[Placed]]) -> list[Choice]:
    """Events for the single places, one after the other; each is tried with all that can follow it."""
    chosen: list[Events] = [{}]
    there: set[int] = set()
    for place in (i for i in node.positive if not node.places[i].repeated):
        conditions = [c for places, c in conditions_of(node) if places <= {*there, place} and not places <= there]
        conditions += [] if there else [c for places, c in conditions_of(node) if not places]
        there.add(place)
        longer = [{**c, place: e} for c in chosen for e in events[place] if _follows(node, c, e)]
        chosen = [c for c, good in zip(longer, _meet(node, conditions, longer), strict=True) if good]
    return [Choice(c) for c in chosen]


def _follows(node: Pattern, chosen: Events, event: Placed) -> bool:
    """Whether an event stands behind all that have been chosen, in time."""
    if not chosen:
        return True
    keys = [e.key for e in chosen.values()]
    return event.key > max(keys) and event.key[0] - min(keys)[0] <= node.within


def _grouped(node: Pattern, events: Mapping[int, list[Placed]], choices: list[Choice], place: int) -> list[Choice]:
    """All events that fit between the neighbours of a repeated place; at an end of the pattern, from or up to any of them."""
    conditions = [c for places, c in conditions_of(node) if place in places]
    here = events[place]
    tried = [
        (c, i)
        for c, choice in enumerate(choices)
        for i, event in enumerate(here)
        if _between(choice.events.get(place - 1), event, choice.events.get(place + 1))
    ]
    fits = _meet(node, conditions, [{**choices[c].events, place: here[i]} for c, i in tried])
    out = []
    for c, choice in enumerate(choices):
        group = [i for (owner, i), good in zip(tried, fits, strict=True) if owner == c and good]
        for anchor, part in _parts(node, place, group):
            out.append(Choice({**choice.events, place: here[anchor]}, {**choice.groups, place: part}))
    return out


def _parts(node: Pattern, place: int, group: list[int]) -> list[tuple[int, list[int]]]:
    """The events that the group of a repeated place stands for in a choice, each with its group."""
    if place == 0:
        return [(group[n], group[n:]) for n in range(len(group))]
    if place == len(node.places) - 1:
        return [(group[n], group[: n + 1]) for n in range(len(group))]
    return [(group[0], group)] if group else []


def _between(before: Placed | None, event: Placed, after: Placed | None) -> bool:
    """Strictly, in the total order; None is no end."""
    return (before is None or before.key < event.key) and (after is None or event.key < after.key)


def _forbid_negated(node: Pattern, events: Mapping[int, list[Placed]], choices: list[Choice], place: int) -> None:
    """A negated event forbids a choice if it lies between its neighbours and meets the conditions that mention it."""
    conditions = [c for places, c in conditions_of(node) if place in places]
    before, after = _neighbours(node, place)
    pairs = []
    for choice in choices:
        start = choice.last - node.within if before is None else None
        end = choice.first + node.within if after is None else None
        for event in events[place]:
            ts = event.key[0]
            near = _between(_at(choice, before), event, _at(choice, after))
            if near and (start is None or start <= ts) and (end is None or ts <= end):
                pairs.append((choice, event))
    _forbid(node, place, conditions, pairs)


def _neighbours(node: Pattern, place: int) -> tuple[int | None, int | None]:
    """The places around a negated one at which there must be an event."""
    gap = node.gap(place)
    return (node.positive[gap - 1] if gap > 0 else None, node.positive[gap] if gap < len(node.positive) else None)


def _at(choice: Choice, place: int | None) -> Placed | None:
    return None if place is None else choice.events[place]


def _forbid(node: Pattern, place: int, conditions: Sequence[Expr], pairs: Sequence[tuple[Choice, Placed]]) -> None:
    """Of (choice, event) pairs, those events forbid that meet the conditions at the place."""
    tried = [{**choice.events, place: event} for choice, event in pairs]
    for (choice, event), good in zip(pairs, _meet(node, conditions, tried), strict=True):
        if good:
            choice.forbidden.append(event)


def _forbid_next(node: Pattern, events: Mapping[int, list[Placed]], choices: list[Choice]) -> None:
    """No event between those of two places also fits at the second, given those before it; of a group the first event counts."""
    for before, place in pairwise(node.positive):
        earlier = {i for i in node.positive if i <= place}
        conditions = [c for places, c in conditions_of(node) if place in places and places <= earlier]
        pairs = []
        for choice in choices:
            first = events[place][choice.groups[place][0]] if place in choice.groups else choice.events[place]
            pairs += [(choice, e) for e in events[place] if _between(choice.events[before], e, first)]
        _forbid(node, place, conditions, pairs)


def _forbid_between(node: Pattern, found: Found, events: Mapping[int, list[Placed]], choices: list[Choice]) -> None:
    """No event of any unit, of the same key, stands between those of two places, but those of a group."""
    others = _all_events(node, found)
    place = node.positive[0]
    for choice, own in zip(choices, _keys(node, place, [c.events[place] for c in choices]), strict=True):
        group = {events[i][n].key for i, some in choice.groups.items() for n in some}
        for before, after in pairwise(choice.ordered):
            choice.forbidden += [e for e, keys in others if own in keys and e.key not in group and _between(before, e, after)]


def _all_events(node: Pattern, found: Found) -> list[tuple[Placed, set[Row]]]:
    """Every event of every unit, whatever it is like, with the keys that it has at the places of its unit."""
    known: dict[Key, tuple[Placed, set[Row]]] = {}
    for i, place in enumerate(node.places):
        rows = _seen(node, found, place.input, filtered=False)
        for event, key in zip(rows, _keys(node, i, rows), strict=True):
            known.setdefault(event.key, (event, set()))[1].add(key)
    return list(known.values())
