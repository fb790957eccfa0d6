"""How the queries of a script behave under profiles, in words: what they react to, when a window is told, what is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headrace.errors import QueryError
from headrace.plan.nodes import Node, WindowAggregate, WindowReport, base_streams, children
from headrace.plan.profiles import PROFILES, profile
from headrace.plan.query import Query

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
    parts += [_query(query, plans, names, _own(text, name, query, plans)) for query in base.queries]
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
            found[n] = {q.name: q.node for q in parse_script(text, name, profile=n).queries}
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
    if own and len({found[query.name] for found in plans.values()}) == 1:
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
        yield f"  {'reacts to':<{WIDTH}}{'every event (tuple-driven)' if trigger is None else trigger.reacts}"
        yield f"  {'told':<{WIDTH}}{_told(window)}"
        yield f"  {'holds':<{WIDTH}}{window.window.holds(trigger)}"
        yield f"  {'rows stand':<{WIDTH}}{_order(window)}"


def _told(window: WindowNode) -> str:
    if isinstance(window, WindowAggregate):
        return "for every event, with the columns of the event"
    return "when the content of the window has changed since it was last looked at" if window.on_change else window.trigger.told


def _order(window: WindowNode) -> str:
    arriving = any(s.reads is not None or s.timestamp is None for s in base_streams(window.input))
    return "as they arrive" if arriving else "by time, then by their position in the source"
