"""Folders in the temporary directory go with whoever made them, or with the next run if that was killed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from headrace.spark.jvm import scratch
from headrace.spark.jvm.scratch import LOCK, Scratch, sweep


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.setattr(scratch, "_base", lambda: str(tmp_path))


def test_a_folder_goes_with_all_that_is_in_it(tmp_path):
    made = Scratch()
    os.makedirs(os.path.join(made.path, "a", "b"))
    made.remove()
    made.remove()
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_goes_with_the_next(tmp_path):
    code = (
        "import os; from headrace.spark.jvm import scratch; scratch._base = lambda: os.environ['HERE']; "
        "print(scratch.Scratch().path, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "HERE": str(tmp_path)}, capture_output=True, text=True
    )
    left = killed.stdout.strip()
    assert os.path.exists(os.path.join(left, LOCK))
    made = Scratch()
    assert os.listdir(tmp_path) == [os.path.basename(made.path)]
    made.remove()


def test_what_others_have_stays(tmp_path):
    made = Scratch()
    (tmp_path / "headrace-results").mkdir()  # not one of ours: nothing in it says so
    sweep(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted([os.path.basename(made.path), "headrace-results"])
    made.remove()


def test_at_the_end_of_a_process_it_is_gone(tmp_path):
    code = "import os; from headrace.spark.jvm import scratch; scratch._base = lambda: os.environ['HERE']; scratch.Scratch()"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "HERE": str(tmp_path)}, check=True)
    assert os.listdir(tmp_path) == []
