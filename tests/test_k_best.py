"""The k best outputs against enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from brute import plane_terms
from cases import STRUCTURES, make_case, multiclass_case
from maxmargin.problem import Problem
from maxmargin.problems.chain.k_best import make_k_best_scratch

STRUCTURE_IDS = [f"{structure}-{loss}" for structure, loss in STRUCTURES]
ROUNDING = 1e-9


def dense_row(planes, r, n_features):
    row = slice(planes.indptr[r], planes.indptr[r + 1])
    return np.bincount(planes.indices[row], planes.values[row], minlength=n_features)


def value_of(loss, dpsi, w, rescaling, sqrt_loss=False):
    offset, scale = plane_terms(loss, rescaling, sqrt_loss)
    return offset - scale * float(dpsi @ w)


def check_k_best(case, w, k, rescaling, sqrt_loss=False):
    """Values are the largest, rows are those of outputs, and no output comes twice."""
    problem, twin = case
    indices = np.arange(problem.n_examples)[::-1]
    planes = problem.k_best(indices, w, k, rescaling, sqrt_loss)
    assert len(planes.losses) == len(planes.indptr) - 1 == k * len(indices)
    for position, i in enumerate(indices):
        listed = [
            (value_of(twin.loss(i, y), twin.dpsi(i, y), w, rescaling, sqrt_loss), y)
            for y in twin.candidates(i)
        ]
        expected = sorted((value for value, _ in listed), reverse=True)[:k]
        left = [(twin.loss(i, y), twin.dpsi(i, y)) for _, y in listed]
        for c in range(k):
            row = position * k + c
            dpsi, loss = dense_row(planes, row, twin.n_features), planes.losses[row]
            if c >= len(expected):
                assert loss == 0.0 and planes.indptr[row] == planes.indptr[row + 1]
                continue
            found = value_of(loss, dpsi, w, rescaling, sqrt_loss)
            assert found == pytest.approx(expected[c], rel=ROUNDING, abs=ROUNDING)
            match = [
                number
                for number, (other, candidate) in enumerate(left)
                if abs(other - loss) < ROUNDING and np.allclose(candidate, dpsi, atol=ROUNDING)
            ]
            assert match, "a row that is no output's, or one that was listed before"
            left.pop(match[0])


@st.composite
def chain_options(draw):
    K = draw(st.integers(1, 3))
    return {
        "lengths": draw(st.lists(st.integers(1, 5 if K < 3 else 4), min_size=1, max_size=3)),
        "K": K,
        "fit_intercept": draw(st.booleans()),
        "boundary_weights": draw(st.booleans()),
        "constrained": K > 1 and draw(st.booleans()),
        "layout": draw(st.sampled_from(["dense", "csr", "integers"])),
    }


RESCALINGS = [
    ("margin", False),
    ("slack", False),
    ("none", False),
    ("slack", True),
    ("margin", True),
]


@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), k=st.integers(1, 30))
def test_candidates(structure, loss, data, seed, k):
    rng = np.random.default_rng(seed)
    options = data.draw(chain_options()) if structure == "chain" else {"K": 2 + seed % 4}
    case = make_case(structure, rng, loss=loss, **options)
    # Weights of 0 and small whole ones make many ties.
    w = data.draw(st.sampled_from([0.0, 1.0])) * rng.normal(size=case.twin.n_features)
    w = np.rint(w) if data.draw(st.booleans()) else w
    for rescaling, sqrt_loss in RESCALINGS:
        check_k_best(case, w, k, rescaling, sqrt_loss)


@pytest.mark.nojit
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_candidates_without_compilation(structure):
    rng = np.random.default_rng(0)
    case = make_case(structure, rng)
    w = rng.normal(size=case.twin.n_features)
    for rescaling in ("margin", "slack"):
        check_k_best(case, w, 4, rescaling)


@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_the_first_is_the_oracles(structure):
    rng = np.random.default_rng(1)
    case = make_case(structure, rng, loss="zero-one")
    w = rng.normal(size=case.twin.n_features)
    indices = np.arange(case.problem.n_examples)
    for rescaling in ("margin", "none"):
        best = case.problem.oracle(indices, w, rescaling)
        first = case.problem.k_best(indices, w, 1, rescaling)
        for i in indices:
            if best.losses[i] > 0:
                rows = [dense_row(planes, i, case.twin.n_features) for planes in (best, first)]
                assert np.allclose(*rows)


@given(seed=st.integers(0, 2**32 - 1))
def test_predictions_have_the_best_score(seed):
    rng = np.random.default_rng(seed)
    structure, loss = STRUCTURES[rng.integers(len(STRUCTURES))]
    case = make_case(structure, rng, loss=loss)
    w = rng.normal(size=case.twin.n_features) * 10.0 ** rng.integers(-3, 4)
    planes = case.problem.predictions(np.arange(case.twin.n_examples), w)
    for i in range(case.twin.n_examples):
        truth = float(w @ case.twin.psi(i, case.twin.truth(i)))
        score = truth - float(w @ dense_row(planes, i, case.twin.n_features))
        assert score == pytest.approx(case.twin.best_score(i, w), rel=1e-8, abs=1e-8)
        if planes.losses[i] == 0:
            assert planes.indptr[i] == planes.indptr[i + 1]


def test_problems_without_a_search():
    with pytest.raises(ValueError, match="Problem has no search for the k best outputs"):
        Problem().k_best(np.arange(1), np.zeros(1), 2)


# ----- the estimator -----------------------------------------------------------------------------


@pytest.mark.parametrize("constrained", [False, True])
def test_taggers_list_their_best_labellings(constrained):
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(length, 3)) for length in (4, 1, 5, 2, 3)]
    Y = [rng.choice(["a", "b", "c"], len(x)) for x in X]
    forbidden = None
    if constrained:
        Y = [np.sort(y) for y in Y]
        forbidden = [("b", "a"), ("c", "a")]
    tagger = mm.SequenceTagger(
        fit_intercept=True, boundary_weights=True, constraints=forbidden, random_state=0
    ).fit(X, Y)
    for k in (1, 3, 50):
        for x, best, answers in zip(X, tagger.predict(X), tagger.predict_k(X, k), strict=True):
            labellings = np.stack(np.meshgrid(*[["a", "b", "c"]] * len(x), indexing="ij"), axis=-1)
            labellings = labellings.reshape(-1, len(x))
            if constrained:
                broken = [
                    any((p, q) in forbidden for p, q in itertools.pairwise(y)) for y in labellings
                ]
                labellings = labellings[~np.array(broken)]
            scores = tagger.score_outputs([x] * len(labellings), labellings)
            expected = np.sort(scores)[::-1][:k]
            assert [score for _, score in answers] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert np.array_equal(answers[0][0], best)
            found = [tuple(labels) for labels, _ in answers]
            assert len(set(found)) == len(found)
            own = tagger.score_outputs([x] * len(found), [labels for labels, _ in answers])
            assert own == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_bad_k():
    tagger = mm.SequenceTagger(random_state=0).fit([np.eye(2)], [["a", "b"]])
    for k in (0, -1, 2.5):
        with pytest.raises(ValueError, match="k must be a whole number >= 1"):
            tagger.predict_k([np.eye(2)], k)


@pytest.mark.nojit
def test_tables_that_do_not_fit_are_refused():
    message = r"the 5 best labellings of 2000 tokens with 22 labels, told apart.* 29\.2 GiB; use"
    with pytest.raises(ValueError, match=message):
        make_k_best_scratch(2000, 22, 5, by_level=True)


def test_more_classes_than_there_are():
    case = multiclass_case(np.random.default_rng(5), K=2)
    planes = case.problem.k_best(np.arange(3), np.zeros(case.twin.n_features), 3)
    assert planes.losses.tolist() == [1.0, 0.0, 0.0] * 3
