"""End-to-end cases as text: a script, its input as tables, and what must come out of every query.

    -- What the case shows.
    CREATE STREAM payments (at TIMESTAMP, card STRING) SOURCE FILE('payments.parquet') TIMESTAMP BY at DELAY 5 SECONDS;
    SELECT card, COUNT(*) AS n FROM payments [RANGE 10 SECONDS] GROUP BY card EMIT FINAL INTO counts;

    ---- payments
    | now | at | card |
    |  10 |  5 | a    |

    ---- counts
    | batch | card | n |
    | end   | a    | 1 |

A section with the name of a stream is its input (see `headrace.testing.tables`); one with the name of a query (its INTO) is what
leaves it, with the number of the batch in which it leaves (`end`: at the end of the input) and, under EMIT CHANGES, `_op`.
`complete` writes those sections anew from the oracle. A comment `-- not on spark: why` keeps a case from an engine,
`-- broken on local: why` says that it is known to fail there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path

from headrace.errors import DataError, unknown
from headrace.oracle.admission import Batch
from headrace.oracle.evaluate import Expected, Results
from headrace.oracle.rows import Row, canonical_row
from headrace.plan.joins import Join
from headrace.plan.nodes import Late, Node, Rejected, children
from headrace.plan.patterns import Pattern
from headrace.plan.query import Query, Script
from headrace.plan.schema import Schema
from headrace.sql import parse_script
from headrace.stages.flatten import split_top
from headrace.testing.conformance import Run, check_outputs, push_untouched
from headrace.testing.engine import Change, EngineFactory
from headrace.testing.tables import diff, format_cell, format_table, merge_batches, read_batches, read_rows, read_table

_SECTION = re.compile(r"^---- *(\S+) *$", re.MULTILINE)
_NOTE = re.compile(r"^-- *(not|broken) on (\w+): *(.+)$", re.MULTILINE)
END = "end"


@dataclass(frozen=True, slots=True)
class Leaving:
    """A change that leaves in a batch: its number, counted from 1, or `end`."""

    batch: str
    sign: int
    row: Row


@dataclass(frozen=True)
class QueryCase:
    """One case: `inputs` and `outputs` are the tables as written, by name of stream and query."""

    name: str
    sql: str
    script: Script
    inputs: dict[str, str]
    outputs: dict[str, str]
    left_out: dict[str, str] = field(default_factory=dict)  # engine -> why it does not run this
    broken: dict[str, str] = field(default_factory=dict)  # engine -> why it is known to fail

    @property
    def batches(self) -> list[Batch]:
        streams = {s.name: s for s in self.script.streams}
        return merge_batches(*(read_batches(name, streams[name].schema, text) for name, text in self.inputs.items()))

    @cached_property
    def run(self) -> Run:
        return Run.of(self.script, self.batches)


@cache
def read_case(path: Path) -> QueryCase:
    sql, *sections = _SECTION.split(path.read_text(encoding="utf-8"))
    script = parse_script(sql, path.name)
    streams, queries = [s.name for s in script.streams], [q.name for q in script.queries]
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        if name not in (*streams, *queries):
            raise DataError(unknown("stream or query", name, (*streams, *queries)), where=path.name)
        (inputs if name in streams else outputs)[name] = text.strip("\n")
    notes = [(kind, engine, why) for kind, engine, why in _NOTE.findall(sql)]
    return QueryCase(
        path.stem, sql, script, inputs, outputs,
        {engine: why for kind, engine, why in notes if kind == "not"},
        {engine: why for kind, engine, why in notes if kind == "broken"},
    )  # fmt: skip


def has_op(query: Query) -> bool:
    """Whether rows of the query can be taken back; late and rejected rows are a record of what came."""
    return query.emit.early and not isinstance(split_top(query.node)[1], Late | Rejected)


def oracle_leaving(query: Query, expected: Sequence[Expected]) -> list[Leaving]:
    """What must leave a query and when, by the oracle: as little as the EMIT level allows, in the total order."""
    out: list[Leaving] = []
    before: Results = []
    for number, want in enumerate(expected, 1):
        after = want.changes if query.emit.early else want.final
        label = str(number) if number < len(expected) else END
        for sign, old, new in ((-1, after, before), (1, before, after)):
            known = Counter((key, canonical_row(row)) for key, row in old)
            for key, row in new:
                identity = (key, canonical_row(row))
                if known[identity] > 0:
                    known[identity] -= 1
                else:
                    out.append(Leaving(label, sign, row))
        before = after
    return out


def format_leaving(query: Query, leaving: Iterable[Leaving]) -> str:
    op = has_op(query)
    header = ["batch", *(["_op"] if op else []), *query.node.schema.names]
    cells = [[c.batch, *(["+" if c.sign > 0 else "-"] if op else []), *map(format_cell, c.row)] for c in leaving]
    return format_table(header, cells)


def read_leaving(schema: Schema, text: str) -> list[Leaving]:
    header, cells = read_table(text)
    table = [dict(zip(header, row, strict=True)) for row in cells]
    rows = read_rows(schema, text)
    return [Leaving(c["batch"], -1 if c.get("_op") == "-" else 1, row) for c, row in zip(table, rows, strict=True)]


def complete(path: Path) -> None:
    """Write what the oracle says into the case; read the difference before keeping it."""
    case = read_case(path)
    parts = [case.sql.rstrip("\n")]
    parts += [f"---- {name}\n{format_table(*read_table(text))}" for name, text in case.inputs.items()]
    parts += [f"---- {q.name}\n{format_leaving(q, oracle_leaving(q, case.run.expected[q.name]))}" for q in case.script.queries]
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    read_case.cache_clear()


def check_oracle(case: QueryCase) -> None:
    """The case says what the oracle says, to the letter."""
    for query in case.script.queries:
        want, got = case.outputs.get(query.name, ""), format_leaving(query, oracle_leaving(query, case.run.expected[query.name]))
        if want != got:
            raise AssertionError(f"{case.name}: {query.name} is not what the oracle says:\n{got}\nThe case has:\n{want}")


def check_engine(case: QueryCase, engine_factory: EngineFactory, buckets: int = 3) -> None:
    """An engine does what its EMIT levels ask after every batch, and in the end has given what the case says."""
    engine, run = engine_factory(case.script, buckets, None), case.run
    outputs = [*(push_untouched(engine, batch) for batch in run.batches), engine.finish(run.end)]
    check_outputs(run, outputs, f"in case {case.name}")
    for query in case.script.queries:
        check_end(case, query, [change for output in outputs for change in output[query.name]])


def check_end(case: QueryCase, query: Query, changes: Iterable[Change] | Iterable[tuple[int, Row]]) -> None:
    """All that has left a query, consolidated, is what the case says in the end; for FINAL IN ORDER also in its order."""
    schema = query.node.schema
    want = [(c.sign, c.row) for c in read_leaving(schema, case.outputs[query.name])]
    got = [(c.sign, c.row) if isinstance(c, Change) else c for c in changes]
    text = diff(schema, consolidated(schema, want), consolidated(schema, got))
    if text:
        raise AssertionError(f"{case.name}: the rows of {query.name} in the end\n{text}")
    if query.emit.ordered and has_time(query):
        ordered = [[canonical_row(row, schema) for _, row in pairs] for pairs in (want, got)]
        if any(isinstance(n, Join | Pattern) for n in _steps(query.node)):
            ordered = [_by_event(case, query, rows) for rows in ordered]
        if ordered[0] != ordered[1]:
            raise AssertionError(f"{case.name}: the rows of {query.name} are not in order: {[row for _, row in got]}")


def _steps(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _steps(child)


def _by_event(case: QueryCase, query: Query, rows: list[Row]) -> list[Row]:
    """With pairs and sequences of one event in one order: theirs is that of where rows lie, which differs between engines."""
    events = [key[:3] for key, _ in case.run.expected[query.name][-1].final]
    out: list[Row] = []
    for _, run in groupby(zip(events, rows, strict=True), key=lambda pair: pair[0]):
        out += sorted((row for _, row in run), key=repr)
    return out


def has_time(query: Query) -> bool:
    """Whether the rows stand in the order of time."""
    return not isinstance(split_top(query.node)[1], Late | Rejected)


def consolidated(schema: Schema, changes: Iterable[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """What is left of the changes."""
    total: Counter[Row] = Counter()
    shown: dict[Row, Row] = {}
    for sign, row in changes:
        identity = canonical_row(row, schema)
        total[identity] += sign
        shown[identity] = row
    return [(1 if n > 0 else -1, shown[identity]) for identity, n in total.items() for _ in range(abs(n))]
