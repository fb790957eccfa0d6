"""Tokens of sqlglot's Spark dialect, and a cursor over them that says what it expected and what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from headrace.plan.aggregates import NAMES
from headrace.plan.sinks import alternatives
from headrace.sql.errors import Span, SqlError, Text, did_you_mean
from headrace.sql.parse.syntax import Name

T = TypeVar("T")
MAX_DEPTH = 60  # of brackets; sqlglot descends recursively
OPENING = {TokenType.L_PAREN: ")", TokenType.L_BRACKET: "]", TokenType.L_BRACE: "}"}
CLOSING = {TokenType.R_PAREN: "(", TokenType.R_BRACKET: "[", TokenType.R_BRACE: "{"}
STRINGS = {TokenType.STRING, TokenType.RAW_STRING, TokenType.NATIONAL_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING,
           TokenType.BYTE_STRING, TokenType.UNICODE_STRING, TokenType.HEREDOC_STRING}  # fmt: skip
RESERVED = {"SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "INTO", "EMIT", "CREATE", "AS"}


def _others(known: dict[str, T]) -> dict[str, T]:
    return {name: read for name, read in known.items() if name not in NAMES}


class StreamDialect(Spark):
    """Spark's dialect, with aggregates left as they are written: sqlglot would drop some arguments, and forget the place.

    It would also swallow the rest of a statement that begins with SHOW or FETCH as one string.
    """

    class Parser(SparkParser):
        """Spark's grammar."""

        FUNCTIONS: ClassVar[dict[str, Any]] = _others(SparkParser.FUNCTIONS)
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _others(SparkParser.FUNCTION_PARSERS)

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens."""

        COMMANDS: ClassVar[set[TokenType]] = set()


DIALECT = StreamDialect()


def tokenize(text: Text) -> list[Token]:
    """All tokens of a script, its brackets checked."""
    try:
        tokens = DIALECT.tokenize(text.sql)
    except SqlglotError as error:
        raise _unclosed(text) from error
    check_brackets(text, tokens)
    return tokens


def check_brackets(text: Text, tokens: Sequence[Token]) -> None:
    """Every bracket closes, in its own statement, and they do not nest without end."""
    stack: list[Token] = []
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON and stack:
            break
        if token.token_type in OPENING:
            stack.append(token)
            if len(stack) > MAX_DEPTH:
                raise text.error(f"brackets are nested more than {MAX_DEPTH} deep", span(token))
        elif token.token_type in CLOSING:
            if not stack:
                raise text.error(f"{token.text!r} closes nothing", span(token), hint=f"there is no {CLOSING[token.token_type]!r}")
            if OPENING[stack[-1].token_type] != token.text:
                line, column = text.place(stack[-1].start)
                expected = f"expected {OPENING[stack[-1].token_type]!r} for the {stack[-1].text!r}"
                raise text.error(f"{expected} of line {line}, column {column}, found {token.text!r}", span(token))
            stack.pop()
    if stack:
        hint = f"a {OPENING[stack[-1].token_type]!r} is missing"
        raise text.error(f"{stack[-1].text!r} is not closed", span(stack[-1]), hint=hint)


def _unclosed(text: Text) -> SqlError:
    """Find the string, name or comment that has no end; that is all sqlglot's tokenizer refuses."""
    sql, i = text.sql, 0
    while i < len(sql):
        end = i + 1
        if sql.startswith("--", i):
            end = sql.find("\n", i) + 1 or len(sql)
        elif sql.startswith("/*", i):
            if (end := sql.find("*/", i + 2) + 2) == 1:
                return text.error("this comment is not closed", Span(i, i + 2), hint="'*/' is missing")
        elif sql[i] in "'\"`":
            end = _end_of_quoted(sql, i)
            if end < 0:
                what = "quoted name" if sql[i] == "`" else "string"
                return text.error(f"this {what} is not closed", Span(i, i + 1), hint=f"a second {sql[i]} is missing")
        i = end
    return text.error("this text cannot be split into words", Span(0, max(1, len(sql))))


def _end_of_quoted(sql: str, start: int) -> int:
    """Past the closing quote; -1 where there is none."""
    i = start + 1
    while i < len(sql):
        if sql[i] == "\\" and sql[start] != "`":
            i += 1
        elif sql[i] == sql[start]:
            return i + 1
        i += 1
    return -1


def parts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The tokens of every statement with the semicolon that ends it; one alone ends none."""
    ends = [i for i, token in enumerate(tokens, start=1) if token.token_type is TokenType.SEMICOLON]
    return [tokens[low:high] for low, high in pairwise((0, *ends, len(tokens))) if low < high]


def span(token: Token) -> Span:
    return Span(token.start, token.end + 1)


def words(token: Token) -> tuple[str, ...]:
    """The keyword or keywords of a token in upper case (`GROUP BY` is one token); none for strings and quoted names."""
    if token.token_type in STRINGS or token.token_type is TokenType.IDENTIFIER:
        return ()
    return _split(token.text)


@lru_cache(maxsize=8192)
def _split(text: str) -> tuple[str, ...]:
    """The words of a phrase in upper case; the same few are asked for at every token."""
    return tuple(text.upper().split())


def is_name(token: Token) -> bool:
    """Whether a token can be a name: quoted, or a word that is not reserved."""
    if token.token_type is TokenType.IDENTIFIER:
        return True
    first = token.text[:1]
    return bool(words(token)) and (first.isalpha() or first in "_") and " ".join(words(token)) not in RESERVED


class Cursor:
    """A place in the tokens of one statement."""

    def __init__(self, text: Text, tokens: Sequence[Token], end: int) -> None:
        """Begin at the first token; `end` is the offset in the text where the tokens end."""
        self.text = text
        self.tokens = tokens
        self.index = 0
        self.limit = end

    @property
    def done(self) -> bool:
        return self.index >= len(self.tokens)

    def peek(self, ahead: int = 0) -> Token | None:
        """A token that has not been taken yet."""
        at = self.index + ahead
        return self.tokens[at] if at < len(self.tokens) else None

    def several(self, read: Callable[[Cursor], T]) -> tuple[T, ...]:
        """One or more of what `read` reads, with commas between."""
        found = [read(self)]
        while self.accept(","):
            found.append(read(self))
        return tuple(found)

    def here(self) -> Span:
        """Where the next token stands, or the end."""
        token = self.peek()
        return span(token) if token else Span(self.limit, self.limit)

    def since(self, start: int) -> Span:
        """From the token of index `start` to the last one taken."""
        return span(self.tokens[start]).to(span(self.tokens[max(start, self.index - 1)]))

    def take(self) -> Token:
        """The next token; the caller has seen that there is one."""
        token = self.tokens[self.index]
        self.index += 1
        return token

    def _length(self, phrase: str) -> int:
        """How many tokens make up a phrase here; 0 if it is not here."""
        wanted, got = _split(phrase), 0
        for count, token in enumerate(self.tokens[self.index : self.index + len(wanted)], start=1):
            here = words(token)
            if not here or wanted[got : got + len(here)] != here:
                return 0
            got += len(here)
            if got == len(wanted):
                return count
        return 0

    def at(self, *phrases: str) -> bool:
        """Whether one of some phrases of keywords or a sign comes next."""
        return any(self._length(p) for p in phrases)

    def at_next(self, *phrases: str) -> bool:
        """Whether one of them comes after the next token."""
        self.index += 1
        found = self.at(*phrases)
        self.index -= 1
        return found

    def accept(self, *phrases: str) -> str | None:
        for phrase in phrases:
            if length := self._length(phrase):
                self.index += length
                return phrase
        return None

    def expect(self, *phrases: str, what: str | None = None, near: Sequence[str] = ()) -> str:
        """Take one of the phrases, or say that it was expected."""
        found = self.accept(*phrases)
        if found is None:
            raise self.expected(what or alternatives(phrases), near=(*phrases, *near))
        return found

    def expected(self, what: str, *, near: Sequence[str] = (), hint: str | None = None) -> SqlError:
        """The error for something that is not here; `near` are words it could have been a misspelling of."""
        token = self.peek()
        found = "the end" if token is None else self.text.slice(span(token)).splitlines()[0]
        suggestion = did_you_mean(found, near) if token is not None else ""
        shown = found if token is None else repr(found)
        return self.text.error(f"expected {what}, found {shown}{suggestion}", self.here(), hint=hint)

    def error(self, message: str, *, hint: str | None = None) -> SqlError:
        return self.text.error(message, self.here(), hint=hint)

    def name(self, what: str) -> Name:
        token = self.peek()
        if token is None or not is_name(token):
            raise self.expected(what)
        self.index += 1
        return Name(token.text, span(token))

    def string(self, what: str) -> Name:
        """Take a string literal; neighbouring ones are parts of one ('it''s' comes as two tokens)."""
        token = self.peek()
        if token is None or token.token_type not in (TokenType.STRING, TokenType.RAW_STRING):
            raise self.expected(what, hint="strings are written in quotes")
        start, parts = self.index, []
        while (token := self.peek()) and token.token_type in (TokenType.STRING, TokenType.RAW_STRING):
            parts.append(self.take().text)
        return Name("".join(parts), self.since(start))
