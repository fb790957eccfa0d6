"""Text -> plan: a statement parser of our own over sqlglot's tokens; expressions and types are Spark SQL's, read by sqlglot.

text -> tokens -> statements (create, select, windows, sinks, sources) -> syntax -> bind_create, bind_select -> plan
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import headrace
from headrace.sql.errors import SqlError
from headrace.sql.script import parse_script

__all__ = ["SqlError", "parse_script"]


class _Callable(ModuleType):
    """`hr.sql("SELECT ..", payments=df)`: the folder and the function of the API have one name, so the folder can be called."""

    def __call__(self, text: str, **inputs: Any) -> Any:
        """See `headrace.api.run.sql`, which the package above loads when it is first asked for."""
        return headrace.run_sql(text, **inputs)


sys.modules[__name__].__class__ = _Callable
