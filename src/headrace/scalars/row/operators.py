"""Comparisons and arithmetic of two parts, typed as Spark types them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from headrace.errors import QueryError
from headrace.scalars.row.meaning import decimals, numbers
from headrace.scalars.row.parts import Atom, Part, Writer, call, cast, constant, digits_needed, strict
from headrace.scalars.row.types import (
    BIGINT,
    BOOLEAN,
    DIGITS,
    DOUBLE,
    RANGES,
    VOID,
    Type,
    as_decimal,
    bounded,
    common,
    decimal,
    wider,
)  # fmt: skip

Text = Callable[[str, str], str]
BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_FLOATS: dict[str, Text] = {
    "==": lambda a, b: f"{a} == {b} or ({a} != {a} and {b} != {b})",
    "!=": lambda a, b: f"{a} != {b} and ({a} == {a} or {b} == {b})",
    "<": lambda a, b: f"{a} < {b} or ({b} != {b} and {a} == {a})",
    ">": lambda a, b: f"{b} < {a} or ({a} != {a} and {b} == {b})",
    "<=": lambda a, b: f"not ({b} < {a} or ({a} != {a} and {b} == {b}))",
    ">=": lambda a, b: f"not ({a} < {b} or ({b} != {b} and {a} == {a}))",
}
_BESIDE: dict[str, Text] = {  # a double beside one that is written out, and no NaN
    "==": lambda a, b: f"{a} == {b}", "!=": lambda a, b: f"{a} != {b}", "<": lambda a, b: f"{a} < {b}",
    ">": lambda a, b: f"not {a} <= {b}", "<=": lambda a, b: f"{a} <= {b}", ">=": lambda a, b: f"not {a} < {b}",
}  # fmt: skip


def no_operator(sign: str, left: Part, right: Part, hint: str | None = None) -> QueryError:
    return QueryError(f"there is no {sign} of {left.type} and {right.type}", hint=hint or "CAST one of them")


def together(parts: list[Part], java: int, *, texts: bool = True) -> tuple[Type, list[Part]]:
    """Several parts as the type that Spark brings them to."""
    found: Type | None = VOID
    for part in parts:
        found = None if found is None else common(found, part.type, texts=texts)
    if found is None:
        names = " and ".join(dict.fromkeys(str(p.type) for p in parts))
        raise QueryError(f"{names} have no type together", hint="CAST one of them")
    return found, [cast(part, found, java) for part in parts]


def compare(sign: str, left: Part, right: Part, java: int) -> Part:
    """`left sign right`, with a sign of Python."""
    names = {left.type.name, right.type.name}
    if "DECIMAL" in names and all(p.type.name == "DECIMAL" or p.type.is_integer for p in (left, right)):
        left, right = _same_digits(left, right, java)
        return strict(BOOLEAN, [left, right], lambda _, xs: f"{xs[0]} {sign} {xs[1]}")
    kind, (left, right) = together([left, right], java)
    if kind.is_nested:
        raise no_operator(sign, left, right, "compare their elements")
    return strict(BOOLEAN, [left, right], lambda _, xs: comparison(sign, kind, *xs))


def comparison(sign: str, kind: Type, left: str, right: str) -> str:
    """Source text of a comparison of two values of one type."""
    if not kind.is_float:
        return f"{left} {sign} {right}"
    return (_BESIDE if right[0] == "(" else _FLOATS)[sign](left, right)


def _same_digits(left: Part, right: Part, java: int) -> tuple[Part, Part]:
    """Decimals that are compared: as they are, unless Spark would have to round one of them to bring both together."""
    one, other = _sized(left, right), _sized(right, left)
    kind = wider(one, other)
    whole = all(kind.scale >= k.scale and kind.precision - kind.scale >= k.precision - k.scale for k in (one, other))
    return (left, right) if whole else (cast(left, kind, java), cast(right, kind, java))


def _sized(part: Part, beside: Part) -> Type:
    """The DECIMAL that a part is beside one: an integer that is written out has no more digits than it needs."""
    if part.type.is_integer and part.literal is not None and beside.type.name == "DECIMAL":
        return decimal(digits_needed(part.literal), 0)
    return as_decimal(part.type)


def arithmetic(sign: str, left: Part, right: Part, java: int) -> Part:
    """Numbers: one of + - * / % DIV."""
    if left.type == right.type == VOID:
        left = right = constant(BIGINT if sign == "DIV" else DOUBLE, None)
    if not all(p.type.is_number or p.type.name in ("STRING", "VOID") for p in (left, right)):
        raise no_operator(sign, left, right)
    names = {left.type.name, right.type.name}
    alike = all(p.type.name in ("DECIMAL", "VOID") or p.type.is_integer for p in (left, right))
    if sign == "/" and names == {"DECIMAL", "VOID"}:
        raise no_operator(sign, left, right, "write CAST(NULL AS DECIMAL(10, 2)), or leave it out")
    if "DECIMAL" in names and alike:
        return _of_decimals(sign, left, right)
    kind, (left, right) = together([left, right], java)
    if not kind.is_number:
        raise no_operator(sign, left, right)
    if sign == "/":
        return _divide(cast(left, DOUBLE, java), cast(right, DOUBLE, java))
    if sign == "DIV":
        if not kind.is_integer:
            raise no_operator(sign, left, right, "write FLOOR(a / b), or CAST to BIGINT")
        return _right_first(BIGINT, left, right, numbers.divide_whole)
    if sign == "%":
        return _remainder(kind, left, right)
    if kind.is_integer:
        return strict(kind, [left, right], lambda writer, xs: within(writer, kind, f"{xs[0]} {sign} {xs[1]}"))
    if kind == DOUBLE:
        return strict(kind, [left, right], lambda _, xs: f"{xs[0]} {sign} {xs[1]}")
    return strict(kind, [left, right], lambda writer, xs: f"{writer.bind(numbers.single)}({xs[0]} {sign} {xs[1]})")


def within(writer: Writer, kind: Type, text: str, what: str = "") -> str:
    """An integer that has to fit."""
    name = writer.name()
    least, most = RANGES[kind.name]
    writer.line(f"{name} = {text}")
    with writer.block(f"if not {least} <= {name} <= {most}:"):
        writer.line(f"raise Failed(f'{{{name}}} does not fit into {kind}{what}')")
    return name


def _divide(left: Part, right: Part) -> Part:
    if right.literal:
        return strict(DOUBLE, [left, right], lambda _, xs: f"{xs[0]} / {xs[1]}")
    return _right_first(DOUBLE, left, right, numbers.divide)


def _right_first(kind: Type, left: Part, right: Part, function: Callable[[Any, Any], Any]) -> Part:
    """Whatever divides looks at its right side first."""
    return strict(kind, [right, left], lambda writer, xs: f"{writer.bind(function)}({xs[1]}, {xs[0]})")


def _remainder(kind: Type, left: Part, right: Part) -> Part:
    if kind.is_integer:
        return _right_first(kind, left, right, numbers.remainder)
    return _right_first(kind, left, right, numbers.remainder_of_doubles)


def _of_decimals(sign: str, left: Part, right: Part) -> Part:
    a, b = (_sized(part, beside) for part, beside in ((left, right), (right, left)))
    a, b = (b if a == VOID else a), (a if b == VOID else b)
    kind = _decimal_type(sign, a, b)
    fit = decimals.fitter(kind.precision, kind.scale)
    left, right = _decimal(left, a), _decimal(right, b)
    match sign:
        case "+" | "-" | "*":
            run = {"+": decimals.add, "-": decimals.subtract, "*": decimals.multiply}[sign](fit)
            return call(kind, run, [left, right])
        case "/":
            return _right_first(kind, left, right, decimals.divide(fit))
        case "%":
            return _right_first(kind, left, right, lambda x, y: fit(decimals.remainder(x, y)))
    if a.precision - a.scale + b.scale > 18:
        raise no_operator(sign, left, right, "what it gives may not fit into a BIGINT: CAST to a DECIMAL of fewer digits")
    return _right_first(BIGINT, left, right, decimals.quotient)


def pmod(left: Part, right: Part, java: int) -> Part:
    """PMOD of numbers of any type."""
    names = {left.type.name, right.type.name}
    if "DECIMAL" in names and all(p.type.name in ("DECIMAL", "VOID") or p.type.is_integer for p in (left, right)):
        a, b = (_sized(part, beside) for part, beside in ((left, right), (right, left)))
        a, b = (b if a == VOID else a), (a if b == VOID else b)
        kind = _decimal_type("%", a, b)
        return _right_first(
            kind, _decimal(left, a), _decimal(right, b), decimals.pmod(decimals.fitter(kind.precision, kind.scale))
        )
    kind, (left, right) = together([left, right], java)
    if kind.is_integer:
        bits = max(32, BITS[kind.name])
        return _right_first(kind, left, right, lambda x, y: numbers.pmod(x, y, bits))
    if kind != DOUBLE:
        raise no_operator("PMOD", left, right, "CAST to DOUBLE or BIGINT")
    return _right_first(kind, left, right, numbers.pmod_of_doubles)


def _decimal(part: Part, kind: Type) -> Part:
    """An integer as a decimal, which holds all of it."""
    if part.type.is_integer:
        if part.literal is not None:
            return constant(kind, Decimal(part.literal))
        return strict(kind, [part], lambda writer, xs: f"{writer.bind(Decimal)}({xs[0]})")
    return Part(kind, part.write) if part.type == VOID else part


def _decimal_type(sign: str, a: Type, b: Type) -> Type:
    whole = max(a.precision - a.scale, b.precision - b.scale)
    match sign:
        case "+" | "-":
            scale = max(a.scale, b.scale)
            return bounded(whole + scale + 1, scale)
        case "*":
            return bounded(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            scale = max(6, a.scale + b.precision + 1)
            return bounded(a.precision - a.scale + b.scale + scale, scale)
        case "%":
            scale = max(a.scale, b.scale)
            return bounded(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return decimal(min(DIGITS, max(1, a.precision - a.scale + b.scale)), 0)


def bits(sign: str, left: Part, right: Part, java: int) -> Part:
    kind, (left, right) = together([left, right], java)
    if not kind.is_integer:
        raise no_operator(sign, left, right, "CAST to BIGINT")
    return strict(kind, [left, right], lambda _, xs: f"{xs[0]} {sign} {xs[1]}")


def negative(part: Part, sign: str = "-") -> Part:
    """`-x`, or ABS(x)."""
    kind = part.type
    if kind.is_integer or kind.name == "INTERVAL":
        inside = kind if kind.is_integer else BIGINT
        what = "" if kind.is_integer else " of microseconds"
        text = "-{0}" if sign == "-" else "abs({0})"
        return strict(kind, [part], lambda writer, xs: within(writer, inside, text.format(xs[0]), what))
    if kind.is_float:
        return strict(kind, [part], lambda _, xs: f"-{xs[0]}" if sign == "-" else f"abs({xs[0]})")
    if kind.name == "DECIMAL":
        minus = decimals.negated(decimals.fitter(kind.precision, kind.scale), kind.precision)
        return call(kind, minus if sign == "-" else lambda x: minus(x) if x < 0 else x, [part])
    raise QueryError(f"{'ABS' if sign != '-' else '-'} takes a number, and this is a {kind}", hint="CAST it to a number")


def extreme(parts: list[Part], java: int, *, greatest: bool) -> Part:
    """GREATEST and LEAST of those that are not NULL; all are computed, and of equal ones the first is kept."""
    kind, same = together(parts, java, texts=False)
    if kind.is_nested or kind == VOID:
        raise QueryError(f"{'GREATEST' if greatest else 'LEAST'} of {kind} is not offered for one row", hint="compare elements")

    def best(*values: Any) -> Any:
        found = None
        for value in values:
            if value is not None and (found is None or (less(found, value) if greatest else less(value, found))):
                found = value
        return found

    less = numbers.less if kind.is_float else lambda a, b: a < b

    def make(writer: Writer, atoms: list[str]) -> str:
        return f"{writer.bind(best)}({', '.join(atoms)})"

    return of_all(kind, same, make)


def of_all(kind: Type, parts: list[Part], make: Callable[[Writer, list[str]], str], *, nulls: bool = True) -> Part:
    """What looks at NULLs itself; all parts are computed."""

    def write(writer: Writer) -> Atom:
        atoms = [part.write(writer) for part in parts]
        out = writer.name()
        writer.line(f"{out} = {make(writer, [atom.text for atom in atoms])}")
        return Atom(out, nulls)

    return Part(kind, write)
