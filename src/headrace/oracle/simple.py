"""The simplest scalar expressions over Arrow columns, without DuckDB, which takes a millisecond for the smallest batch.

These are most of what tests evaluate: TRUE, FALSE and NULL, whether a column is NULL, comparisons of whole numbers or for the
same string, AND, OR and NOT of these, and CASE with one of them. All engines agree on what they mean, which is not so of
arithmetic, doubles and times: those are left to DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from headrace.plan.arrow import arrow_type
from headrace.plan.expr import UNKNOWN_TYPE, Expr
from headrace.plan.schema import Schema
from headrace.plan.types import INTEGRAL

Reader = Callable[[pa.RecordBatch], pa.Array]

_EQUAL: dict[type[exp.Expr], Callable[..., pa.Array]] = {exp.EQ: pc.equal, exp.NEQ: pc.not_equal}
_COMPARED = _EQUAL | {exp.LT: pc.less, exp.LTE: pc.less_equal, exp.GT: pc.greater, exp.GTE: pc.greater_equal}
_BOTH: dict[type[exp.Expr], Callable[..., pa.Array]] = {exp.And: pc.and_kleene, exp.Or: pc.or_kleene}


@lru_cache(maxsize=4096)
def reader(expr: Expr, schema: Schema) -> Reader | None:
    """What gives the value of an expression for every row of a batch; None: it is not that simple."""
    kind = expr.type_in(schema)
    if kind in (UNKNOWN_TYPE, "NULL", "VOID"):
        return None
    tree = expr.tree
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Null):
        return lambda batch: pa.nulls(batch.num_rows, arrow_type(kind))
    if isinstance(tree, exp.Case):
        return _case(tree, schema)
    return _truth(tree, schema)


def _truth(node: exp.Expr, schema: Schema) -> Reader | None:
    match node:
        case exp.Paren(this=inner):
            return _truth(inner, schema)
        case exp.Boolean(this=value):
            return lambda batch: pa.repeat(pa.scalar(value, pa.bool_()), batch.num_rows)
        case exp.Is(this=inner, expression=exp.Null()):
            column = _column(inner, schema)
            return None if column is None else lambda batch: column(batch).is_null()
        case exp.Not(this=inner):
            truth = _truth(inner, schema)
            return None if truth is None else lambda batch: pc.invert(truth(batch))
        case exp.Column() if _kind(node, schema) == "BOOLEAN":
            return _column(node, schema)
    if type(node) in _BOTH:
        return _of_two(_BOTH[type(node)], _truth(node.this, schema), _truth(node.expression, schema))
    return _comparison(node, schema)


def _comparison(node: exp.Expr, schema: Schema) -> Reader | None:
    """Of whole numbers, or of strings for equality; at least one of them a column."""
    left, right = node.this, node.expression
    if type(node) in _COMPARED and _are(left, right, schema, INTEGRAL):
        return _of_two(_COMPARED[type(node)], _value(left, schema), _value(right, schema))
    if type(node) in _EQUAL and _are(left, right, schema, ("STRING",)):
        return _of_two(_EQUAL[type(node)], _value(left, schema), _value(right, schema))
    return None


def _of_two(function: Callable[..., pa.Array], left: Reader | None, right: Reader | None) -> Reader | None:
    if left is None or right is None:
        return None
    return lambda batch: function(left(batch), right(batch))


def _are(left: exp.Expr, right: exp.Expr, schema: Schema, kinds: tuple[str, ...]) -> bool:
    """Whether both are of these types and one of them is a column."""
    found = [_kind(side.unnest(), schema) for side in (left, right)]
    return all(kind in kinds for kind in found) and any(isinstance(s.unnest(), exp.Column) for s in (left, right))


def _kind(node: exp.Expr, schema: Schema) -> str | None:
    """The type of a column or of a literal; None for all else."""
    match node:
        case exp.Column() if not node.table:
            return schema.field(node.name).type
        case exp.Literal(is_string=True):
            return "STRING"
        case exp.Literal() if node.is_int and int(node.this) < 2**63:
            return "BIGINT"
    return None


def _value(node: exp.Expr, schema: Schema) -> Reader | None:
    inner = node.unnest()
    if isinstance(inner, exp.Column):
        return _column(inner, schema)
    constant = pa.scalar(inner.this if inner.is_string else int(inner.this))
    return lambda batch: pa.repeat(constant, batch.num_rows)


def _column(node: exp.Expr, schema: Schema) -> Reader | None:
    inner = node.unnest()
    if not isinstance(inner, exp.Column) or inner.table:
        return None
    place = schema.fields.index(schema.field(inner.name))
    return lambda batch: batch.column(place)


def _case(node: exp.Case, schema: Schema) -> Reader | None:
    """CASE WHEN predicate THEN column END."""
    branches = node.args["ifs"]
    if node.this or node.args.get("default") or len(branches) != 1:
        return None
    truth, column = _truth(branches[0].this, schema), _column(branches[0].args["true"], schema)
    if truth is None or column is None:
        return None
    return lambda batch: pc.if_else(truth(batch).fill_null(False), column(batch), pa.scalar(None, column(batch).type))
