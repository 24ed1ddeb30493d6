"""Steps inside one block: what they gain, what they keep, and where they end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brute import all_planes
from cases import multiclass_case
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import (
    ALL_PLANES,
    FRANK_WOLFE,
    MVP,
    WSS2,
    block_gap,
    improve_block,
)
from maxmargin.engine.store.block_store import StepRule, make_store

RULES = {"frank-wolfe": FRANK_WOLFE, "mvp": MVP, "wss2": WSS2, "all-planes": ALL_PLANES}
EXACT_RULES = {name: RULES[name] for name in ("mvp", "wss2", "all-planes")}
seeds = st.integers(0, 2**32 - 1)


class Block:
    """A random block: plane 0 is the truth, whose plane is zero."""

    def __init__(self, seed, m=5, rank=4, cap=1.0):
        rng = np.random.default_rng(seed)
        self.cap = cap
        self.planes = rng.normal(size=(m, rank))
        self.planes[0] = 0.0
        self.offsets = rng.uniform(0.0, 2.0, m)
        self.offsets[0] = 0.0
        self.gram = self.planes @ self.planes.T
        self.rest = rng.normal(size=rank)  # part of w that belongs to other blocks
        share = rng.exponential(size=m) * (rng.random(m) < 0.6)
        share[0] += 1e-3
        self.alpha = cap * share / share.sum()

    def scores(self, alpha):
        """``b - <a, w>`` where ``w`` is the rest plus this block's part."""
        return self.offsets - self.planes @ (self.rest + alpha @ self.planes)

    def dual(self, alpha):
        w = self.rest + alpha @ self.planes
        return float(alpha @ self.offsets - 0.5 * w @ w)

    def optimum(self):
        """Largest dual value, by the generic QP over this block alone."""
        linear = self.offsets - self.planes @ self.rest
        solved = solve_exactly([(linear[1:], self.planes[1:])], self.cap)
        return solved.value - 0.5 * float(self.rest @ self.rest)

    def improve(self, kind, max_steps, stop_gap=0.0):
        """Returns the kernel's gain and the new multipliers and scores."""
        alpha, scores = self.alpha.copy(), self.scores(self.alpha)
        gain = improve_block(
            kind, max_steps, stop_gap, scores, alpha, self.gram, len(alpha), self.cap, 0.0
        )
        return gain, alpha, scores


def blocks():
    return st.builds(
        Block, seeds, st.integers(1, 7), st.integers(1, 6), st.sampled_from([1e-3, 1.0, 50.0])
    )


@pytest.mark.nojit
@pytest.mark.parametrize("kind", RULES.values(), ids=RULES.keys())
@given(block=blocks(), max_steps=st.integers(0, 4))
def test_a_step_gains_what_it_says(kind, block, max_steps):
    gain, alpha, scores = block.improve(kind, max_steps)
    size = 1.0 + block.cap * (1.0 + abs(block.offsets).max() + abs(block.gram).max() * block.cap)
    assert gain >= 0.0
    assert gain == pytest.approx(block.dual(alpha) - block.dual(block.alpha), abs=1e-10 * size)
    assert np.all(alpha >= 0.0)
    assert alpha.sum() == pytest.approx(block.cap, rel=1e-12)
    assert np.allclose(scores, block.scores(alpha), atol=1e-10 * size)
    if max_steps == 0:
        assert gain == 0.0 and np.array_equal(alpha, block.alpha)


@pytest.mark.parametrize("kind", RULES.values(), ids=RULES.keys())
@given(block=blocks())
def test_a_step_is_taken_where_one_pays(kind, block):
    gap, _ = block_gap(block.scores(block.alpha), block.alpha, len(block.alpha), block.cap, 0.0)
    gain, _, _ = block.improve(kind, 1)
    size = 1.0 + block.cap * abs(block.scores(block.alpha)).max()
    assert (gain > 0.0) or gap <= 1e-10 * size


@pytest.mark.nojit
@pytest.mark.parametrize("kind", RULES.values(), ids=RULES.keys())
@given(seed=seeds, cap=st.sampled_from([1e-3, 1.0, 50.0]))
def test_a_step_goes_exactly_as_far_as_pays(kind, seed, cap):
    """With the truth and one plane there is one direction: a single step is the optimum."""
    block = Block(seed, m=2, cap=cap)
    _, alpha, _ = block.improve(kind, 1)
    best = block.optimum()
    assert block.dual(alpha) == pytest.approx(best, abs=1e-8 * (1.0 + abs(best)))


def pair_gain(block, u, v):
    """Largest gain of moving weight from v to u."""
    scores = block.scores(block.alpha)
    rise = scores[u] - scores[v]
    curvature = block.gram[u, u] + block.gram[v, v] - 2.0 * block.gram[u, v]
    move = min(block.alpha[v], rise / curvature if curvature > 0 else np.inf)
    return move * rise - 0.5 * move**2 * curvature


@pytest.mark.nojit
@given(block=blocks())
def test_which_plane_gives_up_weight(block):
    """WSS2 takes from the plane that promises the largest gain, MVP from the lowest active one."""
    scores = block.scores(block.alpha)
    u = int(np.argmax(scores))
    active = [v for v in np.flatnonzero(block.alpha > 0) if scores[v] < scores[u]]
    gains = {v: pair_gain(block, u, v) for v in active}
    lowest = min(active, key=lambda v: scores[v], default=u)
    size = 1e-9 * (1.0 + block.cap * abs(scores).max())
    assert block.improve(WSS2, 1)[0] == pytest.approx(max(gains.values(), default=0.0), abs=size)
    assert block.improve(MVP, 1)[0] == pytest.approx(gains.get(lowest, 0.0), abs=size)


@pytest.mark.parametrize("kind", EXACT_RULES.values(), ids=EXACT_RULES.keys())
@given(block=blocks())
def test_many_steps_reach_the_optimum(kind, block):
    _, alpha, scores = block.improve(kind, 20000)
    best = block.optimum()
    size = 1.0 + abs(best)
    assert block.dual(alpha) == pytest.approx(best, abs=1e-7 * size)
    gap, _ = block_gap(scores, alpha, len(alpha), block.cap, 0.0)
    assert gap <= 1e-6 * size


@given(block=blocks())
def test_frank_wolfe_converges_as_proven(block):
    """With exact line search, k steps leave at most 2 (cap * diameter)^2 / (k + 2)."""
    steps = 3000
    _, alpha, _ = block.improve(FRANK_WOLFE, steps)
    squares = np.diag(block.gram)
    diameter2 = (squares[:, None] + squares - 2.0 * block.gram).max()
    left = block.optimum() - block.dual(alpha)
    rounding = 1e-7 * (1.0 + abs(block.optimum()))
    assert -rounding <= left <= 2.0 * block.cap**2 * diameter2 / (steps + 2) + rounding


@pytest.mark.nojit
@given(block=blocks())
def test_the_gap_bounds_what_is_left_to_gain(block):
    alpha = block.alpha
    gap, u = block_gap(block.scores(alpha), alpha, len(alpha), block.cap, 0.0)
    scores = block.scores(alpha)
    assert u == np.argmax(scores)
    assert gap == pytest.approx(block.cap * scores.max() - alpha @ scores, rel=1e-9, abs=1e-9)
    assert gap >= -1e-9
    assert block.optimum() - block.dual(alpha) <= gap + 1e-7 * (1.0 + gap)


@pytest.mark.parametrize("kind", EXACT_RULES.values(), ids=EXACT_RULES.keys())
@given(block=blocks(), share=st.sampled_from([0.5, 0.1, 0.01]))
def test_steps_stop_at_the_asked_precision(kind, block, share):
    start, _ = block_gap(block.scores(block.alpha), block.alpha, len(block.alpha), block.cap, 0.0)
    _, alpha, scores = block.improve(kind, 20000, share * start)
    gap, _ = block_gap(scores, alpha, len(alpha), block.cap, 0.0)
    assert gap <= share * start + 1e-12
    # One step less was not enough: the steps did not run on to the optimum.
    steps = 0
    while steps < 50:
        _, alpha, scores = block.improve(kind, steps)
        if block_gap(scores, alpha, len(alpha), block.cap, 0.0)[0] <= share * start:
            break
        steps += 1
    if steps < 50:
        _, expected, _ = block.improve(kind, steps)
        assert np.array_equal(block.improve(kind, 20000, share * start)[1], expected)


@pytest.mark.nojit
@pytest.mark.parametrize("kind", RULES.values(), ids=RULES.keys())
def test_equal_planes_and_planes_without_features(kind):
    """No curvature: all the weight goes to the plane with the larger offset, at once."""
    gram = np.zeros((3, 3))
    scores, alpha = np.array([0.0, 1.0, 2.0]), np.array([0.5, 1.5, 0.0])
    gain = improve_block(kind, 10, 0.0, scores, alpha, gram, 3, 2.0, 0.0)
    assert np.allclose(alpha, [0.0, 0.0, 2.0])
    assert gain == pytest.approx(2.0 * 2.0 - 1.5 * 1.0)


@pytest.mark.nojit
@pytest.mark.parametrize("kind", RULES.values(), ids=RULES.keys())
def test_an_optimal_block_is_left_alone(kind):
    scores, alpha = np.array([0.0, -1.0]), np.array([1.0, 0.0])
    assert improve_block(kind, 10, 0.0, scores, alpha, np.eye(2), 2, 1.0, 0.0) == 0.0
    assert alpha.tolist() == [1.0, 0.0] and scores.tolist() == [0.0, -1.0]


# ----- the closed form of a multiclass block ----------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("loss", ["zero_one", "costs"])
@pytest.mark.parametrize("rescaling", ["margin", "none"])
@given(seed=seeds, K=st.integers(2, 6), C=st.sampled_from([0.01, 1.0, 100.0]))
def test_the_closed_form_solves_a_multiclass_block(loss, rescaling, seed, K, C):
    """One visit of a block makes it optimal, with every class in play."""
    rng = np.random.default_rng(seed)
    case = multiclass_case(rng, n=4, K=K, loss=loss)
    formulation = Formulation(rescaling)
    stores = [make_store(Oracle(case.problem, formulation), np.full(4, C), 0) for _ in range(2)]
    # The same start for both, away from zero.
    for store in stores:
        for i in range(4):
            store.oracle_pass(np.array([i]), StepRule(WSS2, 1))
    closed, stepped = stores
    assert np.array_equal(closed.alpha, stepped.alpha)
    closed.oracle_pass(np.array([0]), StepRule(ALL_PLANES, 1))
    for _ in range(5 * K):  # each visit finds one more class and steps to the optimum over those
        stepped.oracle_pass(np.array([0]), StepRule(WSS2, 20000))
    assert np.allclose(closed.alpha, stepped.alpha, atol=1e-6 * C)
    assert closed.dual() == pytest.approx(stepped.dual(), rel=1e-9, abs=1e-9)
    # And both are optimal: no plane of the block promises a gain.
    b, A = all_planes(case.twin, formulation)[0]
    scores = np.concatenate([[0.0], b - A @ closed.w])
    held = closed.alpha[0][[y for y in range(K) if y != case.twin.truth(0)]] @ scores[1:]
    assert C * scores.max() - held <= 1e-9 * (1.0 + C * abs(scores).max())
