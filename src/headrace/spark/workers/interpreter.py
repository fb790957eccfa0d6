"""Which Python Spark starts for a query, several times over: to see what state it has, to pack, to keep state, to write."""

from __future__ import annotations

import importlib.util
import os
import sys
import sysconfig
from pathlib import Path

SCRIPT = Path(__file__).with_name("python.sh")


def choose_interpreter() -> None:
    """Have workers run this Python, unless the user said otherwise: before the JVM starts, which hands its environment down."""
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_PYTHON", str(SCRIPT) if _can_do_without_zips() else sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", os.environ["PYSPARK_PYTHON"])  # what Spark plans Python sources and sinks with


def _can_do_without_zips() -> bool:
    """Whether a new process of this Python finds PySpark by itself, and the script that leaves the zips out can be run."""
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    found = importlib.util.find_spec("pyspark")
    place = Path(found.origin).resolve().parent.parent if found is not None and found.origin else None
    return place in installed and os.access(SCRIPT, os.X_OK)
