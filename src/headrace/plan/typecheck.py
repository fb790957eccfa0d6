"""The types of scalar expressions, and what Spark would refuse of them, or fail at for every row.

Works up from the leaves over a tree of any depth. Of what is not known, nothing is said: there are no false alarms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.coercion import NUMBERS, Family, Operand, can_cast, common, family, sum_of
from headrace.plan.expr import UNKNOWN_TYPE
from headrace.plan.literals import is_moving, readable
from headrace.plan.scalar_calls import call_of
from headrace.plan.signatures import CLASSES, READ_AS, SIGNATURES
from headrace.plan.types import base_type

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV", exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.And: "AND", exp.Or: "OR", exp.Not: "NOT",
}  # fmt: skip
BOOLEAN, UNKNOWN = Operand("BOOLEAN"), Operand(UNKNOWN_TYPE)
TIME_EXAMPLE = "'2024-01-31 12:00:00'"


class TypeMismatch(QueryError):
    """Types that do not go together, and the part of the expression in which they meet."""

    def __init__(self, message: str, node: exp.Expr, hint: str | None = None) -> None:
        """`node` is where."""
        super().__init__(message, hint=hint)
        self.node = node


@dataclass(slots=True)
class Typing:
    """The types of one expression. `columns` are by lower-case name, `said` is how a part of it was written."""

    columns: Mapping[str, str]
    said: Callable[[exp.Expr], str]
    known: dict[int, Operand] = field(default_factory=dict)

    def of(self, tree: exp.Expr) -> str:
        """The type of an expression, once every part of it is found right."""
        parts = list(tree.walk(bfs=True, prune=lambda node: isinstance(node, exp.Lambda | exp.DataType | exp.Interval)))
        for node in reversed(parts):  # children come before what they are in
            self.known[id(node)] = self._operand(node)
        return self._of(tree).type

    def _of(self, node: exp.Expr | None) -> Operand:
        return UNKNOWN if node is None else self.known.get(id(node), UNKNOWN)

    def _operand(self, node: exp.Expr) -> Operand:
        if isinstance(node, COMPARISONS):
            self._compare(node, node.this, node.expression)
            return BOOLEAN
        if isinstance(node, ARITHMETIC):
            return Operand(self._arithmetic(node))
        if isinstance(node, BITS):
            return Operand(self._bits(node))
        match node:
            case exp.Paren():
                return self._of(node.this)
            case exp.Column():
                return Operand(self.columns.get(node.name.lower(), UNKNOWN_TYPE)) if not node.table else UNKNOWN
            case exp.Literal():
                return Operand("STRING", node.name) if node.is_string else Operand(number_type(node.name))
            case exp.Null():
                return Operand("VOID")
            case exp.Is():
                if isinstance(node.expression, exp.Boolean):
                    self._condition(node.this, "IS")
                return BOOLEAN
            case exp.Boolean() | exp.Like() | exp.ILike() | exp.RegexpLike():
                return BOOLEAN
            case exp.Bracket():
                return Operand(self._element(node))
            case exp.BitwiseNot():
                return Operand(self._whole(node, node.this, "~"))
            case exp.Interval():
                return Operand(interval_type(node))
            case exp.Cast():
                return self._cast(node)
            case exp.And() | exp.Or() | exp.Not():
                for part in node.iter_expressions():
                    self._condition(part, SIGNS[type(node)])
                return BOOLEAN
            case exp.Between():
                self._compare(node, node.this, node.args["low"])
                self._compare(node, node.this, node.args["high"])
                return BOOLEAN
            case exp.In():
                self._together(node, [node.this, *node.expressions])
                return BOOLEAN
            case exp.Neg():
                return Operand(self._negated(node))
            case exp.Case() | exp.If():
                return Operand(self._choice(node))
            case exp.Coalesce():
                return Operand(self._together(node, [node.this, *node.expressions]))
            case exp.Greatest() | exp.Least():
                return Operand(self._extreme(node, [node.this, *node.expressions]))
            case exp.Nullif():
                self._compare(node, node.this, node.expression)
                return self._of(node.this)
            case exp.DPipe() | exp.Concat():
                return Operand(self._joined(list(node.iter_expressions()), node))
            case exp.Nvl2():
                return Operand(self._together(node, [node.args["true"], node.args["false"]]))
            case exp.TsOrDsToDate():
                return Operand("DATE")
            case exp.Func():
                return Operand(self._called(node))
        return UNKNOWN

    # Types that meet

    def _compare(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> None:
        found = self._meet(node, left, right)
        if Family.MAP in (family(found), self._of(left).family, self._of(right).family):
            raise TypeMismatch(f"{self.said(node)}: values of type MAP cannot be compared", node)

    def _together(self, node: exp.Expr, parts: Sequence[exp.Expr]) -> str:
        """The type that several values are brought to."""
        given = [p for p in parts if self._of(p).type != "VOID"]
        if not given:
            return "VOID"
        found = self._of(given[0]).type
        for at, one in enumerate(given[1:], start=1):
            met = common(found, self._of(one).type)
            if met is None:
                other = next(p for p in given[:at] if common(self._of(p).type, self._of(one).type) is None)
                raise TypeMismatch(self._apart(other, one), node, self._cast_hint(other, one))
            found = met
        self._read_texts(node, given, found)
        return found

    def _extreme(self, node: exp.Expr, parts: list[exp.Expr]) -> str:
        """GREATEST and LEAST read no texts as anything else."""
        texts = [p for p in parts if self._of(p).family is Family.STRING]
        others = [p for p in parts if self._of(p).family not in (Family.STRING, Family.UNKNOWN)]
        if texts and others:
            raise TypeMismatch(self._apart(texts[0], others[0]), node, self._cast_hint(texts[0], others[0]))
        return self._together(node, parts)

    def _meet(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> str:
        """The type of two values that are compared; an error if there is none, or if a text cannot be read as it."""
        one, other = self._of(left), self._of(right)
        found = common(one.type, other.type)
        if found is None:
            raise TypeMismatch(self._apart(left, right), node, self._cast_hint(left, right))
        self._read_texts(node, [left, right], found)
        return found

    def _read_texts(self, node: exp.Expr, parts: Sequence[exp.Expr], kind: str) -> None:
        """Texts among values that are brought to one type."""
        if family(kind) in (Family.STRING, Family.BINARY, Family.UNKNOWN):
            return
        other = next(p for p in parts if self._of(p).family is not Family.STRING)
        for part in parts:
            if self._of(part).family is Family.STRING:
                self._read(node, part, kind, other)

    def _read(self, node: exp.Expr, text: exp.Expr, kind: str, met: exp.Expr) -> None:
        """A text that is read as another type, because of what it meets."""
        operand, wanted = self._of(text), self._of(met).type
        if operand.written is None:
            raise TypeMismatch(self._apart(text, met), node, self._cast_hint(text, met))
        if not readable(operand.written, base_type(kind)):
            message = f"{self.said(text)} cannot be read as {article(base_type(kind))}, and {self.said(met)} is {article(wanted)}"
            raise TypeMismatch(message, text, _example(kind))
        if family(kind) is Family.TIME and is_moving(operand.written):
            raise self._moving(text)

    def _apart(self, left: exp.Expr, right: exp.Expr) -> str:
        left, right = (left, right) if self._stands_before(left, right) else (right, left)
        kinds = [self._of(part).type for part in (left, right)]
        return f"{self.said(left)} is {article(kinds[0])} and {self.said(right)} is {article(kinds[1])}, which do not go together"

    def _stands_before(self, left: exp.Expr, right: exp.Expr) -> bool:
        order = [next((n.meta["start"] for n in part.walk() if "start" in n.meta), 0) for part in (left, right)]
        return order[0] <= order[1]

    def _cast_hint(self, left: exp.Expr, right: exp.Expr) -> str:
        """How to write what was probably meant."""
        text, met = (left, right) if self._of(left).family is Family.STRING else (right, left)
        if self._of(text).family is not Family.STRING:
            return "convert one of them with CAST"
        wanted = self._of(met).type
        number = met.unnest()
        hint = f"write CAST({self.said(text)} AS {wanted})"
        if isinstance(number, exp.Literal) and not number.is_string:
            return f"{hint}, or '{self.said(met)}' to compare texts"
        return f"{hint}, or CAST({self.said(met)} AS STRING) to compare texts"

    def _moving(self, text: exp.Expr) -> TypeMismatch:
        message = f"{self.said(text)} is another time every day, so a correction could not repeat what it takes back"
        return TypeMismatch(message, text, f"write the time out, for example {TIME_EXAMPLE}")

    # Operators

    def _condition(self, part: exp.Expr, sign: str) -> None:
        operand = self._of(part)
        if operand.family in (Family.BOOLEAN, Family.UNKNOWN):
            return
        texts = sign not in ("WHEN", "IF")  # Spark reads them as conditions only between AND, OR and NOT
        if operand.family is Family.STRING and texts and (operand.written is None or readable(operand.written, "BOOLEAN")):
            return
        message = f"{sign} takes conditions, and {self.said(part)} is {article(operand.type)}"
        raise TypeMismatch(message, part, "compare it with something")

    def _arithmetic(self, node: exp.Expr) -> str:
        left, right = node.this, node.expression
        one, other = self._of(left), self._of(right)
        families = (one.family, other.family)
        if Family.UNKNOWN in families:
            return UNKNOWN_TYPE
        if Family.STRING in families and {Family.INTERVAL, Family.MONTHS} & {*families}:
            return self._span_and_text(node, left, right)
        if isinstance(node, exp.IntDiv) and not _divides(one, other):
            raise TypeMismatch(self._no_sum(node, left, right), node, "write FLOOR(a / b), or CAST it to BIGINT")
        if Family.STRING in families and {*families} <= {Family.STRING, *NUMBERS}:
            return self._of_texts(node, left, right)
        if isinstance(node, exp.Sub) and {*families} == {Family.STRING, Family.TIME}:
            self._meet(node, left, right)
            return "INTERVAL DAY TO SECOND"
        if families[0] in NUMBERS and families[1] in NUMBERS:
            return _number(node, one, other)
        if isinstance(node, exp.Add | exp.Sub):
            found = sum_of(isinstance(node, exp.Sub), one, other)
        else:
            found = _scaled(node, one, other)
        if found is None:
            raise TypeMismatch(self._no_sum(node, left, right), node, _sum_hint(node, one, other))
        return found

    def _of_texts(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> str:
        """Arithmetic of texts: those that are written out are read as numbers, others would be, row by row."""
        found = common(self._of(left).type, self._of(right).type)
        kind = "DOUBLE" if found is None else found
        for part in (left, right):
            operand = self._of(part)
            unread = operand.written is None or not readable(operand.written, kind) or family(kind) is Family.STRING
            if operand.family is Family.STRING and unread:
                message = f"{SIGNS[type(node)]} takes numbers, and {self.said(part)} is {article(operand.type)}"
                join = ", or || to put texts together" if isinstance(node, exp.Add) else ""
                raise TypeMismatch(message, part, f"write CAST({self.said(part)} AS DOUBLE){join}")
        return "DOUBLE" if isinstance(node, exp.Div) else kind

    def _span_and_text(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> str:
        """A text beside an interval is read as a time that it moves, or as a number that it is taken times."""
        one, other = self._of(left), self._of(right)
        text, span = (left, other) if one.family is Family.STRING else (right, one)
        moved = isinstance(node, exp.Add | exp.Sub) and span.family is Family.INTERVAL
        backwards = isinstance(node, exp.Sub | exp.Div) and (text is right) is isinstance(node, exp.Sub)
        written = self._of(text).written
        known = moved or isinstance(node, exp.Mul | exp.Div)
        if not known or backwards or (written is not None and not readable(written, "TIMESTAMP" if moved else "DOUBLE")):
            raise TypeMismatch(self._no_sum(node, left, right), node)
        return UNKNOWN_TYPE if moved else span.type

    def _joined(self, parts: Sequence[exp.Expr], node: exp.Expr) -> str:
        """`a || b` and CONCAT: single values become texts, arrays go with arrays."""
        nested = (Family.ARRAY, Family.MAP, Family.STRUCT)
        known = [self._of(p) for p in parts if self._of(p).family is not Family.UNKNOWN]
        kinds = {o.family if o.family in nested else Family.STRING for o in known}
        if kinds & {Family.MAP, Family.STRUCT} or len(kinds) > 1:
            said = " and ".join(article(o.type) for o in known[:2])
            raise TypeMismatch(f"{said} cannot be put together", node, "single values become texts, arrays go with arrays")
        whole = len(known) == len(parts) and kinds == {Family.STRING} and {o.family for o in known} != {Family.BINARY}
        return "STRING" if whole else UNKNOWN_TYPE

    def _no_sum(self, node: exp.Expr, left: exp.Expr, right: exp.Expr) -> str:
        kinds = (article(self._of(left).type), article(self._of(right).type))
        return f"{self.said(node)}: there is no {SIGNS[type(node)]} of {kinds[0]} and {kinds[1]}"

    def _negated(self, node: exp.Neg) -> str:
        operand = self._of(node.this)
        if operand.family in (*NUMBERS, Family.INTERVAL, Family.MONTHS, Family.UNKNOWN):
            return operand.type
        if operand.written is not None and readable(operand.written, "DOUBLE"):
            return "DOUBLE"
        raise TypeMismatch(f"- takes a number, and {self.said(node.this)} is {article(operand.type)}", node)

    def _bits(self, node: exp.Expr) -> str:
        kinds = [self._whole(node, part, SIGNS[type(node)]) for part in (node.this, node.expression)]
        return common(*kinds) or UNKNOWN_TYPE

    def _whole(self, node: exp.Expr, part: exp.Expr, sign: str) -> str:
        operand = self._of(part)
        if operand.family in (Family.INTEGER, Family.UNKNOWN):
            return operand.type
        if operand.written is not None and readable(operand.written, "BIGINT") and sign != "~":
            return "BIGINT"
        message = f"{sign} takes whole numbers, and {self.said(part)} is {article(operand.type)}"
        raise TypeMismatch(message, part, f"write CAST({self.said(part)} AS BIGINT)")

    def _element(self, node: exp.Bracket) -> str:
        """`xs[0]`, `m['k']`."""
        operand = self._of(node.this)
        if operand.family not in (Family.ARRAY, Family.MAP, Family.STRUCT, Family.UNKNOWN):
            message = f"{self.said(node.this)} is {article(operand.type)}, which has no elements"
            raise TypeMismatch(message, node, "[..] is for columns of type ARRAY and MAP")
        inner = operand.type[len("ARRAY<") : -1] if operand.family is Family.ARRAY and "<" in operand.type else ""
        return inner or UNKNOWN_TYPE

    def _choice(self, node: exp.Case | exp.If) -> str:
        if isinstance(node, exp.If):
            if isinstance(node.parent, exp.Case):
                return UNKNOWN_TYPE  # a WHEN, which its CASE looks at
            branches = [node]
        else:
            branches = list(node.args["ifs"])
        for branch in branches:
            if node.this is not None and isinstance(node, exp.Case):
                self._compare(branch, node.this, branch.this)
            else:
                self._condition(branch.this, "WHEN" if isinstance(node, exp.Case) else "IF")
        values = [branch.args.get("true") for branch in branches] + [node.args.get("false"), node.args.get("default")]
        return self._together(node, [value for value in values if value is not None])

    def _called(self, node: exp.Func) -> str:
        """The result of a function, as Spark is going to read it."""
        call = call_of(node)
        if call is None or (call.name, len(call.arguments)) not in SIGNATURES:
            return UNKNOWN_TYPE
        signature = SIGNATURES[call.name, len(call.arguments)]
        for wanted, argument in zip(signature.takes, call.arguments, strict=True):
            if argument is not None:
                self._argument(call.name, wanted, argument)
        if signature.gives.startswith("="):
            return self._of(call.arguments[int(signature.gives[1:])]).type
        return UNKNOWN_TYPE if signature.gives == "?" else signature.gives

    def _argument(self, name: str, wanted: str, part: exp.Expr) -> None:
        operand, (families, said) = self._of(part), CLASSES[wanted]
        if operand.family is Family.STRING and wanted in READ_AS:
            kind = READ_AS[wanted]
            if operand.written is None and wanted in ("time", "boolean"):
                return  # as many write it: a column of texts that are times
            if operand.written is not None and (readable(operand.written, kind) or readable(operand.written, "DOUBLE")):
                if wanted == "time" and is_moving(operand.written):
                    raise self._moving(part)
                return
            hint = f"write CAST({self.said(part)} AS {kind})" if operand.written is None else _example(kind)
            raise TypeMismatch(f"{name} takes {said}, and {self.said(part)} is {article(operand.type)}", part, hint)
        if operand.family not in families and operand.family is not Family.UNKNOWN:
            raise TypeMismatch(f"{name} takes {said}, and {self.said(part)} is {article(operand.type)}", part)

    def _cast(self, node: exp.Cast) -> Operand:
        kind = node.to.sql(dialect="spark")
        text = self._of(node.this)
        if not can_cast(text.type, kind):
            raise TypeMismatch(f"{self.said(node.this)} is {article(text.type)}, which cannot be cast to {kind}", node)
        safe = isinstance(node, exp.TryCast) and node.args.get("safe")
        if text.written is not None and not safe:
            if not readable(text.written, base_type(kind)):
                raise TypeMismatch(f"{self.said(node.this)} cannot be read as {article(kind)}", node.this, _example(kind))
            if family(kind) is Family.TIME and is_moving(text.written):
                raise self._moving(node.this)
        return Operand(kind)


def number_type(text: str) -> str:
    if "e" in text.lower():
        return "DOUBLE"
    if "." in text:
        digits = Decimal(text).as_tuple()
        scale = max(0, -int(digits.exponent))
        return f"DECIMAL({max(len(digits.digits), scale)}, {scale})"
    return "INT" if int(text) < 2**31 else "BIGINT" if int(text) < 2**63 else "DECIMAL"


def interval_type(node: exp.Interval) -> str:
    """Of months, or of what has a fixed length."""
    unit = node.args.get("unit")
    words = unit.sql().upper() if unit is not None else str(node.this).upper()
    if "YEAR" in words or "MONTH" in words:
        return UNKNOWN_TYPE if unit is None else "INTERVAL YEAR TO MONTH"
    return "INTERVAL DAY TO SECOND" if unit is not None else UNKNOWN_TYPE


def article(kind: str) -> str:
    """`a STRING`, `an INT`."""
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def _number(node: exp.Expr, one: Operand, other: Operand) -> str:
    if isinstance(node, exp.IntDiv):
        return "BIGINT"
    found = common(one.type, other.type) or UNKNOWN_TYPE
    if base_type(found) == "DECIMAL":
        return "DECIMAL"
    return "DOUBLE" if isinstance(node, exp.Div) else found


def _scaled(node: exp.Expr, one: Operand, other: Operand) -> str | None:
    """An interval times a number, or divided by one."""
    spans = (Family.INTERVAL, Family.MONTHS)
    if isinstance(node, exp.Mul | exp.Div) and one.family in spans and other.family in NUMBERS:
        return one.type
    if isinstance(node, exp.Mul) and one.family in NUMBERS and other.family in spans:
        return other.type
    if isinstance(node, exp.IntDiv) and one.family is other.family and one.family in spans:
        return "BIGINT"
    return None


def _divides(one: Operand, other: Operand) -> bool:
    """Whether DIV takes them: no floats, and no texts that would become one."""
    floats = any(base_type(o.type) in ("FLOAT", "DOUBLE") for o in (one, other))
    return not floats and {one.family, other.family} != {Family.STRING, Family.FRACTION}


def _sum_hint(node: exp.Expr, one: Operand, other: Operand) -> str | None:
    families = {one.family, other.family}
    if Family.TIME in families and families & set(NUMBERS):
        return "times are moved by intervals: at + INTERVAL '5' SECOND"
    return None


def _example(kind: str) -> str:
    match family(kind):
        case Family.TIME:
            return f"write it as for example {TIME_EXAMPLE}"
        case Family.BOOLEAN:
            return "write TRUE or FALSE"
        case Family.INTEGER:
            return "write a whole number, without quotes"
    return "write a number, without quotes"
