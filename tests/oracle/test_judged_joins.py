"""The oracle of joins against a judge of its own (`join_brute`, `sql_judge`), written from the documentation: inner and outer
joins over windows of all kinds, with tables, with themselves and over looks, after every batch."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import settings
from judged import SECOND, disagreements
from test_judged_windows import a_time, arrivals, in_batches

from headrace.oracle.admission import Arrival, Batch
from headrace.sql import parse_script

COLUMNS = "(at TIMESTAMP, nr INT, k STRING, j INT, id INT, x DOUBLE)"
ONE = f"CREATE STREAM p {COLUMNS} SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 5 SECONDS;"
BOTH = f"{ONE} CREATE STREAM l {COLUMNS} SOURCE FILE('l.csv') TIMESTAMP BY at DELAY 5 SECONDS;"
TABLE = "CREATE TABLE shops (id BIGINT, city STRING) SOURCE FILE('shops.csv');"
OSLO = "AND s.city <> 'oslo'"
KINDS = (
    "JOIN",
    "CROSS JOIN",
    "comma",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "self",
    "looks",
    "table",
    "LEFT table",
    "aggregate",
)
EACH = 4  # joins of each kind where CI runs this


def test_joins_of_all_kinds():
    """Nine in ten of them have results that both agree on."""
    rounds = max(EACH, settings.default.max_examples // 12 * EACH)
    reached: Counter[str] = Counter()
    for seed in range(rounds * len(KINDS)):
        kind = KINDS[seed % len(KINDS)]
        rng = Random(seed)
        sql, streams = a_join(rng, kind)
        batches = together(rng, streams)
        wrong, same = disagreements(sql, parse_script(sql), batches, 5 * SECOND)
        assert not wrong, f"seed {seed}: {sql}\n{batches}\n" + "\n".join(wrong)
        reached[kind] += same > 0
    assert sum(reached.values()) >= 0.9 * rounds * len(KINDS), reached
    assert set(reached) == set(KINDS)


def a_join(rng: Random, kind: str) -> tuple[str, tuple[str, ...]]:
    """A script with one join, and the streams that it reads."""
    on = rng.choice(("a.k = b.k", "a.k = b.k AND a.j = b.j", "a.j = b.j"))
    columns = "a.nr AS a_nr, b.nr AS b_nr, a.k, b.x"
    where = rng.choice(("", "", " WHERE a.nr <> b.nr", " WHERE a.x IS NULL OR b.x IS NULL OR a.x < b.x"))
    match kind:
        case "table" | "LEFT table":
            window = rng.choice(("", f" [RANGE {a_time(rng)}]", " [NOW]")) if kind == "LEFT table" else ""
            join = f"{kind.removesuffix('table')}JOIN shops s ON j = s.id{rng.choice(('', chr(32) + OSLO))}"
            return f"{ONE} {TABLE} SELECT nr, x, city FROM p{window} {join} INTO o;", ("p", "shops")
        case "looks":
            every = a_time(rng)
            sides = [f"[SIZE {a_time(rng)} EVERY {every}{rng.choice(('', ' WHERE x > 0'))}]" for _ in "ab"]
            return f"{BOTH} SELECT {columns} FROM p {sides[0]} a JOIN l {sides[1]} b ON {on}{where} INTO o;", ("p", "l")
        case "aggregate":
            left, right, behind = a_window(rng, on, "a"), a_window(rng, on, "b"), rng.choice(("SIZE", "RANGE"))
            # "The pairs of one row have no order among each other that means anything": by every pair, only they can be counted.
            shown = "a.k AS k, COUNT(*) AS n" + (", window_end, SUM(b.x) AS s" if behind == "SIZE" else "")
            source = f"p {left} a JOIN l {right} b ON {on} GROUP BY a.k [{behind} {a_time(rng)}]"
            return f"{BOTH} SELECT {shown} FROM {source} INTO o;", ("p", "l")
        case "self":
            on += rng.choice(("", " AND a.x < b.x + 3"))
            source = f"p {a_window(rng, on, 'a')} a JOIN p {a_window(rng, on, 'b')} b ON {on}{where}"
            return f"{ONE} SELECT {columns} FROM {source} INTO o;", ("p",)
    left = a_window(rng, on, "a", kind in ("LEFT JOIN", "FULL JOIN"), small=kind == "CROSS JOIN")
    right = a_window(rng, on, "b", kind in ("RIGHT JOIN", "FULL JOIN"), small=kind == "CROSS JOIN")
    if kind in ("LEFT JOIN", "RIGHT JOIN") and rng.random() < 0.5 and "ROWS" not in left + right:
        on += " AND b.nr > 4" if kind == "LEFT JOIN" else " AND a.nr > 4"
    elif kind == "JOIN":
        on += rng.choice(("", " AND a.x < b.x + 3"))
    source = {
        "comma": f"p {left} a, l {right} b WHERE {on}",
        "CROSS JOIN": f"p {left} a CROSS JOIN l {right} b{where}",
    }.get(kind, f"p {left} a {kind} l {right} b ON {on}{where}")
    return f"{BOTH} SELECT {columns} FROM {source} INTO o;", ("p", "l")


def a_window(rng: Random, on: str, side: str, preserved: bool = False, small: bool = False) -> str:
    """Any that a side may have; a preserved one lets its rows go by time."""
    keys = ", ".join(part.split(" = ")["ab".index(side)].removeprefix(f"{side}.") for part in on.split(" AND ") if " = " in part)
    if preserved:
        return rng.choice((f"[RANGE {a_time(rng)}]", f"[RANGE {a_time(rng)}]", "[NOW]"))
    options = [
        f"[RANGE {a_time(rng)}{rng.choice(('', '', f' LAG {a_time(rng)}'))}{rng.choice(('', '', ' WHERE x > 0'))}]",
        f"[ROWS {rng.randint(1, 4)}]",
        f"[ROWS {rng.randint(1, 3)} PARTITIONED BY {keys}]",
        "[UNBOUNDED]",
        "[NOW]",
    ]
    if small:
        options = [f"[RANGE {a_time(rng)}]", f"[ROWS {rng.randint(1, 2)}]"]
    return rng.choice(options)


def together(rng: Random, streams: tuple[str, ...]) -> list[Batch]:
    """Three batches with rows of all streams, those of a table all in the first."""
    parts = [in_batches(rng, arrivals(rng), name) for name in streams if name != "shops"]
    batches = [Batch(i, {name: rows for part in parts for name, rows in part[i].rows.items()}) for i in range(3)]
    if "shops" in streams:
        shops = [(rng.choice((0, 1, 1, 2, None)), rng.choice(("oslo", "rome", "bern"))) for _ in range(rng.randint(1, 5))]
        batches[0] = Batch(0, {**batches[0].rows, "shops": [Arrival(shop) for shop in shops]})
    return batches
