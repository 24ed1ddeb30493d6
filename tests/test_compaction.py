"""The kernels that close gaps, against numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.engine.store.compaction import (
    keep_blocks,
    keep_blocks_by_use,
    keep_products,
    keep_rows,
)

pytestmark = pytest.mark.nojit
seeds = st.integers(0, 2**31 - 1)


def ragged(rng):
    """Rows of up to 4 entries, some of them empty, and which are kept, in their order."""
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 5, rng.integers(1, 9)))])
    ids = rng.integers(0, 6, starts[-1]).astype(np.int32)
    kept = np.flatnonzero(rng.random(len(starts) - 1) < 0.6)
    return starts, ids, rng.normal(size=len(ids)), kept


@given(seed=seeds, in_place=st.booleans())
def test_kept_rows_follow_each_other(seed, in_place):
    rng = np.random.default_rng(seed)
    starts, ids, values, kept = ragged(rng)
    if not in_place:
        kept = rng.permutation(kept)
    rows = [slice(starts[k], starts[k + 1]) for k in kept]
    expected = [np.concatenate([[], *(array[row] for row in rows)]) for array in (ids, values)] + [
        np.cumsum([0, *(row.stop - row.start for row in rows)])
    ]
    fresh = (ids, values, starts) if in_place else (ids.copy(), values.copy(), starts.copy())
    keep_rows(starts[:-1], starts[1:], kept, ids, values, *fresh)
    for array, right in zip(fresh, expected, strict=True):
        assert np.array_equal(array[: len(right)], right)


@given(seed=seeds, in_place=st.booleans())
def test_kept_parts_are_those_that_entries_name(seed, in_place):
    rng = np.random.default_rng(seed)
    _, ids, *_ = ragged(rng)
    first, last = np.sort(rng.integers(0, len(ids) + 1, 2))
    listed = rng.permutation(50)[:6].astype(np.int32)
    named, others = listed[ids[first:last]], np.delete(ids, np.arange(first, last))
    place, at = np.zeros(6, np.int32), 0 if in_place else 3
    target = listed if in_place else np.full(10, -1, np.int32)
    before = listed.copy()
    count = keep_blocks(ids, first, last, listed, 6, place, target, at)
    assert list(target[at : at + count]) == [part for part in before if part in named]
    assert np.array_equal(target[at:][ids[first:last]], named)
    assert np.array_equal(np.delete(ids, np.arange(first, last)), others) and not place.any()


@given(seed=seeds, layout=st.sampled_from(["square", "in place", "triangle"]))
def test_kept_products_are_those_of_the_kept_planes(seed, layout):
    rng = np.random.default_rng(seed)
    capacity, count, at = 7, int(rng.integers(0, 8)), 5
    planes = rng.normal(size=(count, 3))
    square = np.zeros((capacity, capacity))
    square[:count, :count] = planes @ planes.T
    gram = np.concatenate([np.full(at, -1.0), square.ravel()])
    columns = np.flatnonzero(rng.random(count) < 0.6)
    if layout != "in place":
        columns = rng.permutation(columns)
    n, expected = len(columns), square[np.ix_(columns, columns)]
    target = gram if layout == "in place" else np.zeros_like(gram)
    stride = 0 if layout == "triangle" else capacity
    end = keep_products(gram, at + columns * capacity, columns, n, target, at, stride)
    if layout == "triangle":
        assert np.array_equal(target[at:end], expected[np.tril_indices(n)])
    else:
        assert end == at + n * capacity
        assert np.array_equal(target[at:end].reshape(n, capacity)[:, :n], expected)


@pytest.mark.nojit
def test_parts_in_the_order_of_their_use():
    ids = np.array([3, 1, 3, 5, 0, 1, 9], np.int32)  # the last is none of them
    listed = np.array([10, 11, 12, 13, 14, 15], np.int32)
    place, target = np.zeros(6, np.int32), np.full(6, -1, np.int32)
    assert keep_blocks_by_use(ids, 6, listed, place, target) == 4
    assert target.tolist() == [13, 11, 15, 10, -1, -1]
    assert ids.tolist() == [0, 1, 0, 2, 3, 1, 9] and not place.any()
