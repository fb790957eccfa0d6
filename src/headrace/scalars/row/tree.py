"""From the tree of an expression to its parts: every node with the type that Spark gives it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from sqlglot import exp

from headrace.errors import QueryError, unknown
from headrace.plan.expr import Expr
from headrace.plan.literals import is_moving
from headrace.scalars.row import functions, nested, operators, spans
from headrace.scalars.row.meaning import patterns, texts
from headrace.scalars.row.meaning.failed import Failed
from headrace.scalars.row.parts import (
    NULL,
    Atom,
    Part,
    attempt,
    both,
    call,
    cast,
    choose,
    constant,
    decimal_literal,
    is_exactly,
    is_null,
    kept,
    negated,
)  # fmt: skip
from headrace.scalars.row.types import BIGINT, BOOLEAN, DOUBLE, INT, RANGES, STRING, VOID, Type, decimal, type_of

_COMPARISONS: dict[type[exp.Expr], str] = {exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV",
}  # fmt: skip
_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}
_IN_SET = 10  # values in a list; of more, Spark makes a set, which tells the zeros of doubles apart


@dataclass(slots=True)
class Tree:
    """Goes down the tree. Columns are by lower-case name: their place in the row, and their type."""

    columns: Mapping[str, tuple[int, Type]]
    java: int

    def part(self, node: exp.Expr) -> Part:
        if (sign := _COMPARISONS.get(type(node))) is not None:
            return operators.compare(sign, self.part(node.this), self.part(node.expression), self.java)
        if (sign := _ARITHMETIC.get(type(node))) is not None:
            return self._arithmetic(sign, self.part(node.this), self.part(node.expression))
        if (sign := _BITS.get(type(node))) is not None:
            return operators.bits(sign, self.part(node.this), self.part(node.expression), self.java)
        match node:
            case exp.Paren():
                return self.part(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Dot():
                return nested.field(self.part(node.this), node.expression.name)
            case exp.Null():
                return NULL
            case exp.Boolean():
                return constant(BOOLEAN, bool(node.this))
            case exp.Literal():
                return constant(STRING, node.name) if node.is_string else number(node.name)
            case exp.Interval():
                return spans.written(node)
            case exp.And() | exp.Or():
                left, right = self.condition(node.this), self.condition(node.expression)
                return both(left, right, conjunction=isinstance(node, exp.And))
            case exp.Not():
                return negated(self.condition(node.this))
            case exp.Neg():
                return self._negative(node)
            case exp.BitwiseNot():
                return self._flipped(node)
            case exp.Cast() | exp.TsOrDsToDate() | exp.TimeStrToTime():
                return self._cast(node)
            case exp.Is() | exp.In() | exp.Between() | exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._predicate(node)
            case exp.Like() | exp.ILike() | exp.RegexpLike() | exp.Escape():
                return self._pattern(node)
            case exp.Case():
                return self._case(node)
            case exp.DPipe():
                return functions.FUNCTIONS["concat"](self, _chain(node), node)
            case exp.Trim():
                return functions.trim(self, node)
            case exp.Extract():
                return functions.extract(self, node)
            case exp.Bracket():
                return self._element(node)
        return self._function(node)

    def _column(self, node: exp.Column) -> Part:
        names = [part.name for part in node.parts]
        found = self.columns.get(names[0].lower())
        if found is None:
            raise QueryError(unknown("column", names[0], self.columns))
        place, kind = found
        part = Part(kind, lambda _: Atom(f"c{place}"))
        for name in names[1:]:
            part = nested.field(part, name)
        return part

    def condition(self, node: exp.Expr) -> Part:
        """A node that has to be a BOOLEAN."""
        part = self.part(node)
        if part.type not in (BOOLEAN, VOID):
            raise QueryError(f"{said(node)} is a {part.type}, not a condition", hint="compare it with something")
        return cast(part, BOOLEAN, self.java)

    def decision(self, node: exp.Expr) -> Part:
        """What CASE and IF decide by, which Spark does not take a mere NULL for."""
        part = self.condition(node)
        if isinstance(node.unnest(), exp.Null):
            raise QueryError(f"{said(node)} is not a condition", hint="write FALSE")
        return part

    def as_type(self, node: exp.Expr, kind: Type) -> Part:
        """An argument that a function takes as this type, as Spark casts it by itself."""
        part = self.part(node)
        if part.type == kind or part.type == VOID:
            return cast(part, kind, self.java)
        if kind.is_integer and part.type.is_integer and RANGES[part.type.name][1] > RANGES[kind.name][1]:
            raise QueryError(f"{said(node)} is a {part.type}, and a {kind} is taken here", hint=f"write CAST(.. AS {kind})")
        if (kind.is_integer and not (part.type.is_integer or part.type == STRING)) or not _taken(part.type, kind):
            raise QueryError(f"{said(node)} is a {part.type}, and a {kind} is taken here", hint="CAST it")
        self._no_moving(part, kind, node)
        return cast(part, kind, self.java)

    def _no_moving(self, part: Part, kind: Type, node: exp.Expr) -> None:
        """Words for times that only Spark's optimizer knows: 'now', 'epoch'."""
        text = part.literal
        if kind.is_time and isinstance(text, str) and (is_moving(text) or text.strip().lower() == "epoch"):
            raise QueryError(f"{said(node)} is not a time that is written out", hint="write for example '2024-01-31 12:00:00'")

    def _arithmetic(self, sign: str, left: Part, right: Part) -> Part:
        if spans.involved(left, right):
            return spans.arithmetic(sign, left, right, self.java)
        return operators.arithmetic(sign, left, right, self.java)

    def _negative(self, node: exp.Neg) -> Part:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number(node.this.name, negative=True)
        part = self.part(node.this)
        return operators.negative(cast(part, DOUBLE, self.java) if part.type in (STRING, VOID) else part)

    def _flipped(self, node: exp.BitwiseNot) -> Part:
        part = self.part(node.this)
        if not part.type.is_integer:
            raise QueryError(f"~ takes a whole number, and {said(node.this)} is a {part.type}", hint="CAST to BIGINT")
        return operators.bits("^", part, constant(part.type, -1), self.java)

    def _cast(self, node: exp.Expr) -> Part:
        if isinstance(node, exp.Cast):
            if node.args.get("format") or node.args.get("action"):
                raise QueryError(f"{said(node)} is not offered for one row", hint="CAST without a format")
            kind = type_of(node.to.sql(dialect="spark"))
        elif isinstance(node, exp.TimeStrToTime):
            return self.as_type(node.this, type_of("TIMESTAMP"))
        else:
            if not said(node).startswith(("TO_DATE(", "CAST(")) or node.args.get("format"):
                raise QueryError(f"{said(node)} is not offered for one row", hint="CAST(x AS DATE) reads ISO dates")
            kind = type_of("DATE")
        part = self.part(node.this)
        self._no_moving(part, kind, node)
        if isinstance(node, exp.TryCast) and node.args.get("safe"):
            return attempt(part, kind, self.java)
        return replace(cast(part, kind, self.java), literal=None)

    def _predicate(self, node: exp.Expr) -> Part:
        """IS, IN, BETWEEN, <=>."""
        match node:
            case exp.Is() if isinstance(node.expression, exp.Null):
                return is_null(self.part(node.this))
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                return is_exactly(self.condition(node.this), bool(node.expression.this))
            case exp.In() if node.expressions and not node.args.get("query"):
                return self._in(self.part(node.this), [self.part(e) for e in node.expressions])
            case exp.Between():
                value = kept(self.part(node.this))
                low = operators.compare(">=", value, self.part(node.args["low"]), self.java)
                high = operators.compare("<=", value, self.part(node.args["high"]), self.java)
                return both(low, high, conjunction=True)
            case exp.NullSafeEQ():
                return self._same(node)
            case exp.NullSafeNEQ():
                return negated(self._same(node))
        raise refused(node)

    def _same(self, node: exp.Expr) -> Part:
        """`a <=> b`: two NULLs are the same, and both sides are always computed."""
        kind, sides = operators.together([self.part(node.this), self.part(node.expression)], self.java)
        if kind.is_nested:
            raise QueryError(f"{said(node)} compares {kind}", hint="compare their elements")
        equal = "a == b" if not kind.is_float else "a == b or (a is not None and a != a and b is not None and b != b)"
        test = eval(f"lambda a, b: {equal}")
        return operators.of_all(BOOLEAN, sides, lambda w, xs: f"{w.bind(test)}({xs[0]}, {xs[1]})", nulls=False)

    def _in(self, value: Part, listed: list[Part]) -> Part:
        """The first that is equal decides; NULL where none is and one of them, or the value, is NULL."""
        kind, (value, *listed) = operators.together([value, *listed], self.java)
        if kind.is_nested or (kind.is_float and len(listed) > _IN_SET):
            hint = "Spark makes a set of more than ten, which tells 0.0 and -0.0 apart: write it with OR"
            raise QueryError(f"IN of {len(listed)} values of type {kind} is not offered for one row", hint=hint)
        value = kept(value)
        out = operators.compare("==", value, listed[0], self.java)
        for other in listed[1:]:
            out = both(out, operators.compare("==", value, other, self.java), conjunction=False)
        return out

    def _pattern(self, node: exp.Expr) -> Part:
        escape = "\\"
        if isinstance(node, exp.Escape):
            escape, node = node.expression.name, node.this
        if not isinstance(node, exp.Like | exp.ILike | exp.RegexpLike) or len(escape) != 1:
            raise refused(node)
        text, pattern = self.as_type(node.this, STRING), self.as_type(node.expression, STRING)
        if isinstance(node, exp.RegexpLike):
            test = patterns.regular(pattern.literal) if isinstance(pattern.literal, str) else None
            if test is None:
                hint = "write a plain pattern: Java's and Python's regular expressions differ in the others; or use LIKE"
                raise QueryError(f"{said(node)} is not known to mean the same outside of Java", hint=hint)
            return call(BOOLEAN, test, [text])
        lowered = isinstance(node, exp.ILike)
        if isinstance(pattern.literal, str):
            try:
                test = patterns.like(texts.lower(pattern.literal) if lowered else pattern.literal, escape)
            except Failed as error:
                raise QueryError(f"{said(node)}: {error}") from error
            return call(BOOLEAN, (lambda x: test(texts.lower(x))) if lowered else test, [text])
        if lowered:
            return call(BOOLEAN, lambda x, p: patterns.like(texts.lower(p), escape)(texts.lower(x)), [text, pattern])
        return call(BOOLEAN, lambda x, p: patterns.like(p, escape)(x), [text, pattern])

    def _case(self, node: exp.Case) -> Part:
        ifs, default = node.args["ifs"], node.args.get("default")
        if node.this is None:
            conditions = [self.decision(branch.this) for branch in ifs]
        else:
            subject = self.part(node.this)
            conditions = [operators.compare("==", subject, self.part(branch.this), self.java) for branch in ifs]
        values = [self.part(branch.args["true"]) for branch in ifs] + [self.part(default) if default is not None else NULL]
        return self.chosen(conditions, values)

    def chosen(self, conditions: list[Part], values: list[Part]) -> Part:
        """CASE and IF: one value more than there are conditions."""
        kind, values = operators.together(values, self.java)
        return choose(kind, list(zip(conditions, values[:-1], strict=True)), values[-1])

    def _element(self, node: exp.Bracket) -> Part:
        if len(node.expressions) != 1:
            raise refused(node)
        inside, key = self.part(node.this), node.expressions[0]
        if node.args.get("offset") == 1:
            return functions.element_at(self, [node.this, key], node, safe=bool(node.args.get("safe")))
        return nested.element(inside, self.index(node.this, key), key, self.java)

    def index(self, inside: exp.Expr, key: exp.Expr) -> Part:
        """The number of an element. Of an array that is made in the query, Spark fails where the number is NULL."""
        part = self.part(key)
        if not isinstance(inside.unnest(), exp.Column | exp.Dot | exp.Bracket) and part.literal is None:
            hint = "GET(.., i) counts from 0 and is NULL where nothing is there"
            raise QueryError(f"{said(key)} is looked up in {said(inside)}, which is no column", hint=hint)
        return part

    def _function(self, node: exp.Expr) -> Part:
        """A call, as it is written for Spark: that is what will be run there."""
        found = written(said(node))
        handler = None if found is None else functions.FUNCTIONS.get(found[0])
        if found is None or handler is None:
            raise refused(node)
        return handler(self, [Expr.of(text).tree for text in found[1]], node)


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """What || puts together."""
    return [part for side in (node.this, node.expression) for part in (_chain(side) if isinstance(side, exp.DPipe) else [side])]


def _taken(one: Type, other: Type) -> bool:
    """Whether Spark casts by itself from one type to the other where a function takes the latter."""
    if other == STRING:
        return not one.is_nested and one.name != "INTERVAL"
    if one == STRING:
        return not other.is_nested and other.name != "INTERVAL"
    if other.is_number:
        return one.is_number
    return other.is_time and one.is_time


def said(node: exp.Expr) -> str:
    return node.sql(dialect="spark")


def refused(node: exp.Expr) -> QueryError:
    """What is not offered, in its own words."""
    hint = f"there are {functions.OFFERED}; Spark has all others: compute them before the stream"
    return QueryError(f"{said(node)} is not offered for one row", hint=hint)


_CALL = re.compile(r"(\w+)\((.*)\)\Z", re.DOTALL)
_PIECES = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|[()\[\],]|[^'`()\[\],]+", re.DOTALL)


def written(text: str) -> tuple[str, list[str]] | None:
    """The name of a function and the texts of its arguments, if a text is one call.

    >>> written("F(a, G(b, ','), c)"), written("F(a) + G(b)")
    (('f', ['a', "G(b, ',')", 'c']), None)
    """
    found = _CALL.match(text)
    if found is None:
        return None
    arguments, depth = [""], 0
    for piece in _PIECES.findall(found[2]):
        depth += (piece in ("(", "[")) - (piece in (")", "]"))
        if depth < 0:
            return None
        if piece == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += piece
    given = [a.strip() for a in arguments]
    return found[1].lower(), [] if given == [""] else given


def number(text: str, *, negative: bool = False) -> Part:
    """`5`, `3000000000`, `1.5`, `1e3`: INT, BIGINT, DECIMAL and DOUBLE."""
    if "e" in text.lower():
        return constant(DOUBLE, -float(text) if negative else float(text))
    value = Decimal(text).copy_negate() if negative else Decimal(text)
    if "." not in text:
        whole = int(value)
        for kind in (INT, BIGINT):
            if RANGES[kind.name][0] <= whole <= RANGES[kind.name][1]:
                return constant(kind, whole)
    precision, scale = decimal_literal(value)
    if precision > 38:
        raise QueryError(f"{text} has more than 38 digits")
    return constant(decimal(precision, scale), value if value else abs(value))
