"""Compile every kernel and keep the result on disk, so that the first batch does not wait: `python -m headrace.kernels.warm`."""

from __future__ import annotations

import importlib
import pkgutil
from multiprocessing import get_context

import numpy as np

import headrace.kernels
from headrace.kernels import exact

PATTERNS = ("arriving", "frames", "members", "purging")  # about half of the time, and nothing that others need


def main() -> None:
    """Patterns beside all the rest, one process each."""
    names = [m.name for m in pkgutil.iter_modules(headrace.kernels.__path__) if m.name not in ("warm", *PATTERNS)]
    other = get_context("spawn").Process(target=compile_all, args=(PATTERNS,))
    other.start()
    compile_all(tuple(name for name in names if name not in ("sequences", "linking", "slopes", "stacks")))
    values = np.array([1.0, 2.5])
    low, high = exact.limb_range(values)
    exact.square_limb_range(values)
    exact.normalize(np.zeros((2, high - low), np.int64))
    other.join()
    compile_all(tuple(names))


def compile_all(names: tuple[str, ...]) -> None:
    """Kernels state their types, so importing them compiles them; the few that do not are called once."""
    for name in names:
        importlib.import_module(f"headrace.kernels.{name}")


if __name__ == "__main__":
    main()
