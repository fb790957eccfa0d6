"""Conditions between the events of a pattern: the types and functions that they take, against the oracle; what they refuse."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

import headrace as hr
from headrace.errors import QueryError
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.plan.time import SECOND
from headrace.sql import parse_script
from headrace.stages.lower import lower
from headrace.testing.conformance import check_query
from headrace.testing.local import LocalEngine, local_engine

COLUMNS = {
    "id": "STRING", "n": "BIGINT", "k": "INT", "x": "DOUBLE", "d": "DECIMAL(10, 2)", "e": "DECIMAL(18, 4)", "w": "DECIMAL(30, 2)",
    "arr": "ARRAY<INT>", "bin": "BINARY", "t": "TIMESTAMP", "day": "DATE",
}  # fmt: skip
STREAMS = "".join(
    f"CREATE STREAM {name} (at TIMESTAMP, {', '.join(f'{c} {t}' for c, t in COLUMNS.items())}) SOURCE FILE('{name}.parquet') "
    f"TIMESTAMP BY at DELAY 9 SECONDS;\n"
    for name in "abc"
)


def event(at, **values):
    """A row of any of the streams; what is not said is NULL."""
    return Arrival((from_micros(at * SECOND), *(values.get(column) for column in COLUMNS)))


def batches(**rows):
    """All rows of a stream in one batch, with the streams after each other."""
    return [Batch((i + 1) * SECOND, {name: some}) for i, (name, some) in enumerate(rows.items())]


def shown(condition, given, places="a x, b y, c z", returns="x.at AS x, y.at AS y", emit=""):
    """What the engine says at the end, which agrees with the oracle: pairs of seconds."""
    sql = f"{STREAMS} EVENT SEQ({places}) WHERE {condition} WITHIN 1 HOUR RETURN {returns} {emit} INTO o"
    script = parse_script(sql)
    check_query(script, given, local_engine, buckets=(3, 1), recuts=1, losses=False)
    engine, out = LocalEngine(script, 2), []
    for found in [*(engine.push(batch) for batch in given), engine.finish(99 * SECOND)]:
        for change in found["o"]:
            seconds = tuple(v if not hasattr(v, "second") else v.minute * 60 + v.second for v in change.row)
            out.append(seconds) if change.sign > 0 else out.remove(seconds)
    return sorted(out)


def pairs(condition, xs, ys):
    """Rows of a from second 1 on, of b from second 21 on; one of c ends them. Which of them meet, by their numbers."""
    given = batches(
        a=[event(1 + i, **x) for i, x in enumerate(xs)], b=[event(21 + i, **y) for i, y in enumerate(ys)], c=[event(50)]
    )
    return [(x - 1, y - 21) for x, y in shown(condition, given)]


def decimals(name, *texts):
    return [{name: None if text is None else Decimal(text)} for text in texts]


D = decimals("d", "1.00", "1.01", "-99999999.99", None, "99999999.99")
E = decimals("e", "1.0000", "1.0001", "99999999999999.9999", "-99999999999999.9999", None)
N = [{"n": 1}, {"n": 2**63 - 1}, {"n": -(2**63)}, {"n": None}]
LISTS = [{"arr": [1, 2]}, {"arr": []}, {"arr": [2, 1]}, {"arr": None}]
TIMES = [{"t": from_micros(s * SECOND)} for s in (0, 86_399, 86_400)]
W = decimals("w", "1.00", "1.01", "9999999999999999999999999999.99", None)


@pytest.mark.parametrize(
    ("condition", "xs", "ys", "expected"),
    [
        ("x.d < y.d", D[:4], D[:4], [(0, 1), (2, 0), (2, 1)]),
        ("x.d <= y.e", D[:2], E, [(0, 0), (0, 1), (0, 2), (1, 2)]),
        ("x.e > y.n", E, N, [(0, 2), (1, 0), (1, 2), (2, 0), (2, 2), (3, 2)]),
        ("x.d = y.k", D, [{"k": 1}, {"k": 0}], [(0, 0)]),
        ("x.d = y.e", D, E, [(0, 0)]),
        ("x.d <> y.d", D[:2], D[:2], [(0, 1), (1, 0)]),
        ("x.d + y.d > 2.005", D, D[:2], [(0, 1), (1, 0), (1, 1), (4, 0), (4, 1)]),
        ("x.d - y.e >= 0.01", D[:2], E[:2], [(1, 0)]),
        ("ABS(x.d - y.d) = 0.01", D, D[:2], [(0, 1), (1, 0)]),
        ("x.d + y.k BETWEEN 2 AND 2.01", D, [{"k": 1}], [(0, 0), (1, 0)]),
        ("x.d - y.d = 0 OR x.d IS NULL AND y.d = 1", D, D[:1], [(0, 0), (3, 0)]),
        ("COALESCE(x.d, y.e) = y.e", D, E[:2], [(0, 0), (3, 0), (3, 1)]),
        ("x.d < y.x", D[:3], [{"x": 1.005}], [(0, 0), (2, 0)]),
        ("CAST(x.d + y.d AS INT) = 2", D[:2], D[:2], [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("x.w = y.w", W, W, [(0, 0), (1, 1), (2, 2)]),
        ("x.w <> y.w", W[:2], W, [(0, 1), (0, 2), (1, 0), (1, 2)]),
        ("x.w IS NOT DISTINCT FROM y.w", W, W, [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("x.d = y.w", D, W, [(0, 0), (1, 1)]),
        ("x.arr = y.arr", LISTS, LISTS[:1] + LISTS[2:], [(0, 0), (2, 1)]),
        ("x.bin = y.bin OR x.k = y.k", [{"bin": b"p"}, {"bin": b"q", "k": 1}], [{"bin": b"p"}, {"k": 1}], [(0, 0), (1, 1)]),
        ("(x.n & y.n) = 4", [{"n": 6}, {"n": 3}], [{"n": 12}, {"n": 5}], [(0, 0), (0, 1)]),
        ("(x.n | y.k) = 7", [{"n": 6}, {"n": 3}], [{"k": 1}, {"k": 4}], [(0, 0), (1, 1)]),
        ("SIN(x.x - y.x) > 0", [{"x": 1.0}, {"x": 2.0}], [{"x": 1.5}, {"x": -9.0}], [(1, 0)]),
        ("DATEDIFF(y.t, x.t) = 1", TIMES[:2], TIMES[1:], [(0, 1), (1, 1)]),
    ],
)  # fmt: skip
def test_conditions_between_two_of_three_events(condition, xs, ys, expected):
    assert pairs(condition, xs, ys) == expected


def test_the_time_between_two_columns_has_an_order():
    xs, ys = ([{"t": from_micros(s * SECOND)} for s in some] for some in ((0, 10, 20), (0, 21, 40)))
    assert pairs("x.at - x.t < y.at - y.t", xs, ys) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]


MIXED = batches(a=[event(1, n=2**53)], c=[event(2, x=2.0**53)], b=[event(3, n=2**53), event(4, n=2**53 + 1)])


@pytest.mark.parametrize("places", ["a x, c m, b y", "a x, !(c m), b y"])
def test_a_key_of_doubles_does_not_make_integers_equal(places):
    given = MIXED if "!" not in places else [MIXED[0], *batches(c=[event(9, x=1.0)]), MIXED[2]]
    assert shown("x.n = m.x AND x.n = y.n AND m.x = y.n", given, places) == [(1, 3)]
    assert shown("x.n = m.x AND m.x = y.n", given, places) == [(1, 3)]


NEGATED = "a x, !(b n), !(b m), c y"
PEOPLE = batches(
    a=[event(1, id="p", k=1), event(1, id="q", k=1), event(2, id="r", k=1)],
    b=[event(5, id="p", k=1), event(6, id="q", k=2)],
    c=[event(9, id="p"), event(9, id="q"), event(9, id="r"), event(9, id="s")],
)


@pytest.mark.parametrize(
    "condition",
    [
        "x.id = n.id AND n.id = m.id AND m.id = y.id",
        "x.id = y.id AND x.id = n.id AND n.id = m.id",
        "n.id = m.id AND m.id = y.id AND y.id = x.id",
    ],
)
def test_equalities_close_through_two_negated_events(condition):
    assert shown(condition, PEOPLE, NEGATED, "x.id") == [("r",)]
    assert shown(f"{condition} AND n.k = x.k AND m.k > 2", PEOPLE, NEGATED, "x.id") == [("q",), ("r",)]
    pattern = lower(parse_script(f"{STREAMS} EVENT SEQ({NEGATED}) WHERE {condition} WITHIN 1 HOUR RETURN x.id INTO o")).stages[0]
    assert pattern.program.sequence.key is not None
    assert pattern.program.sequence.conditions == ()


def test_equalities_close_through_two_negated_events_in_python():
    streams = {s.name: hr.Stream(_scan(s)) for s in parse_script(STREAMS + "SELECT id FROM a INTO o").streams}
    events = hr.event("a", "x"), ~hr.event("a", "n"), ~hr.event("a", "m"), hr.event("a", "y")
    node = hr.seq(*events, within="1 hour", where="x.id = n.id AND n.id = m.id AND m.id = y.id", returns="x.id", **streams).node
    assert "m_id = n_id" not in str(node)
    with pytest.raises(QueryError, match=r"n\.id = m\.id compares two events"):
        hr.seq(*events, within="1 hour", where="n.id = m.id AND x.id = y.id", **streams)


def _scan(stream):
    from headrace.plan.nodes import Scan

    return Scan(stream)


@pytest.mark.parametrize(
    ("condition", "said", "hint"),
    [
        ("x.id < y.id", "x.id < y.id cannot be evaluated between events: strings have no order", "= and <>"),
        ("x.w < y.w", "x.w is of type DECIMAL(30, 2)", "CAST it to DOUBLE"),
        ("x.e * y.e > 1", "may need more than 64 bits", "DOUBLE or BIGINT"),
        ("x.d / y.d > 1", "/ of DECIMALs", "DOUBLE"),
        ("x.e > y.x", "more than 15 digits", "CAST the value of the event to DOUBLE"),
        ("x.arr < y.arr", "x.arr is of type ARRAY<INT>", "another type"),
        ("CONCAT(x.id, y.id) = z.id", "no CONCAT(x.id, y.id) between rows", "COALESCE"),
        ("x.id LIKE y.id", "no x.id LIKE y.id between rows", "of one row alone"),
        ("(x.k > 1 OR UPPER(x.id) > y.id)", "strings have no order", "= and <>"),
        ("DATEDIFF(HOUR, x.t, y.t) > 1", "DATEDIFF(HOUR", "DATEDIFF of two dates"),
    ],
)
def test_refused_before_anything_runs(condition, said, hint):
    sql = f"{STREAMS}EVENT SEQ(a x, b y, c z) WHERE x.n = y.n AND {condition} WITHIN 1 HOUR RETURN x.id INTO o"
    with pytest.raises(QueryError) as error:
        parse_script(sql)
    assert condition.strip("()") in error.value.message
    assert said in error.value.message
    assert hint in str(error.value.hint)
    assert error.value.where == f"script:4:{46 + condition.startswith('(')}"


def test_refused_when_it_is_lowered_with_the_types_of_spark():
    script = parse_script(f"{STREAMS} EVENT SEQ(a x, b y) WHERE riddle(x.k) < y.k WITHIN 1 HOUR RETURN x.id INTO o",
                          functions=frozenset({"riddle"}))  # fmt: skip
    assert len(lower(script).stages) == 1  # Spark alone knows what it gives
    known = lambda expr, schema: "STRING" if "RIDDLE" in str(expr).upper() else guess(expr, schema)  # noqa: E731
    with pytest.raises(QueryError, match=r"(?i)riddle\(x\.k\) < y\.k cannot be evaluated between events"):
        lower(script, known)


def guess(expr, schema):
    from headrace.stages.lower import guess_type

    return guess_type(expr, schema)


def test_the_time_between_two_events_is_returned():
    given = batches(a=[event(1, id="p")], b=[event(61, id="p")])
    assert shown("x.id = y.id", given, "a x, b y", "y.at - x.at AS dwell") == [(timedelta(seconds=60),)]
