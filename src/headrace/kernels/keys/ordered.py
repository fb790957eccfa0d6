"""Doubles as integers of the same order, and back."""

from __future__ import annotations

import numpy as np

_SIGN_BITS = np.int64(0x7FFFFFFFFFFFFFFF)


def to_ordered(floats: np.ndarray) -> np.ndarray:
    """Doubles as integers of the same order; NaN comes last, -0.0 is 0.0. Its own inverse on the bits."""
    bits = np.where(np.isnan(floats), np.nan, floats + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _SIGN_BITS)


def from_ordered(numbers: np.ndarray) -> np.ndarray:
    return (numbers ^ ((numbers >> 63) & _SIGN_BITS)).view(np.float64)
