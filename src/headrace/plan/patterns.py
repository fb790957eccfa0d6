"""Sequence patterns: events that follow one another, none of some types between them, within a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.aggregates import Aggregate
from headrace.plan.expr import Expr, all_of
from headrace.plan.schema import Field, Schema
from headrace.plan.time import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence as Several

    from headrace.plan.nodes import Node

    PlacesOf = Callable[[Expr], tuple[int, ...]]
    Term = tuple[int, Expr]


FRAMES = 8  # so many frames fill the memory that a pattern may use


class Selection(Enum):
    """Which of the events that fit at a place are taken."""

    ANY = "ANY MATCH"  # every combination is a result
    NEXT = "NEXT MATCH"  # the first that fits behind the one before it
    STRICT = "STRICT"  # the very next event of all streams of the pattern; of the same key, if it has one


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a sequence: a stream, the name of its event, and what that event must be like by itself."""

    name: str
    input: Node
    negated: bool = False
    repeated: bool = False  # all events that fit between its neighbours, at least one
    where: Expr | None = None  # over the columns of the input

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """What the event must be like by itself."""
        return () if self.where is None else (self.where,)

    def __str__(self) -> str:
        """As in SEQ; the stream is told below."""
        where = f" WHERE {self.where}" if self.where else ""
        return f"!({self.name}{where})" if self.negated else f"{self.name}{'+' if self.repeated else ''}{where}"


@dataclass(frozen=True, slots=True)
class Spill:
    """Where a pattern has more events than memory is to hold, the oldest lie outside, in frames (001, VIII).

    A late event whose window begins in a frame waits until `together` such events wait for it, or until the clock is `wait` past
    the first of them; None: however long that takes, up to the time at which it is final.
    """

    memory: int  # events
    together: int = 1
    wait: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if self.memory < FRAMES:
            raise QueryError(f"memory for {self.memory} events is not enough to work with", hint=f"give it at least {FRAMES}")
        if self.together < 1:
            raise QueryError(f"together = {self.together} waits for nothing", hint="1: late events do not wait")
        if self.wait is not None and (self.wait <= 0 or self.together == 1):
            raise QueryError("wait says how long late events wait for others at most", hint="give together, 2 or more, with it")

    @property
    def frame(self) -> int:
        """How many events a frame has."""
        return self.memory // FRAMES

    @property
    def room(self) -> int:
        """How many events stay in memory: there is also one frame that is read back, and room for as many that are new."""
        return self.memory - 2 * self.frame

    def __str__(self) -> str:
        """As in WITH."""
        wait = "" if self.wait is None else f", wait = {format_duration(self.wait)}"
        return f"memory = {self.memory}" + (f", together = {self.together}" if self.together > 1 else "") + wait


@dataclass(frozen=True, slots=True)
class Pattern:
    """Every choice of one event for each place that is not negated, in the total order, for which the conditions hold.

    `where` are conditions between events, over `scope`: the columns of all places, each with the name of its place in front.
    The last event is no more than `within` after the first. A negated event forbids a choice if it lies between its neighbours
    (at the start: from last - within on; at the end: up to first + within) and meets the conditions that mention it. A
    result stands where its last event stands. `groups` are aggregates of the events of a repeated place, by its name.
    """

    places: tuple[Place, ...]
    within: int
    where: tuple[Expr, ...] = ()
    selection: Selection = Selection.ANY
    groups: tuple[tuple[str, Aggregate], ...] = ()
    spill: Spill | None = None
    scope: Schema = field(init=False)
    schema: Schema = field(init=False)

    def __post_init__(self) -> None:
        """What is written must have one meaning."""
        _check_places(self.places)
        if self.within <= 0:
            raise QueryError("WITHIN must be longer than nothing", hint="for example WITHIN 5 MINUTES")
        if self.spill is not None:
            check_spill(any(p.repeated for p in self.places))
        columns = place_columns(self.places)
        scope = tuple(Field(columns[i][f.name], f.type) for i, p in enumerate(self.places) for f in p.input.schema.fields)
        object.__setattr__(self, "scope", Schema(scope))
        for place in self.places:
            if place.where is not None:
                place.where.check(place.input.schema)
        for condition in self.where:
            self._check_condition(condition.check(self.scope))
        single = [(own, p) for own, p in zip(columns, self.places, strict=True) if not (p.negated or p.repeated)]
        shown = tuple(Field(own[f.name], f.type) for own, p in single for f in p.input.schema.fields)
        object.__setattr__(self, "schema", Schema(shown + tuple(self._group(*g) for g in self.groups)))

    @property
    def columns(self) -> tuple[dict[str, str], ...]:
        """For every place: the name in `scope` of each column of its input."""
        return place_columns(self.places)

    @property
    def positive(self) -> tuple[int, ...]:
        """The places that are not negated, repeated ones included."""
        return tuple(i for i, p in enumerate(self.places) if not p.negated)

    def gap(self, place: int) -> int:
        """How many positive places stand before a negated one."""
        return sum(not p.negated for p in self.places[:place])

    @property
    def waits(self) -> int:
        """How long after the time of a result it may become known: a negation at the end waits for the end of the window."""
        return self.within if self.places[-1].negated else 0

    @property
    def can_be_undone(self) -> bool:
        """Whether an event that comes late may forbid or change a result. Alone, an event has no next one."""
        chosen = self.selection is not Selection.ANY and len(self.positive) > 1
        return chosen or any(p.negated or p.repeated for p in self.places)

    def places_of(self, expr: Expr) -> tuple[int, ...]:
        """The places whose columns an expression over `scope` reads, in order."""
        names = {n.lower() for n in expr.columns}
        return tuple(i for i, own in enumerate(self.columns) if names & {n.lower() for n in own.values()})

    def said(self, expr: Expr) -> str:
        """An expression over `scope` as it was written: `s.id` for the column s_id."""
        names = {new.lower(): (p.name, old) for p, own in zip(self.places, self.columns, strict=True) for old, new in own.items()}

        def swap(tree: exp.Expr) -> exp.Expr:
            tree = unbracketed(tree)
            found = names.get(tree.name.lower()) if isinstance(tree, exp.Column) else None
            return tree if found is None else exp.column(found[1], table=found[0])

        return expr.tree.transform(swap).sql(dialect="spark")

    @property
    def classes(self) -> tuple[tuple[Term, ...], ...]:
        """The (place, expression over `scope`) pairs that are equal in every result, or in every event that forbids one."""
        return equal_terms(self.where, self.places_of)

    @property
    def keys(self) -> tuple[tuple[Expr, ...], ...]:
        """Of all events of a result, and of those that forbid one, these are equal: for each an expression per place."""
        every = set(range(len(self.places)))
        found = ({i: e for i, e in reversed(terms)} for terms in self.classes)
        return tuple(tuple(terms[i] for i in sorted(every)) for terms in found if set(terms) == every)

    def _check_condition(self, condition: Expr) -> None:
        own = [self.places[i] for i in self.places_of(condition)]
        forbidding = [p.name for p in own if p.negated]
        repeated = [p.name for p in own if p.repeated]
        if len(forbidding) > 1:
            hint = "compare each of them with an event of the result"
            raise QueryError(f"{condition} compares two events that must not be there, {' and '.join(forbidding)}", hint=hint)
        if len(repeated) > 1 or (repeated and forbidding):
            message = f"{condition} compares events of a repeated place with others that are not one event of the result"
            raise QueryError(message, hint="compare them with the event of a single place")

    def _group(self, name: str, call: Aggregate) -> Field:
        place = next((p for p in self.places if p.name == name and p.repeated), None)
        if place is None:
            hint = f"write {name}'s type with +"
            raise QueryError(f"{call.function.name} is for a repeated place, and {name!r} is none", hint=hint)
        return call.column(place.input.schema)

    def __str__(self) -> str:
        """One line for explain."""
        where = f" WHERE {' AND '.join(map(str, self.where))}" if self.where else ""
        how = f" {self.selection.value}" if self.selection is not Selection.ANY else ""
        groups = "".join(f"; {name}: {call} AS {call.name}" for name, call in self.groups)
        spill = f" WITH ({self.spill})" if self.spill else ""
        return f"Pattern ({', '.join(map(str, self.places))}){how}{where} WITHIN {format_duration(self.within)}{spill}{groups}"


def unbracketed(tree: exp.Expr) -> exp.Expr:
    """A column without the brackets that putting one expression into another left round it."""
    inside = tree.unnest()
    return inside if isinstance(inside, exp.Column) else tree


def place_columns(places: Several[Place]) -> tuple[dict[str, str], ...]:
    """For every place the name of each of its columns beside those of the others: `s_id` is column id of place s."""
    taken: set[str] = set()
    out = []
    for place in places:
        own = {}
        for f in place.input.schema.fields:
            name = f"{place.name}_{f.name}"
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            own[f.name] = name
        out.append(own)
    return tuple(out)


def pattern(
    places: Several[Place], conditions: Several[Expr], within: int, selection: Selection = Selection.ANY,
    groups: tuple[tuple[str, Aggregate], ...] = (), spill: Spill | None = None,
) -> Pattern:  # fmt: skip
    """A sequence from conditions over `scope`, in any form: those on one event go to its place, equalities are closed."""
    bare = Pattern(tuple(places), within, (), selection, groups, spill)
    between: list[Expr] = []
    own: dict[int, list[Expr]] = {}
    for condition in dict.fromkeys(conditions):
        found = bare.places_of(condition.check(bare.scope))
        if len(found) > 1:
            between.append(condition)
        else:
            place = found[0] if found else bare.positive[0]
            names = {new.lower(): Expr.column(old) for old, new in bare.columns[place].items()}
            own.setdefault(place, []).append(condition.substitute(names))
    done = tuple(replace(p, where=all_of((*p.conditions, *own.get(i, ())))) for i, p in enumerate(bare.places))
    where = dict.fromkeys((*_through_negated(between, bare), *_implied(between, bare)))
    return Pattern(done, within, tuple(where), selection, groups, spill)


def compares_negated(condition: Expr, bare: Pattern) -> bool:
    """Whether a condition is an equality of two events that must not be there; other conditions may give it a meaning."""
    pair = _equality(condition, bare.places_of)
    return pair is not None and all(bare.places[i].negated for i, _ in pair)


def _through_negated(conditions: list[Expr], bare: Pattern) -> list[Expr]:
    """Two events that must not be there are never compared with each other, but each with those of a result.

    If an event of the result is equal to both, an equality of the two says just that. If none is, it stays, and is refused.
    """
    direct = {frozenset(pair) for c in conditions if (pair := _equality(c, bare.places_of)) is not None}
    single = {i for i in bare.positive if not bare.places[i].repeated}
    out = []
    for condition in conditions:
        pair = _equality(condition, bare.places_of) if compares_negated(condition, bare) else None
        terms = next((c for c in equal_terms(conditions, bare.places_of) if pair is not None and pair[0] in c), ())
        there = [t for t in terms if t[0] in single]
        if pair is None or not there:
            out.append(condition)
            continue
        for own in pair:
            out += [Expr.of(f"{one[1]} = {own[1]}") for one in there if frozenset((one, own)) not in direct]
    return out


def _implied(conditions: list[Expr], bare: Pattern) -> list[Expr]:
    """Events of a result that are both equal to a third are equal to each other, also if that third one must not be there."""
    repeated = {i for i in bare.positive if bare.places[i].repeated}
    out = []
    for terms in equal_terms(conditions, bare.places_of):
        direct = {frozenset(pair) for c in conditions if (pair := _equality(c, bare.places_of)) is not None}
        for one, other in combinations([t for t in terms if t[0] in bare.positive], 2):
            places = {one[0], other[0]}
            if len(places) == 2 and not places <= repeated and frozenset((one, other)) not in direct:
                out.append(Expr.of(f"{one[1]} = {other[1]}"))
    return out


def _equality(condition: Expr, places_of: PlacesOf) -> tuple[Term, Term] | None:
    """The two sides, if a condition says that something of one event equals something of another."""
    tree = condition.tree.unnest()
    if not isinstance(tree, exp.EQ):
        return None
    ends = [Expr.of(end.unnest()) for end in (tree.this, tree.expression)]
    found = [places_of(end) for end in ends]
    if any(len(places) != 1 for places in found) or found[0] == found[1]:
        return None
    return (found[0][0], ends[0]), (found[1][0], ends[1])


def equal_terms(conditions: Several[Expr], places_of: PlacesOf) -> tuple[tuple[Term, ...], ...]:
    """The classes into which equalities put (place, expression) pairs, each in order of place."""
    classes: list[set[Term]] = []
    for condition in conditions:
        pair = _equality(condition, places_of)
        if pair is not None:
            touched = [c for c in classes if c & set(pair)]
            classes = [c for c in classes if c not in touched] + [set(pair).union(*touched)]
    return tuple(tuple(sorted(c, key=lambda t: (t[0], t[1].sql))) for c in classes)


def _check_places(places: tuple[Place, ...]) -> None:
    names = [p.name.lower() for p in places]
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"two events of the pattern are called {name!r}", hint="give each a name of its own")
    if all(p.negated or p.repeated for p in places):
        raise QueryError("a pattern needs an event that must be there, once", hint="for example SEQ(a x, !(b y))")
    for one, other in pairwise(places):
        check_neighbours(one, other)


def check_spill(repeated: bool) -> None:
    """Refuse a bound on memory where events are read together."""
    if repeated:
        raise QueryError("the events of a repeated place are read together, so all are kept in memory", hint="leave memory out")


def check_neighbours(one: Place, other: Place) -> None:
    """Refuse two places beside each other of which nothing tells where the one ends."""
    if one.repeated and other.repeated:
        hint = "put a single event between two repeated ones"
        raise QueryError(f"nothing tells where the events of {one.name!r} end and those of {other.name!r} begin", hint=hint)
    if (one.negated and other.repeated) or (one.repeated and other.negated):
        hint = "put a single event between them"
        raise QueryError(f"a negated event stands beside the repeated {(one if one.repeated else other).name!r}", hint=hint)
