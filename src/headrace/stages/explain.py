"""How a script will run, as text: the plan of every query, what each rule did to it, the stages, and what they share."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import ndiff
from typing import Any

from sqlglot import exp

from headrace.optimize import optimize
from headrace.plan.explain import tree
from headrace.plan.expr import Expr
from headrace.plan.joins import Join
from headrace.plan.nodes import (
    Late,
    Node,
    Rejected,
    WindowAggregate,
    WindowReport,
    base_stream,
    base_streams,
    children,
    retracts,
    state_bound,
    waits_for_peers,
)
from headrace.plan.patterns import Pattern
from headrace.plan.query import Query, Script, Using
from headrace.plan.stream import Stream
from headrace.plan.time import format_duration
from headrace.plan.triggers import EveryTime
from headrace.program.aggregates import Metric, Tally
from headrace.program.joins import JoinProgram
from headrace.program.patterns import PatternProgram
from headrace.program.stage import Anywhere, ByHash, Stage, StepProgram, TableRole
from headrace.program.windows import SharedSlices, WindowsProgram, WindowStage
from headrace.stages.cut import Cuts
from headrace.stages.explain_patterns import fact, partitioning, pattern_lines, used_keys
from headrace.stages.flatten import flatten, split_top, window_chain
from headrace.stages.joins import join_lines, why_one_bucket
from headrace.stages.lower import Finish, Lowered, lower


def explain_script(script: Script) -> str:
    lowered = lower(script)
    parts = [[str(stream) for stream in lowered.streams]]
    parts += [_query(finish, lowered) for finish in lowered.finishes]
    parts += [_stage(number, stage, lowered) for number, stage in enumerate(lowered.stages, 1)]
    parts.append(_on_spark(lowered))
    return "\n\n".join("\n".join(lines) for lines in parts)


def _indented(lines: Iterable[str], by: int = 2) -> list[str]:
    return [" " * by + line for line in lines]


def _sql(expr: Expr) -> str:
    """An expression without the brackets that putting one into another left round plain columns."""

    def bare(node: exp.Expr) -> exp.Expr:
        return node.this if isinstance(node, exp.Paren) and isinstance(node.this, exp.Column | exp.Literal) else node

    return Expr.of(expr.tree.transform(bare)).sql


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


# Queries


def _query(finish: Finish, lowered: Lowered) -> list[str]:
    query = finish.query
    using = f" USING {query.using.value}" if query.using is not Using.OPTIMISTIC else ""
    lines = [f"query {query.name}: EMIT {query.emit.value}{using} INTO {query.sink}"]
    lines += _indented(["plan", *_indented(_short(tree(query.node), query).splitlines())])
    core = split_top(query.node)[1]
    if isinstance(core, Pattern):
        keys = used_keys(_pattern_of(query, lowered))
        lines += _indented(["pattern", *_indented(pattern_lines(core, query.emit, query.using, keys))])
    changes = [(r, _short(a, query), _short(b, query)) for name, r, a, b in lowered.rules if name == query.name]
    if not changes:
        return [*lines, "  rules: none had anything to do"]
    for rule, before, after in changes:
        lines += _indented([f"rule {rule}", *_indented(_difference(before, after))])
    return [*lines, "  becomes", *_indented(changes[-1][2].splitlines(), 4)]


def _short(plan: str, query: Query) -> str:
    """A plan with its stream by name; what was declared about the stream is said once, above."""
    for stream in base_streams(query.node):
        plan = plan.replace(str(stream), f"Scan {stream.name}")
    return plan


def _difference(before: str, after: str) -> list[str]:
    """The steps that a rule took away and those it put there; one that only moved is not told."""
    old, new = ([line.strip() for line in text.splitlines()] for text in (before, after))
    return [line.rstrip() for line in ndiff(old, new) if line[:1] in "+-"]


# Stages


def _stage(number: int, stage: Stage[Any], lowered: Lowered) -> list[str]:
    stream = next((s for s in lowered.streams if s.name == stage.sources[0].name), lowered.streams[0])
    finishes = {f.query.name: f for f in (*lowered.finishes, *lowered.feeds)}
    queries = [finishes[name].query for name in stage.queries]
    lines = [f"stage {number} over {', '.join(dict.fromkeys(_source(s.name, lowered) for s in stage.sources))}"]
    lines += _indented(fact("partitioned", _partitioning(stage, queries, lowered)))
    lines += _indented(fact("pushed down", *_pushed_down(stage)))
    if stage.unique is not None and stream.unique is not None:
        why = f"keys are kept for {format_duration(stage.unique.within)} of event time, to know a row that comes twice"
        lines += _indented(fact("unique", f"{stream.unique}: {why}"))
    if isinstance(stage.program, WindowsProgram):
        lines += ["  operators", *_indented(_operators(stage), 4)]
        lines += ["  reservoir", *_indented(_reservoir(stage), 4)]
        bounds = dict.fromkeys(state_bound(node) for q in queries for node in _windows(optimize(q.node)[0]))
        lines += _indented(fact("state", *bounds))
    if isinstance(stage.program, JoinProgram):
        lines += ["  join", *_indented(join_lines(stage), 4)]
        lines += _indented(fact("state", *dict.fromkeys(state_bound(node) for q in queries for node in _windows(q.node))))
    lines.append("  outputs")
    for name in stage.queries:
        feed = any(f.query.name == name for f in lowered.feeds)
        lines += _indented(_feed(name, lowered) if feed else _output(finishes[name], stream), 4)
    return lines


def _source(name: str, lowered: Lowered) -> str:
    """A stream by its name, the results of another stage by its number."""
    made = [i for i, s in enumerate(lowered.stages, 1) if name in s.queries]
    return f"{name}, results of stage {made[0]}" if made else name


def _feed(name: str, lowered: Lowered) -> list[str]:
    readers = [i for i, s in enumerate(lowered.stages, 1) if name in (source.name for source in s.sources)]
    final = not next(f for f in lowered.feeds if f.query.name == name).query.emit.early
    when = "once they are final" if final else "at once, with what is taken back"
    return [f"{name} -> stage {', '.join(map(str, readers))}: {when}"]


def _metrics(stage: WindowStage) -> list[tuple[str, tuple[Metric, ...]]]:
    return [*((o.query, o.metrics) for o in stage.program.outputs), *((r.query, r.metrics) for r in stage.program.reports)]


def _windows(node: Node) -> list[WindowAggregate | WindowReport | Join]:
    own = [node] if isinstance(node, WindowAggregate | WindowReport | Join) else []
    return [*own, *(w for child in children(node) for w in _windows(child))]


def _pattern_of(query: Query, lowered: Lowered) -> Pattern:
    """The pattern of a query as its stage has it: a place that reads results of another stage reads them as a stream."""
    cuts = Cuts()
    for own in lowered.script.queries:
        cuts.note(optimize(own.node)[0], own.emit.early)
    for node, feed in zip(tuple(cuts.eager), lowered.feeds, strict=True):
        cuts.add(node, feed.columns)
    plan = query.node if query in (f.query for f in lowered.feeds) else optimize(query.node)[0]
    core = split_top(cuts.apply(plan))[1]
    assert isinstance(core, Pattern)
    return core


def _partitioning(stage: Stage[StepProgram], queries: list[Query], lowered: Lowered) -> str:
    if isinstance(stage.program, PatternProgram):
        return partitioning(_pattern_of(queries[0], lowered))
    if isinstance(stage.route, Anywhere):
        return "anywhere: a row needs no others"
    if isinstance(stage.route, ByHash):
        route = stage.route.inputs
        keys = ", ".join(_sql(stage.inputs[i].expr) for i in route)
        finer = [t for t in _groups(stage) if set(stage.tables[t].inputs) > set(route)]
        nested = f"; finer keys nest in it: {'; '.join(_keys(stage, t) for t in finer)}" if finer else ""
        return f"by hash of ({keys}){nested}"
    return f"one bucket: everything runs in one task, because {_why_one_bucket(queries)}"


def _why_one_bucket(queries: list[Query]) -> str:
    for query in queries:
        core = split_top(optimize(query.node)[0])[1]
        if isinstance(core, Join):
            return why_one_bucket(core, query.name)
        if isinstance(core, WindowReport):
            return f"{core.window} {core.trigger} of {query.name} {_no_key(core)}"
    for query in queries:
        chain = window_chain(split_top(optimize(query.node)[0])[1])
        for node in chain:
            if node.window.last_rows is not None:
                return f"{node.window} of {query.name} counts the rows of the whole stream"
            if not node.keys:
                return f"{node.window} of {query.name} has no GROUP BY"
    flat = flatten(chain[0].input)
    keys = [tuple(_sql(flat.rewrite(k)[0]) for k in node.keys) for node in chain]
    if not set.intersection(*map(set, keys)):
        different = " and by ".join(dict.fromkeys(", ".join(k) for k in keys))
        return f"a row of {query.name} has metrics by {different}, which have no key in common"
    if flat.stream.unique is not None:
        own = ", ".join(map(str, flat.stream.unique.by))
        return f"rows that are one by {own} must meet, and GROUP BY {', '.join(keys[0])} of {query.name} would send them apart"
    return f"the windows of {query.name} have no key in common"


def _no_key(node: WindowReport) -> str:
    unique = base_stream(node).unique
    if not node.keys or unique is None:
        return "has no GROUP BY"
    return f"groups by other columns than {', '.join(map(str, unique.by))}, by which rows that come twice must meet"


def _pushed_down(stage: Stage[StepProgram]) -> list[str]:
    columns = ", ".join(_sql(i.expr) for i in stage.inputs)
    lines = [f"columns {columns}" if columns else "no columns: rows are only counted"]
    if stage.keep:
        wanted = " OR ".join(_all(stage, masks, brackets=len(stage.keep) > 1) for masks in stage.keep)
        lines.append(f"rows are dropped before the exchange unless {wanted}")
    return lines


def _all(stage: Stage[StepProgram], masks: tuple[int, ...], *, brackets: bool = False) -> str:
    text = " AND ".join(_sql(stage.inputs[m].expr) for m in masks)
    return f"({text})" if brackets else text


# The operator graph


def _operators(stage: WindowStage) -> list[str]:
    """Window, then group, then tallies, then the columns that are read from them. What several queries use is there once."""
    lines, sliced = [], stage.program.sliced
    for w, program in enumerate(stage.program.windows):
        tallies = [(t, tally) for t, tally in enumerate(stage.program.tallies) if tally.window == w and t not in sliced]
        if not tallies:
            continue
        lines.append(f"{program.window}{_shared(stage, [t for t, _ in tallies])}")
        for group in dict.fromkeys(tally.group for _, tally in tallies):
            inside = [(t, tally) for t, tally in tallies if tally.group == group]
            lines.append(f"  {_keys(stage, group)}{_shared(stage, [t for t, _ in inside])}")
            for t, tally in inside:
                readers = ", ".join(_readers(stage, t))
                lines.append(f"    {_tally(stage, tally)} -> {readers}{_shared(stage, [t])}")
    return lines + [line for slices in stage.program.slices for line in _slices(stage, slices)]


def _slices(stage: WindowStage, slices: SharedSlices) -> list[str]:
    """Windows that are looked at together: the rows between two looks are added up once, for all of them."""
    reports = [stage.program.reports[r] for r in slices.reports]
    presences = [stage.program.tallies[r.presence] for r in reports]
    trigger, users = reports[0].trigger, ", ".join(r.query for r in reports)
    assert isinstance(trigger, EveryTime)
    windows = ", ".join(dict.fromkeys(str(stage.program.windows[p.window].window) for p in presences))
    lines = [f"slices of {format_duration(trigger.every)}, of which {windows} are made   (one for {users})"]
    lines.append(f"  {_keys(stage, presences[0].group)}")
    read = dict.fromkeys(t for r in reports for m in r.metrics[r.bounds :] for t in (m.count, m.tally) if t is not None)
    tallies = (stage.program.tallies[t] for t in (*read, *(r.presence for r in reports)))
    return lines + [f"    {what} of a slice" for what in dict.fromkeys(_tally(stage, t) for t in tallies)]


def _groups(stage: Stage[StepProgram]) -> list[int]:
    tallies = stage.program.tallies if isinstance(stage.program, WindowsProgram) else ()
    return list(dict.fromkeys(tally.group for tally in tallies))


def _keys(stage: Stage[StepProgram], table: int) -> str:
    keys = ", ".join(_sql(stage.inputs[i].expr) for i in stage.tables[table].inputs)
    ends = stage.tables[table].role is TableRole.LIFE and stage.keeps_for is not None
    until = f", each until silent for {format_duration(stage.keeps_for or 0)}" if ends else ""
    return f"GROUP BY {keys}{until}" if keys else f"all rows together{until}"


def _users(stage: WindowStage, tally: int) -> list[str]:
    found = [name for name, metrics in _metrics(stage) if any(tally in (m.tally, m.count) for m in metrics)]
    return found + [r.query for r in stage.program.reports if r.presence == tally and r.query not in found]


def _shared(stage: WindowStage, tallies: list[int]) -> str:
    """Which queries use any of these, if they are several."""
    used = {q for t in tallies for q in _users(stage, t)}
    users = [name for name in stage.queries if name in used]
    return f"   (one for {', '.join(users)})" if len(users) > 1 else ""


def _tally(stage: Stage[StepProgram], tally: Tally) -> str:
    vector = stage.vectors[tally.vector]
    value = "rows" if vector.input is None else _sql(stage.inputs[vector.input].expr)
    where = f" where {_all(stage, vector.masks)}" if vector.masks else ""
    return tally.kind.says.format(value=value, mode=tally.mode) + where


def _readers(stage: WindowStage, tally: int) -> list[str]:
    """`query.column` for every column read from a tally; one that only tells an empty window from a sum of zero says so."""
    found: list[str] = []
    for name, metrics in _metrics(stage):
        for metric in metrics:
            if metric.tally == tally:
                found.append(f"{name}.{_metric(metric)}")
            elif metric.count == tally:
                found.append(f"{name}.{metric.name} (how many)")
    return found + [f"{r.query} (which groups are there, {r.trigger})" for r in stage.program.reports if r.presence == tally]


def _metric(metric: Metric) -> str:
    return metric.name if metric.count is None and metric.reads.part == "value" else f"{metric.name} ({metric.function})"


def _reservoir(stage: WindowStage) -> list[str]:
    """The places at which rows enter and leave windows. Windows aligned at one of them share the iterator that stands there."""
    lines = []
    moving = [stage.program.windows[i] for i in sorted(stage.program.moving)]
    heads = [str(p.window) for p in moving if not p.window.lag]
    if heads:
        lines.append(f"now: rows enter {', '.join(heads)}")
    offsets = stage.program.edges
    ranges = [p.window for p in moving if p.window.edges]
    for offset in offsets:
        enter = [f"enter {w}" for w in ranges if w.lag == offset]
        leave = [f"leave {w}" for w in ranges if w.edges[1] == offset]
        closed = any(w.peers and w.edges[1] == offset for w in ranges)  # a row at the edge itself is still inside
        when = f"more than {format_duration(offset - 1)} ago" if closed else f"{format_duration(offset)} ago"
        lines.append(f"{when}: rows {', '.join(enter + leave) or 'let go of their keys'}")
    places = len(offsets)
    for program in stage.program.windows:
        places += program.window.last_rows is not None
        if program.window.leaves is not None:
            lines.append(f"{program.window.leaves} {program.window}")
    where = "rows stay in chunks until the last has passed" if stage.program.stores_rows else "rows go once they are final"
    return [*lines, f"{_count(places, 'iterator')}; {where}"]


# What leaves


def _output(finish: Finish, stream: Stream) -> list[str]:
    query = finish.query
    lines = [f"{query.name} -> {query.sink}"]
    if finish.predicates:
        lines.append(f"  where {' AND '.join(map(_sql, finish.predicates))}")
    shown = ", ".join(e.sql if e.as_column == n else f"{_sql(e)} AS {n}" for n, e in finish.items)
    lines.append(f"  gives {shown}")
    return [*lines, *(f"  {line}" for line in _level(query, stream))]


def _level(query: Query, stream: Stream) -> list[str]:
    """The level of correctness, in the words of the design (section 4)."""
    core = split_top(query.node)[1]
    if isinstance(core, Pattern):
        return []  # what is said of the pattern knows better what can forbid a result
    if isinstance(core, Late | Rejected):
        return ["level: a record of what came, in order of arrival; nothing is taken back"]
    if waits_for_peers(query.node):
        return [_level_with_peers(query)]
    only = len(base_streams(query.node)) == 1
    if only and stream.delay == 0 and stream.single_partition and query.emit.ordered:
        return ["level: full (ordered, immediate, permanently valid, complete), because DELAY is 0"]
    if not query.emit.early:
        name, ordered, order = _final_words(query)
        return [f"level: {name} ({ordered}permanently valid, complete): {_held(query)}{order}"]
    if retracts(query.node):
        how = "each row leaves at once; a late event gives - and + where it changes what was said"
        return [f"level: convergent unsorted (immediate, eventually valid, complete): {how}"]
    return ["level: unsorted (immediate, permanently valid, complete): each row leaves at once, and none is taken back"]


def _final_words(query: Query) -> tuple[str, str, str]:
    """The name of the level, what it adds to that it stays valid, and when its rows leave."""
    return ("delayed", "ordered, ", ", then in order of event time") if query.emit.ordered else ("delayed unsorted", "", "")


def _level_with_peers(query: Query) -> str:
    """OVER (.. RANGE ..): what is said of an event depends on all events of its time."""
    if query.emit.early:
        how = (
            "each row leaves at once; one of the same time (a peer), or a late one, gives - and + where it changes what was said"
        )
        return f"level: convergent unsorted (immediate, eventually valid, complete): {how}"
    name, ordered, order = _final_words(query)
    return f"level: {name} ({ordered}permanently valid, complete): {_held(query)}, with all of its time (its peers){order}"


def _held(query: Query) -> str:
    streams = [s for s in base_streams(query.node) if not s.static]
    if not all(s.bounded for s in streams):
        return "each row is held until the input has ended, because the stream has neither DELAY nor punctuation"
    delays = [s.delay for s in streams if isinstance(s.delay, int)]
    if not delays:
        return "each row is held until punctuation has passed it"
    held = f"each row is held until the frontier has passed it, {format_duration(max(delays))} behind the newest event"
    if len(delays) < len(streams):
        return f"{held}, and where no DELAY is, until punctuation has"
    return f"{held}, or further on where punctuation says so" if any(s.punctuated for s in streams) else held


def _on_spark(lowered: Lowered) -> list[str]:
    """The one query that Spark sees."""
    rejected = [f for f in lowered.finishes if f.rejected is not None]
    lines = [f"{f.query.name} -> {f.query.sink}: rows of {f.rejected} that cannot be read, past all stages" for f in rejected]
    sources = " + ".join([*(s.name for s in lowered.streams), "control"])
    stages = [_count(sum(s.level == level for s in lowered.stages), "stage") for level in range(1, lowered.levels + 1)]
    steps = " -> ".join([f"{sources} -> pack", *(f"exchange -> {n} in one stateful operator" for n in stages), "one sink"])
    return [*lines, f"on Spark: {steps}"]
