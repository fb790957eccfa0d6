"""A chain of stateless steps over base streams, as expressions of the base columns."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.expr import Expr, all_of
from headrace.plan.nodes import Filter, Merge, Node, Project, Scan, WindowAggregate
from headrace.plan.stream import Stream

Exprs = tuple[Expr, ...]  # one thing of every row: an expression for each stream that rows come from
TRUE = Expr.of("TRUE")
FALSE = Expr.of("FALSE")


@dataclass(frozen=True, slots=True)
class Flat:
    """A stateless plan over one stream: every column, and every predicate a row has met, in terms of that stream."""

    stream: Stream
    columns: dict[str, Expr]  # lower-case name -> expression of the base stream
    predicates: tuple[Expr, ...]

    def rewrite(self, expr: Expr) -> Expr:
        """An expression over the flattened columns, over the base stream."""
        name = expr.as_column
        return self.columns[name.lower()] if name is not None else expr.substitute(self.columns)


@dataclass(frozen=True, slots=True)
class Flats:
    """A stateless plan over one stream, or over several whose rows are merged."""

    parts: tuple[Flat, ...]

    @property
    def stream(self) -> Stream:
        return self.parts[0].stream

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All of them, each as often as it is read."""
        return tuple(p.stream for p in self.parts)

    @property
    def predicates(self) -> tuple[Exprs, ...]:
        """What a row has met. Of several streams each has one condition of its own."""
        if len(self.parts) == 1:
            return tuple((p,) for p in self.parts[0].predicates)
        every = tuple(all_of(p.predicates) or TRUE for p in self.parts)
        return () if all(e == TRUE for e in every) else (every,)

    def rewrite(self, expr: Expr) -> Exprs:
        """An expression over the flattened columns, over each of the streams."""
        return tuple(p.rewrite(expr) for p in self.parts)

    def column(self, name: str) -> Exprs:
        """A flattened column, over each of the streams."""
        return tuple(p.columns[name.lower()] for p in self.parts)


def flatten(node: Node) -> Flats:
    """Follow Filter, Project and Merge down to the scans."""
    return Flats(tuple(_flat(node)))


def _flat(node: Node) -> list[Flat]:
    match node:
        case Scan(stream=stream):
            return [Flat(stream, {n.lower(): Expr.column(n) for n in stream.schema.names}, ())]
        case Filter(input=below, predicate=predicate):
            return [Flat(f.stream, f.columns, (*f.predicates, f.rewrite(predicate))) for f in _flat(below)]
        case Project(input=below, items=items):
            return [Flat(f.stream, {name.lower(): f.rewrite(e) for name, e in items}, f.predicates) for f in _flat(below)]
        case Merge(inputs=inputs, schema=schema):
            return [_renamed(f, child, schema.names) for child in inputs for f in _flat(child)]
    raise AssertionError(f"not a stateless plan: {node}")


def _renamed(flat: Flat, node: Node, names: tuple[str, ...]) -> Flat:
    """Columns go by place; the names are those of the first."""
    columns = {new.lower(): flat.columns[old.lower()] for new, old in zip(names, node.schema.names, strict=True)}
    return Flat(flat.stream, columns, flat.predicates)


def split_top(node: Node) -> tuple[list[Filter | Project], Node]:
    """The stateless steps above the topmost window (outermost first), and that window (or what has none below it)."""
    above: list[Filter | Project] = []
    while isinstance(node, Filter | Project):
        above.append(node)
        node = node.input
    return above, node


def window_chain(node: Node) -> list[WindowAggregate]:
    """Window aggregates stacked directly on one another, innermost first."""
    chain: list[WindowAggregate] = []
    while isinstance(node, WindowAggregate):
        chain.append(node)
        node = node.input
    return chain[::-1]


def side_by_side(chain: list[WindowAggregate]) -> bool:
    """Whether stacked windows all look at the rows below them, so that they can be evaluated together."""
    if any(node.where is not None for node in chain[:-1]):
        return False
    own = chain[0].input.schema
    for node in chain[1:]:
        calls = [e for call in node.aggregates for e in call.exprs]
        exprs = [e for e in (*node.keys, *node.window.exprs, node.where, *calls) if e is not None]
        if not all(own.has(name) for e in exprs for name in e.columns):
            return False
    return True
