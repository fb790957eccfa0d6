"""Hold what a sink has published, batch by batch, against the oracle: rows and signs are all that is known of them there.

A sink shows no order keys, and an engine may have batches in which nothing came. So after each of its batches, what is out must
be right for some number of batches of the input, which never goes back: what it was before, one more, or all of them and the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from headrace.oracle.evaluate import Expected, Results
from headrace.oracle.rows import Row, canonical_row
from headrace.plan.nodes import Rejected
from headrace.plan.query import Query
from headrace.stages.flatten import split_top
from headrace.testing.conformance import ConformanceError, bounds
from headrace.testing.tables import format_cell, format_table

Signed = tuple[int, Row]


def check_published(query: Query, outputs: Sequence[Sequence[Signed]], expected: Sequence[Expected], how: str = "") -> None:
    """`outputs`: what each batch of the engine has published; `expected`: what must be out after each batch of the input."""
    try:
        _follow(query, outputs, expected)
    except ConformanceError as error:
        raise ConformanceError(f"{query.name} (EMIT {query.emit.value}: {query.node}) {how}\n{error}") from None


def _follow(query: Query, outputs: Sequence[Sequence[Signed]], expected: Sequence[Expected]) -> None:
    end = len(expected)
    ranges = [(Counter[Row](), Counter[Row]())] + [
        tuple(_bag(query, results) for results in bounds(query, want)) for want in expected
    ]
    out: Counter[Row] = Counter()
    places = {0}
    for number, changes in enumerate(outputs):
        for sign, row in changes:
            _take(query, out, sign, row, number)
        after = {p for q in places for p in (q, q + 1, *((end,) if q + 1 == end - 1 else ())) if p <= end}
        right = {p for p in after if not ranges[p][0] - out and not +out - ranges[p][1]}
        if not right:
            raise ConformanceError(_difference(query, number, out, ranges[min(max(places) + 1, end)]))
        places = right
    if end not in places:
        raise ConformanceError(_difference(query, len(outputs) - 1, out, ranges[end]))


def _take(query: Query, out: Counter[Row], sign: int, row: Row, number: int) -> None:
    identity = _identity(query, row)
    if sign < 0 and not query.emit.early:
        raise ConformanceError(f"in batch {number} a result is taken back, which {query.emit.value} forbids: {row}")
    if sign < 0 and out[identity] <= 0:
        raise ConformanceError(f"in batch {number} a `-` cancels no `+` that is out: {row}")
    out[identity] += sign


def _bag(query: Query, results: Results) -> Counter[Row]:
    return Counter(_identity(query, row) for _, row in results)


def _identity(query: Query, row: Row) -> Row:
    """What makes two rows the same; the words of a reason and the text of a rejected row are the engine's own."""
    return () if isinstance(split_top(query.node)[1], Rejected) else canonical_row(row, query.node.schema)


def _difference(query: Query, number: int, out: Counter[Row], wanted: tuple[Counter[Row], ...]) -> str:
    lines = [
        [label, *map(format_cell, row)]
        for label, left in (("missing", wanted[0] - out), ("unexpected", +out - wanted[1]))
        for row in sorted(left.elements(), key=repr)
    ]
    table = format_table(("", *query.node.schema.names), [line[: 1 + len(query.node.schema.names)] for line in lines])
    return f"after batch {number} of the engine {out.total()} rows are out, which is right for no batch of the input:\n{table}"
