"""The functions that are offered, by Spark's names. This is the list: what is not here is refused."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.time import DAY
from headrace.scalars.row import nested, operators
from headrace.scalars.row.meaning import calendar, decimals, fdlibm, numbers, patterns, texts, times
from headrace.scalars.row.parts import NULL, Part, call, cast, choose, constant, first_there, is_null, kept, negated, strict
from headrace.scalars.row.rounding import ROUNDING
from headrace.scalars.row.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    array,
    decimal,
)  # fmt: skip

if TYPE_CHECKING:
    from headrace.scalars.row.tree import Tree

Handler = Callable[["Tree", list[exp.Expr], exp.Expr], Part]


def _refuse(node: exp.Expr) -> QueryError:
    from headrace.scalars.row.tree import refused

    return refused(node)


def simple(gives: Type, run: Callable[..., Any], *takes: Type, least: int | None = None, nulls: bool = False) -> Handler:
    """A function of so many arguments of these types, of which the last may be left out; NULL where one of them is."""
    least = len(takes) if least is None else least

    def handle(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
        if not least <= len(arguments) <= len(takes):
            raise _refuse(node)
        parts = [tree.as_type(given, kind) for given, kind in zip(arguments, takes, strict=False)]
        return call(gives, run, parts, nulls=nulls)

    return handle


def _of_double(run: Callable[[float], float | None], *, nulls: bool = False) -> Handler:
    return simple(DOUBLE, run, DOUBLE, nulls=nulls)


# Functions that look at NULLs or types themselves


def _coalesce(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    kind, parts = operators.together([tree.part(a) for a in arguments], tree.java)
    return first_there(kind, parts)


def _if(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    values = [tree.part(a) for a in arguments[1:]]
    return tree.chosen([tree.decision(arguments[0])], values if len(values) == 2 else [*values, NULL])


def _nullif(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    value = kept(tree.part(arguments[0]))
    equal = operators.compare("==", value, tree.part(arguments[1]), tree.java)
    return tree.chosen([equal], [constant(value.type, None), value])


def _nvl2(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    there = negated(is_null(tree.part(arguments[0])))
    return tree.chosen([there], [tree.part(a) for a in arguments[1:]])


def _extreme(tree: Tree, arguments: list[exp.Expr], node: exp.Expr, *, greatest: bool) -> Part:
    if len(arguments) < 2:
        raise _refuse(node)
    return operators.extreme([tree.part(a) for a in arguments], tree.java, greatest=greatest)


def _is_null(tree: Tree, arguments: list[exp.Expr], node: exp.Expr, *, there: bool = False) -> Part:
    found = is_null(tree.part(arguments[0]))
    return negated(found) if there else found


def _is_nan(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    return operators.of_all(BOOLEAN, [tree.as_type(arguments[0], DOUBLE)], lambda _, xs: f"{xs[0]} != {xs[0]}", nulls=False)


def _concat(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    if not arguments:
        raise _refuse(node)
    parts = [tree.as_type(a, STRING) for a in arguments]
    return strict(STRING, parts, lambda _, xs: " + ".join(xs))


def _concat_ws(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    """What is NULL is left out; arrays are put in element by element."""
    parts: list[Part] = []
    for given in arguments:
        part = tree.part(given)
        lists = part.type == array(STRING) and parts
        parts.append(part if lists else tree.as_type(given, STRING))

    def joined(separator: str | None, *values: Any) -> str | None:
        if separator is None:
            return None
        flat = [v for value in values for v in (value if isinstance(value, list) else [value])]
        return separator.join(v for v in flat if v is not None)

    return operators.of_all(STRING, parts, lambda writer, xs: f"{writer.bind(joined)}({', '.join(xs)})")


def _length(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    part = tree.part(arguments[0])
    return call(INT, len, [part if part.type == BINARY else tree.as_type(arguments[0], STRING)])


def _reverse(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    part = tree.part(arguments[0])
    kind = part.type if part.type.name == "ARRAY" else STRING
    return call(kind, lambda x: x[::-1], [part if kind == part.type else tree.as_type(arguments[0], STRING)])


def _split(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    """By a text that a regular expression stands for; others are refused."""
    pattern = arguments[1].name if isinstance(arguments[1], exp.Literal) and arguments[1].is_string else ""
    by = patterns.separator(pattern)
    limit = tree.part(arguments[2]).literal if len(arguments) == 3 else -1
    if not by or not isinstance(limit, int):
        hint = "split by a text that is written out, such as ',' or '\\\\|'"
        raise QueryError(f"{node.sql(dialect='spark')} is not known to mean the same outside of Java", hint=hint)
    most = limit - 1 if limit > 0 else -1
    return call(array(STRING), lambda x: x.split(by, most), [tree.as_type(arguments[0], STRING)])


def _locate(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    """Looks at the start first: if that is NULL, it is 0."""
    if not 2 <= len(arguments) <= 3:
        raise _refuse(node)
    texts_of = [tree.as_type(a, STRING) for a in arguments[:2]]
    if len(arguments) == 2:
        return call(INT, texts.locate, texts_of)
    start = kept(tree.as_type(arguments[2], INT))
    return choose(INT, [(is_null(start), constant(INT, 0))], call(INT, texts.locate, [*texts_of, start]))


def trim(tree: Tree, node: exp.Trim) -> Part:
    """TRIM, LTRIM, RTRIM; with the characters that go, if they are told. Else only blanks do, no other white space."""
    if node.args.get("collation"):
        raise _refuse(node)
    method = {"LEADING": str.lstrip, "TRAILING": str.rstrip}.get(str(node.args.get("position") or "").upper(), str.strip)
    text = tree.as_type(node.this, STRING)
    if node.expression is None:
        return call(STRING, method, [text], " ")
    return call(STRING, method, [text, tree.as_type(node.expression, STRING)])


def _sign(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    part = tree.part(arguments[0])
    if part.type.name == "INTERVAL":
        return call(DOUBLE, lambda x: float((x > 0) - (x < 0)), [part])
    return call(DOUBLE, numbers.sign, [tree.as_type(arguments[0], DOUBLE)])


def _abs(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    part = tree.part(arguments[0])
    return operators.negative(cast(part, DOUBLE, tree.java) if part.type.name in ("STRING", "VOID") else part, "abs")


def _pmod(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    return operators.pmod(tree.part(arguments[0]), tree.part(arguments[1]), tree.java)


def _shift(tree: Tree, arguments: list[exp.Expr], node: exp.Expr, *, run: Callable[[int, int, int], int]) -> Part:
    part = tree.part(arguments[0])
    kind = BIGINT if part.type == BIGINT else INT
    return call(kind, run, [tree.as_type(arguments[0], kind), tree.as_type(arguments[1], INT)], operators.BITS[kind.name])


# Times

_STARTS: dict[str, Callable[[int], int]] = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), calendar.start_of_year), "QUARTER": calendar.start_of_quarter,
    **dict.fromkeys(("MONTH", "MON", "MM"), calendar.start_of_month), "WEEK": calendar.start_of_week,
}  # fmt: skip
_STEPS = {"MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6, "DAY": DAY,
          "DD": 86400 * 10**6}  # fmt: skip


def _unit(argument: exp.Expr, node: exp.Expr) -> str:
    if not isinstance(argument, exp.Literal) or not argument.is_string:
        raise QueryError(f"{node.sql(dialect='spark')}: the unit is not written out", hint="write it, for example 'MONTH'")
    return argument.name.upper()


def _date_trunc(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    unit, time = _unit(arguments[0], node), tree.as_type(arguments[1], TIMESTAMP)
    if unit in _STEPS:
        return call(TIMESTAMP, lambda x, step: calendar.micros(x // step * step), [time], _STEPS[unit])
    start = _STARTS.get(unit)
    if start is None:
        raise QueryError(f"{unit!r} is no unit to cut a time to", hint=f"there are {', '.join((*_STARTS, *_STEPS))}")
    return call(TIMESTAMP, lambda x: calendar.midnight(start(x // DAY)), [time])


def _trunc(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    if len(arguments) != 2:
        raise _refuse(node)
    start = _STARTS.get(unit := _unit(arguments[1], node))
    if start is None:
        raise QueryError(f"{unit!r} is no unit to cut a date to", hint=f"there are {', '.join(_STARTS)}")
    return call(DATE, start, [tree.as_type(arguments[0], DATE)])


def _date_format(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    pattern = arguments[1].name if isinstance(arguments[1], exp.Literal) else ""
    pieces = times.format_of(pattern)
    if not pieces:
        hint = "there are yyyy, MM, dd, HH, mm, ss, S to SSSSSS, signs between them, and texts in single quotes"
        raise QueryError(f"{node.sql(dialect='spark')}: this pattern is not offered for one row", hint=hint)
    return call(STRING, lambda x: times.formatted(x, pieces), [tree.as_type(arguments[0], TIMESTAMP)])


def _seconds(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    """UNIX_TIMESTAMP of a time; that of a text has a format of its own."""
    if len(arguments) != 1 or not (part := tree.part(arguments[0])).type.is_time:
        raise _refuse(node)
    return call(BIGINT, lambda x: numbers.divide_whole(x, 10**6), [cast(part, TIMESTAMP, tree.java)])


def _unix(tree: Tree, arguments: list[exp.Expr], node: exp.Expr, *, unit: int) -> Part:
    """UNIX_MICROS and the like, of a TIMESTAMP and nothing else: rounded down."""
    if len(arguments) != 1 or (part := tree.part(arguments[0])).type.name not in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        raise _refuse(node)
    return call(BIGINT, lambda x: x // unit, [part])


def _of_seconds(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    part = tree.part(arguments[0])
    if part.type.is_integer:
        return call(TIMESTAMP, lambda x: calendar.micros(x * 10**6), [part])
    if part.type.is_float:
        return call(TIMESTAMP, lambda x: numbers.saturated(x * 1e6) if x - x == 0.0 else None, [part], nulls=True)
    raise _refuse(node)


_FIELDS: dict[str, Callable[[int], int]] = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), calendar.year), **dict.fromkeys(("QUARTER", "QTR"), calendar.quarter),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), calendar.month),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), calendar.week_of_year),
    **dict.fromkeys(("DAY", "D", "DAYS"), calendar.day_of_month), **dict.fromkeys(("DAYOFWEEK", "DOW"), calendar.day_of_week),
    **dict.fromkeys(("DOY",), calendar.day_of_year),
}  # fmt: skip
_CLOCK: dict[str, Callable[[int], int]] = {"HOUR": calendar.hour, "MINUTE": calendar.minute}


def _with_fraction(time: int) -> Decimal:
    return decimals.EXACT.scaleb(Decimal(time % (60 * 10**6)), -6)


def extract(tree: Tree, node: exp.Extract) -> Part:
    """EXTRACT(field FROM time). The seconds are those with a fraction."""
    name, inner = node.name.upper(), tree.part(node.expression)
    if inner.type.is_time and name in _FIELDS:
        return call(INT, _FIELDS[name], [cast(inner, DATE, tree.java)])
    if inner.type.is_time and name in _CLOCK:
        return call(INT, _CLOCK[name], [cast(inner, TIMESTAMP, tree.java)])
    if inner.type.is_time and name == "SECOND":
        return call(decimal(8, 6), _with_fraction, [cast(inner, TIMESTAMP, tree.java)])
    raise _refuse(node)


# Arrays and maps


def element_at(tree: Tree, arguments: list[exp.Expr], node: exp.Expr, *, safe: bool = False) -> Part:
    key = tree.part(arguments[1]) if safe else tree.index(*arguments)
    return nested.element_at(tree.part(arguments[0]), key, tree.java, safe=safe)


def _contains(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    return nested.contains(tree.part(arguments[0]), tree.part(arguments[1]))


def _size(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    return nested.size(tree.part(arguments[0]))


def _get(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    inside = tree.part(arguments[0])
    if inside.type.name != "ARRAY":
        raise _refuse(node)
    return call(inside.type.parts[0], nested.get, [inside, tree.as_type(arguments[1], INT)], nulls=True)


def _array(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    if not arguments:
        raise _refuse(node)
    kind, parts = operators.together([tree.part(a) for a in arguments], tree.java)
    return operators.of_all(array(kind), parts, lambda _, xs: f"[{', '.join(xs)}]", nulls=False)


def _sha2(tree: Tree, arguments: list[exp.Expr], node: exp.Expr) -> Part:
    size = arguments[1].name if isinstance(arguments[1], exp.Literal) else ""
    run = {"224": hashlib.sha224, "256": hashlib.sha256, "0": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}.get(
        size
    )
    if run is None:
        raise _refuse(node)
    return call(STRING, lambda x: run(x).hexdigest(), [tree.as_type(arguments[0], BINARY)])


def _time_part(run: Callable[[int], int]) -> Handler:
    return simple(INT, run, TIMESTAMP)


def _date_part(run: Callable[[int], int]) -> Handler:
    return simple(INT, run, DATE)


FUNCTIONS: dict[str, Handler] = {
    # conditions
    "coalesce": _coalesce, "nvl": _coalesce, "ifnull": _coalesce, "if": _if, "nullif": _nullif, "nvl2": _nvl2,
    "greatest": partial(_extreme, greatest=True), "least": partial(_extreme, greatest=False), "isnull": _is_null,
    "isnotnull": partial(_is_null, there=True), "isnan": _is_nan,
    # numbers
    "abs": _abs, "sign": _sign, "signum": _sign, "pmod": _pmod, **ROUNDING,
    "sqrt": _of_double(numbers.root), "exp": _of_double(fdlibm.exp), "ln": _of_double(fdlibm.logarithm, nulls=True),
    "log10": _of_double(fdlibm.logarithm_of_ten, nulls=True),
    "log": simple(DOUBLE, fdlibm.logarithm_to, DOUBLE, DOUBLE, nulls=True),
    "power": simple(DOUBLE, fdlibm.power, DOUBLE, DOUBLE), "pow": simple(DOUBLE, fdlibm.power, DOUBLE, DOUBLE),
    "asin": _of_double(fdlibm.asin), "acos": _of_double(fdlibm.acos), "atan": _of_double(fdlibm.atan),
    "atan2": simple(DOUBLE, fdlibm.atan2, DOUBLE, DOUBLE), "radians": _of_double(numbers.radians),
    "degrees": _of_double(numbers.degrees), "pi": simple(DOUBLE, lambda: math.pi),
    "shiftleft": partial(_shift, run=numbers.shift_left), "shiftright": partial(_shift, run=numbers.shift_right),
    "shiftrightunsigned": partial(_shift, run=numbers.shift_right_unsigned),
    # texts
    "concat": _concat, "concat_ws": _concat_ws, "length": _length, "char_length": _length, "character_length": _length,
    "len": _length, "upper": simple(STRING, texts.upper, STRING), "ucase": simple(STRING, texts.upper, STRING),
    "lower": simple(STRING, texts.lower, STRING), "lcase": simple(STRING, texts.lower, STRING), "reverse": _reverse,
    "substring": simple(STRING, texts.substring, STRING, INT, INT, least=2),
    "substr": simple(STRING, texts.substring, STRING, INT, INT, least=2), "left": simple(STRING, texts.left, STRING, INT),
    "right": simple(STRING, texts.right, STRING, INT), "replace": simple(STRING, texts.replace, STRING, STRING, STRING, least=2),
    "instr": simple(INT, texts.instr, STRING, STRING), "locate": _locate, "position": _locate,
    "startswith": simple(BOOLEAN, str.startswith, STRING, STRING), "endswith": simple(BOOLEAN, str.endswith, STRING, STRING),
    "contains": simple(BOOLEAN, str.__contains__, STRING, STRING), "split": _split,
    "lpad": simple(STRING, texts.pad_left, STRING, INT, STRING, least=2),
    "rpad": simple(STRING, texts.pad_right, STRING, INT, STRING, least=2), "repeat": simple(STRING, texts.repeat, STRING, INT),
    "translate": simple(STRING, texts.translate, STRING, STRING, STRING),
    "substring_index": simple(STRING, texts.substring_index, STRING, STRING, INT),
    "split_part": simple(STRING, texts.split_part, STRING, STRING, INT), "ascii": simple(INT, texts.ascii_of, STRING),
    "btrim": simple(STRING, str.strip, STRING, STRING), "md5": simple(STRING, lambda x: hashlib.md5(x).hexdigest(), BINARY),
    "sha": simple(STRING, lambda x: hashlib.sha1(x).hexdigest(), BINARY),
    "sha1": simple(STRING, lambda x: hashlib.sha1(x).hexdigest(), BINARY), "sha2": _sha2,
    "crc32": simple(BIGINT, zlib.crc32, BINARY),
    # dates and times
    "year": _date_part(calendar.year), "quarter": _date_part(calendar.quarter), "month": _date_part(calendar.month),
    "day": _date_part(calendar.day_of_month), "dayofmonth": _date_part(calendar.day_of_month),
    "dayofweek": _date_part(calendar.day_of_week), "weekday": _date_part(calendar.weekday),
    "dayofyear": _date_part(calendar.day_of_year), "weekofyear": _date_part(calendar.week_of_year),
    "hour": _time_part(calendar.hour), "minute": _time_part(calendar.minute), "second": _time_part(calendar.second),
    "last_day": simple(DATE, calendar.last_day, DATE), "add_months": simple(DATE, calendar.add_months, DATE, INT),
    "date_add": simple(DATE, calendar.add_days, DATE, INT), "dateadd": simple(DATE, calendar.add_days, DATE, INT),
    "date_sub": simple(DATE, lambda day, count: calendar.add_days(day, -count), DATE, INT),
    "datediff": simple(INT, lambda end, start: numbers.wrapped(end - start, 32), DATE, DATE),
    "date_diff": simple(INT, lambda end, start: numbers.wrapped(end - start, 32), DATE, DATE),
    "date_from_unix_date": simple(DATE, lambda day: day, INT),
    "make_date": simple(DATE, times.make_date, INT, INT, INT), "next_day": simple(DATE, times.next_day, DATE, STRING),
    "date_trunc": _date_trunc, "trunc": _trunc, "date_format": _date_format,
    "unix_micros": partial(_unix, unit=1), "unix_millis": partial(_unix, unit=1000), "unix_seconds": partial(_unix, unit=10**6),
    "unix_timestamp": _seconds, "to_unix_timestamp": _seconds,
    "timestamp_micros": simple(TIMESTAMP, lambda x: x, BIGINT),
    "timestamp_millis": simple(TIMESTAMP, lambda x: calendar.micros(x * 1000), BIGINT), "timestamp_seconds": _of_seconds,
    # arrays and maps
    "size": _size, "cardinality": _size, "array_contains": _contains, "element_at": element_at,
    "try_element_at": partial(element_at, safe=True), "get": _get, "array": _array,
}  # fmt: skip
OPERATORS = (
    "+ - * / % DIV MOD", "= <> < <= > >= <=>", "AND OR NOT", "IS NULL, IS TRUE, IS FALSE", "IN", "BETWEEN", "LIKE, ILIKE, RLIKE",
    "& | ^ ~", "||", "CASE", "CAST, TRY_CAST, TO_DATE, TO_TIMESTAMP", "TRIM, LTRIM, RTRIM", "EXTRACT", "a.b, a[b]",
)  # fmt: skip
OFFERED = f"{'; '.join(OPERATORS)}; {', '.join(name.upper() for name in sorted(FUNCTIONS))}"
