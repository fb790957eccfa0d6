"""A condition on one side of a join becomes a filter below it, where that changes nothing."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.optimize.rewrite import bottom_up
from headrace.plan.expr import Expr, all_of, conjuncts
from headrace.plan.joins import Join, JoinKind
from headrace.plan.nodes import Filter, Node
from headrace.plan.schema import Schema
from headrace.plan.types import NUMERIC, base_type

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def push_into_join(node: Node) -> Node:
    """Filter the rows of a side before its window: fewer are kept, and the pairs that are left are the same.

    Never for ROWS, where a row that is dropped still takes a place in the window, nor for outer joins, which would show what it
    met as alone. And only comparisons of columns with literals, which cannot fail on rows that never were in a pair.

    >>> from headrace.optimize.example import example
    >>> sql = "SELECT x.id FROM payments [NOW] x JOIN payments [ROWS 9] y ON x.card = y.card WHERE x.amount > 9 AND y.id > 1"
    >>> print(example(sql, push_into_join))
    Project x_id AS id
      Filter x_amount > 9 AND y_id > 1
        Join [RANGE 1 MICROSECOND] INNER JOIN [ROWS 9] ON x_card = y_card
          Project id AS x_id, card AS x_card, amount AS x_amount, at AS x_at
            Scan payments
          Project id AS y_id, card AS y_card, amount AS y_amount, at AS y_at
            Scan payments
    becomes
    Project x_id AS id
      Filter y_id > 1
        Join [RANGE 1 MICROSECOND] INNER JOIN [ROWS 9] ON x_card = y_card
          Filter x_amount > 9
            Project id AS x_id, card AS x_card, amount AS x_amount, at AS x_at
              Scan payments
          Project id AS y_id, card AS y_card, amount AS y_amount, at AS y_at
            Scan payments
    """
    return bottom_up(node, _push)


def _push(node: Node) -> Node:
    if not isinstance(node, Filter) or not isinstance(node.input, Join) or node.input.kind is not JoinKind.INNER:
        return node
    join = node.input
    stays: list[Expr] = []
    pushed: tuple[list[Expr], list[Expr]] = ([], [])
    for part in conjuncts(node.predicate.tree):
        condition = Expr.of(part)
        side = _side(condition, join)
        if side is not None and not join.windows[side].counts_rows and _never_fails(part, node.schema):
            pushed[side].append(condition)
        else:
            stays.append(condition)
    if not any(pushed):
        return node
    below = [_filtered(side, conditions) for side, conditions in zip((join.left, join.right), pushed, strict=True)]
    return _filtered(replace(join, left=below[0], right=below[1]), stays)


def _filtered(node: Node, conditions: list[Expr]) -> Node:
    predicate = all_of(tuple(conditions))
    return node if predicate is None else Filter(node, predicate)


def _side(condition: Expr, join: Join) -> int | None:
    sides = {int(not join.left.schema.has(name)) for name in condition.columns}
    return sides.pop() if len(sides) == 1 else None


def _never_fails(tree: exp.Expr, schema: Schema) -> bool:
    """A comparison of a column with a literal of its kind: nothing is converted that might not fit."""
    inner = tree.unnest()
    if not isinstance(inner, COMPARISONS):
        return False
    column, literal = inner.this, inner.expression
    if not isinstance(column, exp.Column) or not isinstance(literal, exp.Literal) or not schema.has(column.name):
        return False
    kind = base_type(schema.field(column.name).type)
    return kind == "STRING" if literal.is_string else kind in NUMERIC
