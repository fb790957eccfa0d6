"""Searches pass by events whose value is no better than one that was too large, or too small; what they find is the same."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count
from random import Random

import numpy as np
import pytest

from headrace.kernels.patterns import stacks
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.expr import Expr
from headrace.plan.time import SECOND
from headrace.program.patterns import Condition, PlaceProgram, Word
from headrace.sql import parse_script
from headrace.stages.lower import lower
from headrace.steps.patterns import search as sequences
from headrace.steps.patterns.events import Events
from headrace.steps.patterns.search import Search, refutations
from headrace.testing.conformance import check_query
from headrace.testing.local import LocalEngine, local_engine

STREAMS = "".join(
    f"""CREATE STREAM {name} (at TIMESTAMP, k INT, n BIGINT, x DOUBLE) SOURCE FILE('{name}.csv')
        TIMESTAMP BY at DELAY 20 SECONDS;\n"""
    for name in "abc"
)
LEAST, MOST = -(2**63), 2**63 - 1
WHOLE = (0, 1, 2, 3, 5, 8, -4, MOST, LEAST, None)
NUMBERS = count()  # no two events stand at one place of the order
REAL = (0.0, -0.0, 1.5, 2.5, -3.25, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, None)
CONDITIONS = (
    "b.x > a.x", "b.x >= a.x + 1", "a.x - b.x < 2", "b.x - a.x > 1", "a.x + b.x < 1", "a.x + b.x > 1e308", "b.x < -a.x",
    "b.x > 2 * a.x", "a.x * -1 < b.x / 2", "b.x BETWEEN a.x - 1 AND a.x + 1", "NOT b.x > a.x", "b.x > a.x AND b.n < a.n",
    "b.n > a.n", "b.n <= a.n", "a.n + b.n > 5", "a.n - b.n < 5", "a.n * b.n < 7", "b.n > a.x",
    "a.n - b.n BETWEEN -1 AND 2", "b.at - a.at < INTERVAL 6 SECONDS", "b.n > a.n OR b.x > a.x",
)  # fmt: skip


def script(pattern: str, where: str, rest: str = ""):
    text = f"{STREAMS} EVENT SEQ({pattern}) WHERE {where} WITHIN 30 SECONDS RETURN a.n AS n, a.x AS x, b.n AS m, b.x AS y {rest}"
    return parse_script(f"{text} EMIT CHANGES INTO o;")


def disordered(rng: Random, size: int, whole: tuple = WHOLE, real: tuple = REAL, keys: int = 2) -> list[Batch]:
    events = [(rng.choice("abc"), at, (rng.randrange(keys), rng.choice(whole), rng.choice(real))) for at in range(size)]
    events.sort(key=lambda e: e[1] + (rng.randrange(20) if rng.random() < 0.4 else 0))
    out = []
    for i in range(0, size, 7):
        rows: dict[str, list[Arrival]] = {}
        for name, at, values in events[i : i + 7]:
            rows.setdefault(name, []).append(Arrival((from_micros(at * SECOND), *values)))
        out.append(Batch((i + 1) * SECOND, rows))
    return out


def outputs(one, batches: list[Batch]) -> list[list[str]]:
    sequences.search_of.cache_clear()
    engine = LocalEngine(one, 1)
    return [sorted(map(str, changes["o"])) for changes in (*map(engine.push, batches), engine.finish(10**9))]


@pytest.fixture
def plain(monkeypatch):
    """Gives what comes out if every event is looked at."""

    def run(one, batches: list[Batch]) -> list[list[str]]:
        with monkeypatch.context() as patch:
            patch.setattr(sequences, "refutations", lambda *_: [])
            out = outputs(one, batches)
        sequences.search_of.cache_clear()
        return out

    return run


@pytest.mark.parametrize("where", CONDITIONS)
def test_what_is_passed_by_would_not_have_been_found(where, plain):
    """Also next to what overflows, and between values that have no order or no end."""
    one = script("a, !(c), b" if len(where) % 2 else "a, b, c", f"a.k = b.k AND c.k = a.k AND {where}")
    batches = disordered(Random(where), 84, keys=1)
    found = outputs(one, batches)
    assert found == plain(one, batches)
    assert any(found)


@pytest.mark.parametrize("where", ["c.x > a.x", "c.x < b.x - a.x", "c.n BETWEEN a.n AND b.n"])
def test_negations_pass_by_what_does_not_forbid(where, plain):
    one = script("a, !(c), b", f"a.k = b.k AND b.k = c.k AND {where}")
    batches = disordered(Random(where), 140)
    found = outputs(one, batches)
    assert found == plain(one, batches)
    assert any("Change(sign=-1" in change for changes in found for change in changes)


ORDINARY = {
    "rising": "a.k = b.k AND b.n > a.n + 1",
    "difference of doubles": "a.k = b.k AND a.x - b.x >= 1",
    "two sides, no key": "b.n BETWEEN a.n - 1 AND a.n + 1 AND b.x < a.x",
}


@pytest.mark.parametrize("name", ORDINARY)
@pytest.mark.parametrize("pattern", ["a, b", "a, b, !(c)", "a, c+, b"])
def test_the_oracle_says_the_same(name, pattern):
    groups = " WITH (memory = 8)" if pattern == "a, b" else ""
    batches = disordered(Random(f"{name} {pattern}"), 84, (0, 1, 2, 3, 4, None), (0.0, 1.5, -2.0, 3.0, None))
    losses = name == "rising"  # what is late or rejected does not depend on the conditions
    check_query(
        script(pattern, ORDINARY[name], groups), batches, local_engine, buckets=(1, 3), restarts=(2, 7), recuts=1, losses=losses
    )


# ---- pointers ---------------------------------------------------------------------------------------------------------


def better(row: np.ndarray, other: np.ndarray, slope: np.ndarray) -> bool:
    """By the definition. Of a NULL, all else is better; what is not finite is always looked at."""
    value, against = (read(r, slope) for r in (row, other))
    if value is None or not is_finite(value, slope):
        return value is not None
    if against is None:
        return True
    if not is_finite(against, slope):
        return False
    same_but_signed = value == against == 0 and isinstance(value, float)
    value, against = (math.copysign(1, v) if same_but_signed else v for v in (value, against))
    return value > against if slope[stacks.S_MORE] else value < against


def is_finite(value: float | int, slope: np.ndarray) -> bool:
    """The best whole number of all is looked at as if it were not."""
    return math.isfinite(value) if isinstance(value, float) else value != (MOST if slope[stacks.S_MORE] else LEAST)


def read(row: np.ndarray, slope: np.ndarray) -> float | int | None:
    word = slope[stacks.S_WORD]
    if (int(row[stacks.NULLS]) >> int(word)) & 1:
        return None
    value = row[stacks.WORDS + word]
    if not slope[stacks.S_DOUBLE] and value == (LEAST if slope[stacks.S_MORE] else MOST):
        return None  # the worst of all is as good as a NULL
    return float(np.int64(value).view(np.float64)) if slope[stacks.S_DOUBLE] else int(value)


def check_pointers(events: Events, search: Search) -> int:
    """Every row points to the nearest better one in its chain. Gives how many do."""
    state, pointing = events.state, 0
    for k, slope in enumerate(search.slopes):
        j = int(slope[stacks.S_INDEX])
        local = int(search.indexes[j, stacks.LOCAL])
        for newest in state.last[j][state.last[j] != stacks.NONE]:
            chain = [int(newest)]
            while state.links[chain[-1], local] != stacks.NONE:
                chain.append(int(state.links[chain[-1], local]))
            for i, row in enumerate(chain):
                value = read(state.rows[row], slope)
                if value is not None and not is_finite(value, slope):
                    continue  # walks go on to the next from there
                wanted = (r for r in chain[i + 1 :] if better(state.rows[r], state.rows[row], slope))
                assert state.skips[row, k] == next(wanted, stacks.NONE)
                pointing += state.skips[row, k] != stacks.NONE
    return pointing


def line(search: Search, rng: Random, at: int, kinds: list[str]) -> np.ndarray:
    """An event that fits at one of two places, with a value of each word by its type."""
    out = np.zeros(stacks.WORDS + len(kinds), np.int64)
    out[stacks.TS], out[stacks.LOW] = at, next(NUMBERS)
    out[stacks.KEY], out[stacks.BITS] = rng.randrange(2), rng.choice((1, 2))
    for i, kind in enumerate(kinds):
        value = rng.choice(REAL if kind == "DOUBLE" else WHOLE)
        if value is None:
            out[stacks.NULLS] |= 1 << i
        else:
            out[stacks.WORDS + i] = np.float64(value).view(np.int64) if kind == "DOUBLE" else value
    return out


@pytest.mark.parametrize("seed", range(3))
def test_pointers_lead_to_the_nearest_better_event(seed):
    """Whatever comes and goes, in whatever order."""
    rng = Random(seed)
    (stage,) = lower(script("a, b", "a.k = b.k AND b.x > a.x AND b.n < a.n AND b.x - a.x < 100")).stages
    search = Search(stage.program.sequence)
    types = {w.vector: w.type for place in stage.program.sequence.places for w in place.words}
    kinds = [types[vector] for vector in search.plan.vectors]
    events, there, seen = Events(search), set(), 0
    for step in range(80):
        chosen = events.add(np.stack([line(search, rng, step + rng.randrange(-15, 1), kinds) for _ in range(3)]))
        stacks.link_all(events.state, chosen)
        there |= set(chosen.tolist())
        match rng.randrange(6):
            case 0:
                gone = np.array(rng.sample(sorted(there), 2), np.int64)
                stacks.unlink_all(events.state, gone)
                events.free(gone)
            case 1:
                gone = np.array(rng.sample(sorted(there), min(len(there), 9)), np.int64)
                stacks.let_go(events.state, gone)
                events.free(gone)
            case 2:
                events.expire(step - 20)
        there = set(np.flatnonzero(events.there).tolist())
        seen += check_pointers(events, search)
    assert seen > 100


def test_few_of_many_values_are_looked_at():
    """A walk from the newest that finds nothing has about as many steps as the logarithm."""
    rng = Random(1)
    (stage,) = lower(script("a, b", "a.k = b.k AND b.x > a.x + 1000")).stages
    search, steps = Search(stage.program.sequence), []
    events = Events(search)
    base = line(search, rng, 0, ["DOUBLE"] * len(search.plan.vectors))
    lines = np.repeat(base[None], 5_000, axis=0)
    lines[:, stacks.TS], lines[:, stacks.KEY], lines[:, stacks.NULLS] = np.arange(5_000), 0, 0
    lines[:, stacks.BITS] = 1 + np.arange(5_000) % 2
    lines[:, stacks.WORDS :] = np.random.default_rng(1).random((5_000, 1)).view(np.int64)
    chosen = events.add(lines)
    stacks.link_all(events.state, chosen)
    for k, slope in enumerate(search.slopes):
        j = int(slope[stacks.S_INDEX])
        (row,) = events.state.last[j][events.state.last[j] != stacks.NONE]
        walked = 0
        while row != stacks.NONE:
            row, walked = events.state.skips[row, k], walked + 1
        steps.append(walked)
    assert steps
    assert max(steps) < 30


# ---- which conditions -------------------------------------------------------------------------------------------------

PLACE = PlaceProgram("x", 0, (0,), (Word(0, "DOUBLE"), Word(1, "BIGINT")))
KNOWN = {
    "w0_0 < w1_0": [("w0_0 >= w1_0", 0, False)],
    "w0_0 > w1_0": [("w0_0 <= w1_0", 0, True)],
    "w1_0 <= w0_1": [("w1_0 > w0_1", 1, True)],
    "w1_0 >= (w0_1)": [("w1_0 < (w0_1)", 1, False)],
    "w1_0 - w0_0 > 5": [("w1_0 - w0_0 <= 5", 0, False)],
    "-(w0_0 + w1_0) < 2": [("-(w0_0 + w1_0) >= 2", 0, True)],
    "w0_0 * -2 < w1_0": [("w0_0 * -2 >= w1_0", 0, True)],
    "w1_0 BETWEEN w0_0 AND 5": [("(w1_0) < (w0_0)", 0, False)],
    "w0_0 BETWEEN w1_0 AND w1_1": [("(w0_0) < (w1_0)", 0, True), ("(w0_0) > (w1_1)", 0, False)],
}


@pytest.mark.parametrize("text", KNOWN)
def test_what_refutes(text):
    found = refutations(Condition(Expr.of(text), (0, 1)), 0, PLACE)
    assert [(str(r.opposite), r.word, r.more) for r in found] == KNOWN[text]
    assert all(r.double == (r.word == 0) for r in found)


@pytest.mark.parametrize(
    "text",
    [
        "w0_0 = w1_0", "w0_0 <> w1_0", "w0_0 < w0_1", "w0_0 + w0_1 < w1_0", "w0_0 * w1_0 < 5", "w1_0 / w0_0 < 5",
        "ABS(w0_0) < w1_0", "w0_0 * 0 < w1_0", "w0_0 * 1e999 < w1_0", "w0_0 < w1_0 OR w1_0 < 3", "NOT w0_0 < w1_0", "w1_0 < w1_1",
    ],
)  # fmt: skip
def test_of_other_conditions_nothing_is_said(text):
    assert refutations(Condition(Expr.of(text), (0, 1)), 0, PLACE) == []


def test_a_pattern_with_as_many_conditions_as_there_is_room_for():
    (stage,) = lower(script("a, b", "a.k = b.k AND b.x > a.x")).stages
    spec = stage.program.sequence
    many = replace(spec, conditions=(*spec.conditions, *(Condition(Expr.of("TRUE"), (0, 1)) for _ in range(61))))
    assert Search(many).slopes.shape == (0, stacks.SLOPE)
