"""Pieces -> lines. What fits stays on a line; what does not is broken at clauses, commas, AND, OR and CASE, or at brackets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from headrace.sql.format.pieces import Piece

WIDTH = 100
STEP = 2
OPEN, CLOSE = ("(", "["), (")", "]")


def lay_out(pieces: Sequence[Piece]) -> list[str]:
    page = Page()
    page.write(pieces, 0, STEP if pieces[0].text == "CREATE" else 0)
    return page.lines


class Page:
    """Lines that grow."""

    def __init__(self) -> None:
        self.lines = [""]
        self.closed = False  # a comment ends the last line

    def new_line(self, indent: int) -> None:
        """Begin a line, unless the last one is still empty."""
        if self.lines[-1].strip():
            self.lines.append("")
        self.lines[-1] = " " * indent
        self.closed = False

    def put(self, piece: Piece, indent: int) -> None:
        """Add a piece to the last line; after a comment the next one begins at `indent`."""
        if self.closed or piece.comment:
            self.new_line(indent)
        space = " " if piece.space and self.lines[-1].strip() else ""
        first, *rest = (self.lines[-1] + space + piece.text).split("\n")
        self.lines[-1:] = [first, *rest]
        if piece.after:
            self.lines[-1] += "  " + piece.after
        self.closed = piece.comment or bool(piece.after)

    def fits(self, pieces: Sequence[Piece]) -> bool:
        """Whether pieces fit into the rest of the line; a comment may stick out behind them."""
        if self.closed or any(p.hard for p in pieces[:-1]) or (pieces[-1].hard and not pieces[-1].after):
            return False
        return len(self.lines[-1]) + width(pieces) <= WIDTH

    def write(self, pieces: Sequence[Piece], base: int, clauses: int | None = None, hang: int | None = None) -> None:
        """Write pieces from here on; lines begin at `base`, those of a clause at `clauses`, those after a comma at `hang`."""
        while pieces and pieces[0].comment:
            self.put(pieces[0], base)
            pieces = pieces[1:]
        if self.closed:
            self.new_line(base)
        if not pieces:
            return
        if self.fits(pieces):
            for piece in pieces:
                self.put(piece, base)
        elif clauses is not None and len(parts := at_starts(pieces, [p.lead for p in pieces])) > 1:
            self._clauses(parts, base, clauses)
        elif clauses is not None and pieces[0].lead:
            self._clauses([pieces], base, clauses)
        elif len(parts := at_starts(pieces, after_commas(pieces))) > 1:
            self._lines(parts, base if hang is None else hang)
        elif len(parts := at_starts(pieces, before_joints(pieces))) > 1:
            self._lines(parts, base + STEP)
        elif len(parts := at_starts(pieces, before_arms(pieces))) > 1:
            self._lines(parts[:-1], base + STEP)
            self.new_line(base)
            self.write(parts[-1], base)
        else:
            self._brackets(pieces, base)

    def _lines(self, parts: Sequence[Sequence[Piece]], indent: int) -> None:
        for number, part in enumerate(parts):
            if number:
                self.new_line(indent)
            self.write(part, indent)

    def _clauses(self, parts: Sequence[Sequence[Piece]], base: int, indent: int) -> None:
        for number, part in enumerate(parts):
            if number:
                self.new_line(indent)
            here = indent if number else base
            while part[0].comment:
                self.put(part[0], here)
                part = part[1:]
            if self.fits(part):
                self.write(part, here)
            else:
                self.put(part[0], here)
                hang = len(self.lines[-1]) + 1
                self.write(part[1:], hang if part[0].text == "SELECT" else here, hang=hang)

    def _brackets(self, pieces: Sequence[Piece], base: int) -> None:
        """Open up the widest pair of brackets, or give up."""
        pair = widest_brackets(pieces)
        for piece in pieces if pair is None else pieces[: pair[0] + 1]:
            self.put(piece, base)
        if pair is None:
            return
        inner, rest = pieces[pair[0] + 1 : pair[1]], pieces[pair[1] :]
        self.new_line(base + STEP)
        self.write(inner, base + STEP, base + STEP if inner[0].lead else None)
        self.new_line(base)
        self.put(rest[0], base)
        if rest[1:]:
            self.write(rest[1:], base)


def width(pieces: Sequence[Piece]) -> int:
    return sum(len(p.text) + p.space for p in pieces)


def levels(pieces: Sequence[Piece]) -> list[int]:
    """How deep in brackets every piece stands; brackets themselves stand outside."""
    out, depth = [], 0
    for piece in pieces:
        depth -= piece.sign in (*CLOSE, ">")
        out.append(depth)
        depth += piece.sign in (*OPEN, "<")
    return out


def at_starts(pieces: Sequence[Piece], starts: Sequence[bool]) -> list[Sequence[Piece]]:
    """Cut before the pieces, outside brackets, for which `starts` holds; comments above a piece go with it."""
    cuts = []
    for at, (depth, start) in enumerate(zip(levels(pieces), starts, strict=True)):
        if start and depth == 0:
            while at > 0 and pieces[at - 1].comment:
                at -= 1
            cuts.append(at)
    bounds = sorted({0, *cuts, len(pieces)})
    return [pieces[low:high] for low, high in pairwise(bounds)]


def after_commas(pieces: Sequence[Piece]) -> list[bool]:
    out, comma = [], False
    for piece in pieces:
        out.append(comma)
        comma = piece.sign == "," if not piece.comment else comma
    return out


def before_joints(pieces: Sequence[Piece]) -> list[bool]:
    """Which pieces are an AND or OR that joins conditions, not the AND of BETWEEN, and not inside CASE."""
    out, between = [], 0
    for word, case in zip(outer_words(pieces), cases(pieces), strict=True):
        between += word == "BETWEEN"
        out.append(word in ("AND", "OR") and case == 0 and not (word == "AND" and between > 0))
        between -= word == "AND" and between > 0
    return out


def before_arms(pieces: Sequence[Piece]) -> list[bool]:
    out, over = [], False
    for word, case in zip(outer_words(pieces), cases(pieces), strict=True):
        out.append(not over and case == 1 and word in ("WHEN", "ELSE", "END"))
        over = over or (case == 1 and word == "END")
    return out


def cases(pieces: Sequence[Piece]) -> list[int]:
    """In how many CASE every piece stands; its CASE and its END are in it."""
    out, depth = [], 0
    for word in outer_words(pieces):
        depth += word == "CASE"
        out.append(depth)
        depth = max(0, depth - (word == "END"))
    return out


def outer_words(pieces: Sequence[Piece]) -> list[str]:
    """Pieces outside brackets in capitals; nothing for those inside."""
    return [piece.text.upper() if depth == 0 else "" for piece, depth in zip(pieces, levels(pieces), strict=True)]


def widest_brackets(pieces: Sequence[Piece]) -> tuple[int, int] | None:
    """The pair of brackets that holds most; one with a comment in it comes first."""
    best: tuple[tuple[bool, int], int, int] | None = None
    opened = None
    for at, (piece, depth) in enumerate(zip(pieces, levels(pieces), strict=True)):
        if depth == 0 and piece.sign in OPEN:
            opened = at
        elif depth == 0 and piece.sign in CLOSE and opened is not None and at > opened + 1:
            inner = pieces[opened + 1 : at]
            worth = (any(p.hard for p in inner), width(inner))
            if best is None or worth > best[0]:
                best = worth, opened, at
    return None if best is None else best[1:]
