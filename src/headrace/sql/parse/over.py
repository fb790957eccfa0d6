"""`OVER (PARTITION BY .. ORDER BY .. RANGE | ROWS BETWEEN .. PRECEDING AND CURRENT ROW)`, with the meaning of standard SQL.

RANGE holds both of its ends, and peers: all rows of the event's time, wherever they stand. ROWS counts rows in the total order,
the event itself and so many before it. Our own window, which is open below and sees no row behind the event, is `[RANGE ..]`.
The order is that of time, so ORDER BY may be left out, but where the standard gives a meaning to that: without it all rows of
a partition are peers, and a stream has no last one.
"""

from __future__ import annotations

from sqlglot import exp

from headrace.errors import QueryError
from headrace.plan.expr import Expr
from headrace.plan.time import parse_duration
from headrace.plan.windows import RangeWindow, RowsWindow, UnboundedWindow, Window
from headrace.sql.bind.scope import Scope, place
from headrace.sql.errors import Span, SqlError
from headrace.sql.parse.syntax import Scalar

HINT = "for example OVER (PARTITION BY card ORDER BY at RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW)"
WHOLE = "without it every row of the partition is in the window, and a stream has no last one"
CURRENT = "CURRENT ROW"


def frame(scope: Scope, node: exp.Window, where: Span, order: Expr | None) -> tuple[Window, tuple[Expr, ...]]:
    """The window and the keys of an OVER clause."""
    keys = tuple(scope.bind(Scalar(k, place(k, where)), "PARTITION BY") for k in node.args.get("partition_by") or [])
    spec = node.args.get("spec")
    if node.args.get("alias") is not None:
        raise _error(scope, node, where, "OVER needs a frame")
    _check_order(scope, node, where, order)
    ordered = node.args.get("order") is not None
    if not isinstance(spec, exp.WindowSpec):
        if not ordered:
            raise _error(scope, node, where, f"OVER needs ORDER BY or a frame: {WHOLE}")
        return UnboundedWindow(peers=True), keys  # what the standard has for ORDER BY alone
    if spec.args.get("exclude") is not None:
        raise _error(scope, node, where, "EXCLUDE is not there yet")
    with scope.text.at(place(node, where)):
        return _window(scope, node, spec, keys, where, ordered), keys


def _check_order(scope: Scope, node: exp.Window, where: Span, order: Expr | None) -> None:
    """Windows go by the time of the stream; ORDER BY may say so, and nothing else."""
    clause = node.args.get("order")
    parts = clause.expressions if clause is not None else []
    for part in parts:
        inner = part.this if isinstance(part, exp.Ordered) else part
        bound = scope.bind(Scalar(inner, place(inner, where)), "ORDER BY")
        descending = isinstance(part, exp.Ordered) and part.args.get("desc")
        if descending or len(parts) > 1 or bound != order:
            hint = "leave ORDER BY out, or order by the TIMESTAMP BY"
            raise scope.text.error("a window is always in the order of time", place(inner, where), hint=hint)


def _window(scope: Scope, node: exp.Window, spec: exp.WindowSpec, keys: tuple[Expr, ...], where: Span, ordered: bool) -> Window:
    kind = str(spec.args.get("kind") or "").upper()
    start, end = spec.args.get("start"), spec.args.get("end") or CURRENT
    if any(str(spec.args.get(side) or "PRECEDING").upper() != "PRECEDING" for side in ("start_side", "end_side")):
        raise _error(scope, node, where, "a window cannot look at events that FOLLOW")
    if kind == "RANGE" and _is(end, CURRENT) and not ordered and (_is(start, "UNBOUNDED") or _is(start, CURRENT)):
        raise _error(scope, node, where, f"RANGE needs ORDER BY here: {WHOLE}")
    match kind:
        case "ROWS" if _is(start, "UNBOUNDED") and _is(end, CURRENT):
            return UnboundedWindow()
        case "ROWS" if _is(end, CURRENT):
            before = 0 if _is(start, CURRENT) else _rows(scope, node, start, where)
            return RowsWindow(before + 1, keys)  # the row itself is one more
        case "RANGE" if _is(start, "UNBOUNDED") and _is(end, CURRENT):
            return UnboundedWindow(peers=True)
        case "RANGE" if not _is(start, "UNBOUNDED"):
            upper = 0 if _is(end, CURRENT) else _micros(scope, node, end, where)
            lower = 0 if _is(start, CURRENT) else _micros(scope, node, start, where)
            if lower < upper:
                raise _error(scope, node, where, "this frame ends before it begins")
            return RangeWindow(lower - upper + 1, upper, peers=True)
    raise _error(scope, node, where, "this frame is not there yet")


def _is(bound: object, words: str) -> bool:
    return isinstance(bound, str) and bound.upper() == words


def _rows(scope: Scope, node: exp.Window, bound: object, where: Span) -> int:
    if isinstance(bound, exp.Literal) and not bound.is_string and bound.name.isdecimal() and len(bound.name) <= 15:
        return int(bound.name)
    raise _error(scope, node, where, "ROWS takes a whole number of rows")


def _micros(scope: Scope, node: exp.Window, bound: object, where: Span) -> int:
    """The length of `INTERVAL 5 MINUTES`, `INTERVAL '5 minutes'` or `INTERVAL 1 HOUR 30 MINUTES`."""
    match bound:
        case exp.Paren():
            return _micros(scope, node, bound.this, where)
        case exp.Add():
            return _micros(scope, node, bound.this, where) + _micros(scope, node, bound.expression, where)
        case exp.Interval(this=exp.Literal() as number):
            unit = bound.args.get("unit")
            try:
                return parse_duration(f"{number.name} {unit.name if unit is not None else ''}")
            except OverflowError as error:
                raise QueryError("this duration is too long") from error
    raise _error(scope, node, where, "RANGE takes an INTERVAL")


def _error(scope: Scope, node: exp.Window, where: Span, message: str) -> SqlError:
    return scope.text.error(message, place(node, where), hint=HINT)
