"""The k best labellings of trees, and positions of parts, against the listing of all outputs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from exact_qp import solve_exactly
from maxmargin.datasets import make_faces
from maxmargin.formulation import Formulation
from maxmargin.problems.tree.grid_parts import rank_parts
from maxmargin.problems.tree.labels import rank_label_trees
from maxmargin.solvers import make_solver
from test_k_best import check_k_best, dense_row
from test_tree_oracles import grid_case, label_case, seeds

LOSSES = ("hamming", "normalized-hamming", "zero-one")


def rescalings_of(loss):
    if loss == "zero-one":
        return [("margin", False), ("slack", False), ("none", False), ("slack", True)]
    return [("margin", False), ("none", False)]


def check_ranking(case, ranked, w, k):
    """Scores are the largest, they are those of the outputs, and no output comes twice."""
    for i, (labels, scores) in enumerate(ranked):
        listed = sorted(
            (float(w @ case.twin.psi(i, y)) for y in case.twin.outputs(i)), reverse=True
        )
        assert scores.tolist() == pytest.approx(listed[:k], rel=1e-9, abs=1e-9)
        own = [float(w @ case.twin.psi(i, tuple(y.tolist()))) for y in labels]
        assert own == pytest.approx(scores.tolist(), rel=1e-9, abs=1e-9)
        assert len({tuple(y.tolist()) for y in labels}) == len(labels)


@pytest.mark.nojit
@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=15)
@given(seed=seeds, V=st.integers(1, 4), k=st.integers(1, 30), rounded=st.booleans())
def test_labellings(loss, seed, V, k, rounded):
    """Weights that are small whole numbers make many ties."""
    rng = np.random.default_rng(seed)
    case = label_case(rng, V=V, loss=loss)
    w = rng.normal(size=case.twin.n_features)
    w = np.rint(w) if rounded else w
    for rescaling, sqrt_loss in rescalings_of(loss):
        check_k_best(case, w, k, rescaling, sqrt_loss)
    check_ranking(case, rank_label_trees(case.problem.rows, case.problem.layout, w, k), w, k)


@pytest.mark.nojit
@pytest.mark.parametrize("loss", ("deviation", *LOSSES))
@settings(max_examples=10)
@given(seed=seeds, V=st.integers(1, 3), k=st.integers(1, 20), scale=st.sampled_from([0.0, 1.0]))
def test_positions(loss, seed, V, k, scale):
    rng = np.random.default_rng(seed)
    case = grid_case(rng, V=V, loss=loss, n=2)
    w = scale * rng.normal(size=case.twin.n_features)
    for rescaling, sqrt_loss in rescalings_of(loss):
        check_k_best(case, w, k, rescaling, sqrt_loss)
    widths = case.problem.maps.grids[:, 1].tolist()
    ranked = rank_parts(case.problem.maps, case.problem.layout, w, k)
    flat = [
        (spots[..., 0] * width + spots[..., 1], scores)
        for (spots, scores), width in zip(ranked, widths, strict=True)
    ]
    check_ranking(case, flat, w, k)


@pytest.mark.parametrize("make", [label_case, grid_case])
def test_what_cannot_be_ranked(make):
    case = make(np.random.default_rng(0))
    with pytest.raises(ValueError, match="losses that add up over nodes"):
        case.problem.k_best(np.arange(2), np.zeros(case.twin.n_features), 3, "slack")


@pytest.mark.parametrize("make", [label_case, grid_case])
def test_mira_steps_from_lists(make):
    """The first step is the optimum over the k planes of the list."""
    case, k, C = make(np.random.default_rng(5), n=1), 4, 0.05
    planes = case.problem.k_best(np.arange(1), np.zeros(case.twin.n_features), k)
    rows = [dense_row(planes, r, case.twin.n_features) for r in range(k)]
    expected = solve_exactly([(planes.losses, np.array(rows))], C).w
    solver = make_solver("mira", k=k, max_passes=1, average=False, random_state=0)
    found = solver.solve(case.problem, Formulation(), C).w
    assert np.allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_labeler_lists_its_best_labellings():
    rng = np.random.default_rng(3)
    Y = np.stack([rng.choice(["a", "b", "c"], 12), rng.choice(["u", "v"], 12)], axis=1)
    X = np.stack([Y[:, :1] == "a", Y[:, 1:] == "u"], axis=1) + 0.5 * rng.normal(size=(12, 2, 1))
    model = mm.TreeLabeler(tree=[(0, 1)], solver="mira", max_passes=5, random_state=0).fit(X, Y)
    for best, answers in zip(model.predict(X), model.predict_k(X, 10), strict=True):
        assert len(answers) == 6 and len({tuple(labels) for labels, _ in answers}) == 6
        assert answers[0][0].tolist() == best.tolist()
        scores = [score for _, score in answers]
        assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]
    with pytest.raises(ValueError, match="k must be a whole number >= 1"):
        model.predict_k(X, 0)


def test_labeler_lists_its_best_positions():
    faces = make_faces(n_train=10, n_test=3, size=16)
    model = mm.TreeLabeler(
        outputs="positions", patch=3, C=0.01, solver="mira", max_passes=3, random_state=0
    ).fit(faces.X_train, faces.y_train)
    for best, answers in zip(
        model.predict(faces.X_test), model.predict_k(faces.X_test, 4), strict=True
    ):
        assert len(answers) == 4 and np.array_equal(answers[0][0], best)
        assert len({positions.tobytes() for positions, _ in answers}) == 4
        scores = [score for _, score in answers]
        assert scores == sorted(scores, reverse=True)
