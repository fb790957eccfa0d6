"""Source text of compiled expressions: one line per step, typed as Spark types it; what Spark fails at is NULL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Decimal

from headrace.errors import QueryError
from headrace.plan.time import DAY, SECOND
from headrace.scalars import decimals as scalar_decimal
from headrace.scalars.types import FLOATS, INTEGERS, NULL, RANGES, Kind, Value, common, read_literal

_ZERO = {Kind.BOOLEAN: "False", Kind.FLOAT: "0.0", Kind.DOUBLE: "0.0"}
_FLIPPED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGER_STEPS = {"+": "add", "-": "subtract", "*": "multiply", "%": "remainder", "DIV": "divide_whole"}
_DECIMAL_HINT = "write the number as a double, for example 1.5D, or CAST(.. AS DOUBLE)"


@dataclass(slots=True)
class Writer:
    """The lines written so far. `first_free` is the place of the first string that is written out in the expression."""

    first_free: int
    prefix: str = "x"  # of names
    lines: list[str] = field(default_factory=list)
    strings: dict[str, int] = field(default_factory=dict)
    depth: int = 1
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines that run under a condition."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self) -> str:
        self.count += 1
        return f"{self.prefix}{self.count}"

    def keep(self, text: str) -> str:
        """A variable with this value; what is a constant or a variable already stays as it is."""
        if text in ("True", "False") or text.isidentifier():
            return text
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def either(self, *nulls: str) -> str:
        told = [n for n in dict.fromkeys(nulls) if n != "False"]
        return "True" if "True" in told else self.keep(" or ".join(told) or "False")

    def boolean(self, text: str, null: str) -> Value:
        """A BOOLEAN, false where it is NULL."""
        if null == "True":
            return Value(Kind.BOOLEAN, "False", "True")
        return Value(Kind.BOOLEAN, self.keep(text if null == "False" else f"not {null} and ({text})"), null)

    def step(self, kind: Kind, call: str, *inputs: Value) -> Value:
        """The result of a function that also says whether it is NULL."""
        name, failed = self.name(), self.name()
        self.line(f"{name}, {failed} = {call}")
        value = Value(kind, name, self.either(*(v.null for v in inputs), failed))
        return self.within(value, kind) if kind in INTEGERS and kind is not Kind.BIGINT else value

    def plain(self, kind: Kind, text: str, *inputs: Value) -> Value:
        """A result that is NULL only where an input is."""
        return Value(kind, self.keep(text), self.either(*(v.null for v in inputs)))

    def within(self, value: Value, kind: Kind) -> Value:
        """NULL where an integer does not fit."""
        least, most = RANGES[kind]
        return Value(kind, value.text, self.either(value.null, f"({value.text} < {least} or {value.text} > {most})"))

    def convert(self, value: Value, kind: Kind) -> Value:
        """As a type that Spark widens it to by itself."""
        if value.kind is Kind.STRING is kind and value.literal is not None:
            place = self.strings.setdefault(str(value.literal), self.first_free + len(self.strings))
            return Value(kind, f"values[{place}]")
        if value.kind is kind and kind is not Kind.DECIMAL:
            return value
        match value.kind, kind:
            case Kind.VOID, _:
                return Value(kind, _ZERO.get(kind, "0"), "True")
            case Kind.DECIMAL, Kind.DOUBLE if value.size is not None:
                return Value(kind, self.keep(scalar_decimal.as_double(value)), value.null)
            case Kind.DECIMAL, Kind.DOUBLE if value.literal is not None:
                return Value(kind, repr(float(value.literal)), value.null)
            case ((Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT), Kind.DOUBLE):
                return replace(value, kind=kind, text=self.keep(f"float({value.text})"))
            case ((Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT | Kind.FLOAT), _) if (
                kind in INTEGERS or kind is Kind.DOUBLE
            ):
                return replace(value, kind=kind)
            case Kind.DATE, Kind.TIMESTAMP:
                return self.step(kind, f"multiply({value.text}, {DAY})", value)
            case Kind.STRING, (Kind.DATE | Kind.TIMESTAMP | Kind.INTERVAL) if value.literal is not None:
                return read_literal(str(value.literal), kind)
            case _, Kind.DECIMAL:
                raise QueryError("this is a DECIMAL in Spark, which is not compiled", hint=_DECIMAL_HINT)
        raise QueryError(f"a {value.kind.value} is not a {kind.value}", hint="CAST it, or use another expression")

    def together(self, *values: Value) -> list[Value]:
        """All of them as the type they have together."""
        kind = common(list(values))
        if kind is None:
            names = " and ".join(dict.fromkeys(v.kind.value for v in values))
            raise QueryError(f"{names} have no type together", hint="CAST one of them")
        if kind is Kind.DECIMAL and any(v.size is not None for v in values):
            return scalar_decimal.aligned(list(values), self.keep)
        return [self.convert(v, kind) for v in values]

    def compare(self, op: str, left: Value, right: Value) -> Value:
        """`left op right`, NULL where one is."""
        kinds = {left.kind, right.kind}
        if _scaled(left, right):
            return self.boolean(scalar_decimal.comparison(op, left, right), self.either(left.null, right.null))
        if Kind.DECIMAL in kinds and not kinds & set(FLOATS) and kinds <= {Kind.DECIMAL, *INTEGERS}:
            if left.kind is Kind.DECIMAL:
                left, right, op = right, left, _FLIPPED[op]
            return self._compare_decimal(op, left, right)
        left, right = self.together(left, right)
        a, b, kind = left.text, right.text, left.kind
        if kind is Kind.VOID:
            return Value(Kind.BOOLEAN, "False", "True")
        if kind is Kind.STRING and op not in ("==", "!="):
            raise QueryError("strings have no order here", hint="only = and <> compare strings between rows")
        if kind in FLOATS:
            texts = {"==": f"same({a}, {b})", "!=": f"not same({a}, {b})", "<": f"less({a}, {b})", ">": f"less({b}, {a})"}
            text = texts.get(op) or ("not less" + (f"({b}, {a})" if op == "<=" else f"({a}, {b})"))
        else:
            text = f"int({a}) {op} int({b})" if kind is Kind.BOOLEAN else f"{a} {op} {b}"
        return self.boolean(text, self.either(left.null, right.null))

    def _compare_decimal(self, op: str, left: Value, right: Value) -> Value:
        """With a decimal that is written out: exact, as Spark compares an integer with a DECIMAL."""
        number = right.literal
        if not isinstance(number, Decimal) or (left.kind is Kind.DECIMAL and not isinstance(left.literal, Decimal)):
            raise QueryError("this is a DECIMAL in Spark, which is not compiled", hint=_DECIMAL_HINT)
        if isinstance(left.literal, Decimal):
            return Value(Kind.BOOLEAN, str(eval(f"a {op} b", {"a": left.literal, "b": number})))
        whole = number.to_integral_value(ROUND_FLOOR)
        if whole != number:  # no integer is there: below is up to the one before, above is from the one after
            if op in ("==", "!="):
                return self.boolean(str(op == "!="), left.null)
            op = "<=" if op in ("<", "<=") else ">"
        least, most = RANGES[Kind.BIGINT]
        if not least <= whole <= most:
            return self.boolean(str(op == "!=" or op in (("<", "<=") if whole > most else (">", ">="))), left.null)
        return self.boolean(f"{left.text} {op} {int(whole)}", left.null)

    def same_or_null(self, left: Value, right: Value) -> Value:
        """`left <=> right`: two NULLs are the same."""
        equal = self.compare("==", left, right)
        both = f"({left.null} and {right.null})"
        return self.boolean(equal.text if "False" in both else f"{equal.text} or {both}", "False")

    def arithmetic(self, op: str, left: Value, right: Value) -> Value:
        """`left op right` with op one of + - * / % DIV."""
        times = {Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL}
        if times & {left.kind, right.kind}:
            return self._time_arithmetic(op, left, right)
        if left.kind is Kind.VOID and right.kind is Kind.VOID:
            return Value(Kind.DOUBLE, "0.0", "True")
        if _scaled(left, right):
            text, size = scalar_decimal.arithmetic(op, left, right, self.keep)
            return replace(self.plain(Kind.DECIMAL, text, left, right), size=size)
        left, right = self.together(left, right)
        kind = left.kind
        if kind not in (*INTEGERS, *FLOATS):
            raise QueryError(f"{kind.value} {op} {kind.value} is not a number", hint="CAST to a number")
        if op == "/":
            left, right = self.convert(left, Kind.DOUBLE), self.convert(right, Kind.DOUBLE)
            return self.step(Kind.DOUBLE, f"divide({left.text}, {right.text})", left, right)
        if kind in INTEGERS:
            whole = Kind.BIGINT if op in ("DIV", "%") else kind  # a remainder always fits
            result = self.step(whole, f"{_INTEGER_STEPS[op]}({left.text}, {right.text})", left, right)
            return replace(result, kind=kind) if op == "%" else result
        if op == "DIV":
            raise QueryError("DIV is for integers", hint="use FLOOR(a / b), or CAST to BIGINT")
        if op == "%":
            return self.step(kind, f"remainder_of_doubles({left.text}, {right.text})", left, right)
        text = f"{left.text} {op} {right.text}"
        return self.plain(kind, text if kind is Kind.DOUBLE else f"single({text})", left, right)

    def bits(self, op: str, left: Value, right: Value) -> Value:
        """`left op right` with op one of & | ^, of integers."""
        left, right = self.together(left, right)
        if left.kind not in INTEGERS:
            raise QueryError(f"{op} is for integers, not for {left.kind.value}", hint="CAST to BIGINT")
        return self.plain(left.kind, f"{left.text} {op} {right.text}", left, right)

    def _time_arithmetic(self, op: str, left: Value, right: Value) -> Value:
        """Times and intervals are microseconds. A DATE and an INTERVAL make a TIMESTAMP, which compares as Spark's DATE does."""
        small = (Kind.TINYINT, Kind.SMALLINT, Kind.INT)
        if op in ("+", "*") and (right.kind in (Kind.DATE, Kind.TIMESTAMP) or left.kind in INTEGERS):
            left, right = right, left
        match left.kind, op, right.kind:
            case (Kind.DATE, "-", Kind.DATE) | (Kind.DATE | Kind.TIMESTAMP, "-", Kind.DATE | Kind.TIMESTAMP):
                left, right, kind = self.convert(left, Kind.TIMESTAMP), self.convert(right, Kind.TIMESTAMP), Kind.INTERVAL
            case Kind.DATE, ("+" | "-"), right_kind if right_kind in small:
                return self._date(self.step(Kind.BIGINT, f"{_INTEGER_STEPS[op]}({left.text}, {right.text})", left, right))
            case ((Kind.DATE | Kind.TIMESTAMP), ("+" | "-"), (Kind.INTERVAL | Kind.VOID)):
                left, right, kind = self.convert(left, Kind.TIMESTAMP), self.convert(right, Kind.INTERVAL), Kind.TIMESTAMP
            case (Kind.INTERVAL, "+" | "-", Kind.INTERVAL | Kind.VOID) | (Kind.VOID, "+" | "-", Kind.INTERVAL):
                left, right, kind = self.convert(left, Kind.INTERVAL), self.convert(right, Kind.INTERVAL), Kind.INTERVAL
            case Kind.INTERVAL, "*", right_kind if right_kind in INTEGERS:
                kind = Kind.INTERVAL
            case Kind.INTERVAL, "DIV", Kind.INTERVAL:
                kind = Kind.BIGINT
            case _:
                raise QueryError(
                    f"{left.kind.value} {op} {right.kind.value} is not compiled",
                    hint="times are subtracted; an INTERVAL is added to a time, or multiplied by an integer",
                )
        return self.step(kind, f"{_INTEGER_STEPS[op]}({left.text}, {right.text})", left, right)

    def _date(self, value: Value) -> Value:
        return replace(self.within(value, Kind.INT), kind=Kind.DATE)

    def cast(self, value: Value, kind: Kind) -> Value:
        match value.kind, kind:
            case (_, Kind.DECIMAL):
                raise QueryError("DECIMAL is not compiled", hint="CAST to DOUBLE")
            case (Kind.VOID, _) | (Kind.STRING, Kind.STRING):
                return self.convert(value, kind)
            case _, Kind.STRING:
                raise QueryError("a CAST to STRING is not compiled", hint="compare the values as they are")
            case (Kind.DECIMAL, b) if value.size is not None and b in INTEGERS:
                text, unit = scalar_decimal.whole_part(value)
                return self.within(self.step(Kind.BIGINT, f"divide_whole({text}, {unit})", value), kind)
            case (Kind.DECIMAL, _) if isinstance(value.literal, Decimal):
                return self._cast_decimal(value.literal, kind)
            case a, Kind.BOOLEAN if a in (*INTEGERS, *FLOATS):
                return self.boolean(f"{value.text} != 0", value.null)
            case Kind.BOOLEAN, _ if kind in INTEGERS or kind in FLOATS:
                one, none = ("1", "0") if kind in INTEGERS else ("1.0", "0.0")
                return self.plain(kind, f"{one} if {value.text} else {none}", value)
            case a, b if a in INTEGERS and b in INTEGERS:
                wider = INTEGERS.index(kind) >= INTEGERS.index(value.kind)
                return replace(value, kind=kind) if wider else self.within(value, kind)
            case a, Kind.FLOAT if a in (*INTEGERS, Kind.DOUBLE):
                call = "single_of_integer" if value.kind in INTEGERS else "single"
                return self.plain(kind, f"{call}({value.text})", value)
            case a, b if a in FLOATS and b in INTEGERS:
                least, most = RANGES[kind]
                return self.step(kind, f"to_integer({value.text}, {least}, {most})", value)
            case Kind.TIMESTAMP, b if b in INTEGERS:
                return self.within(self.plain(Kind.BIGINT, f"{value.text} // {SECOND}", value), kind)
            case Kind.TIMESTAMP, Kind.DOUBLE:
                return self.plain(kind, f"float({value.text}) / {float(SECOND)}", value)
            case Kind.TIMESTAMP, Kind.DATE:
                return self.plain(kind, f"{value.text} // {DAY}", value)
        return self.convert(value, kind)

    def _cast_decimal(self, number: Decimal, kind: Kind) -> Value:
        if kind in FLOATS:
            text = repr(float(number))
            return Value(kind, text if kind is Kind.DOUBLE else self.keep(f"single({text})"))
        if kind not in INTEGERS:
            raise QueryError(f"a DECIMAL is not a {kind.value}", hint=_DECIMAL_HINT)
        least, most = RANGES[kind]
        return Value(kind, str(int(number))) if least <= int(number) <= most else self.convert(NULL, kind)

    def choose(self, conditions: list[Value], values: list[Value]) -> Value:
        """The value of the first condition that is true, or the last value, which has none. All are computed; none can fail."""
        values = self.together(*values)
        text, null = values[-1].text, values[-1].null
        for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
            text = f"({value.text} if {condition.text} else {text})"
            null = null if value.null == null else f"({value.null} if {condition.text} else {null})"
        return replace(values[-1], text=self.keep(text) if values[-1].text else "", null=self.keep(null))

    def extreme(self, op: str, values: list[Value]) -> Value:
        """LEAST (op <) and GREATEST (op >) of those that are not NULL."""
        first, *others = self.together(*values)
        for other in others:
            better = self.compare(op, other, first).text
            take = self.keep(better if first.null == "False" else f"{better} or ({first.null} and not {other.null})")
            null = "False" if "False" in (first.null, other.null) else self.keep(f"{first.null} and {other.null}")
            first = replace(first, text=self.keep(f"{other.text} if {take} else {first.text}"), null=null)
        return first


def _scaled(*values: Value) -> bool:
    """Whether these are computed with as DECIMALs: one is a scaled number, and the others are decimals or integers."""
    fits = all(v.kind in (Kind.DECIMAL, Kind.VOID, *INTEGERS) for v in values)
    return fits and any(v.size is not None for v in values)
