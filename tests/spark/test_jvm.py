"""The JVM is started as Spark's own launcher would, asked once; an archive of classes belongs to one Java and one Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from headrace.kernels.keys import segments
from headrace.plan.time import NO_PROMISE
from headrace.spark.jvm import process as jvm
from headrace.spark.settings import settings_of

JAVA = """#!/bin/sh
echo called >> {calls}
printf '\\0\\n'
for part in {home}/bin/java -cp jars "$@"; do printf '%s\\0' "$part"; done
printf '0\\0'
"""


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A program that says what Spark's launcher says, and that it was called."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(JAVA.format(calls=tmp_path / "calls", home=tmp_path / "java"))
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    return str(program)


def test_the_launcher_is_asked_once(java, tmp_path):
    home = jvm.pyspark_home()
    asked = [jvm.kept_command(java, home, {"spark.app.name": "x"}) for _ in range(3)]
    assert asked[0] == asked[1] == asked[2]
    assert asked[0][0] == java
    assert f"spark.local.dir={jvm.SCRATCH}" in asked[0]
    assert any(part.startswith(f"spark.driver.extraJavaOptions=-Djava.io.tmpdir={jvm.SCRATCH}") for part in asked[0])
    jvm.kept_command(java, home, {"spark.app.name": "y"})
    assert (tmp_path / "calls").read_text().count("called") == 2


def test_what_is_kept_half_is_asked_again(java, tmp_path):
    home = jvm.pyspark_home()
    good = jvm.kept_command(java, home, {})
    (kept,) = (tmp_path / "cache").glob("command-*.json")
    kept.write_text("[")
    assert jvm.kept_command(java, home, {}) == good
    assert json.loads(kept.read_text()) == good


def test_another_java_or_spark_has_another_archive(java, tmp_path, monkeypatch):
    home = jvm.pyspark_home()
    before = jvm.archive_of(java, home)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "9.9.9")
    assert jvm.archive_of(java, home) != before
    monkeypatch.undo()
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21"')
    assert jvm.archive_of(java, home) != before


@pytest.mark.parametrize("name", jvm.THEIRS)
def test_settings_of_the_user_are_for_the_scripts(java, monkeypatch, name):
    monkeypatch.setenv(name, "x")
    assert jvm.launch(settings_of(), True) is None


def test_memory_is_what_the_user_says(monkeypatch):
    assert settings_of()["spark.driver.memory"] == "4g"
    monkeypatch.setenv("HEADRACE_DRIVER_MEMORY", "9g")
    assert settings_of()["spark.driver.memory"] == "9g"


def test_without_java_a_run_says_so(tmp_path):
    (tmp_path / "s.csv").write_text("id,at\n1,2026-03-02 12:00:40Z\n")
    (tmp_path / "x.cql").write_text(
        "CREATE STREAM s (id BIGINT, at TIMESTAMP) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND; SELECT id FROM s;"
    )
    environment = {**os.environ, "JAVA_HOME": str(tmp_path / "nowhere")}
    command = [sys.executable, "-m", "headrace.cli", "run", "x.cql"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Spark is not set up for Headrace: there is no Java in JAVA_HOME")
    assert "hint: Spark needs Java 17 or newer" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_driver_does_not_load_what_workers_run():
    """While the JVM comes up there is time for what the driver needs, not for all kernels."""
    heavy = ("numba", "headrace.kernels", "headrace.runtime.processor", "headrace.spark.exchange.stateful", "matplotlib")
    code = f"import sys, headrace.spark.run; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_what_is_no_promise_is_said_by_one_number():
    assert segments.NO_PROMISE == NO_PROMISE
