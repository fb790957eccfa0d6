"""Workers import PySpark from where it is installed, not from Spark's zips."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from headrace.spark.workers import interpreter


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("/spark/python/lib/pyspark.zip:/spark/python/lib/py4j-0.10.9.9-src.zip", ""),
        ("/spark/python/lib/pyspark.zip:/my lib/*:/spark/python/lib/py4j-0.10.9.9-src.zip:/other.zip", "/my lib/*:/other.zip"),
        ("", ""),
    ],
)
def test_only_the_zips_of_spark_are_left_out(given, left):
    environment = {**os.environ, "PYTHONPATH": given, "HEADRACE_PYTHON": sys.executable}
    asked = [interpreter.SCRIPT, "-c", "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:], sep='|')", "a b", "c"]
    said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout == f"{left}|['a b', 'c']\n"


@pytest.fixture
def names(monkeypatch):
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "HEADRACE_PYTHON"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    return monkeypatch


def test_an_installed_pyspark_is_imported_as_it_is(names):
    interpreter.choose_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == str(interpreter.SCRIPT)
    assert os.environ["HEADRACE_PYTHON"] == sys.executable


def test_a_pyspark_from_elsewhere_needs_the_zips(names, tmp_path):
    elsewhere = SimpleNamespace(origin=str(tmp_path / "pyspark.zip" / "pyspark" / "__init__.py"))
    names.setattr(interpreter.importlib.util, "find_spec", lambda name: elsewhere)
    interpreter.choose_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_what_the_user_has_chosen_stays(names):
    names.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
    interpreter.choose_interpreter()
    assert os.environ["PYSPARK_PYTHON"] == "/usr/bin/python3"
