"""What the parser makes of every token of a statement: keyword, name, beginning of a clause, or text that is itself a name.

The formatter asks the parser, so that a clause or a statement that the parser learns is formatted without new code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headrace.plan.aggregates import NAMES
from headrace.sql.bind import functions
from headrace.sql.errors import Span, Text
from headrace.sql.parse import create, joins, patterns, recognize, select
from headrace.sql.parse.durations import UNIT_WORDS
from headrace.sql.parse.statements import STATEMENTS
from headrace.sql.parse.syntax import Item, Name, Scalar
from headrace.sql.parse.tokens import Cursor, is_name, span, words

# What begins a line of its own where a statement does not fit into one.
LEADS = frozenset((*STATEMENTS, "FROM", *select.CLAUSES, *patterns.CLAUSES, *create.CLAUSES, *joins.PHRASES, "PARTITION BY",
                   *recognize.CLAUSES))  # fmt: skip
KNOWN = functions.SCALAR | {name.lower() for name in NAMES}


@dataclass
class Marks:
    """A statement, and what its tokens are; a token goes by the offset where it starts."""

    statement: Any
    keywords: set[int] = field(default_factory=set)  # taken by the parser as words of the language
    names: set[int] = field(default_factory=set)
    leads: dict[int, int] = field(default_factory=dict)  # beginning of a clause -> how many tokens its words are
    scalars: list[Span] = field(default_factory=list)  # expressions
    kept: list[Span] = field(default_factory=list)  # expressions whose text is the name of a column

    def is_keyword(self, token: Token, after: Token | None, *, bold: bool) -> bool:
        """Whether a token is written in capitals; `bold` is for those inside expressions too, which sqlglot reads."""
        first = token.text[:1]
        if not words(token) or not (first.isalpha() or first == "_") or token.start in self.names:
            return False
        if after is not None and after.token_type is TokenType.COLON:
            return False  # a field of a STRUCT
        if token.start in self.keywords or not bold:
            return token.start in self.keywords
        if any(s.start <= token.start < s.end for s in self.scalars):
            called = after is not None and after.token_type is TokenType.L_PAREN
            return not called or token.token_type is not TokenType.VAR or token.text.lower() in KNOWN
        return token.token_type is not TokenType.VAR or words(token)[0] in UNIT_WORDS


class Recorder(Cursor):
    """A cursor that notes what the parser takes for a keyword and what for a name."""

    def __init__(self, text: Text, tokens: Sequence[Token], end: int) -> None:
        super().__init__(text, tokens, end)
        self.marks = Marks(None)
        self.last = ""  # the words that began the last clause

    def accept(self, *phrases: str) -> str | None:
        start = self.index
        found = super().accept(*phrases)
        if found is not None:
            taken = {token.start for token in self.tokens[start : self.index]}
            self.marks.keywords |= taken
            self.marks.names -= taken
            if found in LEADS and not self._goes_on(found, start):
                self.marks.leads[self.tokens[start].start] = self.index - start
                self.last = found
        return found

    def _goes_on(self, found: str, start: int) -> bool:
        """Whether a word that may begin a clause belongs to the one before it: INSERT INTO, JOIN .. ON, UNIQUE BY .. WITHIN."""
        if found == "WITHIN":
            return self.last in ("UNIQUE BY", "PATTERN")
        if found == "PARTITION BY":
            return words(self.tokens[start - 1]) != ("(",)  # it begins what stands in MATCH_RECOGNIZE (..)
        return start > 0 and (found == "ON" or (found == "INTO" and words(self.tokens[start - 1]) == ("INSERT",)))

    def name(self, what: str) -> Name:
        found = super().name(what)
        start = self.tokens[self.index - 1].start
        self.marks.names.add(start)
        self.marks.keywords.discard(start)
        self.marks.leads.pop(start, None)
        return found


def read_marks(text: Text, tokens: Sequence[Token], end: int) -> Marks:
    """Read a statement that is known to be one."""
    cursor = Recorder(text, tokens, end)
    marks = cursor.marks
    marks.statement = next(read for word, read in STATEMENTS.items() if cursor.at(word))(cursor)
    unplaced: set[str] = set()
    for value in walk(marks.statement):
        match value:
            case Item(alias=None) if not isinstance(value.value.tree, exp.Column | exp.Dot):
                marks.kept.append(value.value.span)
            case Name():
                marks.names.add(value.span.start)  # an alias without AS
            case Scalar():
                marks.scalars.append(value.span)
                for name in value.tree.find_all(exp.Identifier):
                    marks.names.add(name.meta.get("start", -1))
                    unplaced |= {name.name} if "start" not in name.meta else set()
    marks.names |= {t.start for t in tokens if t.text in unplaced and is_name(t)}
    marks.keywords -= marks.names
    return marks


def walk(value: Any) -> Iterator[Any]:
    """A value of the syntax and all that it holds."""
    yield value
    if isinstance(value, tuple | list):
        for part in value:
            yield from walk(part)
    elif is_dataclass(value):
        for each in fields(value):
            yield from walk(getattr(value, each.name))


def same(one: Any, other: Any) -> bool:
    """Whether two statements say the same, wherever in their texts they say it."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Span):
        return True
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return bool(one == other)


def inside(spans: Sequence[Span], token: Token) -> Span | None:
    """The span that a token stands in."""
    return next((s for s in spans if s.start <= token.start and span(token).end <= s.end), None)
