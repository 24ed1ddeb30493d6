"""Trees of labels and parts in images: the upper envelope, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.problems.tree.grid_parts import GridLayout, GridPartsProblem, pack_maps
from maxmargin.problems.tree.kernels import upper_envelope
from maxmargin.problems.tree.labels import (
    root_tree,
)

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.nojit
@given(
    seeds,
    st.integers(1, 9),
    st.sampled_from([-2.0, -0.3, -1e-9, 0.0, 1e-300, 1e-6, 0.7]),
    st.floats(-2, 2),
)
def test_upper_envelope(seed, n, a, b):
    """The linear-time message equals the maximum over all pairs, for every sign of a."""
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random(n) < 0.3, -np.inf, np.round(3 * rng.normal(size=n), 1))
    out = np.empty(n)
    upper_envelope(scores, n, a, b, np.empty(n), np.empty(n, np.int64), np.empty(n), out)
    offset = np.arange(n)[None, :] - np.arange(n)[:, None]
    expected = (scores[None, :] + a * offset**2 + b * offset).max(axis=1)
    assert np.allclose(out, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 3)], r"edge 1 of the tree is \(1, 3\)"),
        ([(0, 1), (1, 1)], r"edge 1 of the tree is \(1, 1\)"),
        ([(0, 1), (1, 0)], "2 edges reach 2 of 3 nodes"),
        ([(0, 1), (1, 2), (2, 0)], "3 edges reach 3 of 3 nodes"),
    ],
)
def test_not_a_tree(edges, message):
    with pytest.raises(ValueError, match=message):
        root_tree(3, edges)


def test_bad_positions():
    maps = pack_maps([np.zeros((3, 4, 1))], 3)
    layout = GridLayout(*root_tree(1, []), 3, 1, np.zeros((1, 2)), np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"part 0 of example 0 is at \(3, 0\), outside .* 3 x 4"):
        GridPartsProblem(maps, [[[3, 0]]], layout)
    with pytest.raises(ValueError, match=r"shape \(1, 2, 2\); expected \(1, 1, 2\)"):
        GridPartsProblem(maps, [[[0, 0], [1, 1]]], layout)
    with pytest.raises(ValueError, match="size of example 0 is 0"):
        GridPartsProblem(maps, [[[0, 0]]], layout, sizes=0.0)
    with pytest.raises(ValueError, match="got 'l2'"):
        GridPartsProblem(maps, [[[0, 0]]], layout, loss="l2")
