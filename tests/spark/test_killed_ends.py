"""A run that is killed in the batch that ends it, all of it at once, goes on with what has come since: also what is final."""

from __future__ import annotations

import signal

import pytest
from kill_points import arm, death
from test_kill import PATIENCE_S, SCRIPT, Child, Feed, check_sinks, payments

pytestmark = [pytest.mark.spark, pytest.mark.alone]
PART = 4  # files


POINTS = ("bucket to end", "bucket ended")


def test_an_end_that_was_not_committed_is_none(tmp_path):
    """Killed in the first try before a bucket has ended, in the second after one has; the third is let be."""
    (tmp_path / "script.cql").write_text(SCRIPT.format(root=tmp_path), encoding="utf-8")
    points, batches = tmp_path / "points", payments()[: PART * (len(POINTS) + 1)]
    points.mkdir()
    feed = Feed(tmp_path / "in", [[a.values for a in batch.rows["payments"]] for batch in batches])
    for point in POINTS:
        feed.write(PART)
        child = Child(tmp_path)
        try:
            arm(points, point, 1, group=child.process.pid)
            child.start("rest")
            assert child.process.wait(PATIENCE_S) == -signal.SIGKILL
        finally:
            child.kill()
        died = death(points)
        assert died is not None
        assert died.point == point
        assert died.disk.planned == died.disk.committed + 1
    feed.write(PART)
    last = Child(tmp_path)
    try:
        last.start("rest")
        last.hear("done")
    finally:
        last.kill()
    check_sinks(tmp_path, batches, list(POINTS))
