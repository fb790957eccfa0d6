"""ROUND, BROUND, CEIL and FLOOR, which are of the type of what is rounded, or nearly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.errors import QueryError
from headrace.scalars.row.meaning import decimals, digits, numbers
from headrace.scalars.row.parts import Part, call, cast
from headrace.scalars.row.types import BIGINT, DIGITS, DOUBLE, RANGES, Type, decimal

if TYPE_CHECKING:
    from headrace.scalars.row.tree import Tree

_MOST = 400  # digits, in either direction


def _whole(tree: Tree, arguments: list[exp.Expr], node: exp.Expr, *, up: bool) -> Part:
    if len(arguments) != 1:
        raise QueryError(f"{node.sql(dialect='spark')} is not offered for one row", hint="write ROUND, or CEIL(x * 10) / 10")
    part = tree.part(arguments[0])
    if part.type.is_integer:
        return cast(part, BIGINT, tree.java)
    if part.type.name == "DECIMAL":
        kind = part.type
        if kind.scale == 0:
            return part
        wider = decimal(min(DIGITS, kind.precision - kind.scale + 1), 0)
        return call(wider, decimals.whole(decimals.fitter(wider.precision, 0), up=up), [part])
    return call(BIGINT, numbers.ceil if up else numbers.floor, [tree.as_type(arguments[0], DOUBLE)])


def _round(tree: Tree, arguments: list[exp.Expr], node: exp.Expr, *, even: bool) -> Part:
    places = tree.part(arguments[1]).literal if len(arguments) == 2 else 0
    if not isinstance(places, int) or isinstance(places, bool) or abs(places) > _MOST:
        raise QueryError(
            f"{node.sql(dialect='spark')}: the digits are not written out", hint=f"up to {_MOST}, or down to -{_MOST}"
        )
    part = tree.part(arguments[0])
    if part.type.is_integer:
        if places >= 0:
            return replace(part, literal=None)
        most = RANGES[part.type.name][1]
        run = partial(numbers.round_integer, digits=-places, most=most, kind=part.type.name, even=even)
        return call(part.type, run, [part])
    if part.type.name == "DECIMAL":
        kind = _rounded(part.type, places)
        fit = decimals.fitter(kind.precision, kind.scale)
        return call(kind, decimals.rounder(fit, min(places, part.type.scale), even=even), [part])
    if part.type.is_float:
        return call(part.type, _of_double(places, tree.java, even=even, single=part.type != DOUBLE), [part])
    return call(DOUBLE, _of_double(places, tree.java, even=even, single=False), [tree.as_type(arguments[0], DOUBLE)])


def _rounded(kind: Type, places: int) -> Type:
    whole = kind.precision - kind.scale + 1
    precision, scale = (whole + min(kind.scale, places), min(kind.scale, places)) if places >= 0 else (max(whole, 1 - places), 0)
    if precision > DIGITS:
        raise QueryError(f"ROUND of a {kind} may need more than {DIGITS} digits", hint="CAST it to fewer digits")
    return decimal(precision, scale)


def _of_double(places: int, java: int, *, even: bool, single: bool) -> Callable[[float], float]:
    """Halves are those of the decimal that Java prints, and a zero that comes out has no sign."""
    shown = digits.digits_of(java)
    rounded = decimals.rounder(lambda value: value, places, even=even)

    def of(x: float) -> float:
        if x - x != 0.0:
            return x
        found = digits.decimal_of(x, shown)
        if -int(found.as_tuple().exponent) <= places:
            return x + 0.0
        found = rounded(found) if found.adjusted() + places >= -1 else type(found)(0)
        return (numbers.single_of(found) if single else float(found)) if found else 0.0

    return of


ROUNDING = {
    "ceil": partial(_whole, up=True), "ceiling": partial(_whole, up=True), "floor": partial(_whole, up=False),
    "round": partial(_round, even=False), "bround": partial(_round, even=True),
}  # fmt: skip
