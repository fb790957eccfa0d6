"""Which events are let go: what algorithms 1 and 2 of 001 allow is gone, and what could still match never is."""

from __future__ import annotations

from random import Random

import pytest

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.sql import parse_script
from headrace.steps.patterns import step as matching
from headrace.testing.conformance import check_query
from headrace.testing.local import LocalEngine, local_engine
from headrace.testing.pattern_strategies import seeded_pattern_case

UNIT = 1_000_000


def script(pattern: str, types: str, within: int, selection: str = ""):
    """A pattern over streams of which nothing is known but what POGs say."""
    columns = "(at TIMESTAMP, pog TIMESTAMP)"
    says = "TIMESTAMP BY at PUNCTUATED BY pog"
    streams = "".join(f"CREATE STREAM {t} {columns} SOURCE FILE('{t}.csv') {says}; " for t in types)
    return parse_script(f"{streams} EVENT SEQ({pattern}) {selection} WITHIN {within} SECONDS EMIT FINAL INTO found;")


class Stored:
    """A run, event by event, and what is in memory after each."""

    def __init__(self, pattern: str, types: str, within: int, selection: str = "") -> None:
        self.engine, self.types, self.now = LocalEngine(script(pattern, types, within, selection), buckets=1), types, 0

    def push(self, *things: str) -> set[str]:
        """`b6` is an event, `<B,17>` a POG."""
        for thing in things:
            name, time = (thing[1].lower(), int(thing[3:-1])) if thing[0] == "<" else (thing[0], int(thing[1:]))
            at = from_micros(time * UNIT)
            row = (None, at) if thing[0] == "<" else (at, None)
            self.now += UNIT
            self.engine.push(Batch(self.now, {name: [Arrival(row)]}))
        return self.there

    @property
    def there(self) -> set[str]:
        """The events in memory."""
        (processor,) = self.engine._processors.values()
        events = processor.step.events
        names = [s.name for s in processor.stage.sources]
        rows = events.rows[events.there]
        return {f"{names[int(high) >> 50]}{int(ts) // UNIT}" for ts, high in rows[:, :2]}


@pytest.fixture
def at_once(monkeypatch):
    """Events are looked through after every batch."""
    monkeypatch.setattr(matching, "PATIENCE", 0)


def test_example_3(at_once):
    """As printed a0 precedes b1, so nothing can go; with a2 in its place there is no A before b1, and none can come."""
    run = Stored("a, b, !(c x), d", "abcd", 7)
    assert run.push("b1", "a2", "d3", "<A,0>") == {"b1", "a2", "d3"}
    assert run.push("<A,1>") == {"a2", "d3"}
    printed = Stored("a, b, !(c x), d", "abcd", 7)
    assert printed.push("a0", "b1", "d2", "<A,1>") == {"a0", "b1", "d2"}


def test_example_4(at_once):
    """There is a B before a7 and one behind it, but no D behind that, and none can come."""
    run = Stored("b x, a, b y, d, f", "bacdf", 10)
    run.push("a3", "b6", "a7", "d10", "b11", "f17", "b4")
    assert "a7" in run.push("<B,17>")
    assert "a7" not in run.push("<D,17>")


def test_events_go_when_all_pogs_have_passed_their_window(at_once):
    """Their partners are there, so algorithms 1 and 2 keep them; but what may still come cannot be combined with them."""
    run = Stored("a, b", "ab", 5)
    assert run.push("a1", "a2", "b3", "<A,6>", "<B,5>") == {"a1", "a2", "b3"}
    assert run.push("<B,6>") == {"a2", "b3"}
    assert run.push("<A,7>", "<B,7>") == set()  # a2 by its window, and then there is no A before b3


def test_an_event_goes_once_its_next_one_is_known(at_once):
    """With NEXT MATCH it goes with no other; until nothing can come before that, it stays, and so does what it forbids."""
    run = Stored("a, b", "ab", 50, "NEXT MATCH")
    assert run.push("a1", "b4", "a5", "<A,9>", "<B,3>") == {"a1", "b4", "a5"}
    assert run.push("<B,4>") == {"b4", "a5"}
    assert run.push("<A,10>") == {"a5"}
    assert run.push("b11", "<B,12>") == {"a5", "b11"}  # an A may still come before b11
    assert Stored("a, b", "ab", 50).push("a1", "b4", "a5", "<A,9>", "<B,9>") == {"a1", "b4", "a5"}


@pytest.mark.parametrize(
    ("pattern", "kept", "gone"),
    [
        ("!(c x), a, b", ["c1", "a3"], ["c1", "<A,6>"]),
        ("a, !(c x), b", ["a1", "c2"], ["c2", "<A,2>"]),
        ("a, b, !(c x)", ["b1", "c2"], ["c2", "<B,2>"]),
    ],
)
def test_negated_events_go_with_their_neighbours(at_once, pattern, kept, gone):
    """One that no event stands beside, nor can, forbids nothing."""
    assert any(e[0] == "c" for e in Stored(pattern, "abc", 5).push(*kept))
    assert not any(e[0] == "c" for e in Stored(pattern, "abc", 5).push(*gone))


def algorithm_1(event: tuple[int, int], pog: tuple[int, int], events: list[tuple[int, int]], within: int) -> bool:
    """Singleton-POG-Purge, as printed. Events and POGs are (place, ts); the places of the pattern are its types."""
    (i, ts), (k, p) = event, pog
    if p < ts or k == i:
        return False
    if k > i:
        if p - within <= ts <= p:
            return False
        return not any(place == k and ts <= t <= ts + within for place, t in events)
    return not any(place == k and ts - within <= t <= ts for place, t in events)


def algorithm_2(event: tuple[int, int], pogs: dict[int, int], events: list[tuple[int, int]], within: int) -> bool:
    """POG-Set-Purge, as printed."""
    i, ts = event
    checking = ts - within
    for k in sorted(k for k in pogs if k < i):
        if pogs[k] > ts:
            found = [t for place, t in events if place == k and checking <= t <= ts]
            if not found:
                return True
            checking = min(found)
    checking = ts
    for k in sorted(k for k in pogs if k > i):
        if pogs[k] >= ts + within:
            found = [t for place, t in events if place == k and checking <= t <= ts + within]
            if not found:
                return True
            checking = min(found)
    return False


@pytest.mark.parametrize("seed", range(12))
def test_what_the_algorithms_let_go_is_gone(at_once, seed):
    rng, types = Random(seed), "abcd"
    run, pogs, before = Stored("a, b, c, d", types, 6), {}, set()
    purged = 0
    for _ in range(60):
        if rng.random() < 0.4:
            name = rng.choice(types)
            place = types.index(name)
            pogs[place] = max(pogs.get(place, 0), rng.randrange(20))
            there = run.push(f"<{name.upper()},{pogs[place]}>")
        else:
            name = rng.choice(types)
            time = rng.randrange(pogs.get(types.index(name), -1) + 1, 22)
            before.add(f"{name}{time}")
            there = run.push(f"{name}{time}")
        events = [(types.index(e[0]), int(e[1:])) for e in before]
        for event in events:
            if any(algorithm_1(event, pog, events, 6) for pog in pogs.items()) or algorithm_2(event, pogs, events, 6):
                purged += 1
                assert f"{types[event[0]]}{event[1]}" not in there
        before = there
    assert purged


@pytest.mark.parametrize(("promises", "seed"), [(p, seed) for p in (False, True) for seed in range(6)])
def test_nothing_that_could_still_match_is_let_go(at_once, promises, seed):
    """By DELAY, and by POGs of different types that are out of step, lost, late, or never there."""
    case = seeded_pattern_case(10_000 + seed, promises=promises)
    check_query(case.script, case.batches, local_engine, buckets=(1,), restarts=(2,), recuts=1, seed=seed)
