"""Python -> the same plan that SQL makes. `import headrace as hr` gives all of this.

>>> import headrace as hr
>>> str(hr.range("5 minutes"))
'[RANGE 5 MINUTES]'
>>> hr.sum("amount").filter("amount > 0").sql
'SUM(amount) FILTER (WHERE amount > 0)'
"""

from headrace.api import aggregates
from headrace.api.aggregates import *  # noqa: F403
from headrace.api.handle import Run
from headrace.api.patterns import event, seq
from headrace.api.run import Program, console, file, sql, start, table
from headrace.api.stream import Output, Stream, Windowed, stream
from headrace.api.windows import range_ as range
from headrace.api.windows import rows, size, unbounded, window

__all__ = [
    "Output", "Program", "Run", "Stream", "Windowed", "console", "event", "file", "range", "rows", "seq", "size", "sql", "start",
    "stream", "table", "unbounded", "window",
]  # fmt: skip
__all__ += aggregates.__all__
