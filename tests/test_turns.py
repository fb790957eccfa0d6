"""Processes that share the files of tests: each is run by one of them, and what takes long is there to be begun first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import turns

ROOT = Path(__file__).parents[1]


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
    assert [name for name in turns.LONGEST if not (ROOT / name).exists()] == []


def test_a_process_goes_on_behind_a_file_that_another_has(tmp_path):
    """In another folder, where nothing of the one before may still be set up."""
    files = ["tests/sql/test_sql_plans.py", "tests/sql/test_sql_errors.py", "tests/runs/test_losses.py"]
    (tmp_path / files[1].replace("/", "-")).touch()
    command = [sys.executable, "-m", "pytest", "-vv", *files]
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "HEADRACE_TURNS": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert {line.partition("::")[0] for line in ran.stdout.splitlines() if "::" in line} == {files[0], files[2]}
