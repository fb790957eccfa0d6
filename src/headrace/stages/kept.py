"""What a checkpoint asks of a script that goes on with it: queries that were there stay in the stages they are in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from headrace.evolution.names import names_of, written
from headrace.plan.nodes import Node
from headrace.plan.query import Emit, Query, Script
from headrace.program.script import ScriptProgram
from headrace.stages.flatten import Exprs
from headrace.stages.meaning import meaning

Route = frozenset[str]  # the expressions that rows are parted by


@dataclass(frozen=True, slots=True)
class Kept:
    """Of the old script: which feeds speak before they are final, what rows are parted by, and which queries stand apart."""

    eager: frozenset[str] = frozenset()  # meanings of feeds that do
    patient: frozenset[str] = frozenset()  # and of those that do not
    routes: dict[tuple[Emit, str], Route] = field(default_factory=dict)  # by level and meaning of a query
    apart: dict[str, str] = field(default_factory=dict)  # queries with stages of their own, and what these are called

    def known(self, query: Query) -> bool:
        return (query.emit, meaning(query.node)) in self.routes

    def route(self, emit: Emit, node: Node) -> Route | None:
        return self.routes.get((emit, meaning(node))) if self.routes else None


def kept_of(old: ScriptProgram, script: Script, alone: Mapping[str, str] = MappingProxyType({})) -> Kept:
    """For a script that goes on; queries that are to stand alone get stages of their own, which are called as it says."""
    routes: dict[str, Route] = {}
    for stage in old.stages:
        names = names_of(stage, dict(old.feeds))
        route = frozenset(names.inputs[i] for i in getattr(stage.route, "inputs", ()))
        routes |= dict.fromkeys(stage.queries, route)
    known = {(q.emit, q.meaning): routes[q.name] for q in old.queries if q.name in routes}
    feeds = {name: text.split(" ", 1) for name, text in old.feeds}
    known |= {(Emit(emit), text): routes[name] for name, (emit, text) in feeds.items()}
    labels = {(q.emit, q.meaning): q.apart for q in old.queries if q.apart} | {q.name: q.apart for q in old.queries if q.apart}
    apart = dict(alone)
    for query in script.queries:
        found = labels.get((query.emit, meaning(query.node))) or labels.get(query.name)
        if found and query.name not in apart:
            apart[query.name] = found
    eager = frozenset(text for emit, text in feeds.values() if emit == Emit.CHANGES.value)
    return Kept(eager, frozenset(text for _, text in feeds.values()) - eager, known, apart)


def as_before(old: ScriptProgram, script: Script) -> tuple[Script, dict[str, str]]:
    """The same queries in the order and under the names that they had, and what they are called now. Else the script as it is."""
    means = {q.name: (q.emit, meaning(q.node)) for q in script.queries}
    left, found = list(script.queries), {}
    for exact in (True, False):
        for asked in (q for q in old.queries if q.name not in found):
            alike = (q for q in left if means[q.name] == (asked.emit, asked.meaning) and (q.name == asked.name or not exact))
            query = next(alike, None)
            if query is not None:
                left.remove(query)
                found[asked.name] = query
    if left or len(found) < len(old.queries):
        return script, {}
    queries = tuple(replace(found[asked.name], name=asked.name) for asked in old.queries)
    return replace(script, queries=queries), {name: query.name for name, query in found.items()}


def chosen(keys: frozenset[Exprs], route: Route) -> tuple[Exprs, ...] | None:
    """Of the keys that a query can be parted by, those that make up a route; None: it cannot be parted so."""
    named = {written(exprs): exprs for exprs in keys}
    return tuple(named[name] for name in sorted(route)) if route <= named.keys() else None
