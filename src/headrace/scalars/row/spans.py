"""Arithmetic of dates, times and intervals."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.time import DAY, UNITS
from headrace.scalars.row.meaning import calendar, numbers
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.operators import no_operator, within
from headrace.scalars.row.parts import Part, call, cast, constant, strict
from headrace.scalars.row.types import BIGINT, DATE, INTERVAL, STRING, TIMESTAMP, Type, common
from headrace.scalars.types import interval_literal

SMALL = ("TINYINT", "SMALLINT", "INT")
_UNIT_OF = {"WEEK": "DAY", "MILLISECOND": "SECOND", "MICROSECOND": "SECOND"}
_ORDER = ("DAY", "HOUR", "MINUTE", "SECOND")


def written(node: exp.Interval) -> Part:
    """An interval that is written out, with the units that Spark sees in it."""
    units = _units(node)
    return constant(Type("INTERVAL", units=(units[0], units[-1])), int(interval_literal(node).text))


def _units(node: exp.Interval) -> list[str]:
    unit, text = node.args.get("unit"), node.this.name if isinstance(node.this, exp.Literal) else ""
    if isinstance(unit, exp.IntervalSpan):
        return [unit.this.name.upper(), unit.expression.name.upper()]
    words = [unit.name] if unit is not None else [word for word in text.split() if word[0].isalpha()]
    numbers_in = [text] if unit is not None else [word for word in text.split() if not word[0].isalpha()]
    names = [_named(word) for word in words]
    if not names or len(names) != len(numbers_in):
        raise QueryError(f"{node.sql(dialect='spark')} is not read here", hint="write for example INTERVAL '10' SECOND")
    if any("." in number and name != "SECOND" for number, name in zip(numbers_in, words_of(words), strict=True)):
        raise QueryError(f"{node.sql(dialect='spark')}: only seconds have a fraction", hint="write it in a smaller unit")
    return sorted(names, key=_ORDER.index)


def words_of(words: list[str]) -> list[str]:
    return [word.upper().removesuffix("S") for word in words]


def _named(word: str) -> str:
    name = word.upper().removesuffix("S")
    if name.lower() not in UNITS or name == "YEAR":
        raise QueryError(f"an interval of {word} has no fixed length", hint="use days")
    return _UNIT_OF.get(name, name)


def involved(*parts: Part) -> bool:
    """Whether dates, times or intervals take part."""
    return any(p.type.is_time or p.type.name == "INTERVAL" for p in parts)


def arithmetic(sign: str, left: Part, right: Part, java: int) -> Part:
    """`left sign right` with a date, a time or an interval."""
    if sign == "-" and STRING in (left.type, right.type) and (left.type.is_time or right.type.is_time):
        kind = left.type if right.type == STRING else right.type
        left, right = cast(left, kind, java), cast(right, kind, java)
    if (sign == "+" and right.type.is_time) or (sign == "*" and right.type.name == "INTERVAL"):
        left, right = right, left
    return _shifted(sign, left, right, java)


def _shifted(sign: str, left: Part, right: Part, java: int) -> Part:
    one, other = left.type, right.type
    if sign in ("+", "-"):
        if one == DATE and other.name in SMALL:
            moved = calendar.add_days if sign == "+" else lambda day, count: calendar.add_days(day, -count)
            return call(DATE, moved, [left, right])
        if one.is_time and other.name == "INTERVAL":
            return _moved(sign, left, right, java)
        if one.name == other.name == "INTERVAL":
            kind = common(one, other)
            assert kind is not None, "two intervals have one"
            text = "{0} " + sign + " {1}"
            return strict(kind, [left, right], lambda w, xs: within(w, BIGINT, text.format(*xs), " of microseconds"))
        if sign == "-" and one.is_time and other.is_time:
            return _between(left, right, java)
    if one.name == "INTERVAL":
        found = _scaled(sign, left, right)
        if found is not None:
            return found
    raise no_operator(sign, left, right, "times are subtracted; an INTERVAL is added to a time, or multiplied by a number")


def _moved(sign: str, time: Part, span: Part, java: int) -> Part:
    """A time moved by an interval. A DATE stays one if it is moved by whole days."""
    if time.type == DATE and span.type.units == ("DAY", "DAY"):
        step = 1 if sign == "+" else -1
        return call(DATE, lambda day, micros: _days_further(day, micros, step), [time, span])
    kind = TIMESTAMP if time.type == DATE else time.type
    text = "{0} " + sign + " {1}"
    return strict(kind, [cast(time, kind, java), span], lambda w, xs: within(w, BIGINT, text.format(*xs), " of microseconds"))


def _days_further(day: int, micros: int, step: int) -> int:
    return calendar.add_days(day, step * (abs(micros) // DAY if micros >= 0 else -(abs(micros) // DAY)))


def _between(left: Part, right: Part, java: int) -> Part:
    if left.type == right.type == DATE:
        kind = Type("INTERVAL", units=("DAY", "DAY"))
        return strict(kind, [left, right], lambda w, xs: within(w, BIGINT, f"({xs[0]} - {xs[1]}) * {DAY}", " of microseconds"))
    met = common(left.type, right.type)
    assert met is not None, "two times have one"
    sides = [cast(left, met, java), cast(right, met, java)]
    return strict(INTERVAL, sides, lambda w, xs: within(w, BIGINT, f"{xs[0]} - {xs[1]}", " of microseconds"))


def _scaled(sign: str, span: Part, by: Part) -> Part | None:
    """An interval times a number, or divided by one; or how often one goes into another."""
    if sign == "DIV" and by.type.name == "INTERVAL":
        return strict(BIGINT, [by, span], lambda w, xs: f"{w.bind(numbers.divide_whole)}({xs[1]}, {xs[0]})")
    if not (by.type.is_integer or by.type.is_float):
        return None
    if sign == "*":
        function = _times if by.type.is_integer else _times_double
        return call(INTERVAL, function, [span, by])
    if sign == "/":
        return call(INTERVAL, _part if by.type.is_integer else _part_of_double, [span, by])
    return None


def _fitting(micros: int) -> int:
    if not numbers.LEAST <= micros <= numbers.MOST:
        raise Failed(f"an interval of {micros} microseconds is too long")
    return micros


def _times(span: int, by: int) -> int:
    return _fitting(span * by)


def _times_double(span: int, by: float) -> int:
    return _rounded(float(span) * by)


def _part(span: int, by: int) -> int:
    """Halves go away from zero."""
    if by == 0:
        raise Failed("division by zero")
    count, rest = divmod(abs(span), abs(by))
    count += 2 * rest >= abs(by)
    return _fitting(count if (span < 0) == (by < 0) else -count)


def _part_of_double(span: int, by: float) -> int:
    if by == 0.0:
        raise Failed("division by zero")
    return _rounded(float(span) / by)


def _rounded(micros: float) -> int:
    if micros - micros != 0.0:
        raise Failed(f"an interval of {micros} microseconds is none")
    return _fitting(int(Decimal(micros).to_integral_value(ROUND_HALF_UP)))
