"""Comments, found between tokens: sqlglot keeps what they say, but not where they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass

ENDS = {"/*": "*/", "{#": "#}"}
_LINE = re.compile(r"--[^\r\n]*")
_SPACE = re.compile(r"\s*")
_BREAK = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class Comment:
    """Comments that stand on one line, one after the other.

    `fresh`: nothing stands before them on their line; `last`: nothing behind them; `blank`: an empty line above.
    """

    text: str
    fresh: bool
    last: bool
    blank: bool


def comments(gap: str, *, fresh: bool = False, last: bool = False) -> list[Comment] | None:
    r"""The comments in the text between two tokens; None if there is anything else.

    `fresh` and `last` say whether the gap begins and ends the script.

    >>> [c.text for c in comments(" -- one\n\n /* two */ -- three\n")]
    ['-- one', '/* two */ -- three']
    """
    found: list[Comment] = []
    texts: list[str] = []
    at, between, first = 0, "", fresh  # `between` is the white space before the comments in `texts`
    while True:
        white = _SPACE.match(gap, at)
        space = white.group() if white else ""
        at += len(space)
        ends = at >= len(gap)
        if texts and (_BREAK.search(space) or ends):
            alone, final = first or bool(_BREAK.search(between)), last or bool(_BREAK.search(space))
            found.append(Comment(" ".join(texts), alone, final, between.count("\n") > 1))
            texts, first = [], True
        if ends:
            return found
        if not texts:
            between = space
        text = _comment(gap, at)
        if text is None:
            return None
        texts.append(text.rstrip())
        at += len(text)


def _comment(gap: str, at: int) -> str | None:
    """The comment that begins here; comments in comments are part of it."""
    if (line := _LINE.match(gap, at)) is not None:
        return line.group()
    opening = gap[at : at + 2]
    if opening not in ENDS:
        return None
    depth, i = 0, at
    while i < len(gap):
        if gap.startswith(opening, i):
            depth += 1
            i += 2
        elif gap.startswith(ENDS[opening], i):
            depth -= 1
            i += 2
            if depth == 0:
                return gap[at:i]
        else:
            i += 1
    return None
