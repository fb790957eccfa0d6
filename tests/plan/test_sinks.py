"""Outputs that would lie in the way of each other, or of a source."""

from __future__ import annotations

import pytest

from headrace.errors import QueryError
from headrace.plan.schema import Schema
from headrace.plan.sinks import FileSink, check_apart
from headrace.plan.stream import FileSource, Stream


def test_a_link_does_not_hide_that_an_output_lies_among_the_input(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "in")
    stream = Stream("s", FileSource(str(tmp_path / "in")), Schema.of(id="INT"))
    with pytest.raises(QueryError, match="stream 's' would read what is written into"):
        check_apart(FileSink.of(str(tmp_path / "link" / "out.csv"), None), (), (stream,))
