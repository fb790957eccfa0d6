"""A pattern as the search takes it: where a search goes next, by which index, and what it tests there.

Conditions go on failing as a value of one event rises, or falls: searches pass by all that is no better. `y.price > x.price + 5`
is false for an x, and so for all larger ones. It may be NULL instead, by an overflow for example: of that nothing follows. So
what counts is that the opposite, `y.price <= x.price + 5`, is true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from headrace.errors import QueryError
from headrace.kernels.keys.hashing import hash_columns
from headrace.kernels.patterns import finding, stacks
from headrace.kernels.patterns import sequences as kernel
from headrace.plan.expr import Expr
from headrace.program.patterns import ANY_ROW, Condition, Negation, PlaceProgram, Sequencing
from headrace.scalars.compiled import Compiled, Slot, all_of, compile_expression
from headrace.scalars.types import FLOATS, kind_of

MOST_BITS = 62  # places, conditions, negations and words are bits of one int64 each
Columns = tuple[int, ...]
_OPPOSITE: dict[type[exp.Expr], type[exp.Binary]] = {exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT}
_LESS = (exp.LT, exp.LTE)


@dataclass(slots=True)
class Plan:
    """All indexes that searches use, and what each needs of a row."""

    spec: Sequencing
    vectors: list[int] = field(default_factory=list)  # whose words rows have
    indexes: dict[tuple[int, Columns], int] = field(default_factory=dict)  # (place, words by column) -> number
    refuting: list[Expr] = field(default_factory=list)  # conditions behind those of the pattern
    slopes: dict[tuple[int, ...], int] = field(default_factory=dict)  # as the kernel has them -> number
    slope: dict[tuple[int, int], int] = field(default_factory=dict)  # (index, condition that refutes) -> number

    def __post_init__(self) -> None:
        """Every place has an index by key alone."""
        self.vectors += dict.fromkeys(w.vector for place in self.spec.places for w in place.words)
        for what in (self.vectors, self.spec.places, self.spec.conditions, self.spec.negations):
            if len(what) > MOST_BITS:
                raise QueryError(f"a pattern has at most {MOST_BITS} places, conditions and values that they compare")
        for place in range(self.places):
            self.index(place, ())
        if any(n.place == ANY_ROW for n in self.spec.negations):
            self.index(self.places, ())

    @property
    def places(self) -> int:
        """How many, negated ones included; one more stands for any row."""
        return len(self.spec.places)

    def index(self, place: int, columns: Columns) -> int:
        """The index of the rows of a place by key and these words."""
        return self.indexes.setdefault((place, columns), len(self.indexes))

    def column(self, place: int, word: int) -> int:
        """Which word of a row is a word of a place."""
        return self.vectors.index(self.spec.places[place].words[word].vector)

    def position(self, place: int, word: int) -> int:
        """Where a word of a place stands among those of all places."""
        return sum(len(p.words) for p in self.spec.places[:place]) + word

    @property
    def width(self) -> int:
        return sum(len(p.words) for p in self.spec.places)

    def probe(self, place: int, bound: set[int]) -> tuple[int, list[int]]:
        """The index that finds the rows of a place which equal what is bound, and where its words are among those bound."""
        found: dict[int, int] = {}
        for terms in self.spec.equal:
            own = [k for p, k in terms if p == place]
            other = [(p, k) for p, k in terms if p in bound and p != place]
            if own and other:
                found.setdefault(self.column(place, own[0]), self.position(*other[0]))
        columns = tuple(sorted(found))
        return self.index(place, columns), [found[c] for c in columns]

    def refutes(self, conditions: set[int], place: int, index: int) -> int:
        """What refutes rows of a place that are found by an index, as bits."""
        out = set()
        for condition in sorted(conditions):
            for found in refutations(self.spec.conditions[condition], place, self.spec.places[place]):
                known = found.opposite in self.refuting
                if not known and len(self.spec.conditions) + len(self.refuting) == MOST_BITS:
                    continue  # it is slower, and as right
                if not known:
                    self.refuting.append(found.opposite)
                number = len(self.spec.conditions) + self.refuting.index(found.opposite)
                slope = (index, self.column(place, found.word), found.more, found.double)
                self.slope[index, number] = self.slopes.setdefault(slope, len(self.slopes))
                out.add(number)
        return _bits(out)

    def table(self) -> np.ndarray:
        """The indexes as the kernel has them. Rows of one stream never use one pair of links twice."""
        most = max((len(columns) for _, columns in self.indexes), default=0)
        out = np.zeros((len(self.indexes), stacks.FIRST + max(most, 1)), np.int64)
        used: list[set[int]] = []
        for j, (place, columns) in enumerate(self.indexes):
            mine = set(self._sources(place))
            local = next(i for i in range(len(used) + 1) if i == len(used) or not used[i] & mine)
            if local == len(used):
                used.append(set())
            used[local] |= mine
            out[j, : stacks.FIRST + len(columns)] = (place, local, len(columns), *columns)
        return out

    def _sources(self, place: int) -> tuple[int, ...]:
        if place < self.places:
            return self.spec.places[place].sources
        return tuple(i for p in self.spec.places for i in p.sources)


class Search:
    """What the kernel needs of a pattern, once."""

    def __init__(self, spec: Sequencing, grouped: bool = False) -> None:
        """Compile the conditions and plan every search; `grouped`: also for results that change because their groups do."""
        self.spec, self.plan = spec, Plan(spec)
        n = len(spec.positive)
        self._gaps = (*spec.negations, *(spec.members(q) for q in spec.repeated if grouped))
        starts = [self._steps(start) for start in range(n + len(self._gaps))] + [self._beginning(end) for end in range(n)]
        negations = [self._negation(negation) for negation in self._gaps]
        self.groups = {spec.positive[q]: self._group(q) for q in spec.repeated}
        check, words = _compile(self.plan)
        self.indexes = self.plan.table()
        self.slopes = np.array(list(self.plan.slopes), np.int64).reshape(-1, stacks.SLOPE)
        self.links = 2 * (1 + int(self.indexes[:, stacks.LOCAL].max()))  # of every row
        room = self.indexes.shape[1]
        steps = np.zeros((len(starts), max(1, *(len(some) for some in starts)), kernel.PROBE + room), np.int64)
        for start, some in enumerate(starts):
            for k, step in enumerate(some):
                steps[start, k, : len(step)] = step
        table = np.zeros((len(negations), kernel.N_PROBE + room), np.int64)
        for g, negation in enumerate(negations):
            table[g, : len(negation)] = negation
        self.program = kernel.SearchProgram(
            steps, np.array([len(some) for some in starts], np.int64), table, len(spec.negations),
            np.array(spec.positive, np.int64), *self._words(), spec.within, self._marked(), self._slope(),
        )  # fmt: skip
        self.change = partial(finding.change, check, self.program, words)
        self.extend = partial(finding.extend, check, self.program, words)
        self.forbidden = partial(finding.forbidden, check, self.program, words)
        self.members = partial(finding.members, check, self.program, words)

    def _slope(self) -> np.ndarray:
        out = np.zeros((len(self.indexes), MOST_BITS), np.int64)
        for (index, condition), number in self.plan.slope.items():
            out[index, condition] = number
        return out

    def _words(self) -> tuple[np.ndarray, np.ndarray]:
        places = self.spec.places
        most = max((len(p.words) for p in places), default=0) + 1
        where, column = (np.full((len(places), most), stacks.NONE, np.int64) for _ in range(2))
        for p, place in enumerate(places):
            for k in range(len(place.words)):
                where[p, k], column[p, k] = self.plan.position(p, k), self.plan.column(p, k)
        return where, column

    def _steps(self, start: int) -> list[list[int]]:
        """From the start to all positive places; each step with all that can be tested once it is bound."""
        spec, n = self.spec, len(self.spec.positive)
        if start < n:
            order = [*range(start + 1, n), *range(start - 1, -1, -1)]
            return self._bind({spec.positive[start]}, set(spec.checked), order, {2 * start: start})
        negation = self._gaps[start - n]
        explicit = negation.place != ANY_ROW and negation.place not in spec.positive
        bound = {negation.place} if explicit else set()
        own = {*spec.checked, *(negation.conditions if explicit else ())}
        order = [*range(negation.gap, n), *range(negation.gap - 1, -1, -1)]
        return self._bind(bound, own, order, {2 * negation.gap - 1: kernel.ROOT_ROW})

    def _beginning(self, end: int) -> list[list[int]]:
        """From a positive place to all before it, with the conditions among them."""
        if not (self._marked() >> end) & 1:
            return []
        spec = self.spec
        return self._bind({spec.positive[end]}, set(spec.checked), [*range(end - 1, -1, -1)], {2 * end: end}, tests=False)

    def _bind(
        self, bound: set[int], own: set[int], order: list[int], at: dict[int, int], *, tests: bool = True
    ) -> list[list[int]]:
        """Places in this order, but first those that a condition compares with what is bound.

        `at` says what is bound where: place q stands at 2 q, a row in the gap before it at 2 q - 1.
        """
        spec, left = self.spec, list(order)
        done: set[int] = set()
        tested: set[int] = set()
        out = []
        while left:
            q = next((q for q in left if self._any_order and self._is_compared(q, bound, own - done)), left[0])
            left.remove(q)
            index, words = self.plan.probe(spec.positive[q], bound)
            bound = bound | {spec.positive[q]}
            conditions = {k for k in own - done if set(spec.conditions[k].places) <= bound}
            negations = {g for g, neg in enumerate(spec.negations) if tests and g not in tested and self._testable(neg, bound)}
            done |= conditions
            tested |= negations
            lower = at[max(before)] if (before := [p for p in at if p < 2 * q]) else stacks.NONE
            upper = at[min(behind)] if (behind := [p for p in at if p > 2 * q]) else stacks.NONE
            at = {**at, 2 * q: q}
            refutes = self.plan.refutes(conditions, spec.positive[q], index)
            way = 1 if upper == stacks.NONE else -1
            out.append([q, way, index, _bits(conditions), _bits(negations), lower, upper, refutes, *words])
        return out

    def _is_compared(self, q: int, bound: set[int], conditions: set[int]) -> bool:
        place = self.spec.positive[q]
        return any(place in (own := set(self.spec.conditions[k].places)) and own <= bound | {place} for k in conditions)

    @property
    def _any_order(self) -> bool:
        """Whether places may be bound in any order: what cuts a walk short needs a neighbour that is bound, and so do frames."""
        n = len(self.spec.positive)
        cuts = any(0 < g.gap < n and (not g.conditions or g.unless is not None) for g in self.spec.negations)
        return not cuts and self.spec.spill is None

    def _marked(self) -> int:
        """Positive places that are looked for backward, if there are conditions among them and those before."""
        spec, last = self.spec, len(self.spec.positive) - (0 if self.spec.trailing else 1)
        known = [set(spec.positive[: q + 1]) for q in range(last)]
        return _bits({q for q in range(1, last) if any(set(spec.conditions[k].places) <= known[q] for k in spec.checked)})

    def _testable(self, negation: Negation, bound: set[int]) -> bool:
        """Whether all that a negation needs is bound. One without conditions between two events is a barrier instead."""
        positive, gap = self.spec.positive, negation.gap
        if 0 < gap < len(positive):
            needed = {positive[gap - 1], positive[gap]}
            if not negation.conditions:
                return False
        else:
            needed = set(positive)
        return needed | self._others(negation) <= bound

    def _others(self, negation: Negation) -> set[int]:
        """The places beside its own that the conditions of a negation read."""
        own = negation.place if negation.unless is None else negation.unless
        return {p for k in negation.conditions for p in self.spec.conditions[k].places} - {own}

    def _negation(self, negation: Negation) -> list[int]:
        place = self.plan.places if negation.place == ANY_ROW else negation.place
        index, words = self.plan.probe(place, self._others(negation))
        own = negation.place if negation.unless is None else negation.unless
        lender = self.spec.positive.index(own) if own in self.spec.positive else stacks.NONE
        unless = stacks.NONE if negation.unless is None else negation.unless
        bits = _bits(set(negation.conditions))
        walked = negation.unless is None and negation in self.spec.negations
        refutes = self.plan.refutes(set(negation.conditions), place, index) if walked else 0
        return [negation.place, negation.gap, index, bits, not negation.conditions, lender, unless, refutes, *words]

    def _group(self, q: int) -> np.ndarray:
        own = self.spec.members(q)
        index, words = self.plan.probe(own.place, self._others(own))
        room = [0] * (len(self.plan.vectors) + 1 - len(words))
        return np.array([q, own.place, index, _bits(set(own.conditions)), *words, *room], np.int64)

    @property
    def base(self) -> np.ndarray:
        """Of every place, and of any row, the index by key alone."""
        every = [self.plan.indexes.get((p, ()), stacks.NONE) for p in range(self.plan.places + 1)]
        return np.array(every, np.int64)

    @property
    def first_ends(self) -> int:
        """The positive place before the last, if its rows go with nothing but the first of their key that fits behind them.

        NONE if that is not so, or if a result needs its rows for longer: it waits for its window to end, or gathers groups. Rows
        outside memory come back with their frame, as if they had not been let go; there, too, NONE.
        """
        n = len(self.spec.positive)
        ends = any(g.place == self.spec.positive[-1] and g.gap == n - 1 and not g.conditions for g in self.spec.negations)
        longer = self.spec.trailing or self.spec.repeated or self.spec.spill is not None
        return n - 2 if ends and n > 1 and not longer else stacks.NONE


@lru_cache(maxsize=256)
def search_of(spec: Sequencing, grouped: bool = False) -> Search:
    """The search for a pattern: one for all buckets of a process, because it takes its time to make."""
    return Search(spec, grouped)


def _bits(numbers: set[int]) -> int:
    return sum(1 << i for i in numbers)


def _compile(plan: Plan) -> tuple[Any, np.ndarray]:
    """One function for all conditions, and the words that strings in them are."""
    spec, width = plan.spec, plan.width
    every = [(p, k, word) for p, place in enumerate(spec.places) for k, word in enumerate(place.words)]
    columns = {("", f"w{p}_{k}"): Slot(word.type, plan.position(p, k)) for p, k, word in every}
    found: list[Compiled] = []
    texts: list[str] = []
    for expr in (*(condition.expr for condition in spec.conditions), *plan.refuting):
        room = {("", "#"): Slot("BIGINT", width + len(texts) - 1)} if texts else {}
        found.append(compile_expression(expr, {**columns, **room}, len(found)))
        texts += [text for _, text in found[-1].strings]
    words = np.zeros(max(1, width + len(texts)), np.int64)
    if texts:
        words[width:] = hash_columns([pa.array(texts)], len(texts))[1].view(np.int64)
    return all_of(found), words


@dataclass(frozen=True, slots=True)
class Refutation:
    """If `opposite` is true for a row at a place, the condition fails for it and for all whose word is no better."""

    opposite: Expr
    word: int
    more: bool  # whether more is better, else less
    double: bool  # whether the word is the bits of a double


def refutations(condition: Condition, number: int, place: PlaceProgram) -> list[Refutation]:
    """What refutes rows at a place, the number of which is given; the other events of the condition are bound."""
    names = {f"w{number}_{k}": k for k in range(len(place.words))}
    out = []
    for comparison in _comparisons(condition.expr.tree.unnest()):
        for side, other, sign in ((comparison.this, comparison.expression, 1), (comparison.expression, comparison.this, -1)):
            own = [column.name for column in side.find_all(exp.Column) if column.name in names]
            if len(own) != 1 or any(column.name in names for column in other.find_all(exp.Column)):
                continue
            rises = sign * _rises(side, own[0])
            if rises:
                word = names[own[0]]
                more = (rises > 0) != isinstance(comparison, _LESS)
                opposite = _OPPOSITE[type(comparison)](this=comparison.this.copy(), expression=comparison.expression.copy())
                out.append(Refutation(Expr.of(opposite), word, more, kind_of(place.words[word].type) in FLOATS))
    return out


def _comparisons(tree: exp.Expr) -> list[exp.Binary]:
    """Comparisons that are true wherever a condition is."""
    if isinstance(tree, exp.Between):
        bounds = ((exp.GTE, tree.args["low"]), (exp.LTE, tree.args["high"]))
        return [kind(this=exp.paren(tree.this.copy()), expression=exp.paren(bound.copy())) for kind, bound in bounds]
    return [tree] if isinstance(tree, exp.Binary) and type(tree) in _OPPOSITE else []


def _rises(tree: exp.Expr, name: str) -> int:
    """1 if a value rises with a finite word, or stays, or is NULL; -1 if it falls; 0 if neither is known."""
    match tree:
        case exp.Column():
            return 1
        case exp.Paren():
            return _rises(tree.this, name)
        case exp.Neg():
            return -_rises(tree.this, name)
        case exp.Add() | exp.Sub():
            if _reads(tree.this, name):
                return _rises(tree.this, name)
            return _rises(tree.expression, name) * (-1 if isinstance(tree, exp.Sub) else 1)
        case exp.Mul() | exp.Div():
            if _reads(tree.this, name):
                return _rises(tree.this, name) * _sign(tree.expression)
            return _rises(tree.expression, name) * _sign(tree.this) if isinstance(tree, exp.Mul) else 0
    return 0


def _reads(tree: exp.Expr, name: str) -> bool:
    return any(column.name == name for column in tree.find_all(exp.Column))


def _sign(tree: exp.Expr) -> int:
    """Of a number that is written out; 0 if it is none, or not finite."""
    inner = tree.unnest()
    if isinstance(inner, exp.Neg):
        return -_sign(inner.this)
    if not isinstance(inner, exp.Literal) or inner.is_string:
        return 0
    value = float(inner.name)
    return 1 if value > 0 and math.isfinite(value) else 0
