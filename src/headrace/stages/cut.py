"""Cuts plans where the results of one stage are the input of another.

A step that keeps state over the results of another one reads them as a stream: the other step becomes a *feed*, a query of its
own that no sink sees, and a scan of its results takes its place. Feeds of a level are lowered before what reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.plan.expr import Expr
from headrace.plan.joins import Join
from headrace.plan.nodes import (
    STATEFUL,
    Filter,
    Merge,
    Node,
    Project,
    Scan,
    WindowAggregate,
    WindowReport,
    base_streams,
    children,
    over,
)
from headrace.plan.patterns import Pattern
from headrace.plan.schema import Schema
from headrace.plan.stream import Bound, StageSource, Stream
from headrace.stages.flatten import side_by_side, window_chain
from headrace.stages.meaning import meaning

FEED = "#"  # no stream that a user declares begins with it


@dataclass(slots=True)
class Cuts:
    """All places at which the plans of a script are cut."""

    kept: frozenset[str] = frozenset()  # meanings of feeds that have been read before they were final
    first: int = 0  # the number of the first feed
    eager: dict[Node, bool] = field(default_factory=dict)  # what is read as a feed; whether before it is final
    streams: dict[Node, Stream] = field(default_factory=dict)  # those that are lowered, as streams

    def note(self, node: Node, eager: bool) -> None:
        for found in _fed(node):
            if not self.eager.get(found, False):
                self.eager[found] = eager or (bool(self.kept) and meaning(found) in self.kept)
                self.note(found, self.eager[found])

    def level(self, node: Node) -> int:
        """1 for what reads base streams only."""
        return 1 + max(map(self.level, _fed(node)), default=0)

    def add(self, node: Node, columns: Schema) -> None:
        """A feed is lowered, and has these columns."""
        streams = [s for s in base_streams(node) if not s.static]
        keeps, delays = [s.keep for s in streams], [s.delay for s in streams if isinstance(s.delay, int)]
        bounded = all(s.bounded for s in streams)
        promised = bounded and len(delays) < len(streams)
        self.streams[node] = Stream(
            self.name(node), StageSource(str(node), promised), columns,
            delay=None if promised else max(delays) if bounded else Bound.UNBOUNDED,
            keep=None if None in keeps else max(k for k in keeps if k is not None),
        )  # fmt: skip

    def name(self, node: Node) -> str:
        return f"{FEED}{self.first + list(self.eager).index(node)}"

    def apply(self, node: Node) -> Node:
        """The plan over base streams and feeds; those it reads are lowered already."""
        return self._over_feeds(node, set(_fed(node)))

    def _over_feeds(self, node: Node, fed: set[Node]) -> Node:
        if node in fed:
            return self._scan(node)
        return over(node, tuple(self._over_feeds(child, fed) for child in children(node)))

    def _scan(self, node: Node) -> Node:
        """The results of a feed, in the types that the plan has for them: Spark may know better."""
        scan = Scan(self.streams[node])
        if scan.schema == node.schema:
            return scan
        have = {f.name: f.type for f in scan.schema.fields}
        items = (
            (f.name, Expr.column(f.name) if have[f.name] == f.type else Expr.of(f"CAST({Expr.column(f.name)} AS {f.type})"))
            for f in node.schema.fields
        )
        return Project(scan, tuple(items))


def _fed(node: Node) -> Iterator[Node]:
    """The steps below this one whose results it must read as a stream of their own; not those below them."""
    match node:
        case Filter() | Project():
            yield from _fed(node.input)
        case WindowAggregate():
            chain = window_chain(node)
            yield from _state(chain[0].input if side_by_side(chain) else node.input)
        case WindowReport():
            yield from _state(node.input)
        case Merge() | Join() | Pattern():
            for child in children(node):
                yield from _state(child, merged=True)


def _state(node: Node, merged: bool = False) -> Iterator[Node]:
    """The topmost steps from here down that keep state."""
    match node:
        case _ if isinstance(node, STATEFUL):
            yield node
        case Scan(stream=stream) if merged and stream.unique is not None:
            yield node  # rows that come twice are told apart before they meet others
        case Filter() | Project():
            yield from _state(node.input, merged)
        case _:
            for child in children(node):
                yield from _state(child, merged=True)
