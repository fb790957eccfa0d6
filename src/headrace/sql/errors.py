"""Errors that point at the place in the text: line, column, and the line itself, underlined."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from headrace.errors import QueryError

MAX_SHOWN = 160  # characters of a source line that an error prints


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` up to, not including, `end`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """From the start of this to the end of the other."""
        return Span(self.start, max(self.end, other.end))


@dataclass(frozen=True)
class Text:
    """A script, its name, and the functions of the user that it may call beside Spark's."""

    sql: str
    name: str = "script"
    functions: frozenset[str] = frozenset()

    @cached_property
    def _starts(self) -> list[int]:
        return [0] + [i + 1 for i, c in enumerate(self.sql) if c == "\n"]

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        start = self._starts[number - 1]
        end = self.sql.find("\n", start)
        return self.sql[start : len(self.sql) if end < 0 else end].rstrip("\r")

    def slice(self, span: Span) -> str:
        return self.sql[span.start : span.end]

    def error(self, message: str, span: Span, *, hint: str | None = None) -> SqlError:
        return SqlError(message, self, span, hint=hint)

    @contextmanager
    def at(self, span: Span) -> Iterator[None]:
        """Give a place to the errors of plan constructors, which know none."""
        try:
            yield
        except SqlError:
            raise
        except QueryError as error:
            raise SqlError(error.message, self, span, hint=error.hint) from error
        except RecursionError as error:
            raise SqlError("this is nested too deeply", self, span) from error


class SqlError(QueryError):
    """A query error with its place: `line` and `column` (from 1) and the underlined source line."""

    def __init__(self, message: str, text: Text, span: Span, *, hint: str | None = None) -> None:
        self.line, self.column = text.place(span.start)
        super().__init__(message, where=f"{text.name}:{self.line}:{self.column}", hint=hint)
        self.span = span
        self.source_line = text.line(self.line)

    @property
    def underlined(self) -> str:
        """The source line with carets below the place; a span of several lines is underlined to the end of the first."""
        at = self.column - 1
        skip = max(0, at - MAX_SHOWN // 2)
        shown = self.source_line[skip : skip + MAX_SHOWN]
        width = max(1, min(self.span.end - self.span.start, len(shown) - (at - skip)))
        pad = "".join("\t" if c == "\t" else " " for c in shown[: at - skip])
        return f"  {shown}\n  {pad}{'^' * width}"

    def __str__(self) -> str:
        """Place and message, the underlined line, the hint."""
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{self.where}: {self.message}\n{self.underlined}{hint}"


class CannotRun(SqlError):
    """The engine that a profile is named after could not run this at all, so there is no answer as it would give it."""


def did_you_mean(found: str, words: Iterable[str]) -> str:
    """A sentence that names the nearest of some keywords, or nothing.

    >>> did_you_mean("DELYA", ["DELAY", "IDLE"])
    ". Did you mean 'DELAY'?"
    """
    near = get_close_matches(found.upper(), [w.upper() for w in words], n=1, cutoff=0.6)
    return f". Did you mean {near[0]!r}?" if near else ""
