"""What fills a stream: queries, other streams, several of them merged, and the branches of a split."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Merge, Node, Project
from headrace.plan.schema import Schema
from headrace.sql.bind.catalog import Catalog
from headrace.sql.bind.columns import project
from headrace.sql.bind.scope import Scope
from headrace.sql.bind.select import bind_pattern, bind_select
from headrace.sql.errors import Span
from headrace.sql.parse.syntax import Body, Branch, Event, Insert, Item, Merged, Name, Select, Split

# What a column may be given without a CAST (table 4.1 of FlinkCQL): to the right.
WIDER = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")


def bind_body(body: Body | Insert, catalog: Catalog) -> Node:
    """The plan of what stands after AS or INSERT INTO."""
    match body:
        case Insert():
            return bind_body(body.body, catalog)
        case Select():
            return bind_select(body, catalog)
        case Event():
            return bind_pattern(body, catalog)
        case Name():
            return catalog.stream(body)
        case Merged(streams=streams, span=span):
            with catalog.text.at(span):
                return Merge(tuple(catalog.stream(name) for name in streams))


def bind_branches(split: Split, catalog: Catalog) -> list[tuple[Branch, Node]]:
    """The plans of the branches of a split: each takes the rows that none before it has taken."""
    base = catalog.stream(split.stream)
    scope = Scope(catalog.text, base.schema, (split.stream.text,))
    taken: list[str] = []
    out = []
    for branch in split.branches:
        own = scope.condition(branch.where, "WHERE") if branch.where else None
        conditions = [*([f"({own})"] if own is not None else []), *(f"NOT COALESCE({p}, FALSE)" for p in taken)]
        node: Node = Filter(base, Expr.of(" AND ".join(conditions))) if conditions else base
        bound = [(i, scope.bind(i.value, "SELECT")) for i in branch.items if isinstance(i, Item)]
        out.append((branch, project(branch.items, branch.span, node, scope, bound)))
        taken.append(str(own) if own is not None else "TRUE")
    return out


def conform(node: Node, schema: Schema, catalog: Catalog, span: Span) -> Node:
    """The same rows under the columns of a stream that was declared with some; they go by place."""
    if len(node.schema.fields) != len(schema.fields):
        counts = len(schema.fields), len(node.schema.fields)
        raise catalog.text.error(f"the stream has {counts[0]} columns {schema}, and this gives {counts[1]}, {node.schema}", span)
    items = []
    for column, given in zip(schema.fields, node.schema.fields, strict=True):
        if column.type != given.type and not _fits(given.type, column.type):
            message = f"column {column.name!r} is {column.type}, and this gives {given.type}"
            raise catalog.text.error(message, span, hint=f"CAST(.. AS {column.type})")
        value = Expr.column(given.name)
        items.append((column.name, value if column.type == given.type else Expr.of(f"CAST({value} AS {column.type})")))
    if node.schema == schema:
        return node
    return Project(node, tuple(items))


def _fits(have: str, want: str) -> bool:
    return have in WIDER and want in WIDER and WIDER.index(have) < WIDER.index(want)


def merge_all(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Merge(tuple(nodes))
