"""Outputs of several runs beside each other: which rows belong together, and which of them differ."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest
from typing import Any

from rich.console import Console
from rich.text import Text

from headrace.runs.events import RowsEvent
from headrace.runs.text import cell_text, json_text

Row = tuple[Any, ...]
MOST_COMPARED = 1_000_000  # pairs of rows that are looked at, all of them
EQUAL = 1_000  # that rows are equal counts for more than in how many outputs
MARK = "*"
BETWEEN, GROUPS = "  ", " | "
DIFFERS = "bold yellow"


@dataclass(slots=True)
class Output:
    """The rows of one query under one profile."""

    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)

    def add(self, event: RowsEvent) -> None:
        self.columns = event.columns
        self.rows += zip(*(column.to_pylist() for column in event.rows.columns), strict=True)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the comparison: what each profile has there, None where it has nothing."""

    rows: tuple[Row | None, ...]

    @property
    def same(self) -> bool:
        return all(_key(a) == _key(b) for a, b in pairwise(self.rows))


@dataclass(frozen=True, slots=True)
class Shown:
    """A query: its columns, the profiles, and the lines that are shown, of `total`."""

    query: str
    columns: tuple[str, ...]
    profiles: tuple[str, ...]
    lines: tuple[Line, ...]
    total: int
    same: int


def side_by_side(
    query: str, columns: tuple[str, ...], rows: Mapping[str, list[Row]], end: int | None = None, *, only: bool = False
) -> Shown:
    """Put the outputs of a query beside each other; with `only`, keep the lines that differ."""
    lines = align(list(rows.values()), end)
    kept = tuple(line for line in lines if not (only and line.same))
    return Shown(query, columns, tuple(rows), kept, len(lines), sum(line.same for line in lines))


def align(outputs: list[list[Row]], end: int | None = None) -> list[Line]:
    """Which rows belong together: those that are equal, in order; what is left between two such pairs by its number.

    With `end`, the column that says where a window ends, only rows of the same window can.

    >>> for line in align([[(10,), (15,), (20,)], [(10,), (15,), (15,), (20,)], [(11,), (15,), (20,)]]):
    ...     print(line.rows, line.same)
    ((10,), (10,), (11,)) False
    ((15,), (15,), (15,)) True
    (None, (15,), None) False
    ((20,), (20,), (20,)) True
    """
    if end is None:
        return _align(outputs)
    ends = {row[end] for rows in outputs for row in rows}
    lines: list[Line] = []
    for at in sorted(ends, key=lambda e: (e is None, e)):
        lines += _align([[row for row in rows if row[end] == at] for rows in outputs])
    return lines


def _align(outputs: list[list[Row]]) -> list[Line]:
    """One output after the other is fitted into what there is."""
    lines: list[tuple[Row | None, ...]] = [(row,) for row in outputs[0]]
    for count, rows in enumerate(outputs[1:], start=1):
        known = [[_key(row) for row in line if row is not None] for line in lines]
        fitted: list[tuple[Row | None, ...]] = []
        for left, right in _with_rest(_matches(known, [_key(row) for row in rows]), len(lines), len(rows)):
            before = (None,) * count if left is None else lines[left]
            fitted.append((*before, None if right is None else rows[right]))
        lines = fitted
    return [Line(line) for line in lines]


def _matches(known: list[list[str]], new: list[str]) -> list[tuple[int, int]]:
    """As many equal rows as there can be in order, rather where several have them; for long outputs nearly as many."""
    if len(known) * len(new) > MOST_COMPARED:
        blocks = SequenceMatcher(None, [some[0] for some in known], new).get_matching_blocks()
        return [(a + i, b + i) for a, b, size in blocks for i in range(size)]
    best = [[0] * (len(new) + 1) for _ in range(len(known) + 1)]  # of what is left from each place on
    for i in reversed(range(len(known))):
        here, below, some = best[i], best[i + 1], known[i]
        for j in reversed(range(len(new))):
            equal = some.count(new[j])
            here[j] = max(below[j], here[j + 1], below[j + 1] + equal + EQUAL if equal else 0)
    found, i, j = [], 0, 0
    while i < len(known) and j < len(new):
        equal = known[i].count(new[j])
        if equal and best[i][j] == best[i + 1][j + 1] + equal + EQUAL:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def _with_rest(found: list[tuple[int, int]], left: int, right: int) -> Iterator[tuple[int | None, int | None]]:
    """The pairs, and between them what has no equal, paired by its number."""
    i = j = 0
    for a, b in (*found, (left, right)):
        yield from zip_longest(range(i, a), range(j, b))
        if a < left or b < right:
            yield a, b
        i, j = a + 1, b + 1


def _key(row: Row | None) -> Any:
    """What is compared: the text, in which NaN is NaN."""
    return None if row is None else json_text(row)


def as_json_lines(shown: Iterable[Shown], cannot: tuple[str, ...] = ()) -> None:
    """A line for each row of the comparison: query, whether it is the same for all that can run it, and the row of every profile.

    A profile whose engine cannot run it has the word "cannot" in the place of a row.
    """
    for query in shown:
        for line in query.lines:
            of = {
                profile: None if row is None else dict(zip(query.columns, row, strict=True))
                for profile, row in zip(query.profiles, line.rows, strict=True)
            } | dict.fromkeys(cannot, "cannot")
            sys.stdout.write(json_text({"query": query.query, "same": line.same, "profiles": of}) + "\n")
    sys.stdout.flush()


def as_tables(shown: Iterable[Shown], cannot: tuple[str, ...] = ()) -> None:
    """A table for each query, with columns for each profile; those whose engines cannot run it are named."""
    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    for number, query in enumerate(shown):
        if number:
            console.print()
        unable = f"; {', '.join(cannot)} cannot run it" if cannot else ""
        console.print(Text(f"query {query.query}: {_summary(query)}{unable}", style="bold cyan"))
        for line in table_lines(query):
            console.print(line)


def _summary(query: Shown) -> str:
    if query.total == 0:
        return "no rows under any of these profiles"
    if query.same == query.total:
        return f"the same under all of these profiles, {query.total} rows" if query.total > 1 else "the same under all, 1 row"
    return f"{query.same} of {query.total} rows are the same under all of these profiles"


def table_lines(query: Shown) -> Iterator[Text]:
    """Headings, and a line for each row; cells that differ from the first profile that has one are marked."""
    if not query.lines:
        return
    cells = [[_cells(row, len(query.columns)) for row in line.rows] for line in query.lines]
    widths = [
        [max(len(name), *(len(line[p][c]) for line in cells)) for c, name in enumerate(query.columns)]
        for p in range(len(query.profiles))
    ]
    for p, profile in enumerate(query.profiles):  # a profile may have a longer name than its columns are wide
        widths[p][-1] += max(0, len(profile) - sum(widths[p]) - len(BETWEEN) * (len(widths[p]) - 1))
    numbers = [all(isinstance(r[c], int | float) or r[c] is None for line in query.lines for r in line.rows if r is not None)
               for c in range(len(query.columns))]  # fmt: skip
    wholes = [sum(w) + len(BETWEEN) * (len(w) - 1) for w in widths]
    yield Text(("  " + GROUPS.join(p.ljust(w) for p, w in zip(query.profiles, wholes, strict=True))).rstrip(), style="bold")
    heads = [BETWEEN.join(_fit(n, w, r) for n, w, r in zip(query.columns, some, numbers, strict=True)) for some in widths]
    yield Text(("  " + GROUPS.join(heads)).rstrip(), style="bold")
    for line, texts in zip(query.lines, cells, strict=True):
        first = next(t for t, row in zip(texts, line.rows, strict=True) if row is not None)
        out = Text("  " if line.same else f"{MARK} ", style=DIFFERS if not line.same else "")
        for p, (some, row) in enumerate(zip(texts, line.rows, strict=True)):
            out.append(GROUPS if p else "", style="not bold default")
            for c, cell in enumerate(some):
                style = DIFFERS if row is not None and (cell != first[c] or None in line.rows) else "not bold default"
                out.append(BETWEEN if c else "").append(_fit(cell, widths[p][c], numbers[c]), style=style)
        out.rstrip()
        yield out


def _cells(row: Row | None, count: int) -> list[str]:
    return [""] * count if row is None else [cell_text(value) for value in row]


def _fit(text: str, width: int, right: bool) -> str:
    return text.rjust(width) if right else text.ljust(width)
