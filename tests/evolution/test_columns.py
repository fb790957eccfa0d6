"""Columns of a stream that come, go and are widened while a script runs."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from headrace.errors import StateError
from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import canonical_row, from_micros
from headrace.sql import parse_script
from headrace.testing.local import LocalEngine

SCRIPT = """CREATE STREAM p ({columns}) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 2 SECONDS;
SELECT card, n, SUM(n) AS s, SUM(x) AS f, SUM(d) AS e, MAX(x) AS top, COUNT(DISTINCT n) AS k
FROM p [RANGE 5 SECONDS] GROUP BY n {emit} INTO per_event;
SELECT n, SUM(d) AS e, LAST(x) AS x FROM p [SIZE 4 SECONDS] GROUP BY n {emit} INTO report;
SELECT n, COUNT(*) AS c, MIN(d) AS least, VARIANCE(x) AS v FROM p [UNBOUNDED] GROUP BY n {emit} INTO always;
SELECT l.n AS n, l.x AS x, r.d AS d FROM p [RANGE 3 SECONDS] l JOIN p [RANGE 3 SECONDS] r ON l.card = r.card {emit}
  INTO pairs;
EVENT SEQ(p a, p b) WHERE a.card = b.card AND a.x < b.x WITHIN 3 SECONDS RETURN a.n AS n, b.x AS x, b.d AS d {emit}
  INTO pattern;"""
OLD = "at TIMESTAMP, card STRING, n INT, x FLOAT, d DECIMAL(10, 2)"
CHANGED = {
    "wider": "at TIMESTAMP, card STRING, n BIGINT, x DOUBLE, d DECIMAL(14, 2)",
    "one more": "at TIMESTAMP, card STRING, n INT, x FLOAT, d DECIMAL(10, 2), note STRING",
}


def batches(columns: str) -> list[Batch]:
    """Late rows among them, some keys again and again."""
    more = ("note",) if "note" in columns else ()
    out = []
    for b in range(8):
        times = (3 * b, 3 * b + 1, 3 * b - 1)
        rows = [(from_micros(t * 1_000_000), "ab"[t % 2], t % 3, t / 4, Decimal(t) / 4, *more) for t in times if t >= 0]
        out.append(Batch(0, {"p": [Arrival(row) for row in rows]}))
    return out


@pytest.mark.parametrize("emit", ["EMIT CHANGES", "EMIT FINAL"])
@pytest.mark.parametrize("columns", CHANGED.values(), ids=CHANGED)
def test_a_stream_with_other_columns_goes_on(columns, emit):
    old, new = (parse_script(SCRIPT.format(columns=c, emit=emit)) for c in (OLD, columns))
    first = LocalEngine(old, 3)
    for batch in batches(OLD)[:4]:
        first.push(batch)
    went_on, whole = LocalEngine(new, 3, first.save()), LocalEngine(new, 3)
    reference = [whole.push(batch) for batch in batches(columns)] + [whole.finish(0)]
    got = [went_on.push(batch) for batch in batches(columns)[4:]] + [went_on.finish(0)]
    told = 0
    for mine, want in zip(got, reference[4:], strict=True):
        for name, changes in want.items():
            told += len(changes)
            assert _bag(mine[name]) == _bag(changes), name
    assert told > 20


def _bag(changes) -> Counter:
    return Counter((c.sign, c.key, canonical_row(c.row)) for c in changes)


def test_a_column_that_nobody_uses_may_go():
    old = parse_script(SCRIPT.format(columns=CHANGED["one more"], emit=""))
    first = LocalEngine(old, 3)
    for batch in batches("note")[:4]:
        first.push(batch)
    went_on = LocalEngine(parse_script(SCRIPT.format(columns=OLD, emit="")), 3, first.save())
    assert any(went_on.push(batches(OLD)[4])["per_event"])


def test_a_narrower_scale_is_refused():
    """Digits behind the point are what a decimal is counted in."""
    first = LocalEngine(parse_script(SCRIPT.format(columns=OLD, emit="")), 3)
    first.push(batches(OLD)[0])
    changed = SCRIPT.format(columns=OLD.replace("10, 2", "10, 3"), emit="")
    with pytest.raises(StateError, match="d decimal of scale 3 of the rows that have come"):
        LocalEngine(parse_script(changed), 3, first.save())
