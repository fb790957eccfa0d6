"""ISTREAM, DSTREAM, RSTREAM: what a window says against what it said at the look before (CQL's relations to streams).

At every look a SELECT with a window has a relation: its rows. RSTREAM gives all of them, ISTREAM those that were not there at the
last look, DSTREAM those that were there then and no longer are. What the relation was is read from the window as it was, which is
the same window lagging by the time between looks; so nothing has to be remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headrace.plan.aggregates import Aggregate
from headrace.plan.aggregates.counts import COUNT
from headrace.plan.expr import Expr
from headrace.plan.joins import Join, JoinKind
from headrace.plan.nodes import Filter, Node, Project, WindowReport
from headrace.plan.triggers import EveryTime
from headrace.plan.windows import BOUNDS, RangeWindow, Window
from headrace.sql.bind.scope import Scope
from headrace.sql.parse.syntax import Name

OTHER = "_other_"  # in front of aggregates over the window it is compared with
HINT = "use [SIZE .. EVERY ..] or [RANGE .. SLIDE ..], which are looked at by the clock"


def to_stream(node: Node, relation: Name | None, items: Sequence[Expr], having: Expr | None, scope: Scope) -> Node:
    """The rows of a report that leave: all, those that are new, or those that are gone."""
    if relation is None or relation.text.upper() == "RSTREAM":
        return node if having is None else Filter(node, having)
    kind = relation.text.upper()
    if not (isinstance(node, WindowReport) and isinstance(node.window, RangeWindow) and isinstance(node.trigger, EveryTime)):
        message = f"{kind} compares a window of time with the look before it, and there is no such look"
        raise scope.text.error(message, relation.span, hint=HINT)
    now, lagging = node.window, RangeWindow(node.window.size, node.window.lag + node.trigger.every)
    own, other = (now, lagging) if kind == "ISTREAM" else (lagging, now)
    calls = tuple(replace(call, name=OTHER + call.name) for call in node.aggregates)
    count = Aggregate(OTHER + "rows", COUNT)
    both = replace(node, window=own, beside=((other, (*calls, count)),))
    return Filter(both, _differs(node, items, having))


def leaving(node: Node, window: Window) -> Node:
    """The rows of a stream when they leave their window: rows that meet none, in a left join with nothing."""
    name = node.schema.names[0]
    nothing = Project(Filter(node, Expr.of("FALSE")), ((OTHER + name, Expr.column(name)),))
    pair = (Expr.column(name), Expr.column(OTHER + name))  # any column: it only spreads rows over buckets
    gone = Join(node, nothing, window, RangeWindow(1), JoinKind.LEFT, (pair,))
    return Project(gone, tuple((n, Expr.column(n)) for n in node.schema.names))


def _differs(node: WindowReport, items: Sequence[Expr], having: Expr | None) -> Expr:
    """The row is in its relation, and no equal one is in the other."""
    names = {call.name.lower(): Expr.column(OTHER + call.name) for call in node.aggregates}
    same: list[exp.Expr] = [exp.GT(this=Expr.column(OTHER + "rows").tree, expression=exp.Literal.number(0))]
    if having is not None:
        same.append(exp.paren(having.substitute(names).tree))
    for item in items:
        if any(name.lower() in (b.name for b in BOUNDS) for name in item.columns):
            same.append(exp.false())  # the bounds of two windows differ
        else:
            same.append(exp.NullSafeEQ(this=exp.paren(item.tree), expression=exp.paren(item.substitute(names).tree)))
    equal = exp.func("COALESCE", exp.and_(*same), exp.false())
    own = [] if having is None else [having.tree]
    return Expr.of(exp.and_(*own, exp.not_(equal)))
