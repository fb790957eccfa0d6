"""Hold an engine against the oracle: every query at its EMIT level, after every batch, however a run is cut, split or restarted.

Design section 4 says what a level promises. The oracle's results depend on the admitted rows alone, so an engine that agrees
with it under every cut into batches, number of buckets and restart also agrees with itself under all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from headrace.oracle.admission import Batch, Key
from headrace.oracle.evaluate import Expected, Results, expected_after_each_batch, leaf
from headrace.oracle.rows import Row, canonical_row
from headrace.plan.joins import Join, JoinKind
from headrace.plan.nodes import Late, Node, Rejected, Scan, base_streams, children
from headrace.plan.patterns import Pattern
from headrace.plan.query import Emit, Query, Script, has_window
from headrace.stages.flatten import split_top
from headrace.testing.disorder import recut
from headrace.testing.engine import Change, Engine, EngineFactory, Outputs
from headrace.testing.tables import format_cell, format_table


class ConformanceError(AssertionError):
    """The engine and the oracle disagree."""


@dataclass(frozen=True, slots=True)
class Run:
    """A script, its input, and what the oracle says must come out after each batch and after the end."""

    script: Script
    batches: tuple[Batch, ...]
    expected: dict[str, list[Expected]]

    @staticmethod
    def of(script: Script, batches: Sequence[Batch], known: Mapping[str, list[Expected]] | None = None) -> Run:
        """Ask the oracle, unless it is known what it says."""
        known = known or {}
        expected = {q.name: known.get(q.name) or expected_after_each_batch(q, batches) for q in script.queries}
        return Run(script, tuple(batches), expected)

    @property
    def end(self) -> int:
        """The time at which the input ends."""
        return self.batches[-1].now if self.batches else 0


def check_query(
    script: Script,
    batches: Sequence[Batch],
    engine_factory: EngineFactory,
    *,
    buckets: Sequence[int] = (3, 1),
    restarts: bool | Sequence[int] = True,
    recuts: int = 1,
    losses: bool = True,
    seed: int = 0,
    known: Mapping[str, list[Expected]] | None = None,
) -> None:
    """Everything that can be asked of one input.

    `buckets`: numbers of buckets to run with; `restarts`: after which batches to save and restore (True: after each);
    `recuts`: how many other cuts into batches to try; `losses`: also watch `late(s)` and `rejected(s)` of every stream;
    `known`: what the oracle has said of this input already.
    """
    run = Run.of(watch_losses(script) if losses else script, batches, known)
    places = range(len(run.batches) + 1) if restarts is True else restarts or ()
    check_restarts(run, engine_factory, places, buckets[0])
    check_cuts(run, engine_factory, buckets=buckets[1:] or buckets, recuts=recuts, seed=seed)
    if not recuts:
        for count in buckets[1:]:
            check_outputs(run, drive(engine_factory(run.script, count, None), run), f"with {count} buckets")


def check_cuts(run: Run, engine_factory: EngineFactory, *, buckets: Sequence[int], recuts: int = 1, seed: int = 0) -> None:
    """In other batches, with these numbers of buckets by turns."""
    rng = Random(seed)
    for number in range(recuts):
        count = buckets[number % len(buckets)]
        other = recut_run(run, rng)
        cut = f"in other batches (recut {number} of seed {seed}: {[_size(b) for b in other.batches]} rows)"
        check_outputs(other, drive(engine_factory(run.script, count, None), other), f"with {count} buckets, {cut}")


def recut_run(run: Run, rng: Random) -> Run:
    return Run.of(run.script, tables_first(run.script, recut(run.batches, rng)))


def tables_first(script: Script, batches: Sequence[Batch]) -> list[Batch]:
    """The same batches, with all rows of tables in the first."""
    tables = {s.name for s in script.streams if s.static}
    early = {name: [a for b in batches for a in b.rows.get(name, ())] for name in tables}
    out = [Batch(b.now, {n: rows for n, rows in b.rows.items() if n not in tables}) for b in batches]
    return [Batch(out[0].now, {**out[0].rows, **early}), *out[1:]] if out and tables else out


def watch_losses(script: Script) -> Script:
    """The script with a query over `late(s)` and one over `rejected(s)` for each of its streams."""
    streams = {s.name: s for q in script.queries for s in base_streams(q.node) if not s.static}
    taken = {q.name for q in script.queries}
    watched = [
        query
        for stream in streams.values()
        for query in (Query(f"late_{stream.name}", Late(stream)), Query(f"rejected_{stream.name}", Rejected(stream)))
        if query.name not in taken
    ]
    return replace(script, queries=(*script.queries, *watched))


def drive(engine: Engine, run: Run, *, start: int = 0) -> list[Outputs]:
    """Feed the batches from `start` on, and the end."""
    return [*(engine.push(batch) for batch in run.batches[start:]), engine.finish(run.end)]


def check_restarts(run: Run, engine_factory: EngineFactory, places: Iterable[int], buckets: int) -> None:
    """Save before batch n, go on to the end with the first engine, then restore: the outputs must be right all the same.

    All that is passed to the first engine or given out by it is wiped after use: it may neither change nor keep it.
    """
    engine = engine_factory(run.script, buckets, None)
    wanted = set(places)
    saved: dict[int, object] = {}
    before: list[Outputs] = []
    for number, batch in enumerate(run.batches):
        if number in wanted:
            saved[number] = engine.save()
        before.append(push_untouched(engine, batch))
    if len(run.batches) in wanted:
        saved[len(run.batches)] = engine.save()
    check_outputs(run, [*before, engine.finish(run.end)], f"with {buckets} buckets, inputs and outputs wiped after use")
    for number, state in saved.items():
        restored = engine_factory(run.script, buckets, state)
        check_outputs(run, [*before[:number], *drive(restored, run, start=number)], f"restarted after {number} batches")


def check_restarts_throughout(run: Run, engine_factory: EngineFactory, buckets: int) -> None:
    """Save and restore before every batch, and before the end."""
    engine, outputs = engine_factory(run.script, buckets, None), []
    for batch in run.batches:
        engine = engine_factory(run.script, buckets, engine.save())
        outputs.append(engine.push(batch))
    outputs.append(engine_factory(run.script, buckets, engine.save()).finish(run.end))
    sizes = [_size(b) for b in run.batches]
    check_outputs(run, outputs, f"with {buckets} buckets, restarted before every batch, in batches of {sizes} rows")


def push_untouched(engine: Engine, batch: Batch) -> Outputs:
    """Nothing passed in is changed by the engine, and nothing passed in or given out is still used by it."""
    mine = Batch(batch.now, {name: list(rows) for name, rows in batch.rows.items()})
    copy = deepcopy(mine)
    given = engine.push(mine)
    _same_input(copy, mine)
    output = {name: list(changes) for name, changes in given.items()}
    for part in (*mine.rows.values(), *given.values()):
        part.clear()  # type: ignore[attr-defined]
    given.clear()
    return output


def _same_input(copy: Batch, mine: Batch) -> None:
    for name, rows in copy.rows.items():
        same = [(canonical_row(a.values), a.partition) for a in rows]
        if same != [(canonical_row(a.values), a.partition) for a in mine.rows[name]]:
            raise ConformanceError(f"the engine changed its input: rows of {name!r} in the batch at {copy.now}")


def check_bounded_state(
    script: Script, batches: Sequence[Batch], engine_factory: EngineFactory, *, buckets: int = 4, tolerance: float = 1.25
) -> list[int]:
    """On a long steady run the state levels off: its peak in the last quarter is that of the second. Gives all sizes."""
    engine = engine_factory(script, buckets, None)
    sizes = []
    for batch in batches:
        engine.push(batch)
        sizes.append(engine.state_size())
    quarter = len(sizes) // 4
    if quarter == 0:
        raise ValueError("a steady run needs at least 4 batches")
    early, late = max(sizes[quarter : 2 * quarter]), max(sizes[-quarter:])
    if late > early * tolerance:
        raise ConformanceError(f"the state grows: {early} in the second quarter of the run, {late} in the last; all: {sizes}")
    return sizes


def check_outputs(run: Run, outputs: Sequence[Outputs], how: str = "") -> None:
    """What came out after each batch, and after the end, is what the EMIT level of each query asks for."""
    if len(outputs) != len(run.batches) + 1:
        raise ConformanceError(f"{len(outputs)} outputs for {len(run.batches)} batches and the end")
    names = set(run.expected)
    for number, output in enumerate(outputs):
        if set(output) - names:
            raise ConformanceError(f"batch {number} has outputs of unknown queries: {sorted(set(output) - names)}")
    for query in run.script.queries:
        try:
            _Checker(query).check([list(o.get(query.name, ())) for o in outputs], run.expected[query.name])
        except ConformanceError as error:
            raise ConformanceError(f"{query.name} (EMIT {query.emit.value}: {query.node}) {how}\n{error}") from None


def _hurries(node: Node) -> bool:
    """Whether the rows are pairs that nothing can undo."""
    core = split_top(node)[1]
    if not isinstance(core, Join) or core.kind is not JoinKind.INNER:
        return False
    unique = any(s.unique is not None for s in base_streams(core))
    return not unique and not any(map(has_window, children(core))) and not any(w.counts_rows for w in core.windows)


def _lets_wait(node: Node) -> bool:
    """Whether late events of a pattern wait for each other (decisions/0014): the guarantee is over those that do not."""
    own = isinstance(node, Pattern) and node.spill is not None and node.spill.together > 1
    return own or any(map(_lets_wait, children(node)))


def bounds(query: Query, want: Expected) -> tuple[Results, Results]:
    """What must be out after a batch, and what may be."""
    if _may_hurry(query):
        return want.final, want.changes
    if query.emit.early:
        return want.changes, want.changes
    return want.final, want.final if want.may is None else want.may


def _may_hurry(query: Query) -> bool:
    """What cannot change may leave at once under FINAL; it must have left when the frontier has passed it."""
    unique = any(s.unique is not None for s in base_streams(query.node))
    return query.emit is Emit.FINAL and (_hurries(query.node) or not (has_window(query.node) or unique))


class _Checker:
    """Follows the output of one query."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.leaf = leaf(query.node)
        self.final = not query.emit.early
        self.may_hurry = _may_hurry(query)
        # No two results of a pattern have one order key; of other steps they may, and a second `+` is judged after the batch.
        self.once = isinstance(split_top(query.node)[1], Pattern)
        self.late = _lets_wait(query.node)
        self.out: Counter[Any] = Counter()
        self.shown: dict[Any, tuple[Key, Row]] = {}
        self.last: Key | None = None

    def check(self, outputs: Sequence[Sequence[Change]], expected: Sequence[Expected]) -> None:
        for number, (changes, want) in enumerate(zip(outputs, expected, strict=True)):
            where = f"in batch {number}" if number < len(outputs) - 1 else "at the end"
            for change in changes:
                self._take(change, where)
            if self.late and number < len(outputs) - 1:
                self._compare_so_far(want, where)
            else:
                self._compare(*bounds(self.query, want), where)

    def _take(self, change: Change, where: str) -> None:
        identity = self._identity(change.key, change.row)
        self.shown.setdefault(identity, (change.key, change.row))
        if isinstance(self.query.node, Rejected) and not change.row[1]:
            raise ConformanceError(f"{where} a row is rejected without a reason: {change}")
        if change.sign < 0 and self.final:
            raise ConformanceError(f"{where} a result is taken back, which {self.query.emit.value} forbids: {change}")
        if change.sign < 0 and self.out[identity] <= 0:
            raise ConformanceError(f"{where} a `-` cancels no `+` that is out: {change}")
        if change.sign > 0 and self.once and self.out[identity] > 0:
            raise ConformanceError(f"{where} a match is reported that is out already: {change}")
        self.out[identity] += change.sign
        in_order = self.query.emit.ordered and isinstance(self.leaf, Scan)
        if in_order and self.last is not None and change.key < self.last:
            raise ConformanceError(f"{where} the order key goes back from {self.last}: {change}")
        self.last = change.key

    def _compare_so_far(self, want: Expected, where: str) -> None:
        """What waits for a frame has not come, for CHANGES; but it has before it is final, so that nothing is said too early."""
        may = want.changes if self.may_hurry else want.final if want.may is None else want.may
        if self.final:
            self._compare(want.final if self.query.emit.ordered else [], may, where)

    def _compare(self, least: Results, most: Results, where: str) -> None:
        """All that is out is allowed, and all that must be out is."""
        must, may = (Counter(self._identity(key, row) for key, row in pairs) for pairs in (least, most))
        out = +self.out
        if not must - out and not out - may:
            return
        known = {self._identity(key, row): (key, row) for key, row in most}
        lines = [
            [label, *map(str, (*key, "")[:4]), *map(format_cell, row)]
            for label, left, source in (("missing", must - out, known), ("unexpected", out - may, self.shown))
            for key, row in sorted((source[i] for i in left.elements()), key=lambda pair: pair[0])
        ]
        table = format_table(("", "ts", "hi", "lo", "sub", *self.query.node.schema.names), lines)
        raise ConformanceError(f"{where} {out.total()} rows are out, the oracle has {len(least)}:\n{table}")

    def _identity(self, key: Key, row: Row) -> Any:
        """What makes two rows of the output the same."""
        match self.leaf:
            case Rejected():  # the words of a reason and the text of a row are the engine's own
                return key[1:]
            case Late():
                return (key[1:], canonical_row(row, self.query.node.schema))
        return (key, canonical_row(row, self.query.node.schema))


def _size(batch: Batch) -> int:
    return sum(map(len, batch.rows.values()))
