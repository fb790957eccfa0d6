"""What a run leaves in the temporary directory when it ends, is ended, or is killed: nothing, or nothing after the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import pytest

SCRIPT = """CREATE STREAM s (id BIGINT, at TIMESTAMP) SOURCE FILE('s.csv') TIMESTAMP BY at DELAY 1 SECOND;
SELECT id, COUNT(*) AS n FROM s [RANGE 5 MINUTES] EMIT CHANGES;"""


@pytest.mark.spark
@pytest.mark.alone
def test_nothing_is_left_behind(tmp_path):
    """Killed, its leftovers are the next run's to remove; ended by SIGTERM, nothing is left, and no process of it lives."""
    (tmp_path / "s.csv").write_text("id,at\n1,2026-03-02 12:00:40Z\n")
    (tmp_path / "x.cql").write_text(SCRIPT)
    temporary = tempfile.mkdtemp(dir="/tmp")  # with a path that leaves room for sockets below it
    killed = start(tmp_path, temporary)
    killed.kill()
    killed.wait(30)
    assert os.listdir(temporary)
    wait_until(lambda: not processes(temporary))  # the JVM sees that nobody is there any more
    ended = start(tmp_path, temporary)
    ended.send_signal(signal.SIGTERM)
    assert ended.wait(60) == 143
    assert os.listdir(temporary) == []
    wait_until(lambda: not processes(temporary))
    os.rmdir(temporary)


@pytest.mark.spark
@pytest.mark.alone
def test_a_run_whose_jvm_is_killed_ends_and_says_so(tmp_path):
    (tmp_path / "s.csv").write_text("id,at\n1,2026-03-02 12:00:40Z\n")
    (tmp_path / "x.cql").write_text(SCRIPT)
    temporary = tempfile.mkdtemp(dir="/tmp")
    with open(tmp_path / "said", "w") as said:
        run = start(tmp_path, temporary, said)
        machines = [pid for pid in processes(temporary) if executable(pid).endswith("/java")]
        assert machines
        for java in machines:
            os.kill(java, signal.SIGKILL)
        assert run.wait(60) == 1
    assert "Spark's JVM is gone" in (tmp_path / "said").read_text()
    wait_until(lambda: not processes(temporary))


def start(folder: Path, temporary: str, errors: IO[str] | int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """A run that follows its source, up to its first row."""
    command = [sys.executable, "-m", "headrace.cli", "run", "x.cql", "--follow"]
    environment = {**os.environ, "TMPDIR": temporary, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}  # the JVM lives for seconds
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout.readline() == '{"_op": "+", "id": 1, "n": 1}\n'
    return process


def executable(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:  # it has ended
        return ""


def processes(temporary: str) -> list[int]:
    """Those that know the directory."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as environment, open(f"/proc/{name}/cmdline", "rb") as words:
                about = environment.read() + words.read()
        except OSError:
            continue
        if temporary.encode() in about and int(name) != os.getpid():
            found.append(int(name))
    return found


def wait_until(so) -> None:
    for _ in range(600):
        if so():
            return
        time.sleep(0.1)
    pytest.fail("it did not come to that")
