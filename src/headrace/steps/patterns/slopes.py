"""Conditions that go on failing as a value of one event rises, or falls: searches pass by all that is no better.

`y.price > x.price + 5` is false for an x, and so for all larger ones. It may be NULL instead, by an overflow for example: of that
nothing follows. So what counts is that the opposite, `y.price <= x.price + 5`, is true.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.plan.expr import Expr
from headrace.scalars.types import FLOATS, kind_of

if TYPE_CHECKING:
    from headrace.program.patterns import Condition, PlaceProgram

_OPPOSITE: dict[type[exp.Expr], type[exp.Binary]] = {exp.LT: exp.GTE, exp.LTE: exp.GT, exp.GT: exp.LTE, exp.GTE: exp.LT}
_LESS = (exp.LT, exp.LTE)


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
