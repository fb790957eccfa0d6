"""How many rejected rows are too many."""

from __future__ import annotations

import pytest

from headrace.errors import QueryError
from headrace.runs.losses import ENOUGH, StreamRows, added, share_of, too_many


@pytest.mark.parametrize(
    ("read", "rejected", "most", "ended", "fails"),
    [
        (3, 3, None, True, True), (3, 3, None, False, False), (3, 2, None, True, False), (0, 0, None, True, False),
        (100, 2, 0.01, True, True), (100, 1, 0.01, True, False), (100, 1, 0.0, True, True), (3, 3, 1.0, True, False),
        (ENOUGH - 1, 500, 0.1, False, False), (ENOUGH, 500, 0.1, False, True),
    ],
)  # fmt: skip
def test_what_fails(read, rejected, most, ended, fails):
    counts = [StreamRows("other", 5), StreamRows("s", read, rejected, "a.csv, line 2: it has 1 field")]
    error = too_many(counts, most, ended=ended)
    assert (error is not None) is fails
    if error is not None:
        assert error.where == "stream 's'"
        assert "a.csv, line 2" in error.message
        assert error.hint == "see them with: SELECT * FROM rejected(s);"


def test_counts_of_batches_add_up():
    batches = [StreamRows("a", 2, 0), StreamRows("b", 1, 1, "x"), StreamRows("a", 3, 1, "y"), StreamRows("a", 1, 1, "z")]
    assert added(batches) == (StreamRows("a", 6, 2, "y"), StreamRows("b", 1, 1, "x"))


@pytest.mark.parametrize("text", ["", "half", "2", "-1%", "101%"])
def test_what_is_no_share(text):
    with pytest.raises(QueryError, match="is not a share"):
        share_of(text)
