"""What `hr.start` gives back has one documented shape, whatever runs; and the package says that it is typed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import headrace as hr
from headrace.runs.events import Progress, ProgressEvent
from headrace.spark.run import Run
from headrace.spark.static import StaticRun

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("done", "error", "progress", "wait", "stop", "poll", "__enter__", "__exit__")


@pytest.mark.parametrize("name", NAMES)
def test_the_handle_is_documented(name):
    assert getattr(hr.Run, name).__doc__ or getattr(hr.Run, name).fget.__doc__


@pytest.mark.parametrize("kind", [Run, StaticRun])
def test_every_run_has_all_of_it(kind):
    made = kind.__new__(kind)
    made.error, made.progress_ = None, None
    assert [name for name in NAMES if name not in ("error", "progress") and not hasattr(kind, name)] == []


def test_progress_adds_up():
    batch = ProgressEvent(0, rows_in=5, rows_out=3, late=1, rejected=1, frontier_lag_s=2.0, batch_ms=1.0)
    assert Progress().plus(batch).plus(batch) == Progress(2, 10, 6, 2, 2, 0, 2.0)


def test_start_says_what_it_gives():
    assert hr.start.__annotations__["return"] == "Run"
    assert hr.Program.start.__annotations__["return"] == "Run"


def test_the_wheel_says_that_it_is_typed():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["headrace"]
    assert "py.typed" in settings
    assert (ROOT / "src" / "headrace" / "py.typed").exists()
    assert all((ROOT / "src" / "headrace" / name).exists() for name in settings)
