"""Compile every kernel and keep the result on disk, so that the first batch does not wait: `python -m headrace.kernels.warm`."""

from __future__ import annotations

import importlib
import pkgutil
from multiprocessing import get_context

import numpy as np

import headrace.kernels
from headrace.kernels.exact import accumulators

PATTERNS = "headrace.kernels.patterns."  # about half of the time, and nothing that others need


def main() -> None:
    """Patterns beside all the rest, one process each."""
    found = pkgutil.walk_packages(headrace.kernels.__path__, "headrace.kernels.")
    names = [m.name for m in found if m.name != "headrace.kernels.warm"]
    other = get_context("spawn").Process(target=compile_all, args=([n for n in names if n.startswith(PATTERNS)],))
    other.start()
    compile_all([n for n in names if not n.startswith(PATTERNS)])
    values = np.array([1.0, 2.5])
    low, high = accumulators.limb_range(values)
    accumulators.square_limb_range(values)
    accumulators.normalize(np.zeros((2, high - low), np.int64))
    other.join()
    compile_all(names)


def compile_all(names: list[str]) -> None:
    """Kernels state their types, so importing them compiles them; the few that do not are called once."""
    for name in names:
        importlib.import_module(name)


if __name__ == "__main__":
    main()
