"""Exact continuous queries over event streams that arrive out of order, on Apache Spark.

`import headrace as hr` gives the Python API of `headrace.api`. It is loaded at first use, because Spark's Python workers import
kernels and operators from here and need neither the API nor SQL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.errors import (
    DataError,
    HeadraceError,
    InternalError,
    LogError,
    NotEnded,
    QueryError,
    SetupError,
    SourceError,
    SparkFailure,
    StateError,
    SystemFailure,
)

if TYPE_CHECKING:
    from headrace.api import *  # noqa: F403

__all__ = [
    "DataError", "HeadraceError", "InternalError", "LogError", "NotEnded", "QueryError", "SetupError", "SourceError",
    "SparkFailure", "StateError", "SystemFailure",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Names of the API, at first use. `hr.sql` is the folder, which can be called."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "sql":
        return import_module("headrace.sql")
    api = import_module("headrace.api")
    if name not in api.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)


def run_sql(text: str, **inputs: Any) -> Any:
    """`hr.sql(..)`."""
    return import_module("headrace.api").sql(text, **inputs)


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("headrace.api").__all__})
