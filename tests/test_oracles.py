"""Oracles of classes and chains: what `test_every_structure.py` does not ask for."""

import numpy as np
import pytest
import scipy.sparse as sp

from brute import plane_terms
from checking import RESCALINGS, dense_rows
from maxmargin.problems.chain.decoder import ChainDecoder
from maxmargin.problems.chain.layout import ChainConstraints, ChainLayout, bio_constraints
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem


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


def test_a_lone_output_is_never_violated():
    """Constraints may leave the truth without any rival."""
    only = ChainConstraints(np.eye(2, dtype=bool), np.array([True, False]), np.ones(2, bool))
    X, w = np.ones((3, 1)), np.array([-5.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    for loss in ("hamming", "normalized_hamming", "zero_one"):
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


def test_decode_of_no_sequences():
    decoder = ChainDecoder(ChainLayout(2, 3, False))
    assert (
        len(decoder.decode(decoder.inputs(np.empty((0, 2))), np.zeros(1, np.int64), np.ones(15)))
        == 0
    )


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
    assert np.allclose(dense_rows(sparse, 6), dense_rows(dense, 6))


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
