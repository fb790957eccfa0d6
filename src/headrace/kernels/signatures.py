"""Machine types of kernel arguments. Every kernel states its own, so that it is compiled once, whatever arrays it is given.

Without them Numba would compile a kernel again for every mix of arrays that may and may not be written to, and arrays that come
straight out of Arrow may not.
"""

from __future__ import annotations

from numba import types


def _read(kind: types.Type, dimensions: int = 1) -> types.Array:
    return types.Array(kind, dimensions, "C", readonly=True)


def _write(kind: types.Type, dimensions: int = 1) -> types.Array:
    return types.Array(kind, dimensions, "C")


# Read: lower case for the columns of rows. Written to: state and results.
keys = _read(types.int32)
ints = _read(types.int64)
words = _read(types.uint64)
floats = _read(types.float64)
codes = _read(types.uint8)
flags = _read(types.boolean)
int_rows = _read(types.int64, 2)

KEYS = _write(types.int32)
INTS = _write(types.int64)
WORDS = _write(types.uint64)
FLOATS = _write(types.float64)
CODES = _write(types.uint8)
FLAGS = _write(types.boolean)
LIMBS = _write(types.int64, 2)
LINKS = _write(types.int32, 2)
WORD_PAIRS = _write(types.uint64, 2)

integer = types.int64
word = types.uint64
boolean = types.boolean
number_or_null = types.Tuple((types.float64, types.boolean))
nothing = types.void
