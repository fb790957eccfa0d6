"""MATCH_RECOGNIZE means what the standard says: the oracle of its plan against a matcher that goes row by row, and back."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from headrace.oracle.evaluate import results
from headrace.oracle.rows import from_micros
from headrace.plan.time import SECOND
from headrace.sql import parse_script

STREAM = """CREATE STREAM s (at TIMESTAMP, n INT, id STRING, x INT, zone INT)
  SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 5 SECONDS;
"""
WITHIN = 6


@dataclass(frozen=True)
class Row:
    ts: int
    n: int
    id: str
    x: int | None
    zone: int


@dataclass(frozen=True)
class Case:
    """The text after ORDER BY, and the same for the matcher.

    `pattern`: symbols with + (greedy), *? (reluctant) or a number. `holds`: of the row, the rows of every symbol so far, and the
    row before it.
    """

    measures: str
    text: str
    define: str
    pattern: tuple[tuple[str, object], ...]
    holds: dict
    shows: object


def known(*values):
    return None not in values


CASES = {
    "neighbours": Case(
        "A.n AS a, B.n AS b", "A B", "B AS B.x > A.x",
        (("A", 1), ("B", 1)),
        {"B": lambda r, m, p: known(r.x, m["A"][-1].x) and r.x > m["A"][-1].x},
        lambda m: (m["A"][0].n, m["B"][0].n),
    ),
    "an equality is no partition": Case(
        "A.n AS a, B.n AS b", "A B", "B AS B.zone = A.zone",
        (("A", 1), ("B", 1)),
        {"B": lambda r, m, p: r.zone == m["A"][-1].zone},
        lambda m: (m["A"][0].n, m["B"][0].n),
    ),
    "a run between two": Case(
        "A.n AS a, COUNT(B.*) AS len, SUM(B.n) AS s, FIRST(B.n) AS f, LAST(B.n) AS l, C.n AS c", "A B+ C",
        "B AS B.x < 3, C AS C.x >= 3",
        (("A", 1), ("B", "+"), ("C", 1)),
        {"B": lambda r, m, p: known(r.x) and r.x < 3, "C": lambda r, m, p: known(r.x) and r.x >= 3},
        lambda m: (m["A"][0].n, len(m["B"]), sum(r.n for r in m["B"]), m["B"][0].n, m["B"][-1].n, m["C"][0].n),
    ),
    "a run at the start": Case(
        "COUNT(B.*) AS len, FIRST(B.n) AS f, C.n AS c", "B+ C", "B AS zone IN (0, 1), C AS NOT (zone IN (0, 1))",
        (("B", "+"), ("C", 1)),
        {"B": lambda r, m, p: r.zone in (0, 1), "C": lambda r, m, p: r.zone not in (0, 1)},
        lambda m: (len(m["B"]), m["B"][0].n, m["C"][0].n),
    ),
    "a run compared with what is before and behind it": Case(
        "A.n AS a, LAST(B.n) AS l, C.n AS c", "A B+ C",
        "B AS B.x > A.x, C AS C.x <= A.x AND C.zone >= LAST(B.zone) AND COUNT(B.*) < 3",
        (("A", 1), ("B", "+"), ("C", 1)),
        {
            "B": lambda r, m, p: known(r.x, m["A"][-1].x) and r.x > m["A"][-1].x,
            "C": lambda r, m, p: known(r.x, m["A"][-1].x)
            and (r.x <= m["A"][-1].x and r.zone >= m["B"][-1].zone and len(m["B"]) < 3),
        },
        lambda m: (m["A"][0].n, m["B"][-1].n, m["C"][0].n),
    ),
    "a number of rows, each after the one before": Case(
        "A.n AS a, FIRST(B.n) AS f, B.n AS l, n AS last_n", "A B{3}", "B AS x >= PREV(x)",
        (("A", 1), ("B", 3)),
        {"B": lambda r, m, p: known(r.x, p.x) and r.x >= p.x},
        lambda m: (m["A"][0].n, m["B"][0].n, m["B"][-1].n, m["B"][-1].n),
    ),
    "runs with a single row between": Case(
        "COUNT(B.*) AS b, C.n AS c, COUNT(D.*) AS d, E.n AS e", "B+ C D+ E",
        "B AS x < 2, C AS x >= 2, D AS x >= 2, E AS x < 2",
        (("B", "+"), ("C", 1), ("D", "+"), ("E", 1)),
        {
            "B": lambda r, m, p: known(r.x) and r.x < 2, "C": lambda r, m, p: known(r.x) and r.x >= 2,
            "D": lambda r, m, p: known(r.x) and r.x >= 2, "E": lambda r, m, p: known(r.x) and r.x < 2,
        },
        lambda m: (len(m["B"]), m["C"][0].n, len(m["D"]), m["E"][0].n),
    ),
    "any rows in between": Case(
        "A.n AS a, D.n AS d", "A X*? D", "A AS A.x = 0, D AS D.x > A.x AND D.zone = A.zone",
        (("A", 1), ("X", "*?"), ("D", 1)),
        {
            "A": lambda r, m, p: r.x == 0,
            "D": lambda r, m, p: known(r.x, m["A"][-1].x) and r.x > m["A"][-1].x and r.zone == m["A"][-1].zone,
        },
        lambda m: (m["A"][0].n, m["D"][0].n),
    ),
    "any rows in between, twice": Case(
        "A.n AS a, B.n AS b, C.n AS c", "A X*? B Y*? C", "B AS B.zone = 1, C AS C.x > A.x",
        (("A", 1), ("X", "*?"), ("B", 1), ("Y", "*?"), ("C", 1)),
        {
            "B": lambda r, m, p: r.zone == 1,
            "C": lambda r, m, p: known(r.x, m["A"][-1].x) and r.x > m["A"][-1].x,
        },
        lambda m: (m["A"][0].n, m["B"][0].n, m["C"][0].n),
    ),
}  # fmt: skip


def standard(case, rows):
    """For every first row the match that is preferred: + takes as many rows as it can, *? as few, and both give way."""
    found = []
    for start in range(len(rows)):
        match = attempt(case, rows, start, start, 0, {})
        if match is not None:
            found.append(case.shows(match))
    return found


def attempt(case, rows, start, at, symbol, match):
    """Match the symbols from `symbol` on with the rows from `at` on; the preferred way that works, or None."""
    if symbol == len(case.pattern):
        return match
    name, times = case.pattern[symbol]
    least, most = {"+": (1, len(rows)), "*?": (0, len(rows))}.get(times, (times, times))
    ways, here, taken = [], at, list(match.get(name, ()))
    if least == 0:
        ways.append((here, list(taken)))
    for count in range(1, most + 1):
        if here >= len(rows) or rows[here].ts - rows[start].ts > WITHIN:
            break
        holds = case.holds.get(name, lambda r, m, p: True)
        if not holds(rows[here], {**match, name: [*taken, rows[here]]}, rows[here - 1] if here > start else None):
            break
        taken.append(rows[here])
        here += 1
        if count >= least:
            ways.append((here, list(taken)))
    for end, some in ways if times == "*?" else reversed(ways):
        done = attempt(case, rows, start, end, symbol + 1, {**match, name: some})
        if done is not None:
            return done
    return None


def made_up(rng):
    return [
        Row(rng.randrange(12), n, rng.choice("aaab"), rng.choice((0, 0, 1, 1, 2, 3, 3, 4, None)), rng.randrange(3))
        for n in range(rng.randrange(30))
    ]


def plan(case):
    sql = f"""SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY id ORDER BY at MEASURES {case.measures}
      AFTER MATCH SKIP TO NEXT ROW PATTERN ({case.text}) WITHIN {WITHIN} SECONDS DEFINE {case.define})"""
    return parse_script(STREAM + sql).queries[0].node


def ours(node, rows):
    events = [((r.ts * SECOND, 0, r.n), (from_micros(r.ts * SECOND), r.n, r.id, r.x, r.zone)) for r in rows]
    return sorted(row for _, row in results(node, {"s": events}))


@pytest.mark.parametrize("name", CASES)
def test_as_the_standard_has_it(name):
    case, met = CASES[name], 0
    node = plan(case)
    for seed in range(20):
        rows = made_up(Random(f"{name} {seed}"))
        expected = []
        for key in "ab":
            part = sorted((r for r in rows if r.id == key), key=lambda r: (r.ts, r.n))
            expected += [(key, *shown) for shown in standard(case, part)]
        assert ours(node, rows) == sorted(expected), rows
        met += len(expected)
    assert met >= 5, "hardly anything matched"
