"""Scripts that change while they run: queries come, go, are renamed and stand elsewhere; of every step kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from headrace.errors import StateError
from headrace.evolution.compare import compare
from headrace.oracle.rows import canonical_row
from headrace.plan.expr import Expr
from headrace.plan.joins import Join
from headrace.plan.nodes import Late, Node, Project, Rejected, Scan, WindowAggregate, WindowReport, children
from headrace.plan.patterns import Pattern
from headrace.plan.query import Emit, Query, Script, has_window
from headrace.plan.windows import RangeWindow
from headrace.stages.flatten import split_top
from headrace.stages.meaning import program_of
from headrace.testing.conformance import Run, check_outputs
from headrace.testing.engine import Outputs
from headrace.testing.local import LocalEngine
from headrace.testing.strategies import Case


@dataclass
class Told:
    """How often a property reached what it is for."""

    cases: Counter[str] = field(default_factory=Counter)

    def at_least(self, **least: int) -> None:
        """Seldom is not enough."""
        for what, count in least.items():
            assert self.cases[what] >= count, f"only {self.cases[what]} times {what}: {dict(self.cases)}"


def variants(rng: Random, case: Case, most: int = 2) -> Case:
    """Beside every query some that have much in common with it."""
    queries: list[Query] = []
    for query in case.script.queries:
        queries += [] if (query.emit, query.node) in {(q.emit, q.node) for q in queries} else [query]
        for number in range(rng.randint(1, most)):
            emit = rng.choice((query.emit, query.emit, Emit.CHANGES))
            node = _varied(rng, query.node)
            if (emit, node) not in {(q.emit, q.node) for q in queries}:
                queries.append(replace(query, name=f"{query.name}v{number}", node=node, emit=emit))
    return Case(Script(tuple(queries), case.script.streams), case.batches)


def _varied(rng: Random, node: Node) -> Node:
    match node:
        case WindowAggregate(window=RangeWindow(size=size) as window) | WindowReport(window=RangeWindow(size=size) as window):
            shorter = replace(window, size=max(1 + window.peers, size // rng.choice((1, 1, 2, 3))))
            return replace(node, window=shorter, aggregates=_some(rng, node.aggregates))
        case WindowAggregate() | WindowReport():
            return replace(node, aggregates=_some(rng, node.aggregates))
        case Pattern() | Join() if not getattr(node, "groups", ()):
            names = node.schema.names
            return Project(node, tuple((n, Expr.column(n)) for n in rng.sample(names, rng.randint(1, len(names)))))
    return node


def _some(rng: Random, calls: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(rng.sample(calls, rng.randint(1, len(calls)))) if calls else calls


def check_changed(run: Run, seed: int, told: Told, buckets: int = 3) -> None:
    """The old script runs to some batch, the new one goes on: what went on says what it would have said all along."""
    rng = Random(seed)
    queries = list(run.script.queries)
    old = rng.sample(queries, rng.randint(1, max(1, len(queries) - 1)))
    fresh = [q for q in queries if q not in old]
    new = rng.sample(old, rng.randint(1, len(old))) + rng.sample(fresh, rng.randint(min(1, len(fresh)), len(fresh)))
    rng.shuffle(new)
    place = rng.randint(1, max(1, len(run.batches) - 1))
    engine = LocalEngine(replace(run.script, queries=tuple(old)), buckets)
    before = [engine.push(batch) for batch in run.batches[:place]]
    saved = engine.save()
    renamed = {q.name: f"{q.name}_again" if rng.random() < 0.3 else q.name for q in new}
    script = replace(run.script, queries=tuple(replace(q, name=renamed[q.name]) for q in new))
    went_on = go_on(script, buckets, saved, {renamed[q.name] for q in new if q not in old}, told)
    if went_on is None:
        return
    script = went_on.lowered.script
    continued = compare(program_of(engine.lowered), program_of(went_on.lowered)).continued
    after = [*(went_on.push(batch) for batch in run.batches[place:]), went_on.finish(run.end)]
    whole = LocalEngine(script, buckets)
    reference = [*(whole.push(batch) for batch in run.batches), whole.finish(run.end)]
    for query in new:
        name = renamed[query.name]
        if name not in {q.name for q in script.queries}:
            continue
        assert query not in old or name in continued
        if continued.get(name) == query.name:
            told.cases["continued"] += 1
            told.cases["renamed"] += name != query.name
            told.cases["continued_with_results"] += any(o[name] for o in after)
            own = Run(Script((query,), run.script.streams), run.batches, {query.name: run.expected[query.name]})
            outputs = [{query.name: o[query.name]} for o in before] + [{query.name: o[name]} for o in after]
            check_outputs(own, outputs, f"after {place} batches another script went on")
        else:
            told.cases["added"] += 1
            if name in continued:
                continue  # it means the same as one that was there
            _check_added(query, name, went_on, after, reference[place:], run, place, told)


def go_on(script: Script, buckets: int, saved: object, added: set[str], told: Told) -> LocalEngine | None:
    """The new script on the old state, without the queries that cannot begin complete."""
    left = list(script.queries)
    while left:
        try:
            return LocalEngine(replace(script, queries=tuple(left)), buckets, saved)
        except StateError as refused:
            told.cases["refused"] += 1
            why = str(refused)
        named = [q for q in left if f"query {q.name!r}" in why]
        assert len(named) == 1, why
        assert named[0].name in added, f"{named[0].name} was there before: {why}"
        left.remove(named[0])
    return None


def _check_added(
    query: Query, name: str, engine: LocalEngine, after: list[Outputs], reference: list[Outputs], run: Run, place: int, told: Told
) -> None:
    """A query that was added says of what came after it what it would have said had it been there all along."""
    core = split_top(query.node)[1]
    positions = Counter((s, a.partition) for b in run.batches[:place] for s, rows in b.rows.items() for a in rows)
    begun = max((p.begun.get(name, -(2**62)) for p in engine._processors.values()), default=-(2**62))
    per_event = isinstance(core, WindowAggregate | Scan | Late | Rejected)
    alone = len(run.script.streams) == 1
    if per_event and any(map(has_window, children(core))):
        told.cases["added_over_results"] += 1
        return

    def wanted(key: tuple[int, ...]) -> bool:
        if not per_event:
            return key[0] > begun
        return not alone or key[2] >= positions[run.script.streams[0].name, key[1]]

    for number, (mine, whole) in enumerate(zip(after, reference, strict=True)):
        got = Counter((c.sign, c.key, canonical_row(c.row)) for c in mine[name])
        want = Counter((c.sign, c.key, canonical_row(c.row)) for c in whole[name] if wanted(c.key))
        told.cases["added_with_results"] += bool(want)
        assert got == want, f"{query} added before batch {place}, in batch {place + number}:\n{got - want}\nwant {want - got}"
