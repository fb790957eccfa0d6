"""A row that leaves because others come is of another key than those, which may lie in another page."""

from headrace.oracle.admission import Arrival, Batch
from headrace.oracle.rows import from_micros
from headrace.sql import parse_script
from headrace.state.tables import PAGE
from headrace.testing.local import LocalEngine

SCRIPT = """CREATE STREAM p (at TIMESTAMP, card INT) SOURCE FILE('p.csv') TIMESTAMP BY at DELAY 0;
SELECT card, COUNT(*) AS n FROM p [ROWS 700] GROUP BY card EMIT CHANGES INTO q;"""
CARDS = 2 * PAGE + 500


def test_a_key_that_lost_a_row_is_saved():
    """Every card comes once in so many rows, so it never finds itself in the window."""
    script = parse_script(SCRIPT)
    engine, at = LocalEngine(script, 1), 0
    for number in range(12):
        rows = [Arrival((from_micros(at + i), (at + i) % CARDS)) for i in range(500)]
        found = engine.push(Batch(number, {"p": rows}))["q"]
        assert {change.row[1] for change in found} == {1}
        assert len(found) == 500
        at += 500
        engine = LocalEngine(script, 1, engine.save())
