"""What a shell does with a statement, and what it remembers: the declarations so far, and the names in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer
from rich.text import Text as Shown
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from headrace.cli.consoles import out
from headrace.cli.failures import INTERRUPTED
from headrace.cli.scripts import check_options
from headrace.plan.query import StreamSink
from headrace.sql import SqlError, parse_script
from headrace.sql.errors import Span, Text
from headrace.sql.parse.statements import statements
from headrace.sql.parse.tokens import DIALECT, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headrace.plan.query import Query, Script
    from headrace.plan.schema import Schema

    Run = Callable[[Script], bool]

HELP = """\
CREATE ..;     declare a stream or a schema, for as long as this session lasts
SELECT ..;     run a query over what is declared; Ctrl-C stops it
help           this text, and what is declared
exit           leave; Ctrl-D does too

A statement ends in ; and may take several lines. Tab completes keywords, streams and columns.
"""
COMMANDS = ("help", "exit", "quit")


class Session:
    """Statements that declare something are kept; one that asks is run together with them."""

    def __init__(self, run: Run, told: Callable[[str], None] | None = None) -> None:
        """`run` runs a script and shows its rows, and is True if it was stopped; `told`, at a prompt, hears what was declared."""
        self.run, self.told = run, told
        self.declared = ""  # text, each statement with its semicolon
        self.schemas: dict[str, Schema | None] = {}  # by name; None where the columns are not known
        self._kept: set[str] = set()  # names of queries that are part of what is declared

    def answer(self, text: Text, start: int = 0) -> bool:
        """Do what a text says from an offset on; False if it says to leave."""
        for place in spans(text, start):
            match command(text.slice(place)):
                case None:
                    self.execute(text, place)
                case "help":
                    out().print(Shown(HELP + "".join(f"\n{self._line(name)}" for name in self.schemas)))
                case _:
                    return False
        return True

    def execute(self, text: Text, place: Span) -> None:
        """Do what one statement says. An error has its place in the text that the statement was read from."""
        written = text.slice(place)
        try:
            script = parse_script(self.declared + written)
        except SqlError as error:
            raise self._moved(error, text, place) from error
        check_options(script)
        if script.answers:
            self.run(replace(script, queries=()))
            return
        asked = [query for query in script.queries if query.name not in self._kept]
        if all(map(self._fills, asked)):
            self._remember(written, script)
        elif self.run(replace(script, queries=tuple(asked))) and self.told is None:
            raise typer.Exit(INTERRUPTED)  # nobody is there to ask for more

    def _fills(self, query: Query) -> bool:
        """Whether a query only puts rows into a stream that was declared without a source."""
        return isinstance(query.sink, StreamSink) and query.sink.name.lower() in map(str.lower, self.schemas)

    def _remember(self, written: str, script: Script) -> None:
        self.declared += written + "\n;\n"
        self._kept = {query.name for query in script.queries}
        new = [s.name.text for s in statements(Text(written)) if hasattr(s, "name")]
        self.schemas = {name: self._columns(name) for name in (*self.schemas, *new)}
        if self.told is not None:
            for name in new:
                self.told(self._line(name))

    def _columns(self, name: str) -> Schema | None:
        quoted = name.replace("`", "``")
        try:
            return parse_script(f"{self.declared}SELECT * FROM `{quoted}`").queries[-1].node.schema
        except SqlError:
            return None

    def _line(self, name: str) -> str:
        schema = self.schemas[name]
        return name if schema is None else f"{name} {schema}"

    def _moved(self, error: SqlError, text: Text, place: Span) -> SqlError:
        """The same error, where the user wrote what it is about."""
        shift = place.start - len(self.declared)
        if error.span.start < len(self.declared):
            return error
        return SqlError(error.message, text, Span(error.span.start + shift, error.span.end + shift), hint=error.hint)


def command(text: str) -> str | None:
    """The command that a text is, if it is one.

    >>> command(" Help; "), command("SELECT 1;")
    ('help', None)
    """
    word = text.strip().rstrip(";").rstrip().lower()
    return word if word in COMMANDS else None


def read_statements(lines: Iterable[str], name: str = "standard input") -> Iterator[tuple[Text, int]]:
    """All that was read, and where in it the next statements begin; each time the last one has its semicolon."""
    read, start = "", 0
    for line in lines:
        read += line
        if command(read[start:]) or ended(read[start:]):
            yield Text(read, name), start
            start = len(read)
    if read[start:].strip():
        yield Text(read, name), start


def spans(text: Text, start: int = 0) -> Iterator[Span]:
    """The statements of a text from an offset on, without their semicolons. A text that cannot be split is one statement."""
    try:
        tokens = DIALECT.tokenize(text.sql[start:])
    except SqlglotError:
        yield Span(start, len(text.sql))
        return
    first = None
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            if first is not None:
                yield Span(first, start + token.start)
            first = None
        elif first is None:
            first = start + token.start
    if first is not None:
        yield Span(first, start + span(tokens[-1]).end)


def ended(text: str) -> bool:
    """Whether the last statement of a text has its semicolon; one in a string or a comment does not count.

    >>> ended("SELECT ';"), ended("SELECT ';' -- ;"), ended("SELECT ';'; -- done")
    (False, False, True)
    """
    if ";" not in text:
        return False
    try:
        tokens = DIALECT.tokenize(text)
    except SqlglotError:
        return False
    return bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON
