"""Trees of labels and parts in images: every oracle against the listing of all outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brute import all_planes
from brute_trees import GridPartsTwin, LabelTreeTwin
from cases import Case
from exact_qp import solve_exactly
from maxmargin.formulation import Formulation
from maxmargin.problems.tree.grid_parts import GridLayout, GridPartsProblem, find_parts, pack_maps
from maxmargin.problems.tree.kernels import upper_envelope
from maxmargin.problems.tree.labels import (
    LabelLayout,
    LabelTreeProblem,
    decode_label_trees,
    pack_columns,
    root_tree,
)
from maxmargin.solvers import make_solver
from test_oracles import check_oracle

RESCALINGS = ("margin", "slack", "none")
LABEL_LOSSES = ("hamming", "normalized-hamming", "zero-one")
seeds = st.integers(0, 2**32 - 1)


def random_tree(rng, V):
    """Parents and order of a random tree whose nodes come in any order; the root is node 0."""
    names = np.concatenate([[0], 1 + rng.permutation(V - 1)])
    edges = [(int(names[rng.integers(0, v)]), int(names[v])) for v in range(1, V)]
    return root_tree(V, [edges[k] for k in rng.permutation(V - 1)])


def label_case(rng, *, V=3, n=3, loss="hamming", extra_edge_inputs=0):
    parent, order = random_tree(rng, V)
    n_labels = rng.integers(1, 4, V)
    n_labels[rng.integers(V)] = 3
    n_inputs = rng.integers(1, 3, V)
    nodes = [rng.normal(size=(n, F)) * (rng.random((n, F)) < 0.8) for F in n_inputs]
    F_e = 1 + extra_edge_inputs
    edges = [
        np.hstack([np.ones((n, 1)), rng.normal(size=(n, extra_edge_inputs))]) for _ in range(V)
    ]
    Y = np.stack([rng.integers(0, K, n) for K in n_labels], axis=1)
    layout = LabelLayout(parent, order, n_labels, n_inputs, F_e)
    rows = pack_columns(nodes, [edges[v] for v in range(V) if parent[v] >= 0])
    problem = LabelTreeProblem(rows, Y, layout, loss=loss)
    return Case(problem, LabelTreeTwin(nodes, edges, Y, parent, n_labels, loss))


def grid_case(rng, *, V=2, loss="deviation", channels=1, patch=3, n=3):
    parent, order = random_tree(rng, V)
    largest = {1: 5, 2: 4, 3: 3}[V]
    images = [
        rng.normal(size=(*rng.integers(1, largest, 2), channels)).astype(np.float64)
        for _ in range(n)
    ]
    positions = np.array(
        [
            [[rng.integers(0, side) for side in image.shape[:2]] for _ in range(V)]
            for image in images
        ]
    )
    anchors, spreads = rng.normal(size=(V, 2)), rng.uniform(0.5, 2.0, (V, 2))
    sizes = rng.uniform(2.0, 30.0, n)
    layout = GridLayout(parent, order, patch, channels, anchors, spreads)
    problem = GridPartsProblem(pack_maps(images, patch), positions, layout, sizes=sizes, loss=loss)
    labels = [
        [y * im.shape[1] + x for y, x in spot] for im, spot in zip(images, positions, strict=True)
    ]
    twin = GridPartsTwin(images, labels, parent, patch, anchors, spreads, sizes, loss)
    return Case(problem, twin)


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


@pytest.mark.nojit
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", LABEL_LOSSES)
@given(
    seed=seeds,
    V=st.integers(1, 4),
    extra=st.integers(0, 1),
    sqrt_loss=st.booleans(),
    scale=st.sampled_from([0.0, 0.3, 2.0]),
)
@settings(max_examples=15)
def test_label_trees(rescaling, loss, seed, V, extra, sqrt_loss, scale):
    rng = np.random.default_rng(seed)
    case = label_case(rng, V=V, loss=loss, extra_edge_inputs=extra)
    w = scale * rng.normal(size=case.twin.n_features)
    check_oracle(case, w, rescaling, sqrt_loss)
    check_decoding(case, decode_label_trees(case.problem.rows, case.problem.layout, w), w)


def check_decoding(case, found, w):
    for i, y in enumerate(found):
        score = float(w @ case.twin.psi(i, tuple(int(k) for k in y)))
        assert score == pytest.approx(case.twin.best_score(i, w), abs=1e-9 * (1 + abs(w).sum()))


@pytest.mark.nojit
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", ("deviation", *LABEL_LOSSES))
@given(
    seed=seeds,
    V=st.integers(1, 3),
    channels=st.integers(1, 2),
    patch=st.sampled_from([1, 3]),
    sqrt_loss=st.booleans(),
    scale=st.sampled_from([0.0, 0.3, 2.0]),
)
@settings(max_examples=15)
def test_parts_in_images(rescaling, loss, seed, V, channels, patch, sqrt_loss, scale):
    """Weights are drawn with either sign, so that deformations bend both ways."""
    rng = np.random.default_rng(seed)
    case = grid_case(rng, V=V, loss=loss, channels=channels, patch=patch)
    w = scale * rng.normal(size=case.twin.n_features)
    check_oracle(case, w, rescaling, sqrt_loss)
    found = find_parts(case.problem.maps, case.problem.layout, w)
    widths = case.problem.maps.grids[:, 1]
    check_decoding(case, found[:, :, 0] * widths[:, None] + found[:, :, 1], w)


@pytest.mark.parametrize("name", ["auto", "fasole"])
@pytest.mark.parametrize(
    ("make", "loss", "rescaling"),
    [
        (label_case, "hamming", "slack"),
        (label_case, "zero-one", "margin"),
        (grid_case, "deviation", "margin"),
        (grid_case, "normalized-hamming", "slack"),
    ],
)
def test_training_reaches_the_optimum(make, loss, rescaling, name):
    case = make(np.random.default_rng(5), loss=loss)
    formulation, C = Formulation(rescaling), 0.05
    best = solve_exactly(all_planes(case.twin, formulation), C)
    solver = make_solver(name, tol=1e-7, max_passes=5000, random_state=0)
    result = solver.solve(case.problem, formulation, C)
    assert result.converged
    assert result.primal == pytest.approx(best.value, rel=1e-6)
    assert result.dual <= best.primal + 1e-9


@pytest.mark.parametrize("name", ["auto", "fasole", "n-slack", "one-slack"])
def test_solvers_agree_on_slack_rescaled_deviation(name):
    case = grid_case(np.random.default_rng(5))
    formulation, C = Formulation("slack"), 0.05
    best = solve_exactly(all_planes(case.twin, formulation), C)
    solver = make_solver(name, tol=1e-6, max_passes=5000, random_state=0)
    result = solver.solve(case.problem, formulation, C)
    assert result.converged
    assert result.primal == pytest.approx(best.value, rel=2e-6)


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
