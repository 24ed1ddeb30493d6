"""Every native oracle and decoder against its brute-force twin, over all rescalings and losses."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from brute import plane_terms
from cases import (
    CHAIN_LOSSES,
    LAYOUTS,
    STRUCTURES,
    chain_case,
    expand_parts,
    make_case,
    multiclass_case,
)
from maxmargin.engine.rows import make_rows
from maxmargin.problems.chain.layout import ChainLayout
from maxmargin.problems.chain.problem import (
    ChainConstraints,
    ChainDecoder,
    ChainProblem,
    bio_constraints,
)
from maxmargin.problems.classes.multiclass import MulticlassProblem, class_scores

RESCALINGS = ("margin", "slack", "none")
STRUCTURE_IDS = [f"{structure}-{loss}" for structure, loss in STRUCTURES]
ROUNDING = 1e-9

seeds = st.integers(0, 2**32 - 1)


@st.composite
def multiclass_options(draw):
    return {
        "n": draw(st.integers(1, 6)),
        "n_inputs": draw(st.integers(1, 5)),
        "K": draw(st.integers(2, 5)),
        "fit_intercept": draw(st.booleans()),
        "layout": draw(st.sampled_from(LAYOUTS)),
    }


@st.composite
def chain_options(draw):
    K = draw(st.integers(2, 3))
    longest = 4 if K == 2 else 3
    return {
        "lengths": draw(st.lists(st.integers(1, longest), min_size=1, max_size=3)),
        "n_inputs": draw(st.integers(1, 4)),
        "K": K,
        "fit_intercept": draw(st.booleans()),
        "boundary_weights": draw(st.booleans()),
        "constrained": draw(st.booleans()),
        "layout": draw(st.sampled_from(LAYOUTS)),
    }


def draw_case(data, structure, loss):
    options = data.draw(multiclass_options() if structure == "multiclass" else chain_options())
    rng = np.random.default_rng(data.draw(seeds))
    case = make_case(structure, rng, loss=loss, **options)
    scale = data.draw(st.sampled_from([0.0, 0.3, 3.0]))
    return case, scale * rng.normal(size=case.twin.n_features)


def dense_row(planes, r, n_features):
    row = slice(planes.indptr[r], planes.indptr[r + 1])
    return np.bincount(planes.indices[row], planes.values[row], minlength=n_features)


def check_oracle(case, w, rescaling, sqrt_loss):
    """Compare each row with the best of all candidates, listed."""
    problem, twin = case
    assert (problem.n_examples, problem.n_features) == (twin.n_examples, twin.n_features)
    planes = problem.oracle(np.arange(problem.n_examples), w, rescaling, sqrt_loss)
    assert len(planes.indptr) == problem.n_examples + 1 and planes.indptr[0] == 0
    assert len(planes.indices) == len(planes.values) == planes.indptr[-1]
    for i in range(problem.n_examples):
        listed = [(twin.loss(i, y), twin.dpsi(i, y)) for y in twin.candidates(i)]

        def value(loss, dpsi):
            offset, scale = plane_terms(loss, rescaling, sqrt_loss)
            return offset - scale * float(dpsi @ w)

        best = max((value(*candidate) for candidate in listed), default=-np.inf)
        tolerance = ROUNDING * (1.0 + abs(w).sum())
        row, loss = dense_row(planes, i, len(w)), planes.losses[i]
        if best < -tolerance:
            assert planes.indptr[i] == planes.indptr[i + 1] and loss == 0.0
        elif best > tolerance:
            assert loss > 0.0
        if loss > 0.0:
            assert value(loss, row) == pytest.approx(best, abs=tolerance)
            assert any(
                abs(loss - other) < ROUNDING and np.abs(row - dpsi).max() < ROUNDING
                for other, dpsi in listed
            ), "the row is of no output"
        else:
            assert not row.any()


@pytest.mark.parametrize("sqrt_loss", [False, True], ids=["plain", "sqrt"])
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
@given(data=st.data())
def test_oracle_finds_the_best_of_all_outputs(structure, loss, rescaling, sqrt_loss, data):
    case, w = draw_case(data, structure, loss)
    check_oracle(case, w, rescaling, sqrt_loss)


@pytest.mark.nojit
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
def test_oracle_without_compilation(structure, loss, rescaling):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        extra = {"boundary_weights": True, "constrained": True} if structure == "chain" else {}
        case = make_case(structure, rng, loss=loss, fit_intercept=seed % 2 == 1, **extra)
        w = rng.normal(size=case.twin.n_features)
        check_oracle(case, w, rescaling, sqrt_loss=seed >= 2)


@pytest.mark.nojit
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", CHAIN_LOSSES)
@given(data=st.data())
def test_parts_are_the_same_rows(loss, rescaling, data):
    """A row in parts, each a token under a label, is the row in features."""
    (problem, _), w = draw_case(data, "chain", loss)
    every = np.arange(problem.n_examples)
    plain, in_parts = (
        problem.oracle(every, w, rescaling),
        problem.part_oracle(every, w, rescaling, False),
    )
    assert np.array_equal(plain.losses, in_parts.losses)
    for r in every:
        row = slice(in_parts.indptr[r], in_parts.indptr[r + 1])
        expanded = expand_parts(problem.parts, in_parts.indices[row], in_parts.values[row], len(w))
        assert np.allclose(expanded, dense_row(plain, r, len(w)))


@pytest.mark.nojit
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("structure", ["multiclass", "chain"])
def test_every_layout_of_the_inputs(structure, layout):
    rng = np.random.default_rng(5)
    case = make_case(structure, rng, fit_intercept=True, layout=layout, n_inputs=4)
    check_oracle(case, rng.normal(size=case.twin.n_features), "margin", False)


def test_a_fortran_ordered_matrix():
    rng = np.random.default_rng(6)
    X, y = np.asfortranarray(rng.normal(size=(5, 3))), [0, 1, 1, 0, 1]
    w = rng.normal(size=6)
    planes = [
        MulticlassProblem(matrix, y).oracle(np.arange(5), w)
        for matrix in (X, np.ascontiguousarray(X))
    ]
    for ours, theirs in zip(*planes, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("sqrt_loss", [False, True], ids=["plain", "sqrt"])
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
def test_the_truth_is_an_empty_row(structure, loss, rescaling, sqrt_loss):
    """With one feature per label and large weights no candidate comes near the truth."""
    labels = np.array([0, 2, 1, 1, 0])
    X = np.eye(3)[labels]
    if structure == "multiclass":
        costs = 1.0 + np.arange(9).reshape(3, 3) if loss == "costs" else None
        if costs is not None:
            np.fill_diagonal(costs, 0.0)
        problem = MulticlassProblem(X, labels, 3, costs=costs)
    else:
        problem = ChainProblem(X, [0, 1, 3, 5], labels, 3, loss=loss)
    w = np.zeros(problem.n_features)
    w[:9] = 50.0 * np.eye(3).ravel()
    planes = problem.oracle(np.arange(problem.n_examples), w, rescaling, sqrt_loss)
    assert not planes.losses.any() and not planes.indptr.any()
    # The other way round every label is wrong.
    planes = problem.oracle(np.arange(problem.n_examples), -w, rescaling, sqrt_loss)
    assert np.all(planes.losses > 0) and np.all(np.diff(planes.indptr) > 0)


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize(("structure", "loss"), STRUCTURES, ids=STRUCTURE_IDS)
@given(data=st.data())
def test_a_batch_is_its_examples_one_by_one(structure, loss, rescaling, data):
    (problem, _), w = draw_case(data, structure, loss)
    n = problem.n_examples
    asked = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=8)), dtype=np.int64)
    batch = problem.oracle(asked, w, rescaling)
    assert len(batch.losses) == len(asked) and len(batch.indptr) == len(asked) + 1
    for r, i in enumerate(asked):
        alone = problem.oracle(np.array([i]), w, rescaling)
        row = slice(batch.indptr[r], batch.indptr[r + 1])
        assert np.array_equal(batch.indices[row], alone.indices)
        assert np.array_equal(batch.values[row], alone.values)
        assert batch.losses[r] == alone.losses[0]


def test_a_lone_output_is_never_violated():
    """Constraints may leave the truth without any rival."""
    only = ChainConstraints(np.eye(2, dtype=bool), np.array([True, False]), np.ones(2, bool))
    X, w = np.ones((3, 1)), np.array([-5.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    for loss in ("hamming", "normalized-hamming", "zero-one"):
        problem = ChainProblem(X, [0, 1, 3], [0, 0, 0], 2, loss=loss, constraints=only)
        for rescaling in RESCALINGS:
            planes = problem.oracle(np.arange(2), w, rescaling)
            assert not planes.losses.any() and len(planes.values) == 0


def test_a_long_chain_whose_outputs_cannot_be_listed():
    """No transitions: labels are independent, so the best value of each rescaling is known."""
    L, K = 60, 4
    rng = np.random.default_rng(0)
    X = rng.normal(size=(L, K))
    truth = rng.integers(0, K, L)
    problem = ChainProblem(X, [0, L], truth, K, loss="hamming")
    w = np.concatenate([np.eye(K).ravel(), np.zeros(K * K)])  # token scores are its features
    lost = X[np.arange(L), truth][:, None] - X
    lost[np.arange(L), truth] = np.inf
    cheapest = np.sort(lost.min(axis=1))  # margin lost by changing each token, cheapest first
    totals = np.cumsum(cheapest)
    losses = np.arange(1, L + 1)
    expected = {
        "margin": (losses - totals).max(),
        "slack": (losses * (1.0 - totals)).max(),
        "none": 1.0 - totals.min(),
    }
    for rescaling, best in expected.items():
        planes = problem.oracle(np.array([0]), w, rescaling)
        offset, scale = plane_terms(planes.losses[0], rescaling, False)
        found = offset - scale * (planes.values @ w[planes.indices])
        assert found == pytest.approx(best, rel=1e-12)


# ----- decoding ---------------------------------------------------------------------------------


@pytest.mark.nojit
@given(data=st.data())
def test_decode_finds_the_best_labelling(data):
    case, w = draw_case(data, "chain", "hamming")
    problem, twin = case
    paths = problem.decoder.decode(problem.data.rows, problem.data.offsets, w)
    for i, (first, end) in enumerate(
        zip(problem.data.offsets[:-1], problem.data.offsets[1:], strict=True)
    ):
        path = tuple(int(k) for k in paths[first:end])
        assert twin.allowed(path)
        score = float(w @ twin.psi(i, path))
        assert score == pytest.approx(twin.best_score(i, w), abs=ROUNDING * (1 + abs(w).sum()))


def test_decode_of_no_sequences():
    decoder = ChainDecoder(ChainLayout(2, 3, False))
    assert len(decoder.decode(make_rows(np.empty((0, 2))), np.zeros(1, np.int64), np.ones(15))) == 0


@pytest.mark.nojit
@given(data=st.data())
def test_class_scores(data):
    (problem, twin), w = draw_case(data, "multiclass", "zero-one")
    scores = class_scores(problem.rows, w, problem.n_classes)
    expected = [[w @ twin.psi(i, y) for y in twin.outputs(i)] for i in range(twin.n_examples)]
    assert np.allclose(scores, expected, atol=1e-6 if problem.rows.dense.dtype == "f4" else 1e-10)


# ----- the parts of a problem -------------------------------------------------------------------


def test_chain_layout_is_the_documented_one():
    layout = ChainLayout(n_inputs=2, n_labels=3, boundary=True)
    w = np.arange(layout.size, dtype=float)
    assert layout.size == 2 * 3 + 9 + 6
    assert layout.emissions(w)[1, 2] == 1 * 3 + 2
    assert layout.transitions(w)[1, 2] == 6 + 1 * 3 + 2
    start, stop = layout.boundaries(w)
    assert start.tolist() == [15, 16, 17] and stop.tolist() == [18, 19, 20]
    without = ChainLayout(2, 3, False)
    assert without.size == 15
    assert not np.any(without.boundaries(w[:15]))


def test_bio_constraints():
    labels = ["O", "B-A", "I-A", "B-B", "I-B"]
    allowed, start, stop = bio_constraints(labels)
    for i, before in enumerate(labels):
        for j, after in enumerate(labels):
            legal = not after.startswith("I-") or before[2:] == after[2:]
            assert allowed[i, j] == legal, (before, after)
    assert start.tolist() == [True, True, False, True, False]
    assert stop.all()


def test_sparse_input_with_unsorted_and_repeated_entries():
    """Legal CSR: columns in any order, and a repeated entry counts twice."""
    X = sp.csr_matrix(
        (np.array([1.0, 2.0, 0.5, 3.0]), np.array([2, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 3)
    )
    w = np.random.default_rng(0).normal(size=6)
    sparse = MulticlassProblem(X, [0, 1]).oracle(np.arange(2), w)
    dense = MulticlassProblem(X.toarray(), [0, 1]).oracle(np.arange(2), w)
    for r in range(2):
        assert np.allclose(dense_row(sparse, r, 6), dense_row(dense, r, 6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "f1"}, r"loss must be 'hamming'.*got 'f1'"),
        ({"offsets": [0, 2, 2, 4]}, "sequence 1 is empty"),
        (
            {
                "constraints": ChainConstraints(
                    np.array([[True, True], [False, True]]), np.ones(2, bool), np.ones(2, bool)
                )
            },
            "labels of sequence 1 break the constraints at token 1",
        ),
        (
            {
                "constraints": ChainConstraints(
                    np.ones((2, 2), bool), np.array([False, True]), np.ones(2, bool)
                )
            },
            "sequence 0 break the constraints at token 0",
        ),
        (
            {
                "constraints": ChainConstraints(
                    np.ones((2, 2), bool), np.ones(2, bool), np.array([True, False])
                )
            },
            "sequence 0 break the constraints at token 1",
        ),
    ],
)
def test_bad_chains(change, message):
    good = {"tokens": np.ones((4, 1)), "offsets": [0, 2, 4], "labels": [0, 1, 1, 0]}
    ChainProblem(**good)
    with pytest.raises(ValueError, match=message):
        ChainProblem(**{**good, **change})


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (np.ones((2, 3)), r"shape \(2, 2\), got \(2, 3\)"),
        ([[0, -1], [1, 0]], r"costs\[0, 1\] is -1"),
        ([[0, 1], [1, 2]], r"costs\[1, 1\] is 2"),
        ([[0, 1], [0, 0]], r"costs\[1, 0\] is 0"),
        ([[0, np.nan], [1, 0]], r"costs\[0, 1\] is nan"),
    ],
)
def test_bad_costs(costs, message):
    with pytest.raises(ValueError, match=message):
        MulticlassProblem(np.ones((2, 1)), [0, 1], costs=costs)


@pytest.mark.parametrize("make", [multiclass_case, chain_case])
def test_the_oracle_leaves_its_arguments_alone(make):
    rng = np.random.default_rng(3)
    problem = make(rng).problem
    w = rng.normal(size=problem.n_features)
    asked, before = np.arange(problem.n_examples), w.copy()
    first = problem.oracle(asked, w, "slack")
    problem.oracle(asked, -w, "slack")
    again = problem.oracle(asked, w, "slack")
    assert np.array_equal(w, before) and np.array_equal(asked, np.arange(problem.n_examples))
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other)
