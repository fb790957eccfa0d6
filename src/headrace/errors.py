"""Errors say where, what was expected, what was found, and what to do; their class says whose fault it is."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class HeadraceError(Exception):
    """Base of every error Headrace raises on purpose.

    `where` names the place (a position in a script, a file, an operator), `hint` what to do about it, `title` whose fault it is.
    """

    title = "error"

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        """Keep the parts, so that a front end can lay them out as it likes."""
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.message}" if self.where else self.message]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class QueryError(HeadraceError):
    """The text or the API calls of the user do not make a query that can run."""

    title = "this query cannot run"


class DataError(HeadraceError):
    """The input data, a source or a sink is not what the query declared."""

    title = "the data is not what the query declares"


class SourceError(DataError):
    """A source cannot be read: a file is gone, damaged or forbidden, a socket refuses."""

    title = "a source cannot be read"


class StateError(HeadraceError):
    """A checkpoint belongs to another query or version, is in use, or cannot be read."""

    title = "this checkpoint cannot be used"


class LogError(HeadraceError):
    """A log has no such topic or offset (any more), or is damaged."""

    title = "the log cannot do that"


class SystemFailure(HeadraceError):
    """The machine under a query failed it: disk, permission, port, memory, a process that was killed."""

    title = "the system refused"


class SetupError(HeadraceError):
    """Java, or the Python of Spark's workers, is missing or not what Headrace needs."""

    title = "Spark is not set up for Headrace"


class SparkFailure(HeadraceError):
    """Spark stopped the query, for a reason that Headrace has no words of its own for."""

    title = "Spark stopped the query"


class NotEnded(HeadraceError, TimeoutError):
    """A run was waited for, and goes on."""


class InUseError(StateError):
    """Another run is working on the checkpoint."""

    title = "this checkpoint is in use"


class StaleError(HeadraceError):
    """A unit of serving goes on with a partition that was given to another meanwhile: nobody waits for what it says."""

    title = "this partition is another unit's now"


class OutputError(HeadraceError):
    """The place where results are to go holds something else, or cannot hold them."""

    title = "the output cannot go there"


class InternalError(HeadraceError):
    """A promise inside Headrace was broken: a bug of ours."""

    title = "a bug in Headrace"


def unknown(kind: str, name: str, existing: Iterable[str]) -> str:
    """Say that a name does not exist, what does, and the nearest of those.

    >>> unknown("column", "amout", ["card", "amount"])
    "column 'amout' does not exist; there are: card, amount. Did you mean 'amount'?"
    """
    names = list(existing)
    text = f"{kind} {name!r} does not exist; there are: {', '.join(names) or 'none'}"
    lowered = {n.lower(): n for n in names}
    near = get_close_matches(name.lower(), lowered, n=1)
    return f"{text}. Did you mean {lowered[near[0]]!r}?" if near else text
