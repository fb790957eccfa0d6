"""Python -> the same plan that SQL makes. `import headrace as hr` gives all of this.

>>> import headrace as hr
>>> str(hr.range("5 minutes"))
'[RANGE 5 MINUTES]'
>>> hr.sum("amount").filter("amount > 0").sql
'SUM(amount) FILTER (WHERE amount > 0)'
"""

from headrace.api.aggregates import avg, count, count_distinct, first, last, stddev, stddev_pop, var_pop, variance
from headrace.api.aggregates import max_ as max
from headrace.api.aggregates import min_ as min
from headrace.api.aggregates import sum_ as sum
from headrace.api.handle import Run
from headrace.api.patterns import event, seq
from headrace.api.run import Program, console, file, sql, start, table
from headrace.api.stream import Output, Stream, Windowed, stream
from headrace.api.windows import range_ as range
from headrace.api.windows import rows, size, unbounded, window

__all__ = [
    "Output", "Program", "Run", "Stream", "Windowed", "avg", "console", "count", "count_distinct", "event", "file", "first",
    "last", "max", "min", "range", "rows", "seq", "size", "sql", "start", "stddev", "stddev_pop", "stream", "sum", "table",
    "unbounded", "var_pop", "variance", "window",
]  # fmt: skip
