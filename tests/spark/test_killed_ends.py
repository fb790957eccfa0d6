"""A run that is killed in the batch that ends it, all of it at once, goes on with what has come since: also what is final."""

from __future__ import annotations

import signal

import pytest
from kill_points import arm, death
from test_kill import PATIENCE_S, SCRIPT, Child, Feed, check_sinks, payments

pytestmark = [pytest.mark.spark, pytest.mark.alone]
HALF = 5  # files


@pytest.mark.parametrize("point", ["bucket to end", "bucket ended"])
def test_an_end_that_was_not_committed_is_none(tmp_path, point):
    (tmp_path / "script.cql").write_text(SCRIPT.format(root=tmp_path), encoding="utf-8")
    points, batches = tmp_path / "points", payments()[: 2 * HALF]
    points.mkdir()
    feed = Feed(tmp_path / "in", [[a.values for a in batch.rows["payments"]] for batch in batches])
    feed.write(HALF)
    first = Child(tmp_path)
    try:
        arm(points, point, 1, group=first.process.pid)
        first.start("rest")
        assert first.process.wait(PATIENCE_S) == -signal.SIGKILL
    finally:
        first.kill()
    died = death(points)
    assert died is not None
    assert died.point == point
    assert died.disk.planned == died.disk.committed + 1
    feed.write(HALF)
    second = Child(tmp_path)
    try:
        second.start("rest")
        second.hear("done")
    finally:
        second.kill()
    check_sinks(tmp_path, batches, [point])
