"""The benchmark of the first result: its example is the README's, and its figures are those of the processes it starts."""

from __future__ import annotations

import json

import pytest
from benchmarks import first_result
from benchmarks.first_result import CHECK, HEADRACE, SPARK, Taken


def test_figures_are_medians_of_runs_in_turn(monkeypatch, tmp_path):
    """What is started is told apart by its arguments; JVMs are for when it is run in earnest."""
    asked = []

    def timed(folder, arguments, lines):
        asked.append(arguments[-2])
        return Taken(1.0, {"run": 6.0, "check": 0.5}.get(arguments[-2], 3.0) + len(asked) / 10)

    monkeypatch.setattr(first_result, "timed", timed)
    options = first_result.arguments().parse_args(["--runs", "3", "--json", str(tmp_path / "x.json")])
    first_result.main(options)
    assert asked == ["run", "-c", "check"] * 3
    written = json.loads((tmp_path / "x.json").read_text())
    assert [r["name"] for r in written["results"]] == [HEADRACE, SPARK, CHECK]
    assert [t["met"] for t in written["targets"]] == [True, False]
    assert written["results"][0]["seconds"] == pytest.approx(6.4)


def test_a_process_is_timed_to_its_end(tmp_path):
    first_result.example(tmp_path)
    assert {"payments.csv", "profile.cql"} <= {p.name for p in tmp_path.iterdir()}
    taken = first_result.timed(str(tmp_path), ["-m", "headrace.cli", "check", "profile.cql"], None)
    assert 0 < taken.first_line <= taken.end
    with pytest.raises(RuntimeError, match="ended with 2"):
        first_result.timed(str(tmp_path), ["-m", "headrace.cli", "check", "no.cql"], None)
