"""The k best labellings and classes: what estimators list, and limits of memory."""

import itertools

import numpy as np
import pytest

import maxmargin as mm
from cases import multiclass_case
from maxmargin.problems.chain.k_best import make_k_best_scratch
from maxmargin.problems.chain.layout import ChainLayout

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
    message = (
        r"the 5 best labellings in 2000 tokens with 22 states and 2001 .* 28\.5 GiB, more than 4"
    )
    model = ChainLayout(1, 22, boundary=False).model
    with pytest.raises(ValueError, match=message):
        make_k_best_scratch(model, 2000, 5, n_error_counts=2001)


def test_more_classes_than_there_are():
    case = multiclass_case(np.random.default_rng(5), K=2)
    planes = case.problem.k_best(np.arange(3), np.zeros(case.twin.n_features), 3)
    assert planes.losses.tolist() == [1.0, 0.0, 0.0] * 3
