"""Weights in `score`: a whole weight counts as many copies of an example."""

import inspect

import numpy as np
import pytest
import sklearn

import maxmargin as mm
from every_estimator import KINDS, make
from maxmargin.estimators.examples import examples_at, n_examples_of

SCORED = [kind for kind in KINDS if kind != "ranker"]


@pytest.mark.parametrize("kind", SCORED)
def test_weights_are_repetitions(kind):
    X, y = KINDS[kind].first
    model = make(kind).fit(X, y)
    n = n_examples_of(X)
    y = X if y is None else y
    # Outputs of the neighbours are wrong for some, so that weights matter.
    wrong = examples_at(y, np.roll(np.arange(n), 1)) if kind != "grammar" else y
    if kind in ("dependency", "segmenter", "aligner", "grammar"):
        wrong = y  # of other words
    times = np.arange(n) % 3 + (np.arange(n) == 0)
    rows = np.repeat(np.arange(n), times)
    repeated = model.score(examples_at(X, rows), examples_at(wrong, rows))
    weighted = model.score(X, wrong, sample_weight=times)
    assert weighted == pytest.approx(repeated, rel=1e-12)
    assert weighted == pytest.approx(model.score(X, wrong, times * 2.5), rel=1e-12)
    with pytest.raises(ValueError, match="weight"):
        model.score(X, wrong, sample_weight=times[:-1])
    with pytest.raises(ValueError, match="weight"):
        model.score(X, wrong, sample_weight=np.zeros(n))


def test_weights_of_queries_are_repetitions():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(24, 3)), rng.integers(3, size=24), np.repeat(np.arange(6), 4)
    times = np.array([2, 0, 1, 3, 1, 0])
    rows, queries = [], []
    for q, count in enumerate(times):
        for _ in range(count):
            queries += [max(queries, default=-1) + 1] * 4
            rows += np.flatnonzero(qid == q).tolist()
    gold = np.roll(y, 1)
    for loss in ("swaps", "ndcg"):
        model = KINDS["ranker"].make(loss=loss, random_state=0, tol=0.1).fit(X, y, qid)
        weighted = model.score(X, gold, qid, sample_weight=times[qid])
        assert weighted == pytest.approx(model.score(X[rows], gold[rows], queries), rel=1e-12)
        assert weighted != pytest.approx(model.score(X, gold, qid), rel=1e-6)


MEASURES = [
    {"measure": "error"},
    {"measure": "f1"},
    {"measure": "prbep"},
    {"measure": "roc_auc"},
    {"measure": "average_precision"},
    {"measure": "precision_at_k", "k": 5},
    {"measure": "recall_at_k", "k": 5},
]


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure["measure"])
def test_weights_of_rows_in_measures_are_repetitions(measure):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(40, 2)))  # so that scores are equal
    y = np.where(X[:, 0] + rng.normal(size=40) > 0, "yes", "no")
    model = mm.PerformanceSVM(**measure, random_state=0, C=10.0).fit(X, y)
    times = rng.integers(0, 4, 40)
    rows = np.repeat(np.arange(40), times)
    assert len(np.unique(model.decision_function(X))) < 35
    repeated = model.score(X[rows], y[rows])
    assert model.score(X, y, times) == pytest.approx(repeated, rel=1e-12)
    assert repeated != pytest.approx(model.score(X, y), rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_ask_for_weights(kind):
    model = make(kind)
    assert "sample_weight" in inspect.signature(model.score).parameters
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_score_request(sample_weight=True)
        assert model.get_metadata_routing().score.requests["sample_weight"] is True


def test_weights_reach_the_score_of_a_search():
    from sklearn.model_selection import cross_validate

    X, y = KINDS["grades"].first
    weights = np.arange(len(y)) % 2 * 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            make("grades")
            .set_score_request(sample_weight=True)
            .set_fit_request(sample_weight=False)
        )
        found = cross_validate(
            model, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True,
            return_indices=True,
        )  # fmt: skip
    for i, fitted in enumerate(found["estimator"]):
        own = found["indices"]["test"][i]
        expected = fitted.score(X[own], y[own], weights[own])
        assert found["test_score"][i] == expected
