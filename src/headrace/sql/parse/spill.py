"""WITH of an EVENT: `WITH (memory = 100000, together = 5, wait = 10 SECONDS)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import unknown
from headrace.plan.patterns import Spill, check_spill
from headrace.sql.parse.durations import duration, whole_number

if TYPE_CHECKING:
    from headrace.sql.parse.tokens import Cursor

SETTINGS = ("memory", "together", "wait")


def spill(cursor: Cursor, repeated: bool) -> Spill | None:
    """Read how many events a pattern may have in memory, and how long late ones wait for what is not there."""
    start = cursor.index
    if not cursor.accept("WITH"):
        return None
    cursor.expect("(")
    found: dict[str, int] = {}
    while not found or cursor.accept(","):
        _setting(cursor, found)
    cursor.expect(")", what="',' or ')'")
    where = cursor.since(start)
    if "memory" not in found:
        raise cursor.text.error(
            "late events wait for what is outside memory, and everything is in it", where, hint="add memory = 100000, events"
        )
    with cursor.text.at(where):
        check_spill(repeated)
        return Spill(found["memory"], found.get("together", 1), found.get("wait"))


def _setting(cursor: Cursor, found: dict[str, int]) -> None:
    key = cursor.name("a setting: memory, together or wait")
    name = key.text.lower()
    if name not in SETTINGS:
        raise cursor.text.error(unknown("setting of a pattern", key.text, SETTINGS), key.span)
    if name in found:
        raise cursor.text.error(f"{name} is there twice", key.span)
    cursor.expect("=")
    if name == "wait":
        found[name] = duration(cursor, "how long late events wait at most")
    else:
        found[name] = whole_number(cursor, "a number of events")
