"""One event a call beside batches of one row: engines that take them, and cases of what is taken compiled."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from headrace.changes.changes import Changes
from headrace.changes.keys import Keys
from headrace.changes.values import batch_of_rows, rows_of
from headrace.exchange.host import gather
from headrace.oracle.admission import Arrival, Batch
from headrace.plan.aggregates import FUNCTIONS, Aggregate, TallyKind
from headrace.plan.arrow import arrow_type
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Late, Merge, Node, Scan, WindowAggregate
from headrace.plan.query import Emit, Query, Script
from headrace.plan.stream import Bound, Stream
from headrace.plan.time import SECOND
from headrace.plan.windows import RangeWindow, UnboundedWindow, Window
from headrace.runtime.clock import Header
from headrace.runtime.processor import Result, TaskProcessor
from headrace.runtime.single import Single, said
from headrace.testing.local import LocalEngine
from headrace.testing.strategies import (
    ANYTHING,
    KEYS,
    NUMBERS,
    PREDICATES,
    PUNCTUATION,
    Case,
    arrivals,
    choices,
    sampled,
    scripts,
    streams,
)

TAKEN = (TallyKind.COUNT, TallyKind.SUM, TallyKind.MOMENTS, TallyKind.DISTINCT, TallyKind.QUEUE)
FAST = tuple(f for f in FUNCTIONS.values() if f.keeps.kind in TAKEN)


def bits(value: Any) -> Any:
    """What tells values apart, to the bit, and of their types."""
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack("d", value)
    return list(map(bits, value)) if isinstance(value, list | tuple) else (type(value).__name__, str(value))


class OneByOne(LocalEngine):
    """Gives single events to a bucket as values, as batches of one row, or by turns, and writes down what it is told."""

    def __init__(
        self, script: Script, buckets: int = 2, saved: object | None = None, *, single: float = 1.0, seed: int = 0
    ) -> None:
        """`single`: the share of events that are given as values."""
        super().__init__(script, buckets, saved)
        self.single, self.random, self.told, self.counted = single, Random(seed), list[Any](), Counter[str]()

    def _deliver(self, processor: TaskProcessor, cells: list[Any]) -> tuple[Header, Result]:
        header, arrivals = gather(processor.stage, cells)
        rows = 0 if arrivals is None else len(arrivals)
        plain = rows <= 1 and not header.follows and (arrivals is None or arrivals.sign is None)
        alone = rows == 0 or (len(header.segments) == 1 and header.segments[0].rows == 1)
        if not plain or not alone or self.random.random() >= self.single:
            result = processor.process(header, arrivals)
            self.counted["batches"] += 1
            self._tell(said(result))
            return header, result
        results: list[Result] = []
        batch = processor.process
        processor.process = lambda *given: results.append(batch(*given)) or results[-1]  # type: ignore[assignment, func-returns-value]
        changes = self._call(_singled(processor), header, arrivals)
        processor.process = batch  # type: ignore[method-assign]
        self._tell(changes)
        return header, results[0] if results else Result(changes_of(processor.stage, changes))

    def _call(self, single: Single, header: Header, arrivals: Any) -> list[Any]:
        if arrivals is None:
            return single.advance(header)
        (values,), keys, segment = rows_of(arrivals.inputs), arrivals.keys, header.segments[0]
        out = single.call(
            int(keys.ts[0]), int(keys.high[0]), int(keys.low[0]), segment.partition, segment.place, segment.highest,
            segment.promised, bool(arrivals.behind[0]), header.now, values, segment.source,
        )  # fmt: skip
        self.counted["fast" if single.fast else "slow"] += 1
        self.counted["late"] += single.late
        self.counted["corrections"] += any(sign < 0 for _, sign, _, _ in out) and single.fast
        return out

    def _tell(self, changes: Sequence[Any]) -> None:
        self.told.append([(query, sign, tuple(key), bits(row)) for query, sign, key, row in changes])

    def reached(self) -> Counter[str]:
        """All that was counted, with what kernels asked for."""
        out = Counter(self.counted)
        for processor in self._processors.values():
            live = getattr(processor.single, "_live", None)
            for asked, often in enumerate(getattr(live, "asked", ())):
                out[f"asked {asked}"] += often
        return out


def _singled(processor: TaskProcessor) -> Single:
    return processor.single or Single(processor)


def changes_of(stage: Any, given: Sequence[Any]) -> list[tuple[str, Changes]]:
    """Changes as batches have them: those of one query that follow each other are together."""
    out: list[tuple[str, Changes]] = []
    for query, sign, key, row in given:
        (output,) = (o for o in (*stage.program.outputs, *stage.late) if o.query == query)
        kinds = [stage.inputs[i].type for _, i in output.columns] + [m.type for m in getattr(output, "metrics", ())]
        names = [n for n, _ in output.columns] + [m.name for m in output.metrics]
        if output in stage.late:
            kinds, names = [*kinds, "TIMESTAMP"], [*names, "_time"]
        rows = batch_of_rows([arrow_type(k) for k in kinds], names, [row])
        out.append((query, Changes.of(sign, Keys(*(np.array([word], np.int64) for word in key[:3])), rows)))
    return out


# ---- cases --------------------------------------------------------------------------------------------------------------


def one_by_one(batches: Sequence[Batch], rng: Random, together: float = 0.1) -> tuple[Batch, ...]:
    """The same arrivals, mostly one a batch; what was no arrival stays a batch."""
    out: list[Batch] = []
    for batch in batches:
        if not any(batch.rows.values()) or rng.random() < together:
            out.append(batch)
            continue
        out += [Batch(batch.now, {name: [arrival]}) for name, rows in batch.rows.items() for arrival in rows]
    return tuple(out)


@st.composite
def calls(draw: st.DrawFn, name: str) -> Aggregate:
    """An aggregate that is taken compiled."""
    function = draw(st.sampled_from(FAST))
    condition = draw(st.sampled_from((None,) * 8 + PREDICATES))
    where = Expr.of(condition) if condition else None
    if function.stars and draw(st.booleans()):
        return Aggregate(name, function, (), where)
    arguments = tuple(Expr.of(draw(st.sampled_from(choices(p, ANYTHING, NUMBERS)))) for p in function.takes)
    return Aggregate(name, function, arguments, where)


@st.composite
def taken_windows(draw: st.DrawFn) -> Window:
    size = draw(st.sampled_from((5, 10, 2, 3, 30, 86_400))) * SECOND
    lag, peers = draw(st.sampled_from((0, 0, 0, SECOND, 2 * SECOND, 1))), draw(st.integers(0, 5)) == 0
    return UnboundedWindow(peers) if draw(st.integers(0, 5)) == 0 else RangeWindow(size, lag, peers)


@st.composite
def taken(draw: st.DrawFn, most_rows: int = 40) -> Case:
    """Several queries over one stream, or over two, that are all taken compiled."""
    delay = draw(st.sampled_from((5 * SECOND, 5 * SECOND, 10 * SECOND, 2 * SECOND, 0, Bound.UNBOUNDED)))
    drawn = replace(draw(streams()), punctuation=None)
    stream = replace(drawn, keep=None, unique=None, end_after=None, delay=delay, timestamp=Expr.of("at"))
    stream = replace(stream, punctuation=draw(st.sampled_from(PUNCTUATION[:4])) if delay is not Bound.UNBOUNDED else None)
    below: list[Stream] = [stream]
    if draw(st.integers(0, 4)) == 0:
        below.append(replace(stream, name="others"))
    queries = []
    for number in range(draw(st.integers(1, 3))):
        node: Node = Scan(stream) if len(below) == 1 else Merge(tuple(map(Scan, below)))
        if draw(st.integers(0, 3)) == 0:
            node = Filter(node, Expr.of(draw(st.sampled_from(PREDICATES))))
        keys = tuple(Expr.of(k) for k in draw(st.sampled_from(KEYS)))
        if draw(st.integers(0, 9)):
            found = tuple(draw(calls(f"a{i}")) for i in range(draw(st.integers(1, 4))))
            node = WindowAggregate(node, draw(taken_windows()), keys, found)
        levels = [Emit.CHANGES] if delay is Bound.UNBOUNDED else [Emit.CHANGES, Emit.CHANGES, *Emit]
        queries.append(Query(f"q{number}", node, draw(st.sampled_from(levels))))
    if draw(st.integers(0, 3)) == 0:
        queries.append(Query("lost", Filter(Late(stream), Expr.of("card IS NOT NULL"))))
    batches = tuple(draw(arrivals(stream, most_rows)))
    if len(below) > 1:
        batches = tuple(map(_shared, batches))
    return Case(Script(tuple(queries), tuple(below)), batches)


def _shared(batch: Batch) -> Batch:
    """Every other arrival goes to the other stream."""
    rows: list[Arrival] = list(batch.rows.get("payments", ()))
    return Batch(batch.now, {"payments": rows[::2], "others": rows[1::2]})


def a_taken_case(seed: int) -> Case:
    """One that the seed gives, one event a batch; refused, if a stage of it is not taken."""
    rng = Random(seed)
    case = sampled(taken(), seed)
    LocalEngine(case.script, 1)  # some are refused
    return Case(case.script, one_by_one(case.batches, rng, rng.choice((0.0, 0.0, 0.1, 0.3))))


def any_case(seed: int) -> Case:
    """What the runtime can run at all, one event a batch."""

    @st.composite
    def cases(draw: st.DrawFn) -> Case:
        stream = draw(streams())
        return Case(draw(scripts(stream, 3, nested=False)), tuple(draw(arrivals(stream, 24))))

    case = sampled(cases(), seed)
    LocalEngine(case.script, 1)
    return Case(case.script, one_by_one(case.batches, Random(seed)))
