"""A chain of stateless steps over a base stream, as expressions of the base columns."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Node, Project, Scan, WindowAggregate
from headrace.plan.stream import Stream


@dataclass(frozen=True, slots=True)
class Flat:
    """A stateless plan: every column, and every predicate a row has met, in terms of the base stream."""

    stream: Stream
    columns: dict[str, Expr]  # lower-case name -> expression of the base stream
    predicates: tuple[Expr, ...]

    def rewrite(self, expr: Expr) -> Expr:
        """An expression over the flattened columns, over the base stream."""
        name = expr.as_column
        return self.columns[name.lower()] if name is not None else expr.substitute(self.columns)


def flatten(node: Node) -> Flat:
    """Follow Filter and Project down to the Scan."""
    match node:
        case Scan(stream=stream):
            return Flat(stream, {n.lower(): Expr.column(n) for n in stream.schema.names}, ())
        case Filter(input=below, predicate=predicate):
            flat = flatten(below)
            return Flat(flat.stream, flat.columns, (*flat.predicates, flat.rewrite(predicate)))
        case Project(input=below, items=items):
            flat = flatten(below)
            return Flat(flat.stream, {name.lower(): flat.rewrite(e) for name, e in items}, flat.predicates)
    raise AssertionError(f"not a stateless plan: {node}")


def stateless(node: Node) -> bool:
    """Whether a plan is nothing but Filter and Project over a Scan."""
    match node:
        case Scan():
            return True
        case Filter(input=below) | Project(input=below):
            return stateless(below)
    return False


def split_top(node: Node) -> tuple[list[Filter | Project], Node]:
    """The stateless steps above the topmost window (outermost first), and that window (or the scan)."""
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
