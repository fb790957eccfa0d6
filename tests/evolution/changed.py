"""Scripts that change while they run: queries come, go, are renamed and stand elsewhere; of every step kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from widened import as_narrow, widened

from headrace.errors import QueryError, StateError
from headrace.evolution.buckets import noted
from headrace.evolution.compare import compare
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import canonical_row
from headrace.plan.expr import Expr
from headrace.plan.joins import Join
from headrace.plan.nodes import Late, Node, Project, Rejected, Scan, WindowAggregate, WindowReport, base_streams, children
from headrace.plan.patterns import Pattern
from headrace.plan.query import Emit, Query, Script, Using, has_window
from headrace.plan.windows import RangeWindow
from headrace.program.patterns import PatternProgram
from headrace.program.stage import OneBucket
from headrace.program.windows import WindowsProgram
from headrace.stages.flatten import split_top
from headrace.stages.meaning import program_of
from headrace.testing.conformance import Run, check_outputs
from headrace.testing.engine import Outputs
from headrace.testing.local import Fill, LocalEngine
from headrace.testing.strategies import Case


@dataclass
class Told:
    """How often a property reached what it is for."""

    cases: Counter[str] = field(default_factory=Counter)

    def at_least(self, **least: int) -> None:
        """Seldom is not enough."""
        for what, count in least.items():
            assert self.cases[what] >= count, f"only {self.cases[what]} times {what}: {dict(self.cases)}"


OTHERS = (1, 2, 4, 6)  # numbers of buckets, besides the one there was


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
    wide = run_widened(run, place) if rng.random() < 0.4 else None
    run, there = wide or run, {q.name for q in old}
    new = [next(q for q in run.script.queries if q.name == n.name) for n in new]
    renamed = {q.name: f"{q.name}_again" if rng.random() < 0.3 else q.name for q in new}
    script = replace(run.script, queries=tuple(replace(q, name=renamed[q.name]) for q in new))
    now = rng.choice((buckets, *OTHERS))
    added = {renamed[q.name] for q in new if q.name not in there or wide}  # a wider one may be refused, as a new one
    read = merged(run, place) if rng.random() < 0.5 else run.batches[:place]
    went_on = go_on(script, now, saved, added, told, read if rng.random() < 0.6 else None)
    if went_on is None:
        return
    if now != buckets:
        told.cases.update(redistributed(engine, went_on))
    script = went_on.lowered.script
    continued = compare(program_of(engine.lowered), program_of(went_on.lowered)).continued
    after = [*(went_on.push(batch) for batch in run.batches[place:]), went_on.finish(run.end)]
    whole = Watched(script, now)
    reference = [*(whole.push(batch) for batch in run.batches), whole.finish(run.end)]
    for query in new:
        name = renamed[query.name]
        if name not in {q.name for q in script.queries}:
            continue
        assert query.name not in there or name in continued or wide
        told.cases["widened"] += wide is not None and name in continued
        if continued.get(name) == query.name:
            told.cases["continued"] += 1
            told.cases["renamed"] += name != query.name
            told.cases["continued_with_results"] += any(o[name] for o in after)
            own = Run(Script((query,), run.script.streams), run.batches, {query.name: run.expected[query.name]})
            outputs = [{query.name: o[query.name]} for o in before] + [{query.name: o[name]} for o in after]
            check_outputs(own, outputs, f"after {place} batches another script went on")
        else:
            told.cases["added"] += 1
            filled = went_on.lowered.apart.get(name) == "filled"
            told.cases["filled"] += filled
            if name in continued or query.name in there:
                continue  # it means the same as one that was there
            if not {s.name for s in base_streams(query.node)} <= {s.name for s in engine.lowered.streams}:
                told.cases["new_stream"] += 1  # it begins with the stream, of which all is to come
                continue
            feed, reached = feed_of(whole, name), told.cases["added_with_results"] + told.cases["added_over_results"]
            if feed is None:
                _check_added(query, name, went_on, after, reference[place:], run, place, told)
            else:
                _check_added_over(name, after, reference[place:], whole.fed[feed][place:], told)
            reached -= told.cases["added_with_results"] + told.cases["added_over_results"]
            told.cases["filled_with_results"] += filled and reached < 0


def run_widened(run: Run, place: int) -> Run | None:
    """The same over wider columns, as far as that is the same up to this place: what overflows, and is rejected, may not."""
    try:
        wide = Run.of(widened(run.script), as_narrow(run.script, run.batches))
    except QueryError:  # columns of several streams, of which one cannot be widened
        return None
    for query in run.script.queries:
        for was, now in zip(run.expected[query.name][:place], wide.expected[query.name][:place], strict=True):
            if [[(k, canonical_row(r)) for k, r in e] for e in (was.changes, was.final)] != [
                [(k, canonical_row(r)) for k, r in e] for e in (now.changes, now.final)
            ]:
                return None
    return wide


class Watched(LocalEngine):
    """One that remembers which rows its feeds have given, batch by batch."""

    def __init__(self, *made: Any) -> None:
        self.fed: dict[str, list[list[tuple[int, tuple[int, ...]]]]] = {}
        super().__init__(*made)

    def _run(self, cells: Any, out: Outputs, **how: Any) -> Outputs:
        for name in self._feeds:
            self.fed.setdefault(name, []).append([])
        return super()._run(cells, out, **how)

    def _feed(self, name: str, changes: Any, cells: Any) -> None:
        for sign, *key in zip(changes.sign, *changes.keys.columns, strict=True):
            while len(key) > 3 and key[-1] == 0:
                key.pop()
            self.fed[name][-1].append((int(sign), tuple(map(int, key))))
        super()._feed(name, changes, cells)


def feed_of(engine: LocalEngine, name: str) -> str | None:
    """The feed whose rows are the events of a query, if it is one alone."""
    for stage in engine.lowered.stages:
        if any(o.query == name for o in stage.program.outputs) and len(stage.sources) == 1 and stage.sources[0].follows:
            return stage.sources[0].name
    return None


def _check_added_over(
    name: str, after: list[Outputs], reference: list[Outputs], fed: list[list[tuple[int, tuple[int, ...]]]], told: Told
) -> None:
    """One that was added over results says of every result that came after it what it would have said; corrections, too."""
    mine: set[tuple[int, ...]] = set()
    said: Counter[Any] = Counter()
    for number, (own, whole, came) in enumerate(zip(after, reference, fed, strict=True)):
        mine |= {key for sign, key in came if sign > 0}
        got = Counter((c.sign, c.key, canonical_row(c.row)) for c in own[name])
        want: Counter[Any] = Counter()
        for c in sorted(whole[name], key=lambda c: c.sign):
            one = c.key, canonical_row(c.row)
            if said[one] > 0 if c.sign < 0 else c.key in mine:
                want[c.sign, *one] += 1
                said[one] += c.sign
        told.cases["added_over_results"] += bool(want)
        assert got == want, f"{name} in batch {number} after it was added:\n{got - want}\nwant {want - got}"


def redistributed(old: LocalEngine, new: LocalEngine) -> set[str]:
    """What of state went to other buckets, if any key did."""
    takes = compare(program_of(old.lowered), program_of(new.lowered)).takes
    out = set()
    for number in {t for t in takes if t is not None}:
        stage = old.lowered.stages[number]
        if isinstance(stage.route, OneBucket) or not any(
            t.count for at, p in old._processors.items() if at[0] == number for t in p.tables
        ):
            continue
        out |= {"rebucketed", type(stage.program).__name__.removesuffix("Program").lower(), *(t.role.name for t in stage.tables)}
        out |= {type(t.window).__name__.removesuffix("Window").lower() for t in stage.tables if t.window is not None}
        if isinstance(stage.program, WindowsProgram):
            out |= {type(w.window).__name__.removesuffix("Window").lower() for w in stage.program.windows}
        if isinstance(stage.program, PatternProgram):
            out |= {name for name in ("spill", "slack") if getattr(stage.program.sequence, name) is not None}
        out |= {"noted"} if noted(stage) else set()
    return out


def go_on(
    script: Script, buckets: int, saved: object, added: set[str], told: Told, read: Sequence[Batch] | None = None
) -> LocalEngine | None:
    """The new script on the old state; queries that cannot begin complete are filled from what was read, or left out."""
    left, filled = list(script.queries), set[str]()
    while left:
        try:
            return LocalEngine(replace(script, queries=tuple(left)), buckets, saved, fill=Fill(frozenset(filled), read or ()))
        except StateError as refused:
            told.cases["refused"] += 1
            why = str(refused)
        named = [q for q in left if f"query {q.name!r}" in why]
        assert len(named) == 1, why
        assert named[0].name in added, f"{named[0].name} was there before: {why}"
        if read is None or "cannot begin complete" not in why:
            left.remove(named[0])
            continue
        assert named[0].name not in filled, why
        filled.add(named[0].name)
    return None


def merged(run: Run, place: int) -> Sequence[Batch]:
    """All that had come, as one batch: of streams in which it does not matter when a row came, nor beside which others."""
    some = run.batches[:place]
    rows: dict[str, list[Arrival]] = {}
    for batch in some:
        for name, arrivals in batch.rows.items():
            rows.setdefault(name, []).extend(arrivals)
    at_its_time = all(s.timestamp is not None and s.idle is s.ahead is s.end_after is None for s in run.script.streams)
    alone = all(len({a.partition for a in arrivals}) == 1 for arrivals in rows.values())
    sorted_first = any(q.using is Using.KSLACK for q in run.script.queries)
    return (Batch(some[-1].now, rows),) if at_its_time and alone and not sorted_first else some


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
        told.cases["added_over_several"] += 1
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
