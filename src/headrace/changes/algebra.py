"""What changed: rows as they were against rows as they are. Everything that corrects itself asks here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Columns = Sequence[np.ndarray]  # arrays of one length that together tell rows apart
Pairs = tuple[np.ndarray, np.ndarray]


def twins(was: Columns, now: Columns) -> Pairs:
    """Places in both that are the same row. On either side every row is there once."""
    n = len(was[0])
    both = [np.concatenate(pair) for pair in zip(was, now, strict=True)]
    order = np.lexsort(both[::-1])  # stable: what was stands first
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in both:
        same &= column[order[1:]] == column[order[:-1]]
    pair = np.flatnonzero(same)
    return order[pair], order[pair + 1] - n


def diff(was: Columns, now: Columns, differs: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Pairs:
    """Which rows to take back of those that were, and which to say of those that are: all but those that stay as they are.

    `differs` says of places that are the same row whether its values changed.
    """
    take_back, say = np.ones(len(was[0]), np.bool_), np.ones(len(now[0]), np.bool_)
    if len(take_back) and len(say):
        a, b = twins(was, now)
        stays = ~differs(a, b)
        take_back[a[stays]] = False
        say[b[stays]] = False
    return take_back.nonzero()[0], say.nonzero()[0]


def consolidate(rows: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is made and what is unmade, each once: a row that comes and goes was never there. A row is a line of numbers.

    Then what was there, still is, and may have changed: signs of 0 say so, and so does going and coming again.
    """
    if not len(signs) or (signs > 0).all() or (signs < 0).all():
        return rows[signs > 0], rows[signs < 0], rows[:0]
    _, first, number = np.unique(as_values(rows), return_index=True, return_inverse=True)
    net = np.zeros(len(first), np.int64)
    np.add.at(net, number, signs)
    backward = np.flatnonzero(signs)[::-1]
    begins = np.zeros(len(first), np.int64)  # with a sign that is not 0
    begins[number[backward]] = signs[backward]
    return tuple(rows[np.sort(first[which])] for which in (net > 0, net < 0, (net == 0) & (begins <= 0)))


def as_values(rows: np.ndarray) -> np.ndarray:
    """Lines of numbers as values that compare as a whole."""
    flat = np.ascontiguousarray(rows)
    return flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).reshape(-1)
