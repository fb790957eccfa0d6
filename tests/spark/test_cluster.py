"""A script on a real standalone cluster: a master and two workers as processes of their own, one of them killed in the middle.

Headrace is not installed for the workers: it is shipped as docs/cluster.md says, by the arguments that stand there.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyspark
import pytest

import headrace
from headrace.spark.jvm import process as jvm

pytestmark = [pytest.mark.spark, pytest.mark.alone]

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
HOME = Path(pyspark.__file__).parent
START = datetime(2026, 1, 1, tzinfo=UTC)
PATIENCE_S = 300
FILES, ROWS = 8, 5
SCRIPT = """
CREATE STREAM p (id INT, card STRING, at TIMESTAMP) SOURCE FILE('{0}/in/') TIMESTAMP BY at DELAY 1 SECOND;
SELECT id, card, COUNT(*) AS n, SUM(id) AS s FROM p [RANGE 1 HOUR] GROUP BY card EMIT FINAL INTO FILE('{0}/out.csv');
"""


def documented() -> list[str]:
    """The arguments of spark-submit on the page, between the master and the file that is submitted."""
    found = re.search(
        r"spark-submit --master spark://master:7077 \\\n(.*?)\$SUBMIT run", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert found is not None
    return shlex.split(found[1].replace("\\\n", " "))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def classes() -> tuple[str, ...]:
    """For many JVMs that live for a minute: the archive, without a word where it does not fit, for what launchers say is read."""
    java, home = jvm.java_program(), jvm.pyspark_home()
    archive = jvm.archive_of(java, home) if java is not None and home is not None else None
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive is not None and archive.exists() else ()


class Cluster:
    """Master and workers, each a process group of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.groups = root, list[subprocess.Popen]()
        self.python = self._python_without_headrace()
        self.env = {
            **os.environ,
            "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "JAVA_TOOL_OPTIONS": " ".join(("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *classes())),
            "PYSPARK_PYTHON": str(self.python), "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(headrace.__file__).parents[1]),  # as the page says, of the driver
        }  # fmt: skip
        self.port = free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        bare = {**self.env, "PYTHONPATH": ""}  # nothing of ours is handed down to executors
        where = ("--host", "127.0.0.1", "--webui-port", "0")
        self.start("master", bare, "org.apache.spark.deploy.master.Master", *where, "--port", str(self.port))
        self.workers = [
            self.start(
                f"worker{n}", bare, "org.apache.spark.deploy.worker.Worker", self.url, *where, "--cores", "1", "--memory", "1g",
                "--work-dir", str(root / f"worker{n}"),
            )
            for n in range(2)
        ]  # fmt: skip

    def _python_without_headrace(self) -> Path:
        """This Python with all its packages but ours."""
        site = self.root / "site"
        site.mkdir()
        for entry in Path(sysconfig.get_path("purelib")).iterdir():
            if "headrace" not in entry.name:
                (site / entry.name).symlink_to(entry)
        script = self.root / "python.sh"
        script.write_text(f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{site}"\nexec {sys.executable} -S "$@"\n')
        script.chmod(0o755)
        bare = {**os.environ, "PYTHONPATH": ""}
        code = "import importlib.util as u; print([u.find_spec(n) is not None for n in ('headrace', 'numba')])"
        told = subprocess.run([script, "-c", code], capture_output=True, text=True, cwd="/", env=bare, check=True).stdout
        assert told.strip() == "[False, True]"
        return script

    def start(self, name: str, env: dict[str, str], *arguments: str) -> subprocess.Popen:
        program = HOME / "bin" / ("spark-submit" if name == "driver" else "spark-class")
        process = subprocess.Popen(
            [str(program), *arguments], env=env, stdout=(self.root / f"{name}.log").open("wb"), stderr=subprocess.STDOUT,
            start_new_session=True, cwd=self.root,
        )  # fmt: skip
        self.groups.append(process)
        return process

    def kill(self, process: subprocess.Popen) -> None:
        """It, and the executors that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in reversed(self.groups):
            self.kill(process)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.stop()


def pack(archive: Path) -> None:
    """As the page says."""
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(Path(headrace.__file__).parent, "headrace")


def rows_in(path: Path) -> list[tuple[int, str, int, int]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [(int(r["id"]), r["card"], int(r["n"]), int(r["s"])) for r in csv.DictReader(file)]


def write(root: Path, number: int) -> None:
    lines = [f"{i},c{i % 3},{START + timedelta(seconds=i)}" for i in range(number * ROWS, number * ROWS + ROWS)]
    hidden = root / "in" / f".{number}"
    hidden.write_text("id,card,at\n" + "\n".join(lines) + "\n")
    hidden.rename(root / "in" / f"{number:02d}.csv")


def wait_for(root: Path, count: int, driver: subprocess.Popen) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(rows_in(root / "out.csv")) < count:
        told = (root / "driver.log").read_text(errors="replace")[-3000:]
        assert driver.poll() is None, told
        assert time.monotonic() < deadline, told
        time.sleep(0.1)


def test_a_worker_is_killed_in_the_middle(cluster, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "script.cql").write_text(SCRIPT.format(tmp_path))
    pack(tmp_path / "headrace.tar.gz")
    submit = Path(headrace.__file__).with_name("submit.py")
    small = ("executor.memory=512m", "driver.memory=512m", "ui.enabled=false", "driver.host=127.0.0.1", "cores.max=2")
    driver = cluster.start(
        "driver", cluster.env, "--master", cluster.url, *documented(), *(a for s in small for a in ("--conf", f"spark.{s}")),
        str(submit), "run", "script.cql", "--follow", "--checkpoint", str(tmp_path / "state"),
    )  # fmt: skip
    write(tmp_path, 0)
    write(tmp_path, 1)
    wait_for(tmp_path, 2 * ROWS - 2, driver)  # the newest rows wait for the frontier
    executors = [len(list((tmp_path / f"worker{n}").glob("app-*/*/stderr"))) for n in range(2)]
    assert executors == [1, 1], "there is an executor on every worker"
    write(tmp_path, 2)
    time.sleep(0.5)
    cluster.kill(cluster.workers[0])
    for number in range(3, FILES):
        write(tmp_path, number)
        time.sleep(0.2)
    wait_for(tmp_path, FILES * ROWS - 2, driver)
    os.killpg(driver.pid, signal.SIGINT)
    driver.wait(60)
    got = rows_in(tmp_path / "out.csv")
    every = [(i, f"c{i % 3}", i // 3 + 1, sum(range(i % 3, i + 1, 3))) for i in range(FILES * ROWS)]
    assert sorted(got) == every[: len(got)]
    assert len(got) >= FILES * ROWS - 2
