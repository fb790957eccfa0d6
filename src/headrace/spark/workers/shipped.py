"""Whether Spark's Python workers have Headrace: asked before a query starts, or every task would fail in a page of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from headrace.errors import SetupError
from headrace.spark.failures import SHIP, explained
from headrace.spark.workers.interpreter import SCRIPT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("headrace", "pyarrow", "pandas", "numpy", "numba")
OWN_DAEMON = "headrace.spark.workers.daemon"
TRY_S = 60

# A worker unpickles a function of ours by importing Headrace, which may not be there: this one travels as its text.
PROBE = """
def probe(names):
    import importlib.metadata, importlib.util
    found = {}
    for name in names:
        if importlib.util.find_spec(name) is not None:
            try:
                found[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                found[name] = None
    return found
"""

_known: set[str] = set()  # applications whose workers have been asked


def require_workers(spark: SparkSession) -> None:
    """Raise one error that says what Spark's Python workers lack, and how to ship it; ask once per application."""
    context = getattr(spark, "_sc", None)
    if context is None:  # Spark Connect: the server's workers cannot be asked from here
        return
    application = context.applicationId
    if application in _known:
        return
    if not (context.master.startswith("local") and _same_python(context)):
        with explained():
            found = context.parallelize([PACKAGES], 1).map(_probe()).collect()[0]
        complain(found, _version())
    _known.add(application)


def complain(found: dict[str, str | None], ours: str | None) -> None:
    missing = [name for name in PACKAGES if name not in found]
    if missing:
        raise SetupError(f"Spark's Python workers cannot import {', '.join(missing)}", hint=SHIP)
    theirs = found["headrace"]
    if ours is not None and theirs is not None and theirs != ours:
        raise SetupError(f"Spark's Python workers have Headrace {theirs}, and this program has {ours}", hint=SHIP)


def _probe() -> Any:
    space: dict[str, Any] = {"__name__": "__main__"}  # what seems to be typed in is pickled whole
    exec(PROBE, space)
    return space["probe"]


def _same_python(context: Any) -> bool:
    """Whether a process of the Python that workers run, on this machine, finds Headrace: quicker than a task."""
    if context.getConf().get("spark.python.daemon.module", "") == OWN_DAEMON and context.pythonExec == str(SCRIPT):
        return True  # a session of ours
    try:
        command = [context.pythonExec, "-c", "import sys, headrace; print(sys.version_info[:2])"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=TRY_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return told.returncode == 0 and told.stdout.strip() == str(sys.version_info[:2])


def _version() -> str | None:
    try:
        return version("headrace")
    except PackageNotFoundError:  # imported from a checkout
        return None
