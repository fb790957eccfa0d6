"""A pattern as text: the plan of figure 1 of the paper (001), what was pushed where, what EMIT promises, and what that needs."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from headrace.plan.nodes import base_streams, children, retracts
from headrace.plan.patterns import Selection, unbracketed
from headrace.plan.query import Emit, Using
from headrace.plan.stream import Bound, longest_delay
from headrace.plan.time import format_duration
from headrace.stages.lower import guess_type
from headrace.stages.patterns import Lowering

if TYPE_CHECKING:
    from headrace.plan.expr import Expr
    from headrace.plan.nodes import Node
    from headrace.plan.patterns import Pattern, Place, Spill
    from headrace.plan.stream import Stream

    Keys = tuple[tuple[Expr, ...], ...]  # for each key what it is at every place

WIDTH = 14  # of the names in front of facts


def pattern_lines(node: Pattern, emit: Emit, using: Using, keys: Keys) -> list[str]:
    """How a pattern is found, the level of correctness that EMIT promises, and what must be known for it.

    `keys` are those that its stage parts rows by: the stage tells them, and here they are no conditions any more.
    """
    lines = _operators(node, keys)
    lines += fact("memory", *_memory(node.spill)) if node.spill is not None else []
    lines += fact("level", _level(node, emit, using))
    lines += fact("how", _how(node, emit, using))
    return lines + fact("must be known", *_needs(node, emit, using))


def fact(name: str, *values: str) -> list[str]:
    """A name and what is said of it, the rest below the first."""
    return [f"{name if i == 0 else '':<{WIDTH}}{value}" for i, value in enumerate(values)]


# The plan: Sel in Spark, WinSeq over it, WinNeg over that


def _operators(node: Pattern, keys: Keys) -> list[str]:
    """The operators, each below the one that it feeds, as in figure 1."""
    negations = _negations(node)
    indent = "  " if negations else ""
    lines = ["WinNeg", *(f"  {line}" for line in negations)] if negations else []
    lines.append(f"{indent}WinSeq({', '.join(_source(node, i) for i in node.positive)}; {format_duration(node.within)})")
    lines += [f"{indent}  {line}" for line in _inside(node, keys)]
    return lines + [f"{indent}  Sel in Spark: {_own(p.where, p)}" for p in node.places if p.where is not None]


def _source(node: Pattern, i: int) -> str:
    place = node.places[i]
    return f"{_streams_of(place)}{'+' if place.repeated else ''} {place.name}"


def _streams_of(place: Place) -> str:
    return " + ".join(dict.fromkeys(s.name for s in base_streams(place.input)))


def _negations(node: Pattern) -> list[str]:
    """What must not be there, where, and which conditions it must meet to forbid a result."""
    lines = []
    for i, place in enumerate(node.places):
        if place.negated:
            own = [node.said(c) for c in node.where if i in node.places_of(c)]
            lines.append(f"!({_streams_of(place)} {place.name}) {_gap(node, i)}{' where ' + ' AND '.join(own) if own else ''}")
    return lines + _implied(node)


def _gap(node: Pattern, i: int) -> str:
    names = [node.places[p].name for p in node.positive]
    before, within = node.gap(i), format_duration(node.within)
    if before == 0:
        return f"before {names[0]}, from {within} before {names[-1]} on"
    if before == len(names):
        return f"after {names[-1]}, up to {within} after {names[0]}"
    return f"between {names[before - 1]} and {names[before]}"


def _implied(node: Pattern) -> list[str]:
    """NEXT MATCH and STRICT are negations too, and so is that a group has all that fits."""
    if len(node.positive) < 2:
        return []
    if node.selection is not Selection.STRICT:
        return [line for a, b in pairwise(node.positive) for line in _none_between(node, a, b)]
    same = " of the same key" if node.keys else ""
    every = ", ".join(dict.fromkeys(_streams_of(p) for p in node.places))
    but = " but those of a group" if any(p.repeated for p in node.places) else ""
    return [f"STRICT: no event at all of {every}{same} between two neighbours{but}"]


def _none_between(node: Pattern, a: int, b: int) -> list[str]:
    """What two neighbours imply, if anything. Before the last of a group at the end of a pattern lies the rest of it."""
    before, place = node.places[a].name, node.places[b]
    why = "NEXT MATCH" if node.selection is Selection.NEXT else f"{place.name} repeats"
    if place.repeated and b != node.positive[-1]:
        return [f"{why}: no event that fits as {place.name} between {before} and the first of its group"]
    if not place.repeated and node.selection is Selection.NEXT:
        return [f"{why}: no other event that fits as {place.name} between {before} and {place.name}"]
    return []


def _inside(node: Pattern, keys: Keys) -> list[str]:
    """Conditions between events of a result, and on those of a repeated place."""
    lines = []
    for condition in node.where:
        own = [node.places[i] for i in node.places_of(condition)]
        if any(p.negated for p in own) or _in_key(condition, keys):
            continue
        names = " and ".join(p.name for p in own)
        repeated = [p.name for p in own if p.repeated]
        when = f"of every event of {repeated[0]}" if repeated else f"as soon as {names} are there"
        lines.append(f"{node.said(condition)}: {when}")
    return lines + [f"{call} AS {call.name} over the events of {name}" for name, call in node.groups]


def _in_key(condition: Expr, keys: Keys) -> bool:
    """Whether a condition holds for all rows that meet, because it is an equality of the partition key."""
    tree = condition.tree.unnest()
    sides = {type(condition).of(s.unnest()) for s in (tree.this, tree.expression)} if isinstance(tree, exp.EQ) else set()
    return bool(sides) and any(sides <= set(terms) for terms in keys)


def _own(expr: Expr, place: Place) -> str:
    """A condition on one event with the name of the event before its columns."""

    def swap(tree: exp.Expr) -> exp.Expr:
        tree = unbracketed(tree)
        return exp.column(tree.name, table=place.name) if isinstance(tree, exp.Column) else tree

    return expr.tree.transform(swap).sql(dialect="spark")


# What parts the rows. It depends on the streams that places share, so the plan is that of the stage: cut where others feed it


def used_keys(node: Pattern) -> Keys:
    """The equalities that rows are parted by."""
    found = _lowering(node).keys()
    return tuple(terms for terms, _ in found)


def partitioning(node: Pattern) -> str:
    """What rows are parted by, in the words of the query; or why one task has them all."""
    keys = used_keys(node)
    if not keys:
        return f"one bucket: everything runs in one task, because {_why_one_bucket(node)}"
    said = "; ".join(" = ".join(node.said(e) for e in terms) for terms in keys)
    return f"by hash of {said}: different keys run beside each other"


def _lowering(node: Pattern) -> Lowering:
    return Lowering(node, guess_type, set())


def _why_one_bucket(node: Pattern) -> str:
    """Either nothing is equal in all events, or it is not one thing of the rows of some stream."""
    if not node.keys:
        return "no equality covers all events"
    low, terms = _lowering(node), node.keys[0]
    of_streams = [low.exprs(i, e) for i, e in enumerate(terms)]
    for i, j in combinations(range(len(terms)), 2):
        shared = set(low.sources(i)) & set(low.sources(j))
        if any(of_streams[i][s] != of_streams[j][s] for s in shared):
            return f"{node.said(terms[i])} and {node.said(terms[j])} are different keys of one event"
    raise AssertionError(f"rows can be parted by {terms}")


def _memory(spill: Spill) -> list[str]:
    """How many events are in memory, and who waits for those that are not."""
    lines = [f"{spill.memory:,} events a bucket, beside those of one batch; older ones lie outside, in frames of {spill.frame:,}"]
    if spill.together > 1:
        wait = "" if spill.wait is None else f", or {format_duration(spill.wait)} have passed"
        lines.append(f"a late event that needs a frame waits until {spill.together} need it{wait}, or until it is final")
    return lines


# What is promised, and what for it must be known


def _waits(node: Pattern) -> bool:
    """Whether an event that may still come can forbid or change a result."""
    return node.can_be_undone or any(map(retracts, children(node)))


def _how(node: Pattern, emit: Emit, using: Using) -> str:
    """The strategy of the paper, and what it means for this pattern."""
    if emit.early:
        when = "+ when the window is over" if node.waits else "+ at once"
        after = ", - for what a late event forbids or takes back" if retracts(node) else "; no later event can change a result"
        return f"aggressive: {when}{after}"
    if using is Using.KSLACK:
        return "K-slack: rows wait, and are taken in order"
    if emit.ordered:
        return "results wait, and leave in the order of their last events"
    return "conservative: results wait in the holding set" if _waits(node) else "nothing can forbid a result"


def _level(node: Pattern, emit: Emit, using: Using) -> str:
    """The level of correctness, in the words of the paper (001, IV)."""
    if emit.early:
        if not retracts(node):
            return "unsorted correctness (immediate, permanently valid, complete): no result is ever taken back"
        but = " over the events that do not wait for a frame" if node.spill is not None and node.spill.together > 1 else ""
        return f"convergent unsorted correctness (immediate, eventually valid, complete){but}"
    if not emit.ordered:
        if not _waits(node):
            return "unsorted correctness (immediate, permanently valid, complete): a result is final at once"
        return "delayed unsorted correctness (permanently valid, complete)"
    streams = {s.name: s for s in base_streams(node)}
    only = next(iter(streams.values())) if len(streams) == 1 else None
    in_order = only is not None and only.delay == 0 and only.single_partition
    if in_order and not node.waits and using is Using.OPTIMISTIC:
        return "full correctness (ordered, immediate, permanently valid, complete), because one source brings all rows in order"
    return "delayed correctness (ordered, permanently valid, eventually complete)"


def _needs(node: Pattern, emit: Emit, using: Using) -> list[str]:
    streams = tuple({s.name: s for s in base_streams(node)}.values())
    if using is Using.KSLACK:
        clock = f"one clock over {', '.join(s.name for s in streams)}, the largest time seen"
        return [
            f"K = {format_duration(longest_delay(streams))}, the largest DELAY; {clock}",
            "a row that comes behind what has been taken is late for this query: counted, and in late(..) of its stream",
        ]
    gone = [f"to let events go: {_pogs(streams)}"]
    if emit.early:
        late = [p.name for i, p in enumerate(node.places) if p.negated and node.gap(i) == len(node.positive)]
        ends = [f"to say that {name} has not come: the clock past {_end(node)}" for name in late]
        return [*(ends or ["nothing to say a result"]), *gone]
    if not emit.ordered:
        return [*(_holding(node) or ["nothing: a result is final at once"]), *gone]
    last = node.places[node.positive[-1]].name
    return [f"to say a result: the POGs of all streams past {last}", *_holding(node), *gone]


def _end(node: Pattern) -> str:
    """Until when negations at the end of the pattern wait."""
    return f"{node.places[node.positive[0]].name} + {format_duration(node.within)}"


def _holding(node: Pattern) -> list[str]:
    """For every event that could still forbid or change a result: the POG that says it can not come any more."""
    names = [node.places[p].name for p in node.positive]
    lines = []
    for i, place in enumerate(node.places):
        if place.negated:
            lines.append(_wait(place.input, [*names, _end(node)][node.gap(i)], f"that no {place.name} forbids it"))
        elif place.repeated:
            at = node.positive.index(i)
            until = names[at + 1] if at + 1 < len(names) else place.name
            lines.append(_wait(place.input, until, f"that no {place.name} is missing"))
        elif retracts(place.input):
            lines.append(_wait(place.input, place.name, f"that {place.name} stays"))
    if node.selection is Selection.NEXT:
        lines += [_wait(node.places[p].input, node.places[p].name, "that it is the next match") for p in node.positive[1:]]
    if node.selection is Selection.STRICT and len(names) > 1:
        lines += [_wait(p.input, names[-1], "that nothing lies between") for p in node.places]
    return list(dict.fromkeys(lines))


def _wait(node: Node, until: str, why: str) -> str:
    return f"{why}: {_pogs(base_streams(node), f' past {until}')}"


def _pogs(streams: tuple[Stream, ...], past: str = "") -> str:
    return " and ".join(f"POG of {s.name}{past} ({_promise(s)})" for s in dict.fromkeys(streams))


def _promise(stream: Stream) -> str:
    """Where the POGs of a stream come from."""
    if stream.punctuated:
        delay = stream.delay
        return "from its punctuation" + (f", and from DELAY {format_duration(delay)}" if isinstance(delay, int) else "")
    match stream.delay:
        case 0:
            return "it is in order: DELAY 0"
        case int(delay):
            return f"from DELAY {format_duration(delay)}"
        case Bound.UNBOUNDED:
            return "none, because DELAY is UNBOUNDED"
    return "none but at the end, because it has no DELAY"
