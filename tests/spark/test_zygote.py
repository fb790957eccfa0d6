"""The process that Spark's Python processes are forked from: they are as if started from scratch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from headrace.spark.workers.interpreter import SCRIPT

SERVE = "import sys; from headrace.spark.workers import zygote; zygote.load = lambda: None; zygote.main(sys.argv[1])"


@pytest.fixture
def ask(tmp_path):
    """Run Python as Spark does, by way of a zygote that has loaded nothing."""
    path = str(tmp_path / "z")
    zygote = subprocess.Popen([sys.executable, "-c", SERVE, path], stdin=subprocess.PIPE)
    while not os.path.exists(path) and zygote.poll() is None:
        time.sleep(0.01)
    (tmp_path / "probe.py").write_text(
        "import os, sys, time\n"
        "print(sys.argv[1:], os.getcwd(), os.environ['ASKED'], __name__, 'headrace' in sys.modules, flush=True)\n"
        "if sys.argv[1] == 'sleep': print(os.getpid(), flush=True); time.sleep(60)\n"
        "sys.exit(sys.stdin.readline().strip() == 'fail' and 7)\n"
    )
    here = tmp_path / "here"
    here.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": f"/x/pyspark.zip:{tmp_path}",
        "HEADRACE_PYTHON": sys.executable,
        "HEADRACE_ZYGOTE": path,
        "ASKED": "yes",
    }

    def start(*arguments):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([SCRIPT, *arguments], env=environment, cwd=here, text=True, **pipes)

    yield start
    zygote.stdin.close()
    assert zygote.wait(10) == 0


def test_a_module_runs_with_its_own_arguments_environment_and_streams(ask, tmp_path):
    out, err = (process := ask("-m", "probe", "a b", "c")).communicate("fine\n", timeout=20)
    assert (out, err) == (f"['a b', 'c'] {tmp_path / 'here'} yes __main__ True\n", "")
    assert process.returncode == 0


def test_exit_codes_and_errors_come_back(ask):
    process = ask("-m", "probe", "x")
    process.communicate("fail\n", timeout=20)
    assert process.returncode == 7
    _, err = (process := ask("-m", "no_such_module")).communicate(timeout=20)
    assert process.returncode == 1
    assert "No module named" in err


def test_what_is_no_module_is_run_by_python_itself(ask):
    out, _ = ask("-c", "import sys; print(sys.argv[1:], 'headrace.spark' in sys.modules)", "x").communicate(timeout=20)
    assert out == "['x'] False\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_who_kills_what_was_started_kills_what_runs(ask, number):
    process = ask("-m", "probe", "sleep")
    process.stdout.readline()
    pid = int(process.stdout.readline())
    with open(f"/proc/{pid}/cmdline", "rb") as words:
        assert words.read().rstrip(b"\0").split(b"\0")[1:] == [b"-m", b"probe", b"sleep"]
    process.send_signal(number)
    process.wait(10)
    for _ in range(500):
        if not _alive(pid):
            return
        time.sleep(0.02)
    pytest.fail("it runs on")


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as about:
            return about.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
