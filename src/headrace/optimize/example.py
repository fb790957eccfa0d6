"""Before and after, for the doctests of the rules."""

from __future__ import annotations

import re

from headrace.optimize.rewrite import Rule
from headrace.plan.aggregates import Aggregate, function
from headrace.plan.explain import tree
from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, Scan, WindowAggregate
from headrace.plan.schema import Schema
from headrace.plan.stream import FrameSource, Stream
from headrace.plan.windows import UnboundedWindow

PAYMENTS = Stream(
    name="payments",
    source=FrameSource("payments"),
    schema=Schema.of(id="BIGINT", card="STRING", amount="DOUBLE", at="TIMESTAMP"),
    timestamp=Expr.column("at"),
    delay=10_000_000,
)


def plan(sql: str) -> Node:
    """The plan of one SELECT over payments (id, card, amount, at)."""
    from headrace.sql import parse_script

    return parse_script(sql, streams={"payments": Scan(PAYMENTS)}).queries[0].node


def show(node: Node) -> str:
    """The tree, with the source in short."""
    return re.sub(r"Stream (\w+) .*", r"Scan \1", tree(node))


def example(sql: str, rule: Rule, *before: Rule) -> str:
    """What a rule makes of a SELECT, after other rules."""
    node = plan(sql)
    for other in before:
        node = other(node)
    return f"{show(node)}\nbecomes\n{show(rule(node))}"


def twice(rule: Rule) -> str:
    """What a rule makes of a step with a call that is there twice, which SQL never gives but the plan allows."""
    total = [Aggregate(name, function("SUM"), (Expr.column("amount"),)) for name in ("a", "b")]
    node = WindowAggregate(Scan(PAYMENTS), UnboundedWindow(), (), tuple(total))
    return f"{show(node)}\nbecomes\n{show(rule(node))}"
