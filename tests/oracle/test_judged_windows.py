"""The oracle of windows against a judge of its own (`policy_brute`, `sql_judge`), which was written from the documentation alone:
windows of all kinds over random rows in random order, after every batch, for what EMIT CHANGES and EMIT FINAL must have said."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

from hypothesis import settings
from judged import SECOND, disagreements

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.sql import parse_script

STREAM = """CREATE STREAM s (at TIMESTAMP, nr INT, k STRING, j INT, id INT, x DOUBLE)
  SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 5 SECONDS;"""
AGGREGATES = "COUNT(*) AS n, SUM(x) AS s, MIN(x) AS lo, MAX(nr) AS hi, COUNT(DISTINCT j) AS d, FIRST(nr) AS f, LAST(nr) AS l"
OF_EVENTS = ("RANGE", "RANGE LAG", "ROWS", "UNBOUNDED", "NOW")
KINDS = (
    *OF_EVENTS, "time by time", "time by rows", "time by field", "rows by time", "rows by rows", "rows by field", "field by time",
    "field by rows", "field by field", "tumbling", "SLIDE", "SESSION", "DELTA", "DELTA first", "FROM", "TO", "FIXED",
)  # fmt: skip
SPAN = 14  # seconds in which all rows lie
EACH = 3  # windows of each kind where CI runs this


def test_windows_of_all_kinds():
    """As many windows of every kind as there are; nine in ten of them have rows that both agree on."""
    rounds = max(EACH, settings.default.max_examples // 12 * EACH)
    reached: Counter[str] = Counter()
    for seed in range(rounds * len(KINDS)):
        kind = KINDS[seed % len(KINDS)]
        rng = Random(seed)
        query = a_query(rng, kind)
        batches = in_batches(rng, arrivals(rng))
        wrong, same = disagreements(STREAM + query, parse_script(STREAM + query), batches, 5 * SECOND)
        assert not wrong, f"seed {seed}: {query}\n{[[a.values for a in b.rows['s']] for b in batches]}\n" + "\n".join(wrong)
        reached[kind] += same > 0
    assert sum(reached.values()) >= 0.9 * rounds * len(KINDS), reached
    assert set(reached) == set(KINDS)


def a_query(rng: Random, kind: str) -> str:
    """A SELECT over a window of the kind, perhaps with groups, partitions, predicates inside and behind the brackets, HAVING."""
    window = a_window(rng, kind)
    partition = rng.choice(("", "", "k", "j")) if kind not in ("RANGE", "RANGE LAG", "UNBOUNDED", "NOW") else ""
    inside = rng.choice(("", "", " WHERE x > 0", " WHERE j <> 1"))
    behind = rng.choice(("", "", "", " WHERE x < 5", " WHERE k = 'a'"))
    group = rng.choice(("", "k", "k", "k, j"))
    having = rng.choice(("", "", "", " HAVING n > 1"))
    by_event = kind in OF_EVENTS
    keys = [] if by_event else [partition]
    bounds = [] if by_event else ["window_end"]
    if kind.startswith("time") or kind in ("SLIDE", "SESSION", "DELTA", "DELTA first", "FROM", "TO", "FIXED"):
        bounds.append("window_start")
    columns = dict.fromkeys(filter(None, (*(["nr"] if by_event else []), *keys, *group.split(", "), *bounds, AGGREGATES)))
    brackets = f"[{window}{f' PARTITIONED BY {partition}' if partition else ''}{inside}]"
    return f"SELECT {', '.join(columns)} FROM s {brackets}{behind}{f' GROUP BY {group}' if group else ''}{having} INTO o;"


def a_window(rng: Random, kind: str) -> str:
    """What stands in the brackets, up to PARTITIONED BY."""
    amounts = {"time": lambda: a_time(rng), "rows": lambda: f"{rng.randint(1, 5)}", "field": lambda: f"{rng.randint(1, 6)} ON id"}
    begin, end = sorted(rng.sample(range(SPAN), 2))
    match kind.split(" by "):
        case [size, every]:
            return f"SIZE {amounts[size]()} EVERY {amounts[every]()}"
        case ["tumbling"]:
            return f"SIZE {amounts[rng.choice(('time', 'rows', 'field'))]()}"
    return {
        "RANGE": f"RANGE {a_time(rng)}",
        "RANGE LAG": f"RANGE {a_time(rng)} LAG {a_time(rng)}",
        "ROWS": f"ROWS {rng.randint(1, 4)}",
        "UNBOUNDED": "UNBOUNDED",
        "NOW": "NOW",
        "SLIDE": f"RANGE {a_time(rng)} LAG {a_time(rng)} SLIDE {a_time(rng)}",
        "SESSION": f"SESSION {a_time(rng)}",
        "DELTA": f"DELTA {rng.randint(1, 5)} ON x",
        "DELTA first": f"DELTA {rng.randint(1, 5)} ON ABS(x - first.x) + ABS(j - first.j)",
        "FROM": f"LANDMARK FROM '{an_instant(begin)}' EVERY {a_time(rng)}",
        "TO": f"LANDMARK TO '{an_instant(end)}' EVERY {a_time(rng)}",
        "FIXED": f"FIXED FROM '{an_instant(begin)}' TO '{an_instant(end)}'",
    }[kind]


def a_time(rng: Random) -> str:
    return rng.choice(("1 SECOND", "2 SECONDS", "3 SECONDS", "4 SECONDS", "5 SECONDS"))


def an_instant(seconds: int) -> str:
    return f"1970-01-01 00:00:{seconds:02d}"


def arrivals(rng: Random) -> list[tuple]:
    """Rows on whole seconds and a microsecond beside them, with ties, up to 5 s late; `id` grows, but for some steps back."""
    times = sorted(rng.randint(0, SPAN) * SECOND + rng.choice((0, 0, 0, 1, -1)) for _ in range(rng.randint(14, 22)))
    rows, place = [], rng.randint(-3, 3)
    for nr, t in enumerate(times):
        place += rng.choice((0, 1, 1, 2, 4, -1))
        near = place if nr == 0 or rng.random() < 0.8 else None
        x = rng.choice((None, 1.0, -2.0, 2.5, 4.0, 0.25, 7.0))
        rows.append((t, (from_micros(t), nr, rng.choice(("a", "a", "b", None)), rng.choice((0, 1, 2, None)), near, x)))
    late = {nr: rng.choice((0, 0, rng.randint(0, 5 * SECOND))) for nr in range(len(rows))}
    return [row for _, row in sorted(rows, key=lambda pair: pair[0] + late[pair[1][1]])]


def in_batches(rng: Random, rows: list[tuple], stream: str = "s") -> list[Batch]:
    """In three batches."""
    cuts = [0, *sorted(rng.sample(range(1, len(rows)), 2)), len(rows)]
    return [Batch(i, {stream: [Arrival(row) for row in rows[a:b]]}) for i, (a, b) in enumerate(pairwise(cuts))]
