"""A pattern goes on from saved state, also with more events than there was room for at first."""

from datetime import UTC, datetime, timedelta

from headrace.oracle.admission import Arrival, Batch
from headrace.sql import parse_script
from headrace.testing.local import LocalEngine

SCRIPT = """
CREATE STREAM a (k INT, at TIMESTAMP) SOURCE FILE('a.csv') TIMESTAMP BY at DELAY 20 SECONDS;
CREATE STREAM b (k INT, at TIMESTAMP) SOURCE FILE('b.csv') TIMESTAMP BY at DELAY 20 SECONDS;
EVENT SEQ(a x, b y) WHERE x.k = y.k WITHIN 1 HOUR RETURN x.k AS k, x.at AS first, y.at AS last EMIT CHANGES INTO pairs;
"""
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def batches():
    """Forty final events and thirty open ones: more than a new table of chains holds."""
    for n in range(70):
        stream, seconds = ("a", n) if n < 60 else ("b", 2 * n - 70)
        yield Batch(n, {stream: [Arrival((n % 60, NOON + timedelta(seconds=seconds)))]})


def test_a_restart_before_every_batch_changes_nothing():
    script = parse_script(SCRIPT)
    whole, restarted = LocalEngine(script, 1), LocalEngine(script, 1)
    wanted, found = [], []
    for batch in batches():
        restarted = LocalEngine(script, 1, restarted.save())
        wanted += whole.push(batch)["pairs"]
        found += restarted.push(batch)["pairs"]
    assert found == wanted
    assert len(wanted) == 10
