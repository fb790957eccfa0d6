"""What went wrong, in one clear error, out of Spark's many lines."""

from __future__ import annotations

import re

from headrace.errors import DataError, HeadraceError, QueryError, StateError

_OURS = re.compile(r"headrace\.errors\.(\w+): (.*)")
_CAUSE = re.compile(r"^(?:[\w.$]+(?:Exception|Error)): (.+)$", re.MULTILINE)


def refused(error: Exception) -> QueryError:
    """What Spark's analyser has against the query."""
    return QueryError(f"Spark does not accept the query: {str(error).split(chr(10))[0]}")


def explain_failure(error: BaseException) -> HeadraceError:
    """An error of Headrace that says what Spark's error means."""
    if isinstance(error, HeadraceError):
        return error
    text = str(error)
    ours = _OURS.findall(text)
    if ours:
        kind, message = ours[-1]
        hint = re.search(re.escape(message) + r"\n\s+hint: (.*)", text)
        return (StateError if kind == "StateError" else DataError)(message, hint=hint[1] if hint else None)
    if "No space left on device" in text:
        return DataError(
            "the disk is full", hint="make room and start again with the same checkpoint: nothing that was taken in is lost"
        )
    causes = _CAUSE.findall(text)
    first = (causes[-1] if causes else text.strip().split("\n")[0])[:500]
    return DataError(f"Spark stopped the query: {first}", hint="run with --verbose for Spark's own log")
