"""Random sequence patterns over one to four streams of readings, and arrivals for all of them.

One clock deals the readings to the streams, so that sequences are found; values are few, so that keys meet, and NULL, NaN and
both zeros are among them. Ties in time, edges of the window and rows behind the frontier are common. Streams may be punctuated:
then they promise what holds, and some of it is lost, comes late, or comes out of order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import Row, from_micros, to_micros
from headrace.plan.aggregates import FUNCTIONS, Aggregate
from headrace.plan.aggregates.counts import COUNT
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Merge, Node, Project, Scan, WindowAggregate
from headrace.plan.patterns import Pattern, Place, Selection, Spill, pattern
from headrace.plan.query import Emit, Query, Script, Using, has_window
from headrace.plan.schema import Schema
from headrace.plan.stream import Bound, FileSource, FrameSource, Stream, Unique
from headrace.plan.time import SECOND
from headrace.plan.windows import RangeWindow
from headrace.testing.strategies import Case, choices

READINGS = Schema.of(at="TIMESTAMP", id="STRING", zone="INT", x="DOUBLE", ok="BOOLEAN")
OWN = ("ok", "zone > 0", "x IS NOT NULL", "id = 'p'", "NOT ok OR zone = 1")
KEYS = ("id", "id", "id", "zone", "zone", "x", "id, zone", "zone + 1")
RARE = ("NOT ok", "NOT ok", "zone = 2", "NOT ok", "id = 'q'")  # of what forbids: else nothing would be left
BETWEEN = (
    "{0}_x < {1}_x", "{0}_zone <> {1}_zone", "{0}_zone + 1 >= {1}_zone", "{0}_zone = {1}_zone OR {0}_ok", "NOT ({0}_x > {1}_x)",
    "{0}_at < {1}_at", "{0}_id <> {1}_id OR {1}_id IS NULL", "{0}_x * 2 <= {1}_x + 1", "{0}_zone = {1}_zone", "{0}_ok = {1}_ok",
)  # fmt: skip
AMONG = ("{0}_zone + {1}_zone > {2}_zone", "{0}_id = {1}_id OR {1}_id = {2}_id", "{0}_zone BETWEEN {1}_zone AND {2}_zone")
SINGLE, NEGATED, REPEATED = "single", "negated", "repeated"
PROMISE = "!"  # the id of a row that is punctuation
PUNCTUATION = Expr.of(f"CASE WHEN id = '{PROMISE}' THEN at END")


def chance(rng: Random, one_in: int) -> bool:
    """Whether something happens that does so once in a while."""
    return rng.choice((False,) * (one_in - 1) + (True,))


def reading_streams(rng: Random, name: str, promises: bool = False) -> Stream:
    """A stream of readings with disorder of its own; where it `promises`, mostly nothing but that bounds it."""
    unique = Unique((Expr.of("id"),), SECOND) if chance(rng, 12) else None
    many = chance(rng, 4)
    return Stream(
        name,
        FrameSource(name, ("p", "o")) if many else FileSource(f"{name}.csv"),
        READINGS,
        timestamp=Expr.of("at"),
        delay=rng.choice((None, None, 5 * SECOND, 20 * SECOND) if promises else (5 * SECOND,) * 5 + (2 * SECOND, 2 * SECOND, 0)),
        punctuation=PUNCTUATION if promises else None,
        idle=rng.choice((None,) * 7 + (2 * SECOND,)),
        ahead=rng.choice((None,) * 7 + (5 * SECOND,)),
        end_after=rng.choice((None,) * 15 + (10 * SECOND,)),
        unique=unique,
    )


def kinds(rng: Random, most: int = 5) -> list[str]:
    """What the places of a pattern are: one that must be there once, and no repeated one beside a negated or repeated one."""
    often = (SINGLE, SINGLE, SINGLE, SINGLE, NEGATED, NEGATED, NEGATED, REPEATED)
    found = [rng.choice(often) for _ in range(min(most, rng.choice((3, 3, 2, 3, 2, 3, 2, 3, 4, 5, 1))))]
    if NEGATED not in found and len(found) > 1 and not chance(rng, 4):  # without, a late event takes little back
        found[rng.choice((0, len(found) // 2, len(found) // 2, -1))] = NEGATED
    for i in range(1, len(found)):
        if REPEATED in found[i - 1 : i + 1] and SINGLE not in found[i - 1 : i + 1]:
            found[i] = SINGLE
    if SINGLE not in found:
        found[rng.choice(range(len(found)))] = SINGLE
    return found


def inputs(rng: Random, streams: Sequence[Stream], derived: bool) -> Node:
    """What stands at a place: a stream, filtered, with other columns, merged; where `derived`, also the results of a step."""
    node: Node = Scan(rng.choice(streams))
    match rng.choice(range(24)):
        case 0:
            return Filter(node, Expr.of(rng.choice(OWN)))
        case 1:
            items = [(n, Expr.of("zone - 1") if n == "zone" else Expr.column(n)) for n in READINGS.names]
            return Project(Filter(node, Expr.of("zone >= 0")), tuple(items))
        case 2 if len(streams) > 1:
            return Merge((node, Scan(rng.choice([s for s in streams if Scan(s) != node]))))
        case 3 if derived:
            count = Aggregate("n", COUNT)
            return Filter(WindowAggregate(node, RangeWindow(2 * SECOND), (Expr.of("id"),), (count,)), Expr.of("n < 3"))
        case 4 if derived:
            inner = patterns(rng, streams, most=2, derived=False)
            last = inner.places[[i for i in inner.positive if not inner.places[i].repeated][-1]]
            return Project(inner, tuple((n, Expr.column(f"{last.name}_{n}")) for n in READINGS.names))
    return node


def patterns(rng: Random, streams: Sequence[Stream], most: int = 5, derived: bool = True) -> Pattern:
    """Any pattern: negations anywhere, repeated places, keys or none, conditions between two and three events."""
    what = kinds(rng, most)
    names = [f"{'snr'[(SINGLE, NEGATED, REPEATED).index(k)]}{i}" for i, k in enumerate(what)]
    places = []
    for name, kind in zip(names, what, strict=True):
        often = rng.choice(RARE) if kind == NEGATED and not chance(rng, 3) else rng.choice(OWN) if chance(rng, 10) else None
        where = Expr.of(often) if often else None
        places.append(Place(name, inputs(rng, streams, derived), kind == NEGATED, kind == REPEATED, where))
    singles = [n for n, k in zip(names, what, strict=True) if k == SINGLE]
    others = [n for n in names if n not in singles]
    conditions: list[str] = []
    if not chance(rng, 3):
        for column in rng.choice(KEYS).split(", "):
            conditions += equalities(rng, column, singles, others)
    for _ in range(rng.choice((0, 0, 0, 0, 1, 1, 2))):
        conditions += comparisons(rng, singles, others)
    within = rng.choice((5 * SECOND, 5 * SECOND, 10 * SECOND, 3 * SECOND, 5 * SECOND, 3 * SECOND, 20 * SECOND))
    if chance(rng, 20):
        within = 1
    selection = rng.choice((*(Selection.ANY, Selection.NEXT, Selection.NEXT, Selection.NEXT) * 2, Selection.STRICT))
    if any(isinstance(p.input, Project) for p in places) and selection is Selection.STRICT:
        selection = Selection.NEXT  # what is the same key then is not always clear, and refused
    groups = tuple(
        (name, calls(rng, f"g{i}_{n}"))
        for i, (name, kind) in enumerate(zip(names, what, strict=True))
        if kind == REPEATED
        for n in range(rng.choice(range(3)))
    )
    spill = spills(rng) if REPEATED not in what and chance(rng, 2) else None
    return pattern(places, [Expr.of(c) for c in conditions], within, selection, groups, spill)


def spills(rng: Random) -> Spill:
    """Hardly any memory; late events may wait for each other, and then for ever or for a while."""
    together = rng.choice((1, 1, 1, 2, 3, 100))
    wait = rng.choice((None, SECOND, 3 * SECOND)) if together > 1 else None
    return Spill(rng.choice((8, 8, 16)), together, wait)


def equalities(rng: Random, column: str, singles: Sequence[str], others: Sequence[str]) -> list[str]:
    """An equality over all places, written in any way: directly, or through a place that is not one event of the result."""

    def term(name: str) -> str:
        return f"{name}_{column}"

    left = list(others)
    out = []
    for one, other in pairwise(singles):
        if len(left) > 0 and chance(rng, 2):
            middle = left.pop(rng.choice(range(len(left))))
            out += [f"{term(one)} = {term(middle)}", f"{term(middle)} = {term(other)}"]
        else:
            out.append(f"{term(one)} = {term(other)}")
    for name in left:
        if not chance(rng, 8):  # else the equality does not cover all places: no key
            out.append(f"{term(rng.choice(singles))} = {term(name)}")
    return out


def comparisons(rng: Random, singles: Sequence[str], others: Sequence[str]) -> list[str]:
    """A condition between two or three events, at most one of them of a place that is not one event of the result."""
    here = shuffled(rng, singles)[:2]
    if len(others) > 0 and chance(rng, 2):
        here = [*here, rng.choice(others)]
    here = shuffled(rng, here)
    if len(here) < 2:
        return []
    if len(here) > 2 and chance(rng, 2):
        return [rng.choice(AMONG).format(*here)]
    return [rng.choice(BETWEEN).format(*here)]


def shuffled(rng: Random, names: Sequence[str]) -> list[str]:
    left, out = list(names), []
    while left:
        out.append(left.pop(rng.choice(range(len(left)))))
    return out


def calls(rng: Random, name: str) -> Aggregate:
    """An aggregate over the events of a repeated place."""
    function = rng.choice((*FUNCTIONS.values(), COUNT))
    where = Expr.of("zone > 0") if chance(rng, 5) else None
    if function.stars and chance(rng, 2):
        return Aggregate(name, function, (), where)
    arguments = tuple(Expr.of(rng.choice(choices(p, READINGS.names, ("zone", "x")))) for p in function.takes)
    return Aggregate(name, function, arguments, where)


def above(rng: Random, node: Pattern) -> Node:
    """A pattern, its results filtered or with other columns, or a window over them."""
    first = next(node.places[i].name for i in node.positive if not node.places[i].repeated)
    match rng.choice(range(8)):
        case 0:
            return Filter(node, Expr.of(f"{first}_zone > 0"))
        case 1:
            return Project(node, (("zone", Expr.column(f"{first}_zone")), ("twice", Expr.of(f"{first}_x * 2"))))
        case 2:
            count = Aggregate("matches", COUNT)
            return WindowAggregate(node, RangeWindow(3 * SECOND), (Expr.column(f"{first}_id"),), (count,))
    return node


def readings(rng: Random, ts: int | None) -> Row:
    """A reading at a time; None is NULL."""
    return (
        None if ts is None else from_micros(ts),
        rng.choice(("p",) * 9 + ("q", "q", "q", "", None)),
        rng.choice((1,) * 9 + (2, 2, 2, 0, -1, None)),
        rng.choice((1.0,) * 8 + (0.0, -0.0, 2.5, -1.5, float("nan"), None)),
        rng.choice((True,) * 6 + (False,) * 3 + (None,)),
    )


def pattern_arrivals(rng: Random, streams: Sequence[Stream], most: int = 24) -> list[Batch]:
    """Batches with readings of all streams: time wanders forward, with steps back within and sometimes beyond the bounds."""
    now = clock = rng.choice((0, 1_700_000_000 * SECOND, -5 * SECOND))
    left = rng.choice(range(2 * most // 3, most + 1))
    batches: list[Batch] = []
    while left > 0 or (batches and chance(rng, 6) and len(batches) < most):
        now += rng.choice((0, 1, 1, 2, 5)) * SECOND
        size = min(left, rng.choice((2, 1, 3, 2, 1, 4, 0)))
        left -= size
        batch: dict[str, list[Arrival]] = {}
        for _ in range(size):
            stream = rng.choice(streams)
            clock += rng.choice((0, 0, 1, 0, 1, 2)) * SECOND
            back = rng.choice((0, 0, 1, 2, 3, 4, 5)) * SECOND
            ts: int | None = clock - back + rng.choice((0, 0, 0, 0, 1, -1))
            match rng.choice(range(150)):
                case 0:
                    ts = None
                case 1:
                    ts = clock + 1_000 * SECOND  # far ahead
            partition = 0 if stream.single_partition else rng.choice(range(2))
            batch.setdefault(stream.name, []).append(Arrival(readings(rng, ts), partition))
        batches.append(Batch(now, batch))
    return batches


Item = tuple[int, str | None, Arrival | None]  # the number of a batch, and a row of a stream; None is the end of the batch


def promised(rng: Random, streams: Sequence[Stream], batches: Sequence[Batch]) -> list[Batch]:
    """The same arrivals, and among them the promises of the streams that are punctuated; some have a batch of their own."""
    items: list[Item] = []
    for number, batch in enumerate(batches):
        items += ((number, name, arrival) for name, arrivals in batch.rows.items() for arrival in arrivals)
        items.append((number, None, None))
    said: dict[int, list[tuple[str, Arrival]]] = {}
    for stream in streams:
        for partition in range(1 if stream.single_partition else 2) if stream.punctuation is not None else ():
            for at, upto in schedule(rng, stream.name, partition, items):
                _, _, *rest = readings(rng, None)
                said.setdefault(at, []).append((stream.name, Arrival((from_micros(upto), PROMISE, *rest), partition)))
    rows: list[dict[str, list[Arrival]]] = [{} for _ in batches]
    for at, (number, name, arrival) in enumerate(items):
        own = [(name, arrival)] if name is not None and arrival is not None else []
        for stream_name, row in (*own, *said.get(at, ())):
            rows[number].setdefault(stream_name, []).append(row)
    return [Batch(batch.now, own) for batch, own in zip(batches, rows, strict=True)]


def schedule(rng: Random, name: str, partition: int, items: Sequence[Item]) -> list[tuple[int, int]]:
    """Promises of one partition, as (the item behind which one comes, up to when): made often, seldom or never.

    What is promised holds when it is said, and so does when it comes, however late. Few streams are careless, and say too much.
    """
    times = [_time(item) if _is_of(item, name, partition) else None for item in items]
    known = [t for t in map(_time, items) if t is not None]
    often, careless = rng.choice((2, 3, 6, 0)), chance(rng, 10)
    least = max(known, default=0) + rng.choice((1, 5, 30)) * SECOND  # the smallest time still to come
    out = []
    for at in reversed(range(len(items))):
        if often and chance(rng, often) and not chance(rng, 5):  # else it is not said, or is lost
            upto = least - 1 - rng.choice((0, 0, 0, 1, SECOND, 5 * SECOND)) + (rng.choice((0, SECOND)) if careless else 0)
            out.append((at + rng.choice((0, 0, 0, 1, 3, 9)), upto))
        here = times[at]
        least = least if here is None else min(least, here)
    return out[::-1]


def _is_of(item: Item, name: str, partition: int) -> bool:
    return item[1] == name and item[2] is not None and item[2].partition == partition


def _time(item: Item) -> int | None:
    """When a reading was taken, if it says so."""
    at = None if item[2] is None else item[2].values[0]
    return None if at is None else to_micros(at)


def seeded_pattern_case(seed: int, most_rows: int = 32, derived: bool = True, promises: bool | None = None) -> Case:
    """One pattern at one or two levels of correctness, and arrivals for its streams; with `promises`, all are punctuated."""
    rng = Random(seed)
    some = promises is None and chance(rng, 3)
    streams = [
        reading_streams(rng, name, promises or (some and chance(rng, 2))) for name in "abcd"[: rng.choice((2, 1, 2, 1, 2, 3, 4))]
    ]
    endless = not promises and chance(rng, 12)
    if endless:
        streams[0] = replace(streams[0], delay=Bound.UNBOUNDED, punctuation=None)
    node = patterns(rng, streams, derived=derived)
    queries = []
    for number in range(rng.choice((1, 2))):
        emit = Emit.CHANGES if endless else rng.choice(list(Emit))
        shown = above(rng, node)
        sortable = emit is Emit.FINAL_IN_ORDER and not isinstance(shown, WindowAggregate)
        plain = not any(has_window(p.input) for p in node.places) and all(s.unique is None for s in streams)
        slack = sortable and plain and all(s.delay is not None for s in streams) and chance(rng, 2)
        queries.append(Query(f"q{number}", shown, emit, using=Using.KSLACK if slack else Using.OPTIMISTIC))
    batches = promised(rng, streams, pattern_arrivals(rng, streams, most_rows))
    return Case(Script(tuple(queries), tuple(streams)), tuple(batches))
