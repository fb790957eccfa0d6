"""What Headrace warns of while a run goes on is one line on standard error."""

from __future__ import annotations

import warnings

from headrace.cli.run.progress import Progress
from headrace.notices import warn


def test_a_warning_is_a_line(capsys):
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        before = warnings.showwarning
        with Progress(quiet=True).shown():
            warn("a.csv has changed", where="stream 'p'")
            warn("a.csv has changed", where="stream 'p'")
            warnings.warn("something else", UserWarning, stacklevel=1)
        assert warnings.showwarning is before
    assert capsys.readouterr().err == "warning: stream 'p': a.csv has changed\n"
    assert [str(other.message) for other in others] == ["something else"]
