"""Sequence patterns, lowered: one stage has the rows of all streams; conditions on one event are columns that Spark computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.errors import QueryError
from headrace.plan.expr import Expr, all_of
from headrace.plan.joins import common_type
from headrace.plan.patterns import Pattern, Selection, equal_terms
from headrace.plan.query import Query, Using
from headrace.plan.schema import Field, Schema
from headrace.plan.stream import StageSource
from headrace.plan.types import INTEGRAL, base_type, decimal_parts
from headrace.program.aggregates import RESULT
from headrace.program.patterns import (
    ANY_ROW,
    Condition,
    GroupProgram,
    Negation,
    PatternColumn,
    PatternOutput,
    PatternProgram,
    PlaceProgram,
    Sequencing,
    Word,
)
from headrace.program.stage import Door
from headrace.scalars.types import HASH, SCALED, Kind, kind_of
from headrace.scalars.words import WordParts, check_between
from headrace.stages.flatten import FALSE, TRUE, Exprs, Flat, flatten

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.plan.aggregates import Aggregate
    from headrace.plan.stream import Stream
    from headrace.program.aggregates import Tally
    from headrace.scalars.words import Part
    from headrace.stages.builder import StageBuilder

    TypeOf = Callable[[Expr, Schema], str]
    Keys = tuple[tuple[tuple[Expr, ...], Exprs], ...]  # terms of all places; what they are in every stream
    MakeBuilder = Callable[[tuple[Stream, ...], tuple[Exprs, ...] | None, object], StageBuilder]

# Words of these types are equal exactly if the values are.
INDEXED = (*INTEGRAL, "STRING", "VARCHAR", "CHAR", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN")


@dataclass(slots=True)
class Lowering:
    """A pattern over the streams that its rows come from."""

    node: Pattern
    type_of: TypeOf
    steady: set[str]
    parts: list[dict[str, Flat]] = field(default_factory=list)  # per place: by stream
    streams: dict[str, Stream] = field(default_factory=dict)  # in the order in which the pattern first names them

    def __post_init__(self) -> None:
        for place in self.node.places:
            own: dict[str, Flat] = {}
            for part in flatten(place.input).parts:
                if part.stream.name in own:
                    raise QueryError(f"stream {part.stream.name!r} is merged with itself at {place.name!r}")
                own[part.stream.name] = part
                self.streams.setdefault(part.stream.name, part.stream)
            self.parts.append(own)

    def sources(self, place: int) -> tuple[int, ...]:
        """The numbers of the streams whose rows a place takes."""
        return tuple(i for i, name in enumerate(self.streams) if name in self.parts[place])

    def takes_back(self, place: int) -> bool:
        return any(isinstance(p.stream.source, StageSource) and name not in self.steady for name, p in self.parts[place].items())

    def kind(self, place: int, expr: Expr) -> str:
        """The type of an expression over `scope` that reads one place."""
        return self._kind(place, self._own(place, expr))

    def _kind(self, place: int, own: Expr) -> str:
        part = next(iter(self.parts[place].values()))
        return self.type_of(part.rewrite(own), part.stream.schema)

    def exprs(self, place: int, expr: Expr) -> Exprs:
        """An expression over `scope` that reads one place, for every stream; NULL in those that do not fit there."""
        return self.values(place, self._own(place, expr))

    def values(self, place: int, own: Expr, other: Expr | None = None) -> Exprs:
        """An expression over the columns of a place, for every stream; NULL (or `other`) in those that do not fit there."""
        nothing = other if other is not None else Expr.of(f"CAST(NULL AS {self._kind(place, own)})")
        return tuple(p.rewrite(own) if (p := self.parts[place].get(name)) else nothing for name in self.streams)

    def _own(self, place: int, expr: Expr) -> Expr:
        names = {new.lower(): Expr.column(old) for old, new in self.node.columns[place].items()}
        column = expr.as_column
        return names[column.lower()] if column is not None else expr.substitute(names)

    def keys(self) -> Keys:
        """What rows can be parted by: the equal expressions per place, and what they are of the rows of every stream."""
        out = []
        for terms in self.node.keys:
            kinds, common = self._together(terms)
            cast = (e if k == common else Expr.of(f"CAST({e} AS {common})") for e, k in zip(terms, kinds, strict=True))
            every = [self.exprs(i, e) for i, e in enumerate(cast)]
            found = [{every[i][s] for i in range(len(terms)) if s in self.sources(i)} for s in range(len(self.streams))]
            if all(len(one) == 1 for one in found):  # places that share a stream must agree
                out.append((terms, tuple(one.pop() for one in found)))
            elif self.node.selection is Selection.STRICT:
                apart = next(one for one in found if len(one) > 1)
                keys = " and ".join(sorted(map(str, apart)))
                raise QueryError(
                    f"STRICT lets nothing of the same key lie in between, and {keys} are different keys of one event",
                    hint="compare what is the same at all places of a stream, or use NEXT MATCH",
                )
        return tuple(out)

    def _together(self, terms: tuple[Expr, ...]) -> tuple[list[str], str]:
        """The types of the terms of a key, and the one that they are compared in."""
        kinds = [self.kind(i, e) for i, e in enumerate(terms)]
        common: str | None = kinds[0]
        for kind in kinds[1:]:
            common = common and common_type(common, kind)
        if common is None:
            raise QueryError(f"{' and '.join(map(str, terms))} cannot be compared: {' and '.join(kinds)}",
                             hint="convert them with CAST")  # fmt: skip
        return kinds, common

    def in_key(self, condition: Expr, keys: Keys) -> bool:
        """Whether rows of one key meet a condition. A key in a type that takes several values for one says less than it does."""
        for terms, _ in keys:
            known = set(enumerate(terms))
            for pair in equal_terms([condition], self.node.places_of):
                if set(pair) <= known:
                    kinds, common = self._together(terms)
                    own = [kinds[p] for p, _ in pair]
                    return common_type(*own) == common or not any(_loses(kind, common) for kind in own)
        return False


def _loses(kind: str, common: str) -> bool:
    """Whether different values of a type may be one in the other, in which they are compared."""
    return base_type(common) == "DOUBLE" and base_type(kind) in ("BIGINT", "DECIMAL")


def lower_pattern(query: Query, node: Pattern, needed: set[str], type_of: TypeOf, make: MakeBuilder, steady: set[str]) -> Schema:
    """Put a pattern into its stage. Gives the columns of its results. Feeds that are `steady` take nothing back."""
    low = Lowering(node, type_of, steady)
    keys = low.keys()
    slack = query.using is Using.KSLACK
    apart = ("pattern", node.places, node.where, node.within, node.selection, slack, node.spill)
    builder = make(tuple(low.streams.values()), tuple(e for _, e in keys), apart)
    masks = [_place_masks(low, i, keys, builder) for i in range(len(node.places))]
    strict = node.selection is Selection.STRICT
    for own in masks:
        builder.want(_known(keys, builder) if strict and len(node.positive) > 1 else own)
    known = builder.program if isinstance(builder.program, PatternProgram) else None
    sequence = known.sequence if known is not None else _sequencing(low, keys, masks, builder, slack)
    if sequence.slack is not None:
        builder.doors = (Door(tuple(range(len(low.streams))), sequence.slack),)
    columns = []
    for i, place in enumerate(node.places):
        for f in place.input.schema.fields:
            name = node.columns[i][f.name]
            if name in needed and not place.negated and not place.repeated:
                kind = low.kind(i, Expr.column(name))
                vector = builder.shown(low.exprs(i, Expr.column(name)), kind, masks[i])
                columns.append(PatternColumn(name, kind, i, vector))
    groups = tuple(_group(low, i, calls, masks[i], builder) for i, calls in _calls(node, needed).items())
    shown = PatternOutput(query.name, query.emit, tuple(columns), groups)
    builder.program = PatternProgram(sequence, (*(known.shown if known is not None else ()), shown))
    fields = [Field(c.name, c.type) for c in columns] + [Field(m.name, m.type) for g in groups for m in g.metrics]
    return Schema(tuple(fields))


def _calls(node: Pattern, needed: set[str]) -> dict[int, list[Aggregate]]:
    """By repeated place: the aggregates that anybody asks for."""
    out: dict[int, list[Aggregate]] = {}
    for i, place in enumerate(node.places):
        calls = [call for name, call in node.groups if name == place.name and call.name in needed]
        if calls:
            out[i] = calls
    return out


def _group(low: Lowering, place: int, calls: list[Aggregate], masks: tuple[int, ...], builder: StageBuilder) -> GroupProgram:
    """Aggregates over the events of a repeated place."""
    tallies: list[Tally] = []
    metrics = []
    for call in calls:
        arguments = tuple(low.values(place, a) for a in call.arguments)
        kept = () if call.filter is None else builder.masks((low.values(place, call.filter, FALSE),))
        metrics.append(builder.metric(call, arguments, tuple(sorted({*masks, *kept})), tallies, RESULT, RESULT))
    return GroupProgram(place, tuple(tallies), tuple(metrics))


def _known(keys: Keys, builder: StageBuilder) -> tuple[int, ...]:
    """Masks: no key is NULL."""
    return builder.masks(tuple(tuple(Expr.of(f"({e}) IS NOT NULL") for e in exprs) for _, exprs in keys))


def _place_masks(low: Lowering, place: int, keys: Keys, builder: StageBuilder) -> tuple[int, ...]:
    """Masks: the row is of a stream of this place, and fits there by itself."""
    spec = low.node.places[place]
    compared = spec.negated or len(low.node.positive) > 1  # NULL equals nothing

    def fits(number: int, name: str) -> Expr:
        part = low.parts[place].get(name)
        if part is None:
            return FALSE
        known = tuple(Expr.of(f"({exprs[number]}) IS NOT NULL") for _, exprs in keys) if compared else ()
        return all_of((*part.predicates, *(part.rewrite(e) for e in spec.conditions), *known)) or TRUE

    every = tuple(fits(i, name) for i, name in enumerate(low.streams))
    return () if all(e == TRUE for e in every) else builder.masks((every,))


def _sequencing(low: Lowering, keys: Keys, masks: list[tuple[int, ...]], builder: StageBuilder, slack: bool) -> Sequencing:
    node = low.node
    words = Words(low, builder, masks)
    kept = [c for c in node.where if not low.in_key(c, keys)]
    conditions = tuple(Condition(words.over(c), node.places_of(c)) for c in kept)
    positive = node.positive
    negated = {i for i, p in enumerate(node.places) if p.negated}
    negations = [
        Negation(g, node.gap(g), tuple(k for k, c in enumerate(conditions) if g in c.places), sources=low.sources(g))
        for g in sorted(negated)
    ]
    negations += _implied(low, conditions)
    live = [builder.row(own) for own in masks]
    places = tuple(PlaceProgram(p.name, live[i], low.sources(i), words.of(i)) for i, p in enumerate(node.places))
    delays = [s.delay for s in low.streams.values() if isinstance(s.delay, int)]
    return Sequencing(
        places, positive, tuple(negations), conditions,
        tuple(k for k, c in enumerate(conditions) if not negated & set(c.places)),
        words.equal(kept), node.within, builder.group(tuple(e for _, e in keys)) if keys else None,
        max(delays, default=0) if slack else None,
        waits=tuple(q for q, p in enumerate(positive) if low.takes_back(p)),
        repeated=tuple(q for q, p in enumerate(positive) if node.places[p].repeated),
        spill=node.spill,
    )  # fmt: skip


def _implied(low: Lowering, conditions: tuple[Condition, ...]) -> list[Negation]:
    """What the selection forbids: NEXT another that fits as well, STRICT anything. Of a group, nothing fits before the first."""
    node, out = low.node, []
    last = len(node.positive) - 1
    for gap, place in enumerate(node.positive):
        ends = node.places[place].repeated and gap == last  # then what fits before it is in its group
        if gap == 0:
            continue
        if node.selection is Selection.STRICT:
            out.append(_nothing_but(low, conditions, gap, place if ends else node.positive[gap - 1]))
        elif not ends and (node.selection is Selection.NEXT or node.places[place].repeated):
            known = node.positive[: gap + 1] if node.selection is Selection.NEXT else node.positive
            own = tuple(k for k, c in enumerate(conditions) if place in c.places and set(c.places) <= set(known))
            out.append(Negation(place, gap, own, sources=low.sources(place)))
    return out


def _nothing_but(low: Lowering, conditions: tuple[Condition, ...], gap: int, place: int) -> Negation:
    """Nothing lies in a gap; if this place is repeated, nothing but events of its group."""
    everything = tuple(range(len(low.streams)))
    if not low.node.places[place].repeated:
        return Negation(ANY_ROW, gap, sources=everything)
    own = tuple(k for k, c in enumerate(conditions) if place in c.places)
    return Negation(ANY_ROW, gap, own, place, everything)


class Words:
    """What conditions read of events, as words that are computed where rows come from."""

    def __init__(self, low: Lowering, builder: StageBuilder, masks: list[tuple[int, ...]]) -> None:
        self.low, self.builder, self.masks = low, builder, masks
        self.parts = WordParts(low.node, low.kind)

    def over(self, condition: Expr) -> Expr:
        """A condition over `scope` as one over words, if it can be evaluated."""
        check_between(self.low.node, condition, self.low.kind)
        return self.parts.over(condition)

    def of(self, place: int) -> tuple[Word, ...]:
        return tuple(Word(self._vector(place, part), part.word) for part in self.parts.of[place])

    def _vector(self, place: int, part: Part) -> int:
        expr, kind = part.expr, part.type
        if part.word.startswith(SCALED):
            digits, scale = decimal_parts(part.word)
            whole = f"CAST({expr} AS DECIMAL({digits + scale}, {scale})) * CAST({10**scale} AS DECIMAL({scale + 1}, 0))"
            expr, kind = Expr.of(f"CAST({whole if scale else expr} AS BIGINT)"), "BIGINT"
        elif kind_of(kind) is Kind.INTERVAL:
            kind = "BIGINT"  # it is a number of microseconds, not something that is only equal or not
        return self.builder.word(self.low.exprs(place, expr), kind, self.masks[place])

    def equal(self, conditions: list[Expr]) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Classes of words that are equal in every result, and compare as words."""
        out = []
        for terms in equal_terms(conditions, self.low.node.places_of):
            known = [(p, k, part.word) for p, e in terms for k, part in enumerate(self.parts.of[p]) if part.expr == e]
            kinds = {_sort(word) for _, _, word in known}
            if len(known) > 1 and len(kinds) == 1 and None not in kinds:
                out.append(tuple((p, k) for p, k, _ in known))
        return tuple(out)


def _sort(word: str) -> str | None:
    """Words of one sort are equal exactly if their values are; None if those of this type may be so and differ."""
    if word.startswith(SCALED):
        return f"{SCALED} by {decimal_parts(word)[1]}"
    if word.startswith(HASH):
        return word
    return base_type(word) if base_type(word) in INDEXED else None
