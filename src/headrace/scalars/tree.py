"""From the tree of an expression to its source: every node after its children, each with the type that Spark gives it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headrace.errors import QueryError, unknown
from headrace.plan.types import decimal_parts
from headrace.scalars.source import Writer
from headrace.scalars.types import (
    FLOATS,
    INTEGERS,
    NULL,
    NUMBERS,
    SCALED,
    Kind,
    Size,
    Slot,
    Value,
    common,
    interval_literal,
    kind_of,
    number_literal,
)  # fmt: skip

_COMPARISONS: dict[type[exp.Expr], str] = {exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV",
}  # fmt: skip
_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_OF_DOUBLES: dict[type[exp.Expr], str] = {
    exp.Sqrt: "root", exp.Sign: "sign", exp.Exp: "exponential", exp.Sin: "np.sin", exp.Cos: "np.cos", exp.Tan: "np.tan",
    exp.Asin: "np.arcsin", exp.Acos: "np.arccos", exp.Atan: "np.arctan", exp.Radians: "radians", exp.Degrees: "degrees",
}  # fmt: skip
_OFFERED = (
    "ABS, ACOS, ASIN, ATAN, ATAN2, CASE, CAST, CEIL, COALESCE, COS, DATEDIFF of two dates, DEGREES, EXP, FLOOR, GREATEST, IF, "
    "LEAST, LN, LOG, MOD, NULLIF, PI, POWER, RADIANS, ROUND, SIGN, SIN, SQRT, TAN, arithmetic, & | ^ ~, comparisons, BETWEEN, "
    "IN, IS NULL, AND, OR, NOT"
)
_MOST_DIGITS = 15


@dataclass(slots=True)
class Tree:
    """Goes down the tree and writes the source of every node after that of its children."""

    writer: Writer
    columns: Mapping[tuple[str, str], Slot]
    loads: dict[tuple[str, str], str] = field(default_factory=dict)

    def value(self, node: exp.Expr) -> Value:
        match node:
            case exp.Paren():
                return self.value(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Null():
                return NULL
            case exp.Boolean():
                return Value(Kind.BOOLEAN, str(bool(node.this)))
            case exp.Literal():
                return Value(Kind.STRING, literal=node.name) if node.is_string else number_literal(node.name)
            case exp.Interval():
                return interval_literal(node)
            case exp.And() | exp.Or():
                return self._connect(node)
            case exp.Not():
                inner = self._condition(node.this)
                return self.writer.boolean(f"not {inner.text}", inner.null)
            case exp.Is() | exp.In() | exp.Between() | exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._predicate(node)
            case exp.Case() | exp.If() | exp.Coalesce() | exp.Nullif():
                return self._choice(node)
            case exp.Cast():
                return self._cast(node)
        if (op := _COMPARISONS.get(type(node))) is not None:
            return self.writer.compare(op, self.value(node.this), self.value(node.expression))
        if (op := _ARITHMETIC.get(type(node))) is not None:
            return self.writer.arithmetic(op, self.value(node.this), self.value(node.expression))
        if (op := _BITS.get(type(node))) is not None:
            return self.writer.bits(op, self.value(node.this), self.value(node.expression))
        return self._function(node)

    def _column(self, node: exp.Column) -> Value:
        """A column, loaded once, at the top, where every later line can see it."""
        key = (node.table.lower(), node.name.lower())
        slot = self.columns.get(key)
        if slot is None:
            names = [f"{qualifier}.{name}" if qualifier else name for qualifier, name in self.columns]
            raise QueryError(unknown("column", _sql(node), names))
        kind = kind_of(slot.type)
        scaled = slot.type.startswith(SCALED)
        if kind is None or kind is Kind.VOID or (kind is Kind.DECIMAL and not scaled):
            raise QueryError(
                f"{_sql(node)} is of type {slot.type}, which cannot be computed with between rows",
                hint="CAST it to DOUBLE where it is read" if kind is Kind.DECIMAL else "use a column of another type",
            )
        word, name = f"values[{slot.position}]", f"c{slot.position}"
        null, text = f"n{slot.position}", word
        if kind in FLOATS:
            text = f"as_double({word})"
        elif kind is Kind.BOOLEAN:
            text = f"{word} != 0 and not {null}"
        self.loads[key] = f"    {null} = nulls[{slot.position}]\n    {name} = {text}"
        if not scaled:
            return Value(kind, name, null)
        digits, scale = decimal_parts(slot.type)
        return Value(kind, name, null, size=Size(digits, scale, 10**digits - 1))

    def _condition(self, node: exp.Expr) -> Value:
        """A node that has to be a BOOLEAN."""
        value = self.value(node)
        if value.kind not in (Kind.BOOLEAN, Kind.VOID):
            raise QueryError(f"{_sql(node)} is a {value.kind.value}, not a BOOLEAN", hint="compare it with something")
        return self.writer.convert(value, Kind.BOOLEAN)

    def _connect(self, node: exp.And | exp.Or) -> Value:
        """AND and OR of three values. The right side is computed only where it matters."""
        write, both = self.writer, isinstance(node, exp.And)
        left = self._condition(node.this)
        text, null = write.name(), write.name()
        write.line(f"{text}, {null} = {'False, False' if both else f'{left.text}, {left.null}'}")
        with write.block(f"if {left.text} or {left.null}:" if both else f"if not {left.text}:"):
            right = self._condition(node.expression)
            write.line(f"{text} = {f'{left.text} and ' if both else ''}{right.text}")
            unsure = f"{right.text} or {right.null}" if both else f"{left.null} or {right.null}"
            write.line(f"{null} = not {text} and ({unsure})")
        return Value(Kind.BOOLEAN, text, "False" if left.null == right.null == "False" else null)

    def _predicate(self, node: exp.Expr) -> Value:
        """IS, IN, BETWEEN, <=>."""
        write = self.writer
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Value(Kind.BOOLEAN, self.value(node.this).null)
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                inner = self._condition(node.this)
                return write.boolean(inner.text if node.expression.this else f"not {inner.text} and not {inner.null}", "False")
            case exp.In() if node.expressions:
                return self._in([self.value(node.this), *map(self.value, node.expressions)])
            case exp.Between():
                value = self.value(node.this)
                low = write.compare(">=", value, self.value(node.args["low"]))
                high = write.compare("<=", value, self.value(node.args["high"]))
                null = f"({low.text} or {low.null}) and ({high.text} or {high.null}) and not ({low.text} and {high.text})"
                return Value(Kind.BOOLEAN, write.keep(f"{low.text} and {high.text}"), write.keep(null))
            case exp.NullSafeEQ():
                return write.same_or_null(self.value(node.this), self.value(node.expression))
            case exp.NullSafeNEQ():
                return write.boolean(
                    f"not {write.same_or_null(self.value(node.this), self.value(node.expression)).text}", "False"
                )
        raise self._refuse(node)

    def _in(self, values: list[Value]) -> Value:
        """All are compared as the type they have together; a decimal that is written out is compared as it is."""
        write = self.writer
        if common(values) is not Kind.DECIMAL:
            values = write.together(*values)
        tests = [write.compare("==", values[0], value) for value in values[1:]]
        text = write.keep(" or ".join(test.text for test in tests))
        null = write.either(*(test.null for test in tests))
        return Value(Kind.BOOLEAN, text, null if null == "False" else write.keep(f"not {text} and {null}"))

    def _choice(self, node: exp.Expr) -> Value:
        """CASE, IF, COALESCE, NULLIF."""
        write = self.writer
        match node:
            case exp.Case():
                ifs, default = node.args["ifs"], node.args.get("default")
                if node.this is None:
                    conditions = [self._condition(branch.this) for branch in ifs]
                else:
                    subject = self.value(node.this)
                    conditions = [write.compare("==", subject, self.value(branch.this)) for branch in ifs]
                values = [self.value(branch.args["true"]) for branch in ifs]
                return write.choose(conditions, [*values, self.value(default) if default is not None else NULL])
            case exp.If():
                default = node.args.get("false")
                values = [self.value(node.args["true"]), self.value(default) if default is not None else NULL]
                return write.choose([self._condition(node.this)], values)
            case exp.Nullif():
                value = self.value(node.this)
                return write.choose([write.compare("==", value, self.value(node.expression))], [NULL, value])
            case _:
                values = [self.value(part) for part in (node.this, *node.expressions)]
                return write.choose([Value(Kind.BOOLEAN, f"(not {v.null})") for v in values[:-1]], values)

    def _cast(self, node: exp.Cast) -> Value:
        kind = kind_of(_sql(node.to))
        if kind is None:
            raise QueryError(f"a CAST to {_sql(node.to)} is not compiled", hint="CAST to a number, DATE or TIMESTAMP")
        return self.writer.cast(self.value(node.this), kind)

    def _double(self, node: exp.Expr, value: Value | None = None) -> Value:
        """A node as a DOUBLE; its value, if that is written already."""
        value = self.value(node) if value is None else value
        if value.kind not in (*NUMBERS, Kind.VOID):
            raise QueryError(f"{_sql(node)} is a {value.kind.value}, not a number", hint="CAST it to DOUBLE")
        return self.writer.convert(value, Kind.DOUBLE)

    def _date(self, node: exp.Expr) -> Value:
        """A node as a DATE: DATEDIFF cuts off the time of the day."""
        value = self.value(node)
        if value.kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.VOID):
            raise QueryError(f"{_sql(node)} is a {value.kind.value}, not a DATE", hint="CAST it to DATE")
        return self.writer.cast(value, Kind.DATE)

    def _function(self, node: exp.Expr) -> Value:
        """Functions of numbers and dates."""
        write = self.writer
        if (name := _OF_DOUBLES.get(type(node))) is not None:
            value = self._double(node.this)
            return write.plain(Kind.DOUBLE, f"{name}({value.text})", value)
        match node:
            case exp.Ln():
                value = self._double(node.this)
                return write.step(Kind.DOUBLE, f"logarithm({value.text})", value)
            case exp.Log() if node.args.get("expression") is not None:
                base, value = self._double(node.this), self._double(node.expression)
                return write.step(Kind.DOUBLE, f"logarithm_to({base.text}, {value.text})", base, value)
            case exp.Atan2():
                y, x = self._double(node.this), self._double(node.expression)
                return write.plain(Kind.DOUBLE, f"np.arctan2({y.text} + 0.0, {x.text} + 0.0)", y, x)
            case exp.Pi():
                return Value(Kind.DOUBLE, repr(math.pi))
            case exp.TsOrDsToDate() if not node.args.get("format"):
                return write.cast(self.value(node.this), Kind.DATE)
            case exp.DateDiff() if not node.args.get("unit"):
                end, start = self._date(node.this), self._date(node.expression)
                return write.step(Kind.INT, f"subtract({end.text}, {start.text})", end, start)
            case exp.BitwiseNot():
                value = self.value(node.this)
                return write.bits("^", value, replace(value, text="-1", null="False"))
            case exp.Pow():
                base, power = self._double(node.this), self._double(node.expression)
                return write.plain(Kind.DOUBLE, f"power({base.text}, {power.text})", base, power)
            case exp.Least() | exp.Greatest() if node.expressions:
                values = [self.value(part) for part in (node.this, *node.expressions)]
                return write.extreme("<" if isinstance(node, exp.Least) else ">", values)
            case exp.Neg() if isinstance(node.this, exp.Literal) and not node.this.is_string:
                return number_literal(node.this.name, negative=True)
            case exp.Neg() | exp.Abs():
                return self._signed(node)
            case exp.Floor() | exp.Ceil() if not node.args.get("decimals") and not node.args.get("to"):
                return self._whole(node)
            case exp.Round() if not node.args.get("truncate"):
                return self._round(node)
        raise self._refuse(node)

    def _signed(self, node: exp.Expr) -> Value:
        """`-x` and ABS(x), of the type of x."""
        write, value, absolute = self.writer, self.value(node.this), isinstance(node, exp.Abs)
        if value.kind is Kind.VOID:
            return write.convert(NULL, Kind.DOUBLE)
        if value.kind in FLOATS:
            return write.plain(value.kind, f"abs({value.text})" if absolute else f"-{value.text}", value)
        if value.size is not None:
            text = f"abs({value.text})" if absolute else f"-{value.text}"
            return replace(write.plain(value.kind, text, value), size=value.size)
        if value.kind in INTEGERS or value.kind is Kind.INTERVAL:
            return write.step(value.kind, f"absolute({value.text})" if absolute else f"subtract(0, {value.text})", value)
        return write.convert(value, Kind.DECIMAL) if value.kind is Kind.DECIMAL else self._double(node.this, value)

    def _whole(self, node: exp.Expr) -> Value:
        """FLOOR and CEIL: a BIGINT."""
        value = self.value(node.this)
        if value.kind in INTEGERS or value.kind is Kind.DECIMAL:
            return self.writer.convert(value, Kind.BIGINT if value.kind in INTEGERS else Kind.DECIMAL)
        value = self._double(node.this, value)
        return self.writer.step(Kind.BIGINT, f"{'floor' if isinstance(node, exp.Floor) else 'ceil'}({value.text})", value)

    def _round(self, node: exp.Round) -> Value:
        """ROUND, of the type of what is rounded."""
        write, value, digits = self.writer, self.value(node.this), _digits(node.args.get("decimals"))
        if value.kind in INTEGERS:
            if digits >= 0:
                return value
            return write.step(value.kind, f"round_integer({value.text}, {10**-digits})", value)
        if value.kind in (Kind.DECIMAL, Kind.FLOAT):
            raise QueryError(f"ROUND of a {value.kind.value} is not compiled", hint="CAST it to DOUBLE")
        if digits < 0:
            raise QueryError("ROUND of a DOUBLE to tens is not compiled", hint="write ROUND(x / 10) * 10")
        value = self._double(node.this, value)
        return write.plain(Kind.DOUBLE, f"round_double({value.text}, {digits})", value)

    def _refuse(self, node: exp.Expr) -> QueryError:
        text = _sql(node)
        return QueryError(f"there is no {text} between rows", hint=f"there are: {_OFFERED}; of one row alone, all that Spark has")


def _digits(node: exp.Expr | None) -> int:
    """The second argument of ROUND."""
    negative = isinstance(node, exp.Neg)
    text = "0" if node is None else (node.this if negative else node).name
    if not text.isdigit() or int(text) > _MOST_DIGITS:
        raise QueryError("the digits of ROUND are not a whole number from -15 to 15")
    return -int(text) if negative else int(text)


def _sql(node: exp.Expr) -> str:
    return node.sql(dialect="spark")
