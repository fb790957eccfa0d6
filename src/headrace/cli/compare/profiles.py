"""How the queries of a script behave under profiles, in words: what they react to, when a window is told, what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import QueryError
from headrace.plan.nodes import WindowAggregate, WindowReport, base_streams, children
from headrace.plan.profiles import PROFILES, profile
from headrace.plan.time import format_duration, format_instant
from headrace.plan.windows import (
    ONCE,
    DeltaWindow,
    EveryField,
    EveryInstant,
    EveryRows,
    EveryTime,
    FieldWindow,
    OnClose,
    RangeWindow,
    RowsWindow,
    SessionWindow,
    SpanWindow,
    UnboundedWindow,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from headrace.plan.nodes import Node
    from headrace.plan.query import Query, Script
    from headrace.plan.windows import LookedAt, Trigger

ALL = "all"
WIDTH = 12  # of the names in front of facts
WindowNode = WindowAggregate | WindowReport


def chosen(written: Iterable[str]) -> list[str]:
    """The profiles that are meant: several options, or several names in one, or `all`."""
    names = [name.strip() for part in written for name in part.split(",") if name.strip()]
    if any(name.lower() == ALL for name in names):
        return list(PROFILES)
    return list(dict.fromkeys(profile(name).name for name in names))


def explain_profiles(text: str, name: str, names: list[str]) -> str:
    """What every query of a script does under each of these profiles; queries that do the same are told together."""
    from headrace.cli.scripts import parse

    base = parse(text, name)
    plans, refused = _plans(text, name, PROFILES)
    parts = [[f"{n:<{WIDTH}}{PROFILES[n].words}" for n in names]]
    for query in base.queries:
        parts.append(_query(query, plans, names, _own(text, name, query, plans)))
    for n in names:
        if n in refused:
            parts.append([f"under {n} this script cannot run", *(f"  {line}" for line in str(refused[n]).splitlines())])
    return "\n\n".join("\n".join(part) for part in parts)


def _plans(text: str, name: str, names: Iterable[str]) -> tuple[dict[str, dict[str, Node]], dict[str, QueryError]]:
    """The plans of all queries under each profile, and why there are none under some."""
    from headrace.sql import parse_script

    found: dict[str, dict[str, Node]] = {}
    refused: dict[str, QueryError] = {}
    for n in names:
        try:
            script: Script = parse_script(text, name, profile=n)
            found[n] = {q.name: q.node for q in script.queries}
        except QueryError as error:
            refused[n] = error
    return found, refused


def _own(text: str, name: str, query: Query, plans: Mapping[str, Mapping[str, Node]]) -> list[str]:
    """Every WITH (..) of the script that decides something about this query under some profile."""
    out = []
    for start, end in settings_clauses(text):
        without, _ = _plans(text[:start] + " " * (end - start) + text[end:], name, plans)
        if any(without.get(n, {}).get(query.name) != plans[n][query.name] for n in plans):
            out.append(" ".join(text[start:end].split()))
    return list(dict.fromkeys(out))


def settings_clauses(text: str) -> list[tuple[int, int]]:
    from headrace.sql.errors import Text
    from headrace.sql.parse.tokens import span, tokenize, words

    found, tokens = [], tokenize(Text(text))
    for i, token in enumerate(tokens[:-1]):
        if words(token) == ("WITH",) and tokens[i + 1].text == "(":
            close = next((t for t in tokens[i:] if t.text == ")"), tokens[-1])
            found.append((span(token).start, span(close).end))
    return found


def _query(query: Query, plans: Mapping[str, Mapping[str, Node]], names: list[str], own: list[str]) -> list[str]:
    lines = [f"query {query.name}: EMIT {query.emit.value} INTO {query.sink}"]
    if not list(windows(query.node)):
        return [*lines, "  has no window: rows go one by one, under every profile"]
    if own and len(set(found[query.name] for found in plans.values())) == 1:
        fixed = f"  fixes this itself, by {' and '.join(own)}: no profile changes it"
        return [*lines, fixed, *(f"    {line}" for line in _node(query.node))]
    if own:
        lines.append(f"  says {' and '.join(own)}, which goes before a profile")
    groups: dict[Node, list[str]] = {}
    for n in names:
        if n in plans:
            groups.setdefault(plans[n][query.name], []).append(n)
    for node, same in groups.items():
        lines += [f"  under {', '.join(same)}", *(f"    {line}" for line in _node(node))]
    return lines


def windows(node: Node) -> Iterator[WindowNode]:
    if isinstance(node, WindowNode):
        yield node
    for child in children(node):
        yield from windows(child)


def _node(node: Node) -> Iterator[str]:
    for window in windows(node):
        yield str(window)
        trigger = window.trigger if isinstance(window, WindowReport) else None
        yield f"  {'reacts to':<{WIDTH}}{_reacts(trigger)}"
        yield f"  {'told':<{WIDTH}}{_told(window)}"
        yield f"  {'holds':<{WIDTH}}{_holds(window.window, trigger)}"
        yield f"  {'rows stand':<{WIDTH}}{_order(window)}"


def _reacts(trigger: Trigger | None) -> str:
    match trigger:
        case None:
            return "every event (tuple-driven)"
        case EveryTime(every=every) if every < ONCE:
            return f"the clock, every {format_duration(every)}; what else the engine reacts to makes no difference"
        case EveryTime(origin=at):
            return f"the clock, once, at {format_instant(at)}; what else the engine reacts to makes no difference"
        case EveryRows(every=every, partition_by=by):
            return ("every row" if every == 1 else f"every {every} rows") + (" of a partition" if by else "") + " (tuple-driven)"
        case EveryField(every=every, on=on):
            return f"{on}, whenever it has passed a multiple of {every}"
        case EveryInstant(rows=rows, batch=None):
            return f"time moving on: rows of one time are seen together{_completed(rows)} (time-driven)"
        case EveryInstant(rows=rows, batch=batch):
            return f"a batch: rows of one time with the same {batch}{_completed(rows)} (batch-driven)"
        case OnClose():
            return "the end of a window"


def _completed(rows: int | None) -> str:
    return "" if rows in (None, 1) else f", and looked at when they complete {rows} rows"


def _told(window: WindowNode) -> str:
    match window:
        case WindowAggregate():
            return "for every event, with the columns of the event"
        case WindowReport(on_change=True):
            return "when the content of the window has changed since it was last looked at"
        case WindowReport(trigger=EveryTime()):
            return "whenever it is looked at, changed or not, unless it is empty"
        case WindowReport(trigger=OnClose()):
            return "once, when it has ended"
    return "whenever it is looked at"


def _holds(window: LookedAt, trigger: Trigger | None) -> str:
    match window, trigger:
        case RangeWindow(size=size, lag=lag), EveryTime(every=every, open_above=True):
            closed = f"[l, u): a row at l is inside, one at u is not; {format_duration(size)} long"
            return f"{closed}, l is a whole multiple of {format_duration(every)} since 1970 (UTC)"
        case RangeWindow(size=size, lag=lag), EveryTime(every=every, origin=origin):
            since = "since 1970 (UTC)" if origin == 0 else f"from {format_instant(origin)}"
            lagging = f", less {format_duration(lag)}" if lag else ""
            multiple = f"u is a whole multiple of {format_duration(every)} {since}{lagging}"
            return f"(l, u]: a row at u is inside; {format_duration(size)} long, {multiple}"
        case RangeWindow(lag=lag, peers=True), _:
            upper = f"t - {format_duration(lag)}" if lag else "t"
            lower = f"t - {format_duration(window.reach)}" if window.reach else "t"
            return f"[{lower}, {upper}] at an event of time t, with all rows of that time, as in standard SQL"
        case RangeWindow(size=size, lag=lag), _:
            upper = f"t - {format_duration(lag)}" if lag else "t"
            what = "an event" if trigger is None else "a look"
            return f"(t - {format_duration(size + lag)}, {upper}] at {what} of time t"
        case RowsWindow(rows=rows, partition_by=by), _:
            count = "the last row" if rows == 1 else f"the last {rows} rows"
            return count + (f" of the same {', '.join(map(str, by))}" if by else "")
        case UnboundedWindow(peers=True), _:
            return "every row up to the event's time, with all rows of that time, as in standard SQL"
        case UnboundedWindow(), _:
            return "every row so far"
        case SpanWindow(start=start, stop=None), _:
            return f"every row after {format_instant(start)}"
        case SpanWindow(start=start, stop=int(stop)), _:
            return f"the rows after {format_instant(start)}, up to {format_instant(stop)}"
        case FieldWindow(size=reach, on=on), _:
            return f"(p - {reach}, p], where p is the largest {on} so far"
        case SessionWindow(gap=gap), _:
            return f"rows of a group, none later than {format_duration(gap)} after the one before it"
        case DeltaWindow(limit=limit, expr=expr), _:
            return f"rows of a group, as long as {expr} is within {limit:g}"
    raise AssertionError(f"no words for {window}")


def _order(window: WindowNode) -> str:
    arriving = any(s.reads is not None or s.timestamp is None for s in base_streams(window.input))
    return "as they arrive" if arriving else "by time, then by their position in the source"
