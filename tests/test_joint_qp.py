"""The joint QP over planes of all examples, against an interior-point method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact_qp import solve_exactly
from maxmargin.engine.feature_blocks import single_weights
from maxmargin.engine.joint_planes import NO_PRODUCTS, KnownProducts, PlaneRows, all_products
from maxmargin.engine.joint_qp import JointPlanes, solve_jointly


def random_blocks(rng, n, d, largest):
    """Planes of n examples, among them equal ones, whole numbers, and zeros with an offset."""
    blocks = []
    for _ in range(n):
        k = int(rng.integers(1, largest + 1))
        planes = rng.normal(size=(k, d))
        if rng.random() < 0.3:
            planes = np.rint(planes)
        if rng.random() < 0.3:
            planes[-1] = planes[0]
        if rng.random() < 0.1:
            planes[0] = 0.0
        blocks.append((rng.choice([0.5, 1.0, 2.0], k), planes))
    if rng.random() < 0.3:
        blocks[-1] = blocks[0]
    return blocks


def as_planes(blocks, caps, slack, alpha=None):
    """The blocks as the QP takes them, and the planes as rows."""
    offset = np.concatenate([b for b, _ in blocks])
    rows = np.concatenate([planes for _, planes in blocks])
    block = np.repeat(np.arange(len(blocks)), [len(b) for b, _ in blocks])
    cap = caps if slack == "l1" else np.where(caps > 0, np.inf, 0.0)
    ridge = 0.5 / np.where(caps > 0, caps, 1.0) if slack == "l2" else np.zeros(len(caps))
    alpha = np.zeros(len(offset)) if alpha is None else alpha
    return JointPlanes(rows @ rows.T, offset, alpha, block, cap, ridge), rows


def dual_of(planes, alpha):
    sums = np.bincount(planes.block, alpha, len(planes.upper_bound))
    square = alpha @ planes.gram @ alpha + planes.ridge @ sums**2
    return planes.offset @ alpha - 0.5 * square


def check_feasible(planes, alpha):
    sums = np.bincount(planes.block, alpha, len(planes.upper_bound))
    assert np.all(alpha >= 0.0) and np.all(sums <= planes.upper_bound * (1.0 + 1e-12))


def primal_of(planes, rows, caps, slack, w):
    """The primal value, were these planes all there are."""
    hinges = np.zeros(len(caps))
    np.maximum.at(hinges, planes.block, planes.offset - rows @ w)
    return 0.5 * w @ w + caps @ (hinges**2 if slack == "l2" else hinges)


def random_case(rng, slack, largest_C):
    """Blocks with their caps, 0 among them, and the QP's planes with a start, any or none."""
    n, d = int(rng.integers(1, 20)), int(rng.integers(1, 12))
    caps = 10.0 ** rng.uniform(-2, largest_C) * rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], n)
    caps[rng.integers(n)] = 1.0
    if slack == "l2":  # whoever has no weight has no ridge, and is left out
        caps = caps[caps > 0]
    blocks = random_blocks(rng, len(caps), d, 6)
    planes, rows = as_planes(blocks, caps, slack)
    if rng.random() < 0.5:
        start = rng.random(len(planes.offset)) * (rng.random(len(planes.offset)) < 0.5)
        sums = np.bincount(planes.block, start, len(caps))
        start *= (caps / np.maximum(sums, 1e-300))[planes.block] * rng.choice([0.5, 1.0])
        planes = planes._replace(alpha=start)
    return blocks, caps, planes, rows


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32 - 1), slack=st.sampled_from(["l1", "l2"]))
def test_solutions_are_certified_by_the_primal(seed, slack):
    """Dependent and equal planes, caps of 0, one example or many, any start."""
    _, caps, planes, rows = random_case(np.random.default_rng(seed), slack, 3)
    before = planes.alpha.copy()
    exact = solve_jointly(planes, 0.0)
    assert np.array_equal(planes.alpha, before)
    check_feasible(planes, exact.alpha)
    value, w = dual_of(planes, exact.alpha), rows.T @ exact.alpha
    primal = primal_of(planes, rows, caps, slack, w)
    assert primal - value <= 1e-6 * primal
    size = abs(dual_of(planes, before)) + primal
    assert exact.gap <= 1e-6 * primal
    assert exact.gain == pytest.approx(value - dual_of(planes, before), abs=1e-9 * size)
    rough = solve_jointly(planes, 0.01 * primal)
    assert rough.gap <= 0.01 * primal and rough.work <= exact.work
    assert value - dual_of(planes, rough.alpha) <= rough.gap + 1e-9 * size


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), slack=st.sampled_from(["l1", "l2"]))
def test_an_interior_point_method_finds_the_same(seed, slack):
    blocks, caps, planes, _ = random_case(np.random.default_rng(seed), slack, 1)
    optimum = solve_exactly(blocks, 1.0, caps, precision=1e-6, slack=slack)
    found = solve_jointly(planes, 0.0)
    assert dual_of(planes, found.alpha) == pytest.approx(optimum.value, rel=1e-5, abs=1e-6)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1))
def test_hard_margins(seed):
    """No caps and no ridges: planes that some weights satisfy."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 8))
    w = rng.normal(size=d)
    blocks = []
    for offsets, rows in random_blocks(rng, n, d, 5):
        sides = np.where(rows @ w < 0, -1.0, 1.0)
        rows = rows * sides[:, None] + 0.1 * w
        blocks.append((offsets, rows))
    planes, rows = as_planes(blocks, np.ones(n), "none")
    optimum = solve_exactly(blocks, 1.0, slack="none")
    found = solve_jointly(planes, 1e-9)
    check_feasible(planes, found.alpha)
    assert dual_of(planes, found.alpha) == pytest.approx(optimum.value, rel=1e-5)
    assert np.all(planes.offset - rows @ (rows.T @ found.alpha) <= 1e-5)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), slack=st.sampled_from(["l1", "l2", "none"]))
def test_little_work_never_lowers_the_dual(seed, slack):
    """Wherever it is stopped, and also where a hard margin cannot be met."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    planes, _ = as_planes(random_blocks(rng, n, 3, 5), np.full(n, 10.0), slack)
    start = rng.random(len(planes.offset))
    start /= np.bincount(planes.block, start)[planes.block] / 10.0
    planes = planes._replace(alpha=start)
    value = dual_of(planes, start)
    for work in (0.0, 100.0, 1000.0, 1e6):
        found = solve_jointly(planes, 0.0, work)
        check_feasible(planes, found.alpha)
        assert found.gain >= 0.0
        if slack != "none":  # an unbounded dual leaves nothing but rounding
            assert dual_of(planes, found.alpha) >= value - 1e-9 * abs(value)


def test_the_same_bits():
    rng = np.random.default_rng(0)
    planes, _ = as_planes(random_blocks(rng, 15, 6, 6), np.full(15, 30.0), "l1")
    first, second = (solve_jointly(planes, 1e-6) for _ in range(2))
    assert np.array_equal(first.alpha, second.alpha) and first[1:] == second[1:]


def test_where_nothing_is_to_gain():
    """No planes with an offset, or a start that is the optimum."""
    planes = JointPlanes(
        np.eye(2), np.zeros(2), np.zeros(2), np.array([0, 0]), np.ones(1), np.zeros(1)
    )
    assert solve_jointly(planes, 0.0)[:3] == (pytest.approx([0.0, 0.0]), 0.0, 0.0)
    best = planes._replace(offset=np.array([0.5, 0.25]), alpha=np.array([0.5, 0.25]))
    found = solve_jointly(best, 0.0)
    assert np.array_equal(found.alpha, best.alpha) and found.gain == 0.0


def test_products_are_kept_from_one_solution_to_the_next():
    """Products of planes that stay are not computed again, whatever their new numbers."""
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.7)
    parts = single_weights(4)

    def rows_of(ids):
        counts = np.array([np.count_nonzero(dense[k]) for k in ids])
        last = np.cumsum(counts)
        entries = [np.flatnonzero(dense[k]) for k in ids]
        values = np.concatenate([dense[k][e] for k, e in zip(ids, entries, strict=True)])
        return PlaneRows(last - counts, last, np.concatenate(entries).astype(np.int32), values)

    expected = dense @ dense.T
    np.testing.assert_allclose(all_products(rows_of(range(6)), parts, 4), expected, atol=1e-12)
    known = NO_PRODUCTS
    for ids, n_known in (([4, 0, 2], 0), ([0, 1, 2, 4], 3), ([1, 2, 4], 3), ([2, 4], 2)):
        ordered, already = known.order(np.array(ids))
        assert len(already) == n_known and sorted(ordered) == sorted(ids)
        gram = known.extended(already, rows_of(ordered), parts, 4)
        np.testing.assert_allclose(gram, expected[np.ix_(ordered, ordered)], atol=1e-12)
        known = KnownProducts(ordered, gram)
    # Plane 4 is of the block that comes first, plane 0 is gone, plane 5 was never asked for.
    known = known.renumbered(np.array([2, 4, 5]), np.array([7, 3, 9]))
    ordered, already = known.order(np.array([0, 1, 2]))
    assert len(already) == 2 and sorted(ordered[:2]) == [0, 1]
    now = np.array([4, 2, 5])[ordered]
    gram = known.extended(already, rows_of(now), parts, 4)
    np.testing.assert_allclose(gram, expected[np.ix_(now, now)], atol=1e-12)
