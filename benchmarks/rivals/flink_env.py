"""Flink in a virtual environment of its own, made on first use, and scripts run in it.

Flink reads the same parquet rows as everybody else. Its SQL needs `flink-sql-parquet` for that, which is
not on PyPI: Maven fetches it once. The Hadoop classes that jar wants are those PySpark already ships.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FLINK_VERSION = "2.3.0"
PARQUET_ARTIFACT = f"org.apache.flink:flink-sql-parquet:{FLINK_VERSION}"
OLDEST_PYTHON, NEWEST_PYTHON = (3, 9), (3, 12)  # what apache-flink 2.3 declares
HERE = Path(__file__).resolve().parent
DEFAULT_VENV = Path(os.environ.get("HEADRACE_FLINK_VENV") or HERE.parent / ".flink-venv")  # several checkouts can share one


class FlinkUnavailable(RuntimeError):
    """Flink could not be set up or did not finish; the message says why and what to do."""


class FlinkTimeout(FlinkUnavailable):
    """A run that was stopped because it took too long."""


@dataclass(frozen=True)
class FlinkEnv:
    python: Path
    jars: tuple[Path, ...]


def ensure(venv: Path = DEFAULT_VENV) -> FlinkEnv:
    """The environment, built if a file that marks it complete is missing."""
    python = venv / "bin" / "python"
    if not (venv / ".complete").exists():
        _check_tools()
        shutil.rmtree(venv, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(venv)], "make a virtual environment")
        _run(
            [str(python), "-m", "pip", "install", "-q", f"apache-flink=={FLINK_VERSION}"],
            "install apache-flink",
        )
        _fetch_parquet(venv / "jars")
        (venv / ".complete").write_text(FLINK_VERSION + "\n")
    return FlinkEnv(python, (*sorted((venv / "jars").glob("*.jar")), *_hadoop_jars()))


def run(env: FlinkEnv, script: str, arguments: dict[str, object], timeout: float = 1800.0) -> dict[str, Any]:
    """Run `rivals/<script>` and read the one JSON line it prints."""
    command = [str(env.python), str(HERE / script), "--jars", ",".join(map(str, env.jars))]
    for name, value in arguments.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    code, out, err = _finish(command, script, timeout)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if code != 0 or not lines:
        raise FlinkUnavailable(f"{script} failed ({code}):\n{_tail(err or out)}")
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def _finish(command: list[str], script: str, timeout: float) -> tuple[int, str, str]:
    """In a group of its own: a JVM is started beneath it, which must end with it."""
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = job.communicate(timeout=timeout)
    except BaseException as stopped:
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()
        if isinstance(stopped, subprocess.TimeoutExpired):
            raise FlinkTimeout(f"{script} did not finish within {timeout:.0f} s") from stopped
        raise
    return job.returncode, out, err


def _check_tools() -> None:
    if not OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        low, high = (".".join(map(str, v)) for v in (OLDEST_PYTHON, NEWEST_PYTHON))
        raise FlinkUnavailable(
            f"apache-flink {FLINK_VERSION} needs Python {low} to {high}, this is {sys.version.split()[0]}: "
            "run the benchmark with such a Python, or without Flink"
        )
    for tool, package in (("mvn", "maven"), ("java", "default-jre-headless")):
        if shutil.which(tool) is None:
            raise FlinkUnavailable(f"`{tool}` is needed for the Flink rival: apt install {package}, or run without Flink")


def _fetch_parquet(jars: Path) -> None:
    _run(
        ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={PARQUET_ARTIFACT}", f"-DoutputDirectory={jars}"],
        f"fetch {PARQUET_ARTIFACT} with Maven",
    )


def _hadoop_jars() -> list[Path]:
    import pyspark

    return sorted((Path(pyspark.__file__).parent / "jars").glob("hadoop-client-*.jar"))


def _run(command: list[str], purpose: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FlinkUnavailable(f"could not {purpose}:\n{_tail(done.stderr or done.stdout)}")


def _tail(text: str, lines: int = 15) -> str:
    """The end of a log, without the frames of Java stack traces."""
    return "\n".join([line for line in text.strip().splitlines() if not line.startswith("\tat ")][-lines:])
