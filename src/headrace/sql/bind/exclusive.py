"""Whether two conditions can hold for one row: a proof that they cannot, or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import product

from sqlglot import exp

from headrace.plan.expr import conjuncts

Comparison = tuple[str, frozenset[int], exp.Expr]

# How the left side may lie to the right one: below, at, above it.
OUTCOMES: dict[type[exp.Expr], frozenset[int]] = {
    exp.LT: frozenset({-1}), exp.LTE: frozenset({-1, 0}), exp.EQ: frozenset({0}),
    exp.GTE: frozenset({0, 1}), exp.GT: frozenset({1}), exp.NEQ: frozenset({-1, 1}),
}  # fmt: skip


def exclude(one: Sequence[exp.Expr], other: Sequence[exp.Expr]) -> bool:
    """Whether one of the first conditions contradicts one of the others, as far as can be seen from how they are written.

    >>> from sqlglot import parse_one
    >>> low, high, other = (parse_one(c) for c in ("price < 10", "price >= 10", "qty > 10"))
    >>> exclude([low], [high]), exclude([low, other], [high]), exclude([low], [other])
    (True, True, False)
    """
    some = [[p for c in conditions for p in _parts(c)] for conditions in (one, other)]
    denied = any(_denies(a, some[1]) for a in some[0]) or any(_denies(b, some[0]) for b in some[1])
    return denied or any(_contradict(a, b) for a, b in product(*some))


def _denies(condition: exp.Expr, others: Sequence[exp.Expr]) -> bool:
    """Whether a condition says that not all of the others hold."""
    return isinstance(condition, exp.Not) and all(part in others for part in _parts(condition.this))


def _contradict(one: exp.Expr, other: exp.Expr) -> bool:
    return any(_apart(a, b) for a, b in product(_comparisons(one), _comparisons(other))) or _other_values(one, other)


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    return [part.unnest() for part in conjuncts(tree)]


def _comparisons(tree: exp.Expr) -> Iterator[Comparison]:
    """A comparison, read from both sides."""
    if type(tree) in OUTCOMES:
        outcomes = OUTCOMES[type(tree)]
        yield tree.this.unnest().sql(), outcomes, tree.expression.unnest()
        yield tree.expression.unnest().sql(), frozenset(-o for o in outcomes), tree.this.unnest()


def _apart(one: Comparison, other: Comparison) -> bool:
    """Whether no value of the same left side meets both."""
    if one[0] != other[0]:
        return False
    if one[2] == other[2]:
        return not one[1] & other[1]
    numbers = _number(one[2]), _number(other[2])
    if numbers[0] is None or numbers[1] is None:
        return False
    low, high = (one[1], other[1]) if numbers[0] < numbers[1] else (other[1], one[1])
    return numbers[0] != numbers[1] and 1 not in low and -1 not in high


def _number(tree: exp.Expr) -> Decimal | None:
    if isinstance(tree, exp.Literal) and tree.is_string:
        return None
    try:
        return Decimal(tree.sql())
    except InvalidOperation:
        return None


def _other_values(one: exp.Expr, other: exp.Expr) -> bool:
    """Whether both say that the same thing is one of some texts, and have none in common."""
    a, b = _values(one), _values(other)
    return a is not None and b is not None and a[0] == b[0] and not a[1] & b[1]


def _values(tree: exp.Expr) -> tuple[str, set[str]] | None:
    match tree:
        case exp.EQ(this=subject, expression=exp.Literal(is_string=True) as value):
            return subject.sql(), {value.name}
        case exp.In(this=subject, expressions=values) if all(isinstance(v, exp.Literal) and v.is_string for v in values):
            return subject.sql(), {v.name for v in values}
    return None
