"""Scripts in one form: keywords in capitals, a paragraph for each statement, a line for each clause where one line is too short.

Text -> text, by tokens: only their case and the space between them change. Every statement that comes out is read again, and left
as it was written if it did not say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from headrace.sql.errors import SqlError, Text
from headrace.sql.format.comments import Comment, comments
from headrace.sql.format.layout import lay_out
from headrace.sql.format.marks import read_marks, same
from headrace.sql.format.pieces import Piece, Pieces
from headrace.sql.parse.statements import statements
from headrace.sql.parse.syntax import Statement
from headrace.sql.parse.tokens import STRINGS, parts, span, tokenize


@dataclass
class Paragraph:
    """A statement with the comments above and behind it; at the end of a script, comments without a statement."""

    above: list[Comment]
    tokens: Sequence[Token] = ()  # with the semicolon, if it has one
    parted: bool = False  # an empty line between the comments and the statement
    behind: str = ""


def format_script(sql: str, name: str = "script") -> str:
    """The script in its one form. A script that cannot be read is refused with a `SqlError`.

    >>> print(format_script("select card, count( * ) as n from payments [range 5 minutes] group by card -- each"), end="")
    SELECT card, COUNT(*) AS n FROM payments [RANGE 5 MINUTES] GROUP BY card;  -- each
    """
    tokens = tokenize(Text(sql, name))
    text = Text(sql, name, _called(tokens))
    if any(t.token_type is not TokenType.SEMICOLON for t in tokens):
        statements(text)  # whatever is wrong is said here
    paragraphs = _paragraphs(text, tokens)
    if paragraphs is None:
        return sql
    shown = ["\n".join(_lines(text, p)) for p in paragraphs]
    return "\n\n".join(shown) + "\n" if shown else ""


def _called(tokens: Sequence[Token]) -> frozenset[str]:
    """Every function, so that those of the user need not be known."""
    return frozenset(a.text.lower() for a, b in pairwise(tokens) if b.token_type is TokenType.L_PAREN)


def _paragraphs(text: Text, tokens: Sequence[Token]) -> list[Paragraph] | None:
    """Cut a script at semicolons; None where something between two statements is not understood.

    A comment on the line where a statement ends belongs to it, all others belong to the next.
    """
    sql, end, chunks = text.sql, 0, []
    for part in parts(tokens):
        if part[0].token_type is TokenType.SEMICOLON:  # it ends no statement
            sql = sql[: part[0].start] + " " + sql[part[0].start + 1 :]
        else:
            chunks.append(part)
    out: list[Paragraph] = []
    for chunk in [*chunks, []]:
        gap = sql[end : chunk[0].start] if chunk else sql[end:]
        found = comments(gap, fresh=not out, last=not chunk)
        if found is None:
            return None
        if found and not found[0].fresh and found[0].last:
            out[-1].behind = found.pop(0).text
        if chunk:
            end = span(chunk[-1]).end
        if chunk or found:
            out.append(Paragraph(found, chunk, gap[len(gap.rstrip()) :].count("\n") > 1))
    return out


def _lines(text: Text, paragraph: Paragraph) -> Iterator[str]:
    for number, comment in enumerate(paragraph.above):
        if number and comment.blank:
            yield ""
        yield comment.text
    if paragraph.tokens:
        if paragraph.above and paragraph.parted:
            yield ""
        yield from _statement(text, paragraph.tokens, paragraph.behind)


def _statement(text: Text, tokens: Sequence[Token], behind: str) -> list[str]:
    """A statement in its one form; as it was where that would say something else."""
    ended = tokens[-1].token_type is TokenType.SEMICOLON
    body = tokens[:-1] if ended else tokens
    marks = read_marks(text, body, span(body[-1]).end)
    for bold in (True, False):
        pieces = Pieces(text, tokens, marks, bold=bold).make()
        if pieces is None:
            break
        if not ended:
            pieces.append(Piece(";", space=False))
        if behind:
            pieces[-1].after = behind
        elif pieces[-1].text == ";" and not pieces[-2].comment:
            pieces[-1].after, pieces[-2].after = pieces[-2].after, ""
        lines = lay_out(pieces)
        if _says_the_same("\n".join(lines), text, tokens, behind, marks.statement):
            return lines
    written = text.sql[tokens[0].start : span(tokens[-1]).end] + ("" if ended else ";")
    return [written + (f"  {behind}" if behind else "")]


def _says_the_same(sql: str, text: Text, tokens: Sequence[Token], behind: str, statement: Statement) -> bool:
    """Whether a text has the same tokens but for case, the same comments, and is read as the same statement."""
    new = Text(sql, functions=text.functions)
    try:
        found, read = tokenize(new), statements(new)
    except SqlError:
        return False
    comments_now = _comments(new, found) + _texts(sql[span(found[-1]).end :])
    comments_then = _comments(text, tokens) + ([behind] if behind else [])
    if _essence(found) != _essence(tokens) or " ".join(comments_now) != " ".join(comments_then):
        return False
    return len(read) == 1 and same(read[0], statement)


def _essence(tokens: Sequence[Token]) -> list[tuple[TokenType, str]]:
    quoted = (*STRINGS, TokenType.IDENTIFIER)
    told = [(t.token_type, t.text if t.token_type in quoted else t.text.upper()) for t in tokens]
    return [each for each in told if each[0] is not TokenType.SEMICOLON]


def _comments(text: Text, tokens: Sequence[Token]) -> list[str]:
    return [c for a, b in pairwise(tokens) for c in _texts(text.sql[span(a).end : b.start])]


def _texts(gap: str) -> list[str]:
    return [comment.text for comment in comments(gap, last=True) or ()]
