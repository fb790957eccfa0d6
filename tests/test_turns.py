"""Processes that share the files of tests: each is run by one of them, and what takes long is there to be begun first."""

from __future__ import annotations

from pathlib import Path

import pytest

import turns


@pytest.fixture
def processes(tmp_path, monkeypatch):
    """Asks as one of two processes."""
    known: list[dict[str, bool]] = [{}, {}]
    monkeypatch.setattr(turns, "SHARED", str(tmp_path))

    def ask(process: int, name: str) -> bool:
        monkeypatch.setattr(turns, "_ours", known[process])
        return turns.ours(name)

    return ask


def test_every_file_is_run_by_who_comes_first_and_by_nobody_else(processes):
    assert [processes(n, "tests/a.py") for n in (0, 1, 0, 1)] == [True, False, True, False]
    assert [processes(n, "tests/a.py alone") for n in (1, 0)] == [True, False]
    assert [processes(n, "tests/spark/a.py") for n in (1, 0)] == [True, False]


def test_alone_a_process_runs_all(monkeypatch):
    monkeypatch.setattr(turns, "SHARED", None)
    monkeypatch.setattr(turns, "_ours", {})
    assert turns.ours("tests/a.py")


def test_what_takes_long_is_there():
    root = Path(__file__).parents[1]
    assert [name for name in turns.LONGEST if not (root / name).exists()] == []
