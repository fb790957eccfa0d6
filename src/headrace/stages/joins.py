"""Joins, lowered: one stage has the rows of both sides, and a column that only one side has is NULL in the rows of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import QueryError
from headrace.plan.expr import Expr, all_of
from headrace.plan.schema import Field, Schema
from headrace.program.joins import JoinColumn, JoinOutput, JoinProgram
from headrace.stages.flatten import Exprs, Flat, Flats, flatten

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.plan.joins import Join
    from headrace.plan.query import Query
    from headrace.plan.stream import Stream
    from headrace.program.joins import JoinStage
    from headrace.stages.builder import StageBuilder

    TypeOf = Callable[[Expr, Schema], str]
    MakeBuilder = Callable[[tuple[Stream, ...], tuple[Exprs, ...] | None, object], StageBuilder]


def join_route(node: Join) -> tuple[Exprs, ...]:
    """What rows are parted by: the keys, unless some window counts rows of all keys."""
    if node.counts:
        return ()
    left, right = flatten(node.left), flatten(node.right)
    return tuple((*left.rewrite(a), *right.rewrite(b)) for a, b in node.keys)


def lower_join(
    query: Query, node: Join, needed: set[str], type_of: TypeOf, make: MakeBuilder, width: Callable[[str], int]
) -> Schema:
    """Put a join into its stage. Gives the columns of its results."""
    sides = flatten(node.left), flatten(node.right)
    flats = Flats((*sides[0].parts, *sides[1].parts))
    _check_types(node, sides, type_of)
    builder = make(flats.streams, join_route(node), ("join", node.windows, node.kind, node.on, flats.predicates))
    key = builder.group(tuple((*sides[0].rewrite(a), *sides[1].rewrite(b)) for a, b in node.keys))
    known = _known_keys(node, sides)
    masks = builder.masks(flats.predicates)
    dispensable = not node.counts and not any(node.kind.preserved)  # a row that no other can meet
    builder.want(tuple(sorted({*masks, *builder.masks(known)})) if dispensable else masks)
    columns = []
    for side, (below, flat) in enumerate(zip((node.left, node.right), sides, strict=True)):
        for field in below.schema.fields:
            if field.name in needed:
                kind = type_of(flat.column(field.name)[0], flat.stream.schema)
                exprs = _one_side(sides, side, flat.column(field.name), kind)
                columns.append(JoinColumn(field.name, kind, side, builder.shown(exprs, kind)))
    live, split = builder.row(builder.masks(known)), sum(width(s.name) for s in sides[0].streams)
    before = builder.program.shown if isinstance(builder.program, JoinProgram) else ()
    shown = (*before, JoinOutput(query.name, query.emit, tuple(columns)))
    builder.program = JoinProgram(split, key, live, node.windows, node.kind.preserved, shown)
    return Schema(tuple(Field(c.name, c.type) for c in columns))


def _known_keys(node: Join, sides: tuple[Flats, Flats]) -> tuple[Exprs, ...]:
    """The condition that no key is NULL, for every source."""
    if not node.keys:
        return ()

    def known(flat: Flat, exprs: list[Expr]) -> Expr:
        found = all_of(tuple(Expr.of(f"({flat.rewrite(e)}) IS NOT NULL") for e in exprs))
        assert found is not None
        return found

    both = zip(sides, zip(*node.keys, strict=True), strict=True)
    return (tuple(known(part, list(exprs)) for side, exprs in both for part in side.parts),)


def _one_side(sides: tuple[Flats, Flats], side: int, exprs: Exprs, kind: str) -> Exprs:
    """A column of one side; in the rows of the other it is NULL."""
    nothing = (Expr.of(f"CAST(NULL AS {kind})"),) * len(sides[1 - side].parts)
    return (*exprs, *nothing) if side == 0 else (*nothing, *exprs)


def _check_types(node: Join, sides: tuple[Flats, Flats], type_of: TypeOf) -> None:
    """What is compared has one type; Spark may know types that the plan does not."""
    for (left, right), written in zip(node.keys, node.on, strict=True):
        types = [type_of(s.rewrite(e)[0], s.stream.schema) for s, e in zip(sides, (left, right), strict=True)]
        if types[0] != types[1]:
            raise QueryError(
                f"{written[0]} and {written[1]} cannot be compared: {types[0]} and {types[1]}",
                hint="convert one of them with CAST",
            )


def why_one_bucket(node: Join, query: str) -> str:
    """In words: why the rows of a join are not parted by key."""
    if node.counts:
        window = next(w for w in node.windows if w.last_rows is not None)
        return f"{window} of {query} counts the rows of the whole stream"
    return f"the join of {query} has no equality between its two sides"


def join_lines(stage: JoinStage) -> list[str]:
    """In words: how the rows of a stage meet."""
    join = stage.program
    sides = [[s.name for s in stage.sources if (s.rank >= join.split) == right] for right in (False, True)]
    lines = [f"{' and '.join(names)} {window}" for names, window in zip(sides, join.windows, strict=True)]
    lines.append("a row walks back along the rows of its key on the other side, as far as their window reaches")
    for side, preserved in enumerate(join.preserved):
        if preserved:
            lines.append(f"a row of {' and '.join(sides[side])} that has met none by then is shown when it leaves its window")
    return lines
