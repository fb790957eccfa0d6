"""The oracle of sequence patterns against all combinations of events, against DuckDB, and on small examples of each rule."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pattern_brute import Ev, Spec, matches

from headrace.oracle.evaluate import results
from headrace.oracle.ties import HALF, choice_key
from headrace.plan.aggregates import Aggregate, function
from headrace.plan.expr import Expr
from headrace.plan.nodes import Filter, Merge, Project, Scan, WindowAggregate
from headrace.plan.patterns import Place, Selection, pattern
from headrace.plan.schema import Schema
from headrace.plan.stream import FileSource, Stream
from headrace.plan.windows import RangeWindow

SCHEMA = Schema.of(at="BIGINT", n="INT", id="STRING", zone="INT")
KINDS = {"": "single", "!": "negated", "+": "repeated"}


def stream(name):
    return Stream(name, FileSource(f"{name}.csv"), SCHEMA, timestamp=Expr.of("at"), timestamp_unit=1, delay=5)


def node_of(places, conditions=(), within=10, selection="ANY", inputs=None, where=None):
    """`places`: (name, stream, kind). A repeated place tells how many events it has, and the sum of their numbers."""
    made = [
        Place(
            name,
            (inputs or {}).get(name, Scan(stream(source))),
            kind == "negated",
            kind == "repeated",
            Expr.of(where[name]) if where and name in where else None,
        )
        for name, source, kind in places
    ]
    calls = (("len", "COUNT", None), ("all", "SUM", "n"), ("low", "FIRST", "n"), ("top", "LAST", "n"))
    groups = tuple(
        (name, Aggregate(f"{name}_{alias}", function(f), (Expr.of(arg),) if arg else ()))
        for name, _, kind in places
        if kind == "repeated"
        for alias, f, arg in calls
    )
    return pattern(made, [Expr.of(c) for c in conditions], within, Selection[selection], groups)


def seq(text):
    """`a A, !b B, c+ C` as places."""
    out = []
    for part in text.split(","):
        name, source = part.split()
        mark = "!" if name[0] == "!" else "+" if name[-1] == "+" else ""
        out.append((name.strip("!+"), source, KINDS[mark]))
    return out


def rows_of(events):
    out = {name: [] for name in "ABCD"}
    for e in events:
        out[e.stream].append(((e.ts, 0, e.pos), (e.ts, e.n, e.id, e.zone)))
    return out


def numbers(node, events):
    """The results as the numbers of their events; a group as (how many, sum, first, last)."""
    names = node.schema.names
    out = Counter()
    for _, row in results(node, rows_of(events)):
        values = dict(zip(names, row, strict=True))
        shown = []
        for i in node.positive:
            p = node.places[i]
            parts = ("len", "all", "low", "top")
            shown.append(tuple(values[f"{p.name}_{x}"] for x in parts) if p.repeated else values[f"{p.name}_n"])
        out[tuple(shown)] += 1
    return out


def as_told(found):
    """Groups of the brute force as the oracle tells them."""
    return Counter({
        tuple((len(p), sum(p), p[0], p[-1]) if isinstance(p, tuple) else p for p in key): n for key, n in found.items()
    })  # fmt: skip


def evs(text):
    """`A3 B5p C7q:1`: stream, time, id, zone."""
    out, count = [], Counter()
    for n, word in enumerate(text.split()):
        head, _, zone = word.partition(":")
        digits = "".join(c for c in head[1:] if c.isdigit())
        out.append(Ev(head[0], int(digits), count[head[0]], n, head[1 + len(digits) :] or None, int(zone) if zone else None))
        count[head[0]] += 1
    return out


def told(places, events, *conditions, **more):
    """The results as texts of their single events: `A3 C7`."""
    events = evs(events)
    node = node_of(seq(places), conditions, **more)
    text = {e.n: f"{e.stream}{e.ts}" for e in events}
    out = []
    for shown, times in sorted(numbers(node, events).items(), key=repr):
        out += [" ".join(f"{p[0]}x[{text[p[2]]}..{text[p[3]]}]" if isinstance(p, tuple) else text[p] for p in shown)] * times
    return sorted(out)


POOL = (
    ("{0}_zone < {1}_zone", lambda a, b: None not in (a.zone, b.zone) and a.zone < b.zone),
    ("{0}_zone <> {1}_zone", lambda a, b: None not in (a.zone, b.zone) and a.zone != b.zone),
    ("{0}_zone = {1}_zone OR {0}_zone = 0", lambda a, b: a.zone == 0 or (a.zone is not None and a.zone == b.zone)),
    ("NOT ({0}_zone + 1 > {1}_zone)", lambda a, b: None not in (a.zone, b.zone) and a.zone + 1 <= b.zone),
    ("{0}_at + 2 <= {1}_at", lambda a, b: a.ts + 2 <= b.ts),
)


def random_spec(rng):
    """A pattern, and the SQL of its conditions."""
    often = ("single", "single", "single", "negated", "negated", "repeated")
    kinds = [rng.choice(often) for _ in range(rng.choice((1, 2, 3, 3, 4, 5)))]
    for i in range(1, len(kinds)):
        if "repeated" in kinds[i - 1 : i + 1] and "single" not in kinds[i - 1 : i + 1]:
            kinds[i] = "single"
    if "single" not in kinds:
        kinds[rng.randrange(len(kinds))] = "single"
    places = [(f"p{i}", rng.choice("AABC"), kind) for i, kind in enumerate(kinds)]
    singles = [name for name, _, kind in places if kind == "single"]
    others = [name for name, _, kind in places if kind != "single"]
    keyed = rng.random() < 0.4 and len(places) > 1
    sql, conditions = [], []
    if keyed:
        links = [(singles[0], o) for o in others] + list(pairwise(singles))
        if others and len(singles) > 1 and rng.random() < 0.5:  # the last single event is tied through another place
            links = [link for link in links if link[1] != singles[-1]] + [(rng.choice(others), singles[-1])]
        sql += [f"{a}_id = {b}_id" for a, b in links]
    for _ in range(rng.choice((0, 0, 1, 2))):
        two = rng.sample(singles, min(2, len(singles)))
        if others and rng.random() < 0.6:
            two = [two[0], rng.choice(others)]
        if len(two) == 2:
            rng.shuffle(two)
            text, f = rng.choice(POOL)
            sql.append(text.format(*two))
            conditions.append((tuple(two), f))
    return Spec(places, conditions, rng.choice((3, 5, 10, 20)), rng.choice(("ANY", "NEXT", "STRICT")), keyed), sql


def random_events(rng, most, until=9):
    count = Counter()
    out = []
    for n in range(rng.randint(most // 2, most)):
        s = rng.choice("AABC")
        out.append(
            Ev(s, rng.randint(0, until), count[s], n, rng.choice(("p", "p", "p", "q", None)), rng.choice((0, 1, 2, 3, None)))
        )
        count[s] += 1
    return out


@given(st.integers(0, 2**32))
@settings(max_examples=max(60, settings.default.max_examples))
def test_all_combinations(seed):
    rng = Random(seed)
    spec, sql = random_spec(rng)
    events = random_events(rng, 14 if len(spec.positive) < 4 else 9)
    node = node_of(spec.places, sql, spec.within, spec.selection)
    assert numbers(node, events) == as_told(matches(spec, events)), (spec.places, sql, spec.selection, spec.within, events)


def test_the_random_patterns_have_results_of_every_kind():
    seen = Counter()
    for seed in range(400):
        rng = Random(seed)
        spec, _ = random_spec(rng)
        found = matches(spec, random_events(rng, 14 if len(spec.positive) < 4 else 9))
        if found:
            seen.update([spec.selection, f"keyed {spec.keyed}", *{kind for _, _, kind in spec.places}, len(spec.positive)])
    wanted = ("ANY", "NEXT", "STRICT", "keyed True", "keyed False", "negated", "repeated", 1, 2, 3)
    assert all(seen[x] >= 15 for x in wanted), seen


KEY = ("a_id = b_id", "b_id = c_id")
DUCK = {
    # What each asks for, and the same in SQL: o is the place of an event in the total order.
    ("a A, !b B, c C", KEY): """
        SELECT a.n, c.n FROM A a, C c WHERE a.o < c.o AND c.ts - a.ts <= 5 AND a.id = c.id
        AND NOT EXISTS (FROM B b WHERE a.o < b.o AND b.o < c.o AND b.id = a.id)""",
    ("!b B, a A, c C", KEY): """
        SELECT a.n, c.n FROM A a, C c WHERE a.o < c.o AND c.ts - a.ts <= 5 AND a.id = c.id
        AND NOT EXISTS (FROM B b WHERE b.o < a.o AND b.ts >= c.ts - 5 AND b.id = a.id)""",
    ("a A, c C, !b B", KEY): """
        SELECT a.n, c.n FROM A a, C c WHERE a.o < c.o AND c.ts - a.ts <= 5 AND a.id = c.id
        AND NOT EXISTS (FROM B b WHERE b.o > c.o AND b.ts <= a.ts + 5 AND b.id = a.id)""",
    ("a A, !b B, !x A, c C", ("a_zone < b_zone", "x_zone >= c_zone")): """
        SELECT a.n, c.n FROM A a, C c WHERE a.o < c.o AND c.ts - a.ts <= 5
        AND NOT EXISTS (FROM B b WHERE a.o < b.o AND b.o < c.o AND a.zone < b.zone)
        AND NOT EXISTS (FROM A x WHERE a.o < x.o AND x.o < c.o AND x.zone >= c.zone)""",
    ("a A, b A, c A", ("a_zone < b_zone OR b_zone > c_zone",)): """
        SELECT a.n, b.n, c.n FROM A a, A b, A c WHERE a.o < b.o AND b.o < c.o AND c.ts - a.ts <= 5
        AND (a.zone < b.zone OR b.zone > c.zone)""",
    ("a A, b+ B, c C", KEY): """
        SELECT a.n, (COUNT(*), SUM(b.n)::INT, FIRST(b.n ORDER BY b.o), LAST(b.n ORDER BY b.o)), c.n FROM A a, B b, C c
        WHERE a.o < b.o AND b.o < c.o AND c.ts - a.ts <= 5 AND a.id = b.id AND b.id = c.id GROUP BY a.n, c.n""",
}  # fmt: skip


@pytest.mark.parametrize("query", DUCK, ids=[places for places, _ in DUCK])
@pytest.mark.parametrize("seed", range(6))
def test_duckdb_says_the_same(query, seed):
    places, conditions = query
    rng = Random(seed)
    events = random_events(rng, 90, until=50)
    node = node_of(seq(places), conditions, within=5)
    ranks = list(dict.fromkeys(source for _, source, _ in seq(places)))
    ordered = sorted((e for e in events if e.stream in ranks), key=lambda e: (e.ts, ranks.index(e.stream), e.pos))
    base = duckdb.connect()
    for name in "ABC":
        base.execute(f"CREATE TABLE {name} (o INT, ts INT, n INT, id TEXT, zone INT)")
        rows = [(o, e.ts, e.n, e.id, e.zone) for o, e in enumerate(ordered) if e.stream == name]
        base.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", rows or [(-1, -99, -1, None, None)])
    want = Counter(base.execute(DUCK[query]).fetchall())
    assert want
    assert numbers(node, events) == want


def test_the_window_is_closed():
    assert told("a A, c C", "A0 C10 C11") == ["A0 C10"]


def test_at_one_time_streams_stand_in_the_order_in_which_they_are_named():
    assert told("a A, c C", "C5 A5") == ["A5 C5"]
    assert told("c C, a A", "C5 A5") == ["C5 A5"]


def test_rows_of_one_stream_at_one_time_stand_in_the_order_of_arrival_and_none_follows_itself():
    assert told("x A, y A", "A5 A5 A4") == ["A4 A5", "A4 A5", "A5 A5"]


def test_a_negated_event_lies_strictly_between():
    assert told("a A, !x A, c C", "A3 C5") == ["A3 C5"]
    assert told("a A, !b B, c C", "A3 B5 C5") == []  # B is named before C: it stands before it
    assert told("a A, c C, d D, !b B", "A3 C4 B5 D5") == []
    assert told("b B, a A, !x B, c C", "B3 A3 C3") == ["B3 A3 C3"]


def test_negation_at_the_start_reaches_back_from_the_last_event():
    assert told("!b B, a A, c C", "B0 A5 C10") == []
    assert told("!b B, a A, c C", "B0 A5 C11") == ["A5 C11"]


def test_negation_at_the_end_reaches_on_from_the_first_event():
    assert told("a A, c C, !b B", "A0 C5 B10") == []
    assert told("a A, c C, !b B", "A0 C5 B11") == ["A0 C5"]


def test_several_negations_in_one_gap_each_forbid():
    assert told("a A, !b B, !d D, c C", "A1 C2 A11 B12 C13 A21 D22 C23") == ["A1 C2"]


def test_a_negation_forbids_only_with_its_conditions():
    assert told("a A, !b B, c C", "A1:1 B2:1 C3:2", "b_zone > a_zone") == ["A1 C3"]
    assert told("a A, !b B, c C", "A1:1 B2:2 C3:2", "b_zone > a_zone") == []
    assert told("a A, !b B, c C", "A1:1 B2:2 C3:2", "b_zone > a_zone", "b_zone > c_zone") == ["A1 C3"]


def test_equalities_close_through_a_negated_event():
    assert told("a A, !b B, c C", "A1p C2q C3p", "a_id = b_id", "b_id = c_id") == ["A1 C3"]


def test_equalities_close_through_a_repeated_place():
    assert told("a A, b+ B, c C", "A1p B2p C3q C4p", "a_id = b_id", "b_id = c_id") == ["A1 1x[B2..B2] C4"]


def test_a_row_whose_key_is_null_follows_nothing_and_forbids_nothing_but_may_stand_alone():
    assert told("a A, c C", "A1 C2", "a_id = c_id") == []
    assert told("a A, !b B, c C", "A1p B2 C3p", "a_id = b_id", "b_id = c_id") == ["A1 C3"]
    assert told("a A, !b B", "A1 A2p B3p B3", "a_id = b_id") == ["A1"]


def test_next_takes_the_first_that_fits():
    assert told("a A, b B, c C", "A1 B2 B3 C4 C5", selection="NEXT") == ["A1 B2 C4"]
    assert told("a A, b B", "A1:1 B2:0 B3:1 B4:1", "a_zone = b_zone", selection="NEXT") == ["A1 B3"]
    # B2 fits behind A1: that it does not go with C4 comes too late.
    assert told("a A, b B, c C", "A1 B2:1 B3:2 C4:2", "b_zone = c_zone", selection="NEXT") == []


def test_strict_lets_nothing_lie_between():
    assert told("a A, b B", "A1 A2 B3 B4", selection="STRICT") == ["A2 B3"]
    assert told("a A, b B, c C", "A1 B2 C3 A11 C12 B13 C14", selection="STRICT") == ["A1 B2 C3"]
    assert told("a A, b B", "A1 C2 B3", selection="STRICT") == ["A1 B3"]  # C is no stream of the pattern


def test_strict_looks_at_its_own_key():
    assert told("a A, b B", "A1p A2q B3p B4q", "a_id = b_id", selection="STRICT") == ["A1 B3", "A2 B4"]
    assert told("a A, b B", "A1p A2 B3p", "a_id = b_id", selection="STRICT") == ["A1 B3"]


def test_strict_does_not_ask_what_an_event_is_like_by_itself():
    assert told("a A, b B", "A1:1 B2:0 B3:1", where={"b": "zone > 0"}, selection="STRICT") == []
    filtered = {"b": Filter(Scan(stream("B")), Expr.of("zone > 0"))}
    assert told("a A, b B", "A1:1 B2:0 B3:1", inputs=filtered, selection="STRICT") == []
    assert told("a A, b B", "A1:1 B2:0 B3:1", inputs=filtered) == ["A1 B3"]


def test_repeated_inside_takes_all_that_fit():
    assert told("a A, b+ B, c C", "A1 B2:1 B3:9 B4:1 C5 C6:0") == ["A1 3x[B2..B4] C5", "A1 3x[B2..B4] C6"]
    assert told("a A, b+ B, c C", "A1 B2:1 B3:9 B4:1 C5:2", "b_zone < c_zone") == ["A1 2x[B2..B4] C5"]
    assert told("a A, b+ B, c C", "A1 C5") == []


def test_repeated_at_the_start_begins_with_any_event_and_at_the_end_ends_with_any():
    assert told("b+ B, c C", "B1 B2 B3 C4") == ["1x[B3..B3] C4", "2x[B2..B3] C4", "3x[B1..B3] C4"]
    assert told("a A, b+ B", "A1 B2 B3") == ["A1 1x[B2..B2]", "A1 2x[B2..B3]"]
    assert told("b+ B, c C", "B1 B5 C12") == ["1x[B5..B5] C12"]  # B1 is too long ago to begin with


def test_repeated_and_selection():
    assert told("a A, b+ B, c C", "A1 B2 B3 C4 C5", selection="NEXT") == ["A1 2x[B2..B3] C4"]
    assert told("a A, b+ B, c C", "A1 B2 B3 C4 A11 B12 A13 C14", selection="STRICT") == ["A1 2x[B2..B3] C4"]
    assert told("a A, b+ B", "A1 B2 B3 A4 B5", selection="STRICT") == ["A1 1x[B2..B2]", "A1 2x[B2..B3]", "A4 1x[B5..B5]"]
    assert told("a A, b+ B", "A1 B2 B3", selection="NEXT") == ["A1 1x[B2..B2]", "A1 2x[B2..B3]"]


def test_merged_streams_at_a_place_stand_in_the_order_of_the_pattern():
    both = {"b": Merge((Scan(stream("B")), Scan(stream("C"))))}
    assert told("a A, b B", "A1 B2 C3", inputs=both) == ["A1 B2", "A1 C3"]
    # C is named first here, by the first place: at one time it stands before B.
    assert told("x C, b B", "C5 B5 C5", inputs=both) == ["C5 B5", "C5 B5", "C5 C5"]


def test_the_columns_of_a_derived_stream_are_those_that_conditions_see():
    items = (("at", Expr.of("at")), ("n", Expr.of("n")), ("id", Expr.of("id")), ("zone", Expr.of("zone + 1")))
    shifted = {"b": Project(Scan(stream("B")), items)}
    assert told("a A, b B", "A1:1 B2:0 B3:1", "a_zone = b_zone", inputs=shifted) == ["A1 B2"]


def test_a_window_is_a_unit_of_its_own_and_stands_with_its_rows():
    count = Aggregate("many", function("COUNT"))
    windowed = {"b": WindowAggregate(Scan(stream("A")), RangeWindow(3), (), (count,))}
    # The window gives a row for each A, at its place but behind it: A is named first.
    assert told("a A, b B", "A1 A2", inputs=windowed) == ["A1 A1", "A1 A2", "A2 A2"]
    assert told("a A, b B", "A1 A2", "b_many > 1", inputs=windowed) == ["A1 A2", "A2 A2"]


def test_the_key_of_a_result_is_that_of_its_last_event_and_tells_the_others_apart():
    node = node_of(seq("a A, b B, c C"), within=100)
    found = results(node, rows_of(evs("A1 A2 B3 B4 C5")))
    assert [key[:3] for key, _ in found] == [(5, 2 << 50, 0)] * 4
    assert len({key[3:] for key, _ in found}) == 4
    (one,) = results(node, rows_of(evs("A1 B3 C5")))
    assert one[0] == choice_key((1, 0, 0), (3, 1 << 50, 0), (5, 2 << 50, 0))


def test_the_place_of_a_choice():
    """It stands right behind its last event, in the order of the first, then of the second."""
    assert choice_key((5, 0, 0)) == (5, 0, 0)
    assert choice_key((5, 0, 0, 77)) == (5, 0, 0, 77)
    assert choice_key((1, 0, 2), (5, 0, 0, 77)) == (5, 0, 0, 77, HALF + 1, HALF, HALF + 2)
    choices = [[(1, 0, 0), (3, 0, 0), (5, 0, 0)], [(1, 0, 0), (4, 0, 0), (5, 0, 0)], [(2, 0, 0), (3, 0, 0), (5, 0, 0)]]
    keys = [(5, 0, 0), *(choice_key(*choice) for choice in choices), (5, 0, 1)]
    assert keys == sorted(keys)


def test_a_pattern_of_one_event_keeps_its_place():
    found = results(node_of(seq("a A, !b B")), rows_of(evs("A1 A2 B12")))
    assert [key for key, _ in found] == [(1, 0, 0)]


def test_a_negation_at_the_end_is_told_when_the_clock_is_past_it():
    node = node_of(seq("a A, !b B"))
    assert results(node, rows_of(evs("A1")), 11) == []
    assert len(results(node, rows_of(evs("A1")), 12)) == 1
