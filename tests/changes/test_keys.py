"""Order keys: nested through any number of steps, and compared in one place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.changes.algebra import consolidate, diff, twins
from headrace.changes.changes import Changes, read_changes, write_changes
from headrace.changes.keys import Keys, from_arrow, joined, to_arrow
from headrace.changes.rows import empty_batch

HALF = 1 << 63
numbers = st.integers(0, 3)
nested = st.lists(st.tuples(numbers, numbers, numbers, st.lists(st.integers(1, 3), max_size=3)), max_size=12)


def keys_of(rows):
    width = max((len(words) for *_, words in rows), default=0)
    sub = np.array([words + [0] * (width - len(words)) for *_, words in rows], np.uint64).reshape(len(rows), width)
    parts = [np.array([row[i] for row in rows], np.int64) for i in range(3)]
    return Keys(*parts, sub if width else None)


def tuples(keys):
    """As Python compares them; how far words are filled up means nothing."""
    lines = [tuple(int(part[i]) for part in keys.columns) for i in range(len(keys))]
    return [line[:3] + tuple(line[3:][: next((k for k in range(len(line) - 3, 0, -1) if line[2 + k]), 0)]) for line in lines]


@given(nested)
def test_they_sort_as_tuples_do(rows):
    keys = keys_of(rows)
    order = keys.order()
    assert tuples(keys if order is None else keys.take(order)) == sorted(tuples(keys))


@given(nested, nested)
def test_locate_and_twins_find_the_same_rows(rows, others):
    rows, others = (sorted({(*row[:3], tuple(row[3])) for row in some}) for some in (rows, others))
    mine, theirs = keys_of([(*r[:3], list(r[3])) for r in rows]), keys_of([(*r[:3], list(r[3])) for r in others])
    assert mine.locate(theirs).tolist() == [rows.index(r) if r in rows else -1 for r in others]
    both = mine.append(theirs)
    a, b = twins(both.slice(0, len(mine)).columns, both.slice(len(mine), len(both)).columns)
    assert {rows[i] for i in a} == {others[i] for i in b} == set(rows) & set(others)
    assert [rows[i] for i in a] == [others[i] for i in b]


@given(nested, nested)
def test_one_after_the_other(rows, others):
    assert tuples(Keys.concat([keys_of(rows), Keys.none(), keys_of(others)])) == tuples(keys_of(rows)) + tuples(keys_of(others))


@given(nested)
def test_as_arrow_and_back(rows):
    keys = keys_of(rows)
    columns = to_arrow(keys)
    assert tuples(from_arrow(columns)) == tuples(keys)
    some = [pa.concat_arrays([c, other]) for c, other in zip(columns, to_arrow(keys_of([(9, 9, 9, [7] * 5)])), strict=True)]
    assert tuples(from_arrow(some)) == [*tuples(keys), (9, 9, 9, 7, 7, 7, 7, 7)]
    assert tuples(from_arrow([c[1:] for c in some])) == [*tuples(keys), (9, 9, 9, 7, 7, 7, 7, 7)][1:]


def test_four_steps_nest():
    """The outputs of one input come in sequence, after it and before the next, through any chain of steps."""
    rng = np.random.default_rng(0)
    level = Keys(np.array([1, 2, 2, 7], np.int64), np.zeros(4, np.int64), np.arange(4))
    for _ in range(4):
        made, origin = [], []
        for i in range(len(level)):
            for _ in range(int(rng.integers(0, 3))):
                words = rng.integers(1, 2**64, (1, int(rng.integers(1, 4))), dtype=np.uint64)
                made.append(level.take(np.array([i])).under(words))
                origin.append(i)
            made.append(level.take(np.array([i])).under(np.array([[len(made) + 1]], np.uint64)))
            origin.append(i)
        derived = Keys.concat(made)
        order = derived.order()
        assert order is not None
        assert np.array(origin)[order].tolist() == sorted(origin), "outputs of one input stand together, in the order of inputs"
        both = Keys.concat([level, derived])
        place = np.empty(len(both), np.int64)
        place[both.order()] = np.arange(len(both))
        own, theirs = place[: len(level)], place[len(level) :]
        assert all(own[i] < theirs[j] for j, i in enumerate(origin)), "after its input"
        assert all(theirs[j] < own[i + 1] for j, i in enumerate(origin) if i + 1 < len(level)), "before the next"
        level = derived.take(order)


def test_words_are_put_behind_each_other_however_far_they_are_filled_up():
    one, other = np.array([[5, 0, 0], [5, 6, 0]], np.uint64), np.array([[7, 8], [7, 0]], np.uint64)
    assert joined([one, other]).tolist() == [[5, 7, 8], [5, 6, 7]]
    assert joined([one[:1, :1], other[:1]]).tolist() == [[5, 7, 8]]


def test_a_key_inside_another_sorts_as_it_does_itself():
    keys = Keys(np.array([-5, 3, 3], np.int64), np.array([0, -1, 0], np.int64), np.array([9, 9, -9], np.int64))
    assert keys.whole().tolist() == [[HALF - 5, HALF, HALF + 9], [HALF + 3, HALF - 1, HALF + 9], [HALF + 3, HALF, HALF - 9]]


def test_changes_without_columns_go_through_bytes():
    changes = Changes.of(-1, keys_of([(1, 2, 3, []), (1, 2, 3, [4])]), empty_batch(2))
    back = read_changes(write_changes(changes))
    assert (back.sign.tolist(), tuples(back.keys), back.rows.num_rows) == ([-1, -1], tuples(changes.keys), 2)


def test_diff_takes_back_and_says_what_is_not_the_same_in_both():
    was, now = [np.array([1, 2, 3])], [np.array([2, 3, 4])]
    values, after = np.array([10, 20, 30]), np.array([20, 31, 40])
    take_back, say = diff(was, now, lambda a, b: values[a] != after[b])
    assert (take_back.tolist(), say.tolist()) == ([0, 2], [1, 2])


@pytest.mark.parametrize(
    ("signs", "net"),
    [([1], 1), ([1, -1], 0), ([-1, 1], "stays"), ([-1], -1), ([0], "stays"), ([1, 0], 1), ([1, -1, 1], 1), ([-1, 1, -1], -1)],
)
def test_consolidate(signs, net):
    rows = np.array([[4, 5]] * len(signs) + [[9, 9], [8, 8]])
    made, unmade, stays = consolidate(rows, np.array([*signs, 1, -1]))
    assert made.tolist() == ([[4, 5]] if net == 1 else []) + [[9, 9]]
    assert unmade.tolist() == ([[4, 5]] if net == -1 else []) + [[8, 8]]
    assert stays.tolist() == ([[4, 5]] if net == "stays" else [])
