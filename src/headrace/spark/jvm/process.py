"""The JVM of a session of our own: started without Spark's scripts, before PySpark is imported, and ended with all that it made.

`spark-submit` starts one JVM to find out how to start another. What it finds is kept, beside an archive of the classes that Spark
loads (`headrace.spark.jvm.archive`), for the next time; where the user has settings of Spark of his own, the scripts are asked.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from headrace.spark.jvm.chatter import Chatter
from headrace.spark.jvm.scratch import Scratch
from headrace.spark.settings import settings_of
from headrace.spark.workers.interpreter import SCRIPT, choose_interpreter

SCRATCH = "@scratch@"  # in what is kept, for the folder of this session
THEIRS = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_TESTING", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
PATIENCE_S = 20.0  # for a JVM to end by itself
LOOK_S = 0.02


@dataclass(slots=True)
class Jvm:
    """A JVM that is starting or runs, and the folder that is its temporary directory."""

    process: subprocess.Popen[bytes]
    scratch: Scratch
    settings: dict[str, str]
    info: str  # where it says how to reach it
    halt: bool  # nothing is lost if it is killed once no query runs
    zygote: subprocess.Popen[bytes] | None = None
    chatter: Chatter | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def reachable(self) -> bool:
        """Wait until it can be connected to; False if it has ended instead."""
        while not os.path.exists(self.info):
            if self.process.poll() is not None:
                return False
            time.sleep(LOOK_S)
        return True

    def last_words(self) -> str:
        return self.chatter.last_words() if self.chatter is not None else "see above"

    def end(self, patience_s: float = PATIENCE_S) -> None:
        if self.ended.is_set():
            return
        self.ended.set()
        if self.process.stdin is not None:
            self.process.stdin.close()  # to the JVM, this is the end of the program that started it
        if self.halt:
            self.process.kill()
        try:
            self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.zygote is not None and self.zygote.stdin is not None:
            self.zygote.stdin.close()
            self.zygote.wait()
        self.scratch.remove()


_early: Jvm | None = None


def begin() -> None:
    """Start the JVM that the first session of this process will use, and go on: it takes seconds to come up."""
    global _early
    if _early is None and "pyspark" not in sys.modules:
        _early = launch(settings_of(), quiet=True)


def hand_over(jvm: Jvm) -> None:
    """Have the next session use this JVM."""
    global _early
    _early = jvm


def take(settings: dict[str, str], quiet: bool) -> Jvm | None:
    """The JVM for a session with these settings, started now if none was; None where Spark's own scripts must start it."""
    global _early
    early, _early = _early, None
    if early is not None and early.settings == settings:
        return early
    if early is not None:
        early.end()
    return launch(settings, quiet)


def launch(settings: dict[str, str], quiet: bool, *options: str, halt: bool | None = None) -> Jvm | None:
    """Start a JVM, and beside it the process that its Python processes are forked from."""
    choose_interpreter()
    java, home = java_program(), pyspark_home()
    if java is None or not os.access(java, os.X_OK) or home is None or any(name in os.environ for name in THEIRS):
        return None
    known = kept_command(java, home, settings)
    if known is None:
        return None
    scratch = Scratch()
    command = [part.replace(SCRATCH, scratch.path) for part in known]
    archive = archive_of(java, home)
    shared = () if options or not archive.exists() else (f"-XX:SharedArchiveFile={archive}", "-Xshare:auto")
    environment = _environment(home, scratch.path)
    chatter = Chatter() if quiet else None
    said = chatter.write if chatter is not None else None
    process = subprocess.Popen(
        [command[0], *shared, *options, *command[1:]], stdin=subprocess.PIPE, stdout=said, stderr=said, env=environment,
        pass_fds=(scratch.lock,), preexec_fn=_deaf,
    )  # fmt: skip
    zygote = _zygote(environment)
    if chatter is not None:
        chatter.close()
    info = environment["_PYSPARK_DRIVER_CONN_INFO_PATH"]
    jvm = Jvm(process, scratch, settings, info, quiet if halt is None else halt, zygote, chatter)
    atexit.register(jvm.end)
    return jvm


def _deaf() -> None:
    """Ctrl-C, and what `timeout` sends to all, are for us: we end the query first, then the JVM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _environment(home: Path, scratch: str) -> dict[str, str]:
    """What Spark's scripts would set, and where the zygote will listen."""
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_ENV_LOADED": "1",
        "SPARK_CONNECT_MODE": "0",
        "PYTHONHASHSEED": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": os.path.join(scratch, "gateway"),
        "HEADRACE_ZYGOTE": os.path.join(scratch, "zygote"),
    }


def _zygote(environment: dict[str, str]) -> subprocess.Popen[bytes] | None:
    """None where the user has a Python of his own for workers."""
    if environment.get("PYSPARK_PYTHON") != str(SCRIPT):
        return None
    command = [environment["HEADRACE_PYTHON"], "-m", "headrace.spark.workers.zygote", environment["HEADRACE_ZYGOTE"]]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=null, stderr=null, env=environment, preexec_fn=_deaf)


def java_program() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", "java") if home else shutil.which("java")


def pyspark_home() -> Path | None:
    """Where PySpark is installed with its jars, without importing it."""
    found = importlib.util.find_spec("pyspark")
    home = Path(found.origin).parent if found is not None and found.origin else None
    return home if home is not None and (home / "jars").is_dir() else None


def cache_folder() -> Path:
    """What is kept from session to session: with this Python, or with the user where that cannot be written to."""
    if "HEADRACE_CACHE" in os.environ:
        return Path(os.environ["HEADRACE_CACHE"])
    own = Path(sys.prefix) / ".headrace"
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        return own
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def _versions(java: str, home: Path) -> list[str]:
    """What the JVM's classes depend on: this Java, these jars."""
    release = Path(os.path.realpath(java)).parent.parent / "release"
    facts = release.read_text() if release.exists() else str(os.stat(java).st_mtime_ns)
    jars = str(os.stat(home / "jars").st_mtime_ns)
    return [os.path.realpath(java), facts, str(home), importlib.metadata.version("pyspark"), jars]


def archive_of(java: str, home: Path) -> Path:
    """The archive of classes for this Java and this Spark, whether or not it is there."""
    return cache_folder() / f"classes-{_digest(_versions(java, home))}.jsa"


def kept_command(java: str, home: Path, settings: dict[str, str]) -> list[str] | None:
    """How Spark's launcher starts the JVM with these settings: asked once, then remembered."""
    file = cache_folder() / f"command-{_digest([*_versions(java, home), json.dumps(settings, sort_keys=True)])}.json"
    with suppress(OSError, ValueError):
        known: list[str] = json.loads(file.read_text())
        return known
    command = _ask_launcher(java, home, settings)
    if command is not None:
        with suppress(OSError):  # else it is asked again
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as aside:
                json.dump(command, aside)
            os.replace(aside.name, file)
    return command


def _ask_launcher(java: str, home: Path, settings: dict[str, str]) -> list[str] | None:
    """The command, with a sign for the folder that is different each time; None if Spark's scripts know better."""
    every = {"spark.local.dir": SCRATCH, **settings}
    every["spark.driver.extraJavaOptions"] = f"-Djava.io.tmpdir={SCRATCH} " + settings.get("spark.driver.extraJavaOptions", "")
    arguments = [part for key, value in every.items() for part in ("--conf", f"{key}={value}")]
    quick = ("-Xmx128m", "-Xshare:auto", "-XX:TieredStopAtLevel=1")
    asked = [java, *quick, "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main"]
    scala = next((home / "jars").glob("spark-core_*.jar")).name.split("_")[1].split("-")[0]
    try:
        told = subprocess.run(
            [*asked, "org.apache.spark.deploy.SparkSubmit", *arguments, "pyspark-shell"],
            capture_output=True, env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": scala}, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return None
    command = [part.decode().lstrip("\n") for part in told.stdout.split(b"\0") if part.strip()]
    return command if command and os.path.basename(command[0]) == "java" else None


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
