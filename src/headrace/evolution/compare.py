"""Two programs compared: which stage goes on with the state of which, what queries go on, and what new ones lack.

Nothing is read but programs, so it is known before anything changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import StateError
from headrace.evolution.buckets import givers
from headrace.evolution.held import held_as
from headrace.evolution.names import Names, names_of
from headrace.plan.query import Emit
from headrace.plan.time import format_duration
from headrace.program.aggregates import Metric, Tally, vectors_of
from headrace.program.joins import JoinProgram
from headrace.program.patterns import PatternProgram
from headrace.program.script import Asked, ScriptProgram
from headrace.program.stage import Stage, VectorKind
from headrace.program.windows import WindowsProgram


@dataclass(frozen=True, slots=True)
class Comparison:
    """What becomes of state and queries."""

    takes: tuple[int | None, ...]  # per new stage: the number of the old one whose state it goes on with
    names: tuple[tuple[Names, ...], tuple[Names, ...]]  # of the stages, new and old; behind these, those that were filled
    continued: dict[str, str]  # queries that go on, and what they were called
    added: tuple[str, ...]
    removed: tuple[str, ...]
    lacking: dict[str, tuple[str, ...]]  # of added queries, what no state has
    refused: dict[str, str]  # of queries that cannot go on as they are, why
    buckets: tuple[int, int] = (1, 1)  # how many there were, and are
    filled: tuple[int, ...] = ()  # new stages whose state was made of the sources: they take over from themselves

    def givers(self, number: int, stage: Stage[Any], bucket: int) -> range:
        """The buckets of whom a new stage takes over from in which rows of one of its own can lie."""
        was, now = self.buckets
        if number in self.filled:
            return range(bucket, bucket + 1)
        return givers(bucket, stage.buckets(now), stage.buckets(was))

    def lines(self) -> list[str]:
        """In words, line by line: what stays, goes, begins, and what is in the way."""
        out = [f"{q}: goes on" + (f" (it was {was})" if was != q else "") for q, was in self.continued.items() if q[0] != "#"]
        for query in self.added:
            if query in self.refused:
                out.append(f"{query}: refused: {self.refused[query]}")
            elif query in self.lacking:
                needs = "; ".join(self.lacking[query])
                ways = "its sources are read again (--backfill) or it begins with nothing (--from-now)"
                out.append(f"{query}: refused, unless {ways}: it needs {needs}")
            else:
                out.append(f"{query}: begins, complete: what it needs is there, or is made of the rows that are")
        return out + [f"{query}: its state goes" for query in self.removed]

    def refuse(self, apart: frozenset[str] = frozenset()) -> None:
        """Say what is in the way, before anything has changed; `apart` are queries that begin with nothing."""
        lacking = {query: what for query, what in self.lacking.items() if query not in apart}
        for query, why in self.refused.items():
            raise StateError(f"query {query!r} cannot go on: {why}", hint="give it another name, and it begins as a new query")
        for query, what in lacking.items():
            raise StateError(
                f"query {query!r} cannot begin complete: it needs {'; '.join(what)}",
                hint=f"--backfill {query} reads its sources again; --from-now {query} lets it begin with nothing",
            )


def compare(old: ScriptProgram, new: ScriptProgram, filled: tuple[int, ...] = ()) -> Comparison:
    """By what everything means. Stages that are `filled` from the sources take over from themselves, and lack nothing."""
    names = tuple(tuple(names_of(s, dict(p.feeds)) for s in p.stages) for p in (new, old))
    known = {n.stage: i for i, n in enumerate(names[1])}
    given = {number: len(old.stages) + place for place, number in enumerate(filled)}
    takes = tuple(given.get(i, known.get(n.stage)) for i, n in enumerate(names[0]))
    lacking: dict[str, list[str]] = {}
    missed = _missed(old, new, takes)
    for number, (stage, own, giver) in enumerate(zip(new.stages, names[0], takes, strict=True)):
        if number in filled:
            continue
        unseen = _of_new_stage(stage, missed[number])
        for query, what in unseen if giver is None else _of_stage(stage, own, old.stages[giver], names[1][giver]):
            if what not in lacking.setdefault(query, []):
                lacking[query].append(what)
    by_query = {query: tuple(what) for query, what in _through_feeds(new, lacking).items()}
    made = frozenset(q for i in filled for q in new.stages[i].queries)
    continued = _continued(old, new, by_query, made) | {q: q for q in made if q in dict(new.feeds)}
    went_on = set(continued.values())
    before = {q.name: q for q in old.queries}
    refused = {
        q.name: f"it was EMIT {before[q.name].emit.value} and is EMIT {q.emit.value} now: what it has said would not fit"
        for q in new.queries if q.name in before and before[q.name].emit is not q.emit and q.name not in continued
    }  # fmt: skip
    givers = (*names[1], *(names[0][i] for i in filled))
    return Comparison(
        takes, (names[0], givers), continued, tuple(q.name for q in new.queries if q.name not in continued),
        tuple(q.name for q in old.queries if q.name not in went_on), by_query, refused, (old.buckets, new.buckets), filled,
    )  # fmt: skip


def _continued(
    old: ScriptProgram, new: ScriptProgram, lacking: dict[str, tuple[str, ...]], filled: frozenset[str]
) -> dict[str, str]:
    """New names of queries that go on to old ones, each of which goes on once. Feeds that are the same go on, too.

    Of those that are `filled` only what is said once goes on: what was taken back later would be that of other state.
    """
    before = {q.name: q for q in old.queries}
    complete = [q for q in new.queries if q.name not in lacking]
    known = [q for q in complete if q.name not in filled]
    out = {q.name: q.name for q in known if before.get(q.name) == q}
    for query in known:
        free = [q for q in old.queries if q.name not in out.values()]
        renamed = next((q.name for q in free if (q.emit, q.meaning) == (query.emit, query.meaning)), None)
        if query.name not in out and renamed is not None:
            out[query.name] = renamed
    for query in complete:
        was = before.get(query.name)
        if was is None or query.name in out or was.name in out.values():
            continue
        if _follows_on(old, new, was, query, made=query.name in filled):
            out[query.name] = was.name
    feeds = {meaning: name for name, meaning in old.feeds}
    return out | {name: feeds[meaning] for name, meaning in new.feeds if meaning in feeds}


def _follows_on(old: ScriptProgram, new: ScriptProgram, was: Asked, now: Asked, *, made: bool) -> bool:
    """Whether a query that was changed goes on where it was: what is final has been said, once, and the rest is still to come.

    `made`: its rows were made of its sources, with all that it carries along of them.
    """
    if was.emit is not now.emit or now.emit is not Emit.FINAL:
        return False
    before, after = (_own_rows(p, q) for p, q in ((old, was), (new, now)))
    return before is not None and after is not None and after[:2] == before[:2] and (made or after[2] <= before[2])


def _own_rows(program: ScriptProgram, query: Asked) -> tuple[str, tuple[str, ...], frozenset[str]] | None:
    """Where its rows come from: stage, wherever it stands apart from others; masks, and what is carried along of them."""
    for stage in program.stages:
        if query.name in stage.program.queries:
            alike = replace(stage, apart=stage.apart.removeprefix(f"{query.apart}: "))
            names = names_of(alike, dict(program.feeds))
            for output in stage.program.outputs:
                if output.query == query.name:
                    carried = frozenset(names.inputs[i] for _, i in output.columns)
                    return names.stage, tuple(sorted(names.inputs[m] for m in output.masks)), carried
            return names.stage, (), frozenset()
    return None


def _through_feeds(program: ScriptProgram, lacking: dict[str, list[str]]) -> dict[str, list[str]]:
    """What a feed lacks, those lack that read it."""
    readers = {f: [q for s in program.stages if any(x.name == f for x in s.sources) for q in s.queries] for f, _ in program.feeds}
    for feed, queries in readers.items():
        for query in queries if feed in lacking else ():
            mine = lacking.setdefault(query, [])
            mine += [what for what in lacking[feed] if what not in mine]
    return {query: what for query, what in lacking.items() if query not in readers}


# ---- what is lacking ------------------------------------------------------------------------------------------------


def _missed(old: ScriptProgram, new: ScriptProgram, takes: tuple[int | None, ...]) -> list[tuple[str, ...]]:
    """Per stage, the sources of which rows have come that it has not seen; of a stream that is new, none have."""
    read = {*old.sources, *(s.name for stage in old.stages for s in stage.sources if not s.follows)}
    makers = {q: i for i, stage in enumerate(new.stages) for q in stage.queries}
    out: list[tuple[str, ...]] = []
    for stage in new.stages:  # those that others read stand before them
        gone = [s.name for s in stage.sources if not s.follows and s.name in read]
        fed = [makers[s.name] for s in stage.sources if s.follows]
        gone += [new.stages[m].name for m in fed if takes[m] is not None or out[m]]
        out.append(tuple(dict.fromkeys(gone)))
    return out


def _of_new_stage(stage: Stage[Any], missed: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Rows that pass need nothing of what came before."""
    if missed and isinstance(stage.program, WindowsProgram | JoinProgram | PatternProgram):
        for query in stage.program.queries:
            yield query, f"what has come of {' and '.join(missed)}, parted by {stage.name.rpartition(' by ')[2]}"


def _of_stage(stage: Stage[Any], names: Names, old: Stage[Any], known: Names) -> Iterator[tuple[str, str]]:
    held = _Held(stage, names, old, known)
    match stage.program:
        case WindowsProgram() as program:
            yield from held.of_windows(program)
        case JoinProgram() | PatternProgram():
            yield from held.of_rows(stage.program)


@dataclass(frozen=True, slots=True)
class _Held:
    """A new stage beside the old one whose state it is given."""

    stage: Stage[Any]
    names: Names
    old: Stage[Any]
    known: Names

    def of_windows(self, program: WindowsProgram) -> Iterator[tuple[str, str]]:
        """Of every query the tallies that are neither there nor can be made of rows that are."""
        for output in program.outputs:
            yield from ((output.query, what) for t in _read(output.metrics) for what in self._tally(program, t))
        for report in program.reports:
            tallies = {report.presence, *report.moved, *_read(report.metrics)}
            tallies |= {report.counter} if report.counter is not None else set()
            yield from ((report.query, what) for t in sorted(tallies) for what in self._tally(program, t))
            tables = [t for t in (report.partition, report.batch) if t is not None]
            yield from ((report.query, what) for t in tables for what in self._table(t))
            if report.field is not None:
                yield from ((report.query, what) for what in self._vector(report.field))

    def of_rows(self, program: JoinProgram | PatternProgram) -> Iterator[tuple[str, str]]:
        """Of every query the columns that kept rows do not have."""
        for output in program.shown:
            vectors = [c.vector for c in output.columns]
            if isinstance(program, PatternProgram):
                vectors += [v for o in program.shown if o is output for g in o.groups for t in g.tallies for v in vectors_of(t)]
            yield from ((output.query, what) for v in vectors for what in self._vector(v))

    def _tally(self, program: WindowsProgram, index: int) -> Iterator[str]:
        tally = program.tallies[index]
        old = self.old.program
        assert isinstance(old, WindowsProgram)
        if self.names.tally(tally, program.windows) not in {self.known.tally(t, old.windows) for t in old.tallies}:
            yield from self._rows(program, tally, old)
        for vector in vectors_of(tally):
            yield from self._vector(vector)
        for table in (tally.group, tally.pairs):
            yield from self._table(table) if table is not None else ()

    def _rows(self, program: WindowsProgram, tally: Tally, old: WindowsProgram) -> Iterator[str]:
        """Whether rows are there that a tally can be made of."""
        of = program.windows[tally.window]
        edges, rows = of.window.edges, of.window.last_rows
        if edges:
            longest = max(old.edges, default=0)
            if max(edges) > longest:
                reach = f"the rows of the last {format_duration(longest)}" if longest else "no rows"
                yield f"rows of the last {format_duration(max(edges))}; the checkpoint has {reach}"
        elif rows is not None:
            most = max((w.window.last_rows or 0 for w in old.windows), default=0)
            if rows > most:
                yield f"the last {rows} rows; the checkpoint has {most or 'none'}"
        else:
            yield f"what has come into {of.window} so far"
        masks = frozenset(self.names.inputs[m] for m in self.stage.vectors[tally.vector].masks)
        keeps = [frozenset(self.known.inputs[m] for m in masks) for masks in self.old.keep]
        if keeps and not any(kept <= masks for kept in keeps):
            yield f"rows that no query wanted: the checkpoint has those where {' or '.join(map(_all, keeps))}"

    def _vector(self, index: int) -> Iterator[str]:
        vector = self.stage.vectors[index]
        if vector.kind is VectorKind.ROW and not vector.masks:
            return
        if held_as(self.old, self.known, vector.kind, self.names.vectors[index], self.names.values[index]) is None:
            yield f"{self.names.values[index]} of the rows that have come"
        if vector.table is not None:
            yield from self._table(vector.table)

    def _table(self, index: int) -> Iterator[str]:
        if self.names.tables[index] not in self.known.tables:
            inputs = ", ".join(self.names.inputs[i] for i in self.stage.tables[index].inputs)
            yield f"{inputs or 'one group'} of the rows that have come"


def _all(conditions: frozenset[str]) -> str:
    return " and ".join(sorted(conditions))


def _read(metrics: Iterable[Metric]) -> set[int]:
    """The tallies that metrics read."""
    return {t for m in metrics for t in (m.tally, m.count) if t is not None}
