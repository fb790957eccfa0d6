"""Increments of a task processor: the last lap of them is the whole state, whatever has changed in between."""

from __future__ import annotations

from random import Random

import pytest

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import canonical_row, from_micros
from headrace.plan.time import SECOND
from headrace.runtime.increments import STEPS, Lap, restore, steps_for, take
from headrace.runtime.processor import TaskProcessor
from headrace.sql import parse_script
from headrace.state.codec import decode, encode
from headrace.state.parts import numbers_of
from headrace.testing.local import LocalEngine

STREAM = """CREATE STREAM p (at TIMESTAMP, card STRING, shop INT, x DOUBLE, word STRING)
  SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 1 SECOND{};"""
QUERIES = {
    "sums": "SELECT card, SUM(x) AS s, COUNT(*) AS n, STDDEV(x) AS d FROM p [RANGE 9 SECONDS] GROUP BY card EMIT CHANGES INTO q;",
    "one of them": "SELECT shop, MIN(x) AS a, MAX(word) AS b, LAST(card) AS c FROM p [RANGE 9 SECONDS] GROUP BY shop INTO q;",
    "pushed out": "SELECT card, SUM(x) AS s, MAX(word) AS m, COUNT(DISTINCT word) AS w FROM p [ROWS 70] GROUP BY card INTO q;",
    "rings": "SELECT card, shop, SUM(x) AS s, FIRST(word) AS f FROM p [ROWS 2 PARTITIONED BY card] GROUP BY card, shop INTO q;",
    "ranks": "SELECT card, PERCENTILE(x, 0.5) AS m, COLLECT_LIST(word) AS l FROM p [RANGE 9 SECONDS] GROUP BY card INTO q;",
    "ever": "SELECT card, SUM(x) AS s, MAX(word) AS m FROM p [UNBOUNDED] GROUP BY card EMIT CHANGES INTO q;",
    "keep": "SELECT card, SUM(x) AS s, COUNT(DISTINCT word) AS w FROM p [UNBOUNDED] GROUP BY card EMIT CHANGES INTO q;",
    "unique": "SELECT card, COUNT(*) AS n FROM p [RANGE 9 SECONDS] GROUP BY card EMIT CHANGES INTO q;",
    "join": "SELECT a.card, b.x FROM p [RANGE 4 SECONDS] a JOIN p [ROWS 2 PARTITIONED BY card] b ON a.card = b.card INTO q;",
    "pattern": "EVENT SEQ(p a, p b) WHERE a.card = b.card AND a.x < b.x WITHIN 4 SECONDS RETURN a.card AS card, b.x AS x INTO q;",
}
CLAUSES = {"keep": " KEEP 5 SECONDS", "unique": " UNIQUE BY card WITHIN 2 SECONDS"}


def batches(random: Random, count: int, cards: int):
    for number in range(count):
        rows = []
        for _ in range(random.choice((1, 5))):
            ts = number * SECOND // 2 - random.choice((0, 0, 0, 1)) * SECOND
            card, word = random.randrange(cards) + number // 40 * cards // 3, f"word {random.randrange(2 * cards)}"
            x = random.choice((0.1, 0.2, 1e9, float("nan"), None))
            rows.append(Arrival((from_micros(ts), f"card {card}", random.randrange(9), x, word)))
        yield Batch(number, {"p": rows})


def shown(outputs):
    return [(c.sign, c.key, canonical_row(c.row)) for c in outputs["q"]]


@pytest.mark.parametrize("name", QUERIES)
def test_a_processor_goes_on_from_its_increments(name):
    script, random = parse_script(STREAM.format(CLAUSES.get(name, "")) + QUERIES[name]), Random(name)
    whole, other = (LocalEngine(script, 1) for _ in range(2))
    at = next(iter(other._processors))
    lap, written, head, pages = Lap(), [], {}, {}
    sizes, restored = [], 0
    for batch in batches(random, 260, 60):
        assert shown(other.push(batch)) == shown(whole.push(batch))
        processor = other._processors[at]
        if random.random() < 0.4:
            steps = steps_for([processor])
            increment, lap = take(processor, lap, steps)
            sizes.append(sum(len(numbers_of(piece.which)) for piece in increment.pieces))
            written.append((lap.step, encode(increment.written(), compress=True)))
            written = [(step, data) for step, data in written if step + STEPS > lap.step]
            head = encode(increment.head)
            pages = {n: p for n, p in {**pages, **increment.pages.put}.items() if n not in increment.pages.dropped}
            if random.random() < 0.15:
                anew = TaskProcessor(processor.stage, other._stores[at], None, restored + 7, 8)
                restore(anew, decode(head), [decode(data) for _, data in written], pages)
                other._processors[at], restored = anew, restored + 1
    assert restored > 5
    assert lap.step > 3 * STEPS
    assert min(sizes) < max(sizes) / 4 or name == "join"


def test_a_lap_goes_through_all_numbers_that_there_were():
    for seed in range(40):
        random = Random(seed)
        counts, lap, laps = [0, 0], Lap(), list[tuple[int, list[int], set]]()
        for _ in range(60):
            counts = [n + random.choice((0, 0, 1, 7, 100)) for n in counts]
            lap, gone = lap.on(random.choice((1, 1, 1, 5, STEPS)), counts)
            numbers = {(table, n) for table, start, stop in gone for n in range(start, stop)}
            laps.append((lap.step, list(counts), numbers))
        for i, (step, before, _) in enumerate(laps):
            later = [numbers for other, _, numbers in laps[i + 1 :] if other <= step + STEPS]
            over = next((other for other, _, _ in laps[i + 1 :] if other >= step + STEPS), None)
            if over is None:
                continue
            seen = set().union(*later, *(n for other, _, n in laps[i + 1 :] if other == over))
            assert {(table, n) for table, count in enumerate(before) for n in range(count)} <= seen


def test_an_increment_shares_nothing_with_the_processor():
    script = parse_script(STREAM.format("") + QUERIES["sums"])
    engine, random = LocalEngine(script, 1), Random(1)
    feed = list(batches(random, 80, 20))
    for batch in feed[:40]:
        engine.push(batch)
    processor = next(iter(engine._processors.values()))
    increment, _ = take(processor, Lap(), STEPS)
    before = encode({**increment.head, **increment.written()})
    for batch in feed[40:]:
        engine.push(batch)
    assert encode({**increment.head, **increment.written()}) == before
