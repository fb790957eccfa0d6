"""Showing result rows: a growing table for a person, JSON lines for a program."""

from __future__ import annotations

import sys

import pyarrow as pa
from rich.table import Table
from rich.text import Text

from headrace.cli.consoles import out
from headrace.plan.query import ConsoleSink, Script, StreamSink
from headrace.runs.events import RowsEvent
from headrace.runs.text import cell_text, is_number, json_text

_OP_STYLES = {"+": "green", "-": "red"}


class JsonLines:
    """One object per row; with `_query` in front where several queries print."""

    def __init__(self, several: bool) -> None:
        """Whether rows must say which query they belong to is settled by the script, not by what happens to come."""
        self.several = several

    def show(self, event: RowsEvent) -> None:
        """Write and flush: the reader at the other end may be waiting."""
        head = f'"_query": {json_text(event.query_name)}, ' if self.several else ""
        names = [json_text(name) for name in event.columns]
        columns = [column.to_pylist() for column in event.rows.columns]
        for row in zip(*columns, strict=True):
            body = ", ".join(f"{name}: {json_text(value)}" for name, value in zip(names, row, strict=True))
            sys.stdout.write("{" + head + body + "}\n")
        sys.stdout.flush()


class Tables:
    """A table that goes on: the header comes again only when another query prints, and columns keep their width."""

    def __init__(self) -> None:
        self.console = out()
        self.narrowest = self.console.width
        self.last: str | None = None
        self.widths: dict[str, list[int]] = {}

    def show(self, event: RowsEvent) -> None:
        columns = [[cell_text(value) for value in column.to_pylist()] for column in event.rows.columns]
        before = self.widths.get(event.query_name, [0] * len(event.columns))
        widths = [
            max(old, len(name), *map(len, cells), 0) for name, cells, old in zip(event.columns, columns, before, strict=True)
        ]
        self.widths[event.query_name] = widths
        again = self.last == event.query_name
        self.last = event.query_name
        table = Table(box=None, show_header=not again, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name, width, column in zip(event.columns, widths, event.rows.columns, strict=True):
            table.add_column(Text(name), min_width=width, no_wrap=True, justify="right" if is_number(column.type) else "left")
        for row in zip(*columns, strict=True):
            table.add_row(*map(Text, row), style=_OP_STYLES.get(row[0], "") if event.columns[:1] == ("_op",) else "")
        if not again:
            self.console.print(Text(f"\n{event.query_name}", style="bold cyan"))
        self.console.width = max(self.narrowest, sum(widths) + 2 * len(widths))  # a long line is better than a cut one
        self.console.print(table)


def row_printer(script: Script, as_json: bool) -> JsonLines | Tables:
    """Tables on a terminal, JSON lines when piped or asked for."""
    shown = [q for q in script.queries if isinstance(q.sink, ConsoleSink | StreamSink)]
    return JsonLines(several=len(shown) > 1) if as_json or not sys.stdout.isatty() else Tables()


def show_answers(script: Script, as_json: bool) -> None:
    printer = JsonLines(several=len(script.answers) > 1) if as_json or not sys.stdout.isatty() else Tables()
    for answer in script.answers:
        columns = [pa.array([row[i] for row in answer.rows], pa.string()) for i in range(len(answer.columns))]
        batch = pa.RecordBatch.from_arrays(columns, list(answer.columns))
        printer.show(RowsEvent(answer.title, answer.columns, batch))
