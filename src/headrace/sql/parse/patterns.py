"""EVENT: `SEQ(shelf s, !(checkout c), exit e) NEXT MATCH WHERE .. WITHIN 5 HOURS RETURN ..`."""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import unknown
from headrace.plan.patterns import Selection, Spill, check_spill
from headrace.plan.sinks import alternatives
from headrace.sql.parse.durations import duration, whole_number
from headrace.sql.parse.expressions import scalar
from headrace.sql.parse.items import items
from headrace.sql.parse.sinks import ends, finish
from headrace.sql.parse.syntax import Element, Event, From, FromStream, IntoClause, Item, Name, Select, Star
from headrace.sql.parse.tokens import Cursor, is_name

Read = Callable[[Cursor], FromStream | Select | Event]

CLAUSES = ("WHERE", "WITHIN", "RETURN", "WITH", "EMIT", "INTO")
SETTINGS = ("memory", "together", "wait")
SELECTIONS = tuple(s.value for s in Selection)
WITHIN_HINT = "WITHIN is needed: without it every event could still become part of a result, and none could ever be let go"
SEQ_HINT = "for example EVENT SEQ(shelf s, !(checkout c), exit e) WHERE s.id = e.id WITHIN 5 HOURS RETURN s.id"


def at_event(cursor: Cursor) -> bool:
    """Whether an EVENT comes next, and not a stream of that name."""
    return cursor.at("EVENT SEQ")


def pattern(cursor: Cursor, read: Read, prefix: IntoClause | None, *, nested: bool) -> Event:
    """Read an EVENT; `read` reads a stream or a SELECT in brackets."""
    start = cursor.index
    cursor.expect("EVENT")
    if not cursor.at("SEQ"):
        raise cursor.expected("SEQ and its events in brackets", near=("SEQ",), hint=SEQ_HINT)
    elements = _sequence(cursor, read)
    chosen = cursor.accept(*SELECTIONS)
    where = scalar(cursor, "a condition", CLAUSES[1:]) if cursor.accept("WHERE") else None
    at = cursor.index
    if not cursor.accept("WITHIN"):
        raise _no_within(cursor, chosen is None and where is None, where is None)
    within = duration(cursor, "how far apart the first and the last event may be")
    within_span = cursor.since(at)
    after = cursor.index
    returned = _returned(cursor)
    bare = cursor.index == after
    memory = _spill(cursor, any(e.repeated for e in elements))
    emits, target = ends(cursor, prefix, nested=nested)
    seen = (not bare or memory or emits or target, memory or emits or target, emits or nested, target or nested)
    still = [c for c, there in zip(CLAUSES[2:], seen, strict=True) if not there]
    finish(cursor, CLAUSES, still, nested=nested, end="')'" if nested else "the end of the statement", first="SEQ(..), ")
    selection = Selection(chosen) if chosen else Selection.ANY
    return Event(elements, selection, where, within, within_span, returned, emits, target, cursor.since(start), memory)


def _sequence(cursor: Cursor, read: Read) -> tuple[Element, ...]:
    cursor.expect("SEQ")
    cursor.expect("(", what="'(' and the events of the sequence")
    found = cursor.several(lambda c: _element(c, read))
    cursor.expect(")", what="',' or ')'")
    return found


def _element(cursor: Cursor, read: Read) -> Element:
    """Read one place: an event, an event that repeats, or one that must not be there."""
    start = cursor.index
    negated = cursor.accept("!", "NOT") is not None
    bracket = negated and cursor.at("(") and not cursor.at("( SELECT", "( EVENT SEQ")
    if bracket:
        cursor.expect("(")
    first = cursor.index
    relation = read(cursor)
    if cursor.at("["):
        raise cursor.error("an event of a pattern has no window of its own", hint="WITHIN says how long a result may take")
    if cursor.at("+") and negated:
        raise cursor.error("an event that must not be there does not repeat", hint="one is enough to forbid a result")
    repeated = cursor.accept("+") is not None
    alias = _alias(cursor)
    if alias is None and not isinstance(relation, FromStream):
        raise cursor.expected("a name for the event", hint="for example SEQ((SELECT ..) a, ..)")
    source = From(relation, None, alias, cursor.since(first))
    if bracket:
        if cursor.at(","):
            raise cursor.error("one event stands in each !(..)", hint="write !(a x), !(b y): neither of them may be there")
        cursor.expect(")", what="a name or ')'")
    return Element(source, negated, repeated, cursor.since(start))


def _alias(cursor: Cursor) -> Name | None:
    if cursor.accept("AS"):
        return cursor.name("a name after AS")
    token = cursor.peek()
    return cursor.name("a name") if token is not None and is_name(token) else None


def _no_within(cursor: Cursor, bare: bool, no_where: bool) -> Exception:
    before = [*(SELECTIONS if bare else ()), *(("WHERE",) if no_where else ()), "WITHIN"]
    return cursor.expected(alternatives(before), near=before, hint=WITHIN_HINT)


def _returned(cursor: Cursor) -> tuple[Item | Star, ...]:
    """The columns of RETURN; without one, all there are."""
    if not cursor.accept("RETURN"):
        return (Star(None, cursor.since(max(cursor.index - 1, 0))),)
    return items(cursor, CLAUSES[3:], CLAUSES[3:])


def _spill(cursor: Cursor, repeated: bool) -> Spill | None:
    """Read `WITH (memory = 100000, together = 5, wait = 10 SECONDS)`.

    That is how many events a pattern may have in memory, and how long late ones wait for what is not there.
    """
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
        hint = "add memory = 100000, events"
        raise cursor.text.error("late events wait for what is outside memory, and everything is in it", where, hint=hint)
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
