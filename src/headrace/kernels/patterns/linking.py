"""Rows enter the chains of all places at which they fit, and leave them."""

from __future__ import annotations

import numba as nb
import numpy as np

from headrace.kernels import signatures as s
from headrace.kernels.lent import lent
from headrace.kernels.patterns.slopes import enter, enter_all, leave
from headrace.kernels.patterns.stacks import BITS, COUNT, FIRST, KEY, LOCAL, NONE, PLACE, STACKS, WORDS, Stacks, before, chain_of


@nb.njit(s.integer(STACKS, s.integer, s.integer, s.INTS), cache=True, forceinline=True)
def _chain_of_row(stacks: Stacks, j: int, row: int, words: np.ndarray) -> int:
    count = stacks.indexes[j, COUNT]
    for i in range(count):
        words[i] = stacks.rows[row, WORDS + stacks.indexes[j, FIRST + i]]
    return chain_of(stacks.rows[row, KEY], words, count, stacks.last.shape[1])


@nb.njit(s.nothing(STACKS, s.integer), cache=True, forceinline=True)
def link(stacks: Stacks, row: int) -> None:
    rows, links, last, indexes = stacks.rows, stacks.links, stacks.last, stacks.indexes
    m, words = links.shape[1] // 2, np.empty(indexes.shape[1], np.int64)
    for j in range(len(indexes)):
        if not (rows[row, BITS] >> indexes[j, PLACE]) & 1:
            continue
        local, h = indexes[j, LOCAL], _chain_of_row(stacks, j, row, words)
        behind, ahead = NONE, last[j, h]
        while ahead != NONE and before(rows, row, ahead):
            behind, ahead = ahead, links[ahead, local]
        links[row, local], links[row, m + local] = ahead, behind
        if ahead != NONE:
            links[ahead, m + local] = row
        if behind != NONE:
            links[behind, local] = row
        else:
            last[j, h] = row
        enter(stacks, j, row, ahead, behind)


@nb.njit(s.nothing(STACKS, s.integer, s.boolean), cache=True, forceinline=True)
def _take_out(stacks: Stacks, row: int, alone: bool) -> None:
    rows, links, last, indexes = stacks.rows, stacks.links, stacks.last, stacks.indexes
    m, words = links.shape[1] // 2, np.empty(indexes.shape[1], np.int64)
    for j in range(len(indexes)):
        if not (rows[row, BITS] >> indexes[j, PLACE]) & 1:
            continue
        local = indexes[j, LOCAL]
        ahead, behind = links[row, local], links[row, m + local]
        if ahead != NONE:
            links[ahead, m + local] = behind
        if behind != NONE:
            links[behind, local] = ahead
        else:
            last[j, _chain_of_row(stacks, j, row, words)] = ahead
        if alone:
            leave(stacks, j, row, ahead, behind)


@nb.njit(s.nothing(STACKS, s.integer), cache=True, forceinline=True)
def unlink(stacks: Stacks, row: int) -> None:
    _take_out(stacks, row, True)


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def link_all(stacks: Stacks, chosen: np.ndarray) -> None:
    """Link these rows; quick if they come in the total order."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        link(borrowed, chosen[i])


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def unlink_all(stacks: Stacks, chosen: np.ndarray) -> None:
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        unlink(borrowed, chosen[i])


@nb.njit(s.nothing(STACKS, s.ints, s.FLAGS), cache=True)
def let_oldest_go(stacks: Stacks, chosen: np.ndarray, there: np.ndarray) -> None:
    """Take rows out of their chains before which no others stand: what pointed to them points nowhere. Clears their flags."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        _take_out(borrowed, chosen[i], False)
        there[chosen[i]] = False
    if len(chosen) > 0:
        skips = borrowed.skips
        for row in range(len(skips)):
            for k in range(skips.shape[1]):
                if skips[row, k] != NONE and not there[skips[row, k]]:
                    skips[row, k] = NONE


@nb.njit(s.nothing(STACKS, s.ints), cache=True)
def let_go(stacks: Stacks, chosen: np.ndarray) -> None:
    """Take many rows out of their chains: where those that are left point to is found anew."""
    borrowed = lent(stacks)
    for i in range(len(chosen)):
        _take_out(borrowed, chosen[i], False)
    if len(chosen) > 0:
        enter_all(borrowed)
