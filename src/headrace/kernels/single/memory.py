"""Arrays by their addresses: one event a call meets dozens, and to hand each of them over takes longer than the work itself."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray

BEYOND = 1 << 40  # the size of what is never asked for its size


@intrinsic
def _at(typing: Any, address: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


_pointer: Any = _at  # whose first argument is Numba's own


@nb.njit(cache=True)
def ints(address):  # type: ignore[no-untyped-def]
    return carray(_pointer(address), (BEYOND,), np.int64)


@nb.njit(cache=True)
def words(address):  # type: ignore[no-untyped-def]
    return carray(_pointer(address), (BEYOND,), np.uint64)


@nb.njit(cache=True)
def floats(address):  # type: ignore[no-untyped-def]
    return carray(_pointer(address), (BEYOND,), np.float64)


@nb.njit(cache=True)
def keys(address):  # type: ignore[no-untyped-def]
    return carray(_pointer(address), (BEYOND,), np.int32)


@nb.njit(cache=True)
def routes(address):  # type: ignore[no-untyped-def]
    return carray(_pointer(address), (BEYOND,), np.uint32)


@nb.njit(cache=True)
def codes(address):  # type: ignore[no-untyped-def]
    return carray(_pointer(address), (BEYOND,), np.uint8)


@nb.njit(cache=True)
def flags(address):  # type: ignore[no-untyped-def]
    """As bytes, each 0 or 1."""
    return carray(_pointer(address), (BEYOND,), np.uint8)


@nb.njit(cache=True)
def sized(address, size):  # type: ignore[no-untyped-def]
    """Integers that are asked for their size."""
    return carray(_pointer(address), (size,), np.int64)


@nb.njit(cache=True)
def lines(address, width):  # type: ignore[no-untyped-def]
    """Lines of integers: limbs of sums, or words of values."""
    return carray(_pointer(address), (BEYOND >> 10, width), np.int64)


@nb.njit(cache=True)
def pairs(address):  # type: ignore[no-untyped-def]
    """Lines of two numbers of nodes."""
    return carray(_pointer(address), (BEYOND, 2), np.int32)
