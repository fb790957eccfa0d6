"""Arrays whose references are not counted.

Numba counts a reference whenever an array is taken out of a tuple or put into a variable. Each is an atomic operation, and keeps
functions from melting into one: searches that follow a few links took five times as long.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def _lent(typing: Any, arrays: Any) -> Any:
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature
        out = []
        for kind, value in zip(arrays.types, cgutils.unpack_tuple(builder, arguments[0]), strict=True):
            if isinstance(kind, nb.types.Array):
                view = context.make_array(kind)(context, builder, value)
                view.meminfo, view.parent = view.meminfo.type(None), view.parent.type(None)
                value = view._getvalue()
            out.append(value)
        return context.make_tuple(builder, arrays, out)

    return arrays(arrays), generate


@nb.njit(inline="always")
def lent(arrays: Any) -> Any:
    """The same tuple; whoever gives it must still hold its arrays, and use them once more when all is done."""
    return _lent(arrays)  # type: ignore[call-arg]
