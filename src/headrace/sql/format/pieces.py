"""Tokens -> pieces of text: in capitals or not, with a space before them or none, and with their comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from headrace.sql.errors import Text
from headrace.sql.format.comments import comments
from headrace.sql.format.marks import KNOWN, Marks, inside
from headrace.sql.parse.expressions import OPERATORS, ends_operand
from headrace.sql.parse.tokens import CLOSING, OPENING, RESERVED, STRINGS, span, words

QUANTIFIERS = ("+", "*", "?", "{", "}")  # of an event of a pattern
NONE_BEFORE = frozenset({")", "]", ",", ";", ".", "::"})
NONE_AFTER = frozenset({"(", "[", ".", "::"})
SPACED = frozenset({"=", "<", ">", "<=", ">=", "<>", "!=", "==", "<=>", "+", "-", "*", "/", "%", "||", "&", "|", "^", "->", "=>"})
BRACKETS = frozenset({"(", ")", "[", "]", "{", "}", ";"})
SIGNS = frozenset({"+", "-", "~"})
CALLED = frozenset({"FILE", "HOST", "GENERATE", "DATAFRAME", "LATE", "REJECTED", "VARCHAR", "NUMERIC", "DEC"})
NOT_CALLED = (
    (OPERATORS - {"EXISTS", "ANY", "ALL", "SOME", "MOD"}) | RESERVED | {"OVER", "ON", "USING", "MATCH_RECOGNIZE", "PATTERN"}
)
NESTING = (TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT)


@dataclass(slots=True)
class Piece:
    """What is never torn apart. A comment on a line of its own is a piece too."""

    text: str
    space: bool = True  # before it, unless it begins a line
    after: str = ""  # a comment that ends the line
    sign: str = ""  # the bracket, comma or operator that it is
    lead: bool = False  # begins a clause
    comment: bool = False

    @property
    def hard(self) -> bool:
        """Whether it breaks lines by itself."""
        return self.comment or bool(self.after) or "\n" in self.text


class Pieces:
    """The pieces of one statement, made one after the other."""

    def __init__(self, text: Text, tokens: Sequence[Token], marks: Marks, *, bold: bool) -> None:
        """`bold` writes keywords in capitals inside expressions too."""
        self.text, self.marks, self.bold = text, marks, bold
        self.tokens = [t for i, t in enumerate(tokens) if i == 0 or t.start != tokens[i - 1].start]  # `10s` comes as three
        self.found: list[Piece] = []
        self.prefix = ""  # comments right before the token that comes next
        self.types = 0  # how many `<` of types are open
        self.angles: set[int] = set()  # where `<` and `>` are brackets of types

    def make(self) -> list[Piece] | None:
        """All pieces; None where something between the tokens is not understood."""
        at = 0
        while at < len(self.tokens):
            if not self._gap(at):
                return None
            at = self._add(at)
        return self.found

    def _end_of_text(self, at: int) -> int:
        """The end of the tokens from here that mean themselves, and stay as they are written; `at` where there are none."""
        kept = inside(self.marks.kept, self.tokens[at])
        if kept is not None:
            return next((i for i in range(at, len(self.tokens)) if self.tokens[i].start >= kept.end), len(self.tokens))
        if at == 0 or sign(self.tokens[at - 1]) != "=>":
            return at
        depth, to = 0, at  # the value of an option
        while to < len(self.tokens):
            here = self.tokens[to].token_type
            depth += (here in OPENING) - (here in CLOSING)
            if depth < 0 or (depth == 0 and here in (TokenType.COMMA, TokenType.SEMICOLON)):
                break
            to += 1
        return to

    def _end_of_words(self, at: int) -> int:
        """The end of the words that begin a clause here, unless a comment stands among them; else of this token."""
        to = at + self.marks.leads.get(self.tokens[at].start, 1)
        return to if not any(self._between(i).strip() for i in range(at + 1, to)) else at + 1

    def _between(self, at: int) -> str:
        """What stands before a token."""
        return self.text.sql[span(self.tokens[at - 1]).end : self.tokens[at].start] if at > 0 else ""

    def _gap(self, at: int) -> bool:
        """Take the comments before a token: on the line of what comes before, on lines of their own, or right before it."""
        self.prefix = ""
        found = comments(self._between(at))
        if found is None:
            return False
        for comment in found:
            if not comment.last:
                self.prefix += comment.text + " "
            elif comment.fresh:
                self.found.append(Piece(comment.text, comment=True))
            else:
                self.found[-1].after = comment.text
        return True

    def _add(self, at: int) -> int:
        """Make the piece that begins at a token; returns where the next one begins."""
        token, space, mark = self.tokens[at], self._spaced(at), ""
        to = self._end_of_text(at)
        if to > at:
            text = "".join((self._as_written(i) if i > at else "") + self._slice(i) for i in range(at, to))
        else:
            to = self._end_of_words(at)
            text = " ".join(self._word(i) for i in range(at, to))
            mark = sign(token) if sign(token) not in ("<", ">") or token.start in self.angles else ""
        if self.prefix:
            space = sign(self.tokens[at - 1]) not in NONE_AFTER
            self.prefix = self.prefix.rstrip() if sign(token) in NONE_BEFORE else self.prefix
        piece = Piece(self.prefix + text, space, sign=mark, lead=token.start in self.marks.leads)
        last = self.found[-1] if self.found else None
        if piece.text == "," and last is not None and last.after:
            piece.after, last.after = last.after, ""  # a comma does not stand behind a comment
        self.found.append(piece)
        return to

    def _slice(self, at: int) -> str:
        """As written; several words of one token (`PARTITION BY`) with one space between them."""
        found = self.text.slice(span(self.tokens[at]))
        return " ".join(found.split()) if words(self.tokens[at]) else found

    def _word(self, at: int) -> str:
        after = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        if self.marks.is_keyword(self.tokens[at], after, bold=self.bold):
            return self._slice(at).upper()
        return self._slice(at)

    def _as_written(self, at: int) -> str:
        """The space between two tokens that stay as they are: nothing, or one blank; with comments, all of it."""
        gap = self._between(at)
        return gap if gap.strip() else " " if gap else ""

    # --- spaces

    def _spaced(self, at: int) -> bool:
        if at == 0:
            return False
        token, before = self.tokens[at], self.tokens[at - 1]
        written = bool(self._between(at))
        nested = self._in_type(token, before)
        if nested is not None:
            return nested
        if sign(token) in NONE_BEFORE or sign(before) in NONE_AFTER or self._in_pattern(token, before):
            return False
        if sign(before) == ",":
            return True
        if self._is_sign(at - 1):
            return sign(token) == sign(before)
        if sign(token) == "(":
            return self._before_bracket(at, written)
        if sign(token) == "[":
            return token.start in self.marks.keywords
        if token.token_type in STRINGS and before.token_type in STRINGS:
            return written
        if self._is_sign(at):
            return True
        odd = [sign(t) for t in (token, before) if sign(t) and sign(t) not in BRACKETS]
        return written if len(odd) == 2 or not SPACED.issuperset(odd) else True

    def _in_pattern(self, token: Token, before: Token) -> bool:
        """Before or behind a sign that the parser takes for one of a pattern: `!(a x)`, `b+ y`."""
        known = self.marks.keywords
        return (sign(token) in QUANTIFIERS and token.start in known) or (sign(before) in ("!", "{") and before.start in known)

    def _in_type(self, token: Token, before: Token) -> bool | None:
        """Around the `<`, `>` and `:` of ARRAY<..>, MAP<..> and STRUCT<..>; None elsewhere."""
        if sign(token) == "<" and before.token_type in NESTING:
            self.types += 1
            self.angles.add(token.start)
            return False
        if not self.types:
            return None
        if sign(token) == ">":
            self.types -= 1
            self.angles.add(token.start)
            return False
        if sign(token) == ":" or sign(before) == "<":
            return False
        return True if sign(before) == ":" else None

    def _before_bracket(self, at: int, written: bool) -> bool:
        before = self.tokens[at - 1]
        word = " ".join(words(before))
        if sign(before) in SPACED or word in NOT_CALLED or (words(before) and words(before)[-1] == "BY"):
            return True
        if word in CALLED:
            return False
        if before.start in self.marks.names:
            return written or (at > 1 and self.tokens[at - 2].start in self.marks.keywords)  # CREATE STREAM s (..)
        if word.lower() in KNOWN:
            return at > 1 and sign(self.tokens[at - 2]) == ")"  # MAX(a) FILTER (WHERE ..)
        return written

    def _is_sign(self, at: int) -> bool:
        """Whether a + or - belongs to what follows it."""
        if sign(self.tokens[at]) not in SIGNS:
            return False
        before = self.tokens[at - 1] if at > 0 else None
        if before is None or sign(before) == "*" or not ends_operand(before):
            return True
        here = words(before)
        return bool(here) and here[-1][0].isalpha() and (before.start in self.marks.keywords or here[-1] == "BY")


def sign(token: Token) -> str:
    """The text of a token that is neither a word, a number nor in quotes; else nothing."""
    first = token.text[:1]
    quoted = token.token_type in STRINGS or token.token_type in (TokenType.IDENTIFIER, TokenType.NUMBER)
    return "" if quoted or first.isalnum() or first == "_" else token.text
