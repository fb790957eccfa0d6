"""What rows are parted by: keys that a query's rows can be told apart by, so that queries share a stage where they can."""

from __future__ import annotations

from headrace.plan.expr import Expr
from headrace.plan.nodes import Node, WindowAggregate, WindowReport, base_streams
from headrace.plan.stream import Stream, Unique
from headrace.plan.windows import BEYOND
from headrace.stages.flatten import Exprs, flatten, split_top, window_chain
from headrace.stages.kept import Route, chosen


def sorted_route(route: tuple[Exprs, ...]) -> tuple[tuple[str, ...], ...]:
    """A route in an order of its own, as text."""
    return tuple(sorted(tuple(e.sql for e in exprs) for exprs in route))


def unique_of(streams: tuple[Stream, ...]) -> Unique | None:
    """UNIQUE BY of the one stream that rows come from. One that is merged with others is read as a feed, and has done with it."""
    return streams[0].unique if len(streams) == 1 else None


def routable(chain: list[WindowAggregate]) -> set[Exprs]:
    """The keys (as base expressions) that all windows of a chain have in common."""
    flat = flatten(chain[0].input)
    common: set[Exprs] | None = None
    for node in chain:
        keys = {flat.rewrite(k) for k in node.keys}
        if node.window.counts_rows:
            keys &= {flat.rewrite(k) for k in node.window.partition_by}
        common = keys if common is None else common & keys
    unique = unique_of(flat.streams)
    if unique is not None:  # rows that come twice must meet
        common = (common or set()) & {(e,) for e in unique.by}
    return common or set()


def partition_of(node: WindowReport) -> tuple[Expr, ...]:
    """What the counts of rows are kept by."""
    return node.window.partition_by or node.trigger.partition_by


def beyond(node: WindowReport) -> str | None:
    """How a report depends on which rows are there besides its own; None: not at all."""
    found = (node.window.depends_on, node.trigger.depends_on)
    return next((what for what in BEYOND if what in found), None)


def reported(node: WindowReport) -> set[Exprs]:
    """The keys (as base expressions) of a window that is looked at, by which its rows can be parted."""
    flat = flatten(node.input)
    keys = {flat.rewrite(e) for _, e in node.keys}
    if node.trigger.batch is not None or "positions" in (node.window.depends_on, node.trigger.depends_on):
        return set()  # batches and positions are those of the whole stream
    if node.window.counts_rows or node.trigger.counts_rows:
        keys &= {flat.rewrite(e) for e in partition_of(node)}
    unique = unique_of(flat.streams)
    return keys if unique is None else keys & {(e,) for e in unique.by}


def routes_of(nodes: list[Node], fixed: list[Route | None]) -> list[tuple[Exprs, ...]]:
    """A route per query: the one it had; else queries over the same streams whose keys nest take the smaller key set.

    So they share a stage. Where some have had a route, others take it if they can.
    """
    keys: list[tuple[tuple[str, ...], frozenset[Exprs]] | None] = []
    for node in nodes:
        _, core = split_top(node)
        if isinstance(core, WindowReport):
            keys.append((_names(core), frozenset(reported(core))))
            continue
        if isinstance(core, WindowAggregate):
            keys.append((_names(core), frozenset(routable(window_chain(core)))))
        else:
            keys.append(None)
    had = [own and route is not None and chosen(own[1], route) for own, route in zip(keys, fixed, strict=True)]
    routes = []
    for own, mine in zip(keys, had, strict=True):
        known = [(k[0], frozenset(h)) for k, h in zip(keys, had, strict=True) if k and h]
        smaller = [k for k in known or keys if own and k and k[0] == own[0] and k[1] and k[1] <= own[1]]
        best = min(smaller, key=lambda k: (len(k[1]), sorted_route(tuple(k[1]))), default=own)
        route = mine if mine is not None and mine is not False else best[1] if best else ()
        routes.append(tuple(sorted(route, key=lambda exprs: [e.sql for e in exprs])))
    return routes


def _names(node: Node) -> tuple[str, ...]:
    return tuple(s.name for s in base_streams(node))
