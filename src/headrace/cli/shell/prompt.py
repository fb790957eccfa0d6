"""The prompt of the shell: several lines, history, completion."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output, create_output
from sqlglot.errors import SqlglotError

from headrace.cli.shell.session import Session, command, ended
from headrace.plan.aggregates import FUNCTIONS
from headrace.sql.bind import functions
from headrace.sql.errors import Text
from headrace.sql.parse import create, patterns, recognize, select, sinks, sources, windows
from headrace.sql.parse.expressions import TYPES
from headrace.sql.parse.statements import STATEMENTS
from headrace.sql.parse.tokens import DIALECT

PROMPT = "headrace> "
OTHERS = """CREATE STREAM, CREATE SCHEMA, INSERT INTO, EXTENDS, FROM, AS, LAG, EVERY, SLIDE, PARTITIONED BY,
WITHIN, UNBOUNDED, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL, CASE, WHEN, THEN, ELSE, END, OVER, PARTITION BY, INTERVAL, CONSOLE,
TABLE, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS, SYSTEM, TO, FORMAT, DELIMITER, DISTINCT, FILTER,
PRECEDING, CURRENT ROW, USING OPTIMISTIC, SHOW STREAMS, SHOW SCHEMAS, SHOW QUERIES, LATE, REJECTED, PROFILE, MODEL, REPORT,
ORIGIN, ORDER, CREATE TABLE, INNER JOIN, CROSS JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN, OUTER JOIN, ISTREAM, DSTREAM, RSTREAM,
EVENT SEQ, MEMORY, TOGETHER, WAIT, USING KSLACK, MATCH_RECOGNIZE, AFTER MATCH SKIP TO NEXT ROW, help, exit"""
KEYWORDS = sorted({*STATEMENTS, *select.CLAUSES, *create.CLAUSES, *windows.KINDS, *sinks.LEVELS, *FUNCTIONS, *TYPES,
                   *sources.SOURCES, *patterns.CLAUSES, *patterns.SELECTIONS, *recognize.CLAUSES,
                   *(" ".join(word.split()) for word in OTHERS.split(","))})  # fmt: skip
SPARK = sorted(name.upper() for name in functions.SCALAR if name.upper() not in KEYWORDS)
_WORD = re.compile(r"\w*$")
_OWNER = re.compile(r"(\w+)\.$")
_STREAM_NEXT = re.compile(r"(\b(FROM|MERGE|ON|late\s*\(|rejected\s*\(|SEQ\s*\()|!\s*\(?)\s*$", re.IGNORECASE)


def prompt(session: Session, input: Input | None = None, output: Output | None = None) -> Iterator[Text]:
    """What the user types, each time the last statement has its semicolon; ends with Ctrl-D. Ctrl-C forgets a line."""
    typed: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=lambda width, number, wrapped: "... ".rjust(width),
        key_bindings=_bindings(),
        completer=Names(session),
        history=history(),
        input=input,
        output=output or create_output(stdout=sys.stderr),
    )
    while True:
        try:
            text = typed.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        yield Text(text, "shell")


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~completion_is_selected)
    def enter(event: KeyPressEvent) -> None:
        text = event.current_buffer.text
        if not text.strip() or command(text) or ended(text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.newline(copy_margin=True)

    @bindings.add("enter", filter=completion_is_selected)
    def choose(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return bindings


def history() -> History:
    """Kept under the state directory of the user; for this session only where that cannot be written."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "headrace"
    try:
        state.mkdir(parents=True, exist_ok=True)
        (state / "history").touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(state / "history"))


class Names(Completer):
    """Streams after FROM, columns of a stream after its dot, elsewhere columns, streams and keywords."""

    def __init__(self, session: Session) -> None:
        """Names are looked up in the session each time."""
        self.session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found.group() if found else ""
        for name, kind in self._candidates(before[: len(before) - len(word)], word):
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, start_position=-len(word), display_meta=kind)

    def _candidates(self, before: str, word: str) -> Iterator[tuple[str, str]]:
        if _is_open(before):
            return
        owner = _OWNER.search(before)
        if owner is not None:
            yield from self._columns(owner.group(1))
        elif _STREAM_NEXT.search(before):
            yield from ((name, "") for name in self.session.schemas)
        elif word:
            yield from self._columns(None)
            yield from ((name, "declared") for name in self.session.schemas)
            yield from ((name, "") for name in KEYWORDS)
            yield from ((name, "function") for name in SPARK if len(word) > 1)

    def _columns(self, owner: str | None) -> Iterator[tuple[str, str]]:
        """The columns of a stream; of all streams where the name is not that of one, but perhaps an alias."""
        known = {name.lower(): schema for name, schema in self.session.schemas.items() if schema is not None}
        chosen: Iterable[Any] = [known[owner.lower()]] if owner is not None and owner.lower() in known else known.values()
        yield from dict.fromkeys((field.name, field.type) for schema in chosen for field in schema.fields)


def _is_open(text: str) -> bool:
    """Whether a text ends inside a string, a quoted name or a comment."""
    try:
        DIALECT.tokenize(text)
    except SqlglotError:
        return True
    return "--" in text.rpartition("\n")[2]
