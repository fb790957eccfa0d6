"""Compile every kernel and keep the result on disk, so that the first batch does not wait: `python -m headrace.kernels.warm`."""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np

import headrace.kernels
from headrace.kernels import exact


def main() -> None:
    """Kernels state their types, so importing them compiles them; the few that do not are called once."""
    for module in pkgutil.iter_modules(headrace.kernels.__path__):
        if module.name != "warm":
            importlib.import_module(f"headrace.kernels.{module.name}")
    values = np.array([1.0, 2.5])
    low, high = exact.limb_range(values)
    exact.square_limb_range(values)
    exact.normalize(np.zeros((2, high - low), np.int64))


if __name__ == "__main__":
    main()
