"""Constraints on weights in estimators: signs of gap scores, monotonic rankings, priors."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin.datasets import make_homologues


def judged_documents(seed=0, n_queries=12, d=5):
    """Documents whose relevance falls with the last feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8 * n_queries, d))
    truth = np.append(np.ones(d - 1), -1.0)
    y = np.digitize(X @ truth + 2.0 * rng.normal(size=len(X)), [-1.0, 1.0])
    return X, y, np.repeat(np.arange(n_queries), 8)


# ----- rankings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "one_slack", "n_slack", "sgd", "perceptron"])
def test_monotonic_rankings(solver, tmp_path):
    X, y, qid = judged_documents()
    signs = [-1, 0, 1, 0, 1]
    model = mm.RankSVM(C=0.3, monotonic_cst=signs, solver=solver, random_state=0)
    model.fit(X, y, qid=qid)
    assert model.coef_[0] <= 0.0 <= model.coef_[[2, 4]].min()
    free = mm.RankSVM(C=0.3, solver=solver, random_state=0).fit(X, y, qid=qid)
    assert free.coef_[0] > 0.0 > free.coef_[4]  # else the signs would ask for nothing
    model.save(tmp_path / "model")
    for again in (mm.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict(X), model.predict(X))
        assert list(again.monotonic_cst) == signs
    assert np.array_equal(clone(model).fit(X, y, qid=qid).coef_, model.coef_)


def test_monotonic_features_by_name():
    X, y, qid = judged_documents()
    frame = pd.DataFrame(X, columns=list("abcde"))
    by_name = mm.RankSVM(monotonic_cst={"a": -1, "e": 1}, random_state=0).fit(frame, y, qid=qid)
    by_place = mm.RankSVM(monotonic_cst=[-1, 0, 0, 0, 1], random_state=0)
    assert np.array_equal(by_name.coef_, by_place.fit(X, y, qid=qid).coef_)
    with pytest.raises(ValueError, match="'f', which is not a column"):
        mm.RankSVM(monotonic_cst={"f": 1}).fit(frame, y, qid=qid)
    with pytest.raises(ValueError, match="names of features, but X has none"):
        mm.RankSVM(monotonic_cst={"a": 1}).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    ("signs", "message"),
    [
        ([1, 0], r"shape \(2,\), but there are 5 features"),
        ([1, 0, 2, 0, 0], "got 2 for feature 2"),
        ([1, 0, np.nan, 0, 0], "got nan for feature 2"),
        ("up", "monotonic_cst"),
    ],
)
def test_signs_that_are_none(signs, message):
    X, y, qid = judged_documents()
    with pytest.raises(ValueError, match=message):
        mm.RankSVM(monotonic_cst=signs).fit(X, y, qid=qid)


def test_calls_of_partial_fit_keep_the_signs():
    X, y, qid = judged_documents()
    model = mm.RankSVM(C=0.3, monotonic_cst=[-1, 0, 0, 0, 1], solver="pegasos", random_state=0)
    for _ in range(3):
        model.partial_fit(X[:48], y[:48], qid=qid[:48])
        assert model.coef_[0] <= 0.0 <= model.coef_[4]
    model.partial_fit(X[48:], y[48:], qid=qid[48:])
    assert model.coef_[0] <= 0.0 <= model.coef_[4]


def test_paths_with_signs():
    X, y, qid = judged_documents()
    model = mm.RankSVM(monotonic_cst=np.array([-1, 0, 0, 0, 1]), tol=1e-3, random_state=0)
    models = mm.path(model, X, y, [0.01, 1.0], cover=True, qid=qid)
    for C in (0.01, 0.07, 0.4, 1.0):
        single = clone(model).set_params(C=C).fit(X, y, qid=qid)
        near = models.at(C)
        assert near.coef_[0] <= 0.0 <= near.coef_[4]
        assert near.coef_ == pytest.approx(single.coef_, abs=0.1)
    assert models.covers(0.5)


# ----- alignments --------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", ["linear", "affine"])
def test_gaps_that_are_penalties(gaps, tmp_path):
    data = make_homologues(3, random_state=1)
    X = list(zip(data.natives, data.candidates, strict=True))
    y = list(zip(data.homologues, data.alignments, strict=True))
    options = {"C": 1.0, "mode": "local", "gaps": gaps, "random_state": 0}
    model = mm.HomologyRanker(gap_signs="nonpositive", **options).fit(X, y)
    assert max(model.gap_scores_.values()) <= 0.0
    assert model.result_.converged
    free = mm.HomologyRanker(**options).fit(X, y)
    assert free.result_.primal <= model.result_.primal * 1.01
    model.save(tmp_path / "aligner")
    again = mm.load(tmp_path / "aligner")
    assert again.gap_signs == "nonpositive" and again.gap_scores_ == model.gap_scores_
    with pytest.raises(ValueError, match="gap_signs must be 'any' or 'nonpositive', got 'up'"):
        mm.HomologyRanker(gap_signs="up").fit(X, y)


def test_gaps_that_would_be_rewarded():
    """True alignments with all letters apart: only the sign keeps gaps from scores above 0."""
    X, y = [("AC", "AC"), ("CA", "AC")], [("AC--", "--AC"), ("CA--", "--AC")]
    options = {"mode": "global", "loss": "residues", "C": 10.0, "random_state": 0, "tol": 1e-6}
    free = mm.SequenceAligner(**options).fit(X, y)
    assert max(free.gap_scores_.values()) > 0.01
    kept = mm.SequenceAligner(gap_signs="nonpositive", **options).fit(X, y)
    assert max(kept.gap_scores_.values()) == 0.0
    assert kept.result_.converged and kept.result_.primal > free.result_.primal


# ----- problems of one's own ---------------------------------------------------------------------


class Points(mm.Problem):
    """Two classes of points in the plane."""

    n_features = 4

    def joint_feature(self, x, y):
        return np.concatenate([x * (y == 0), x * (y == 1)])

    def loss(self, y, other):
        return float(y != other)

    def most_violated(self, x, y, w, rescaling):
        return max((0, 1), key=lambda z: w @ self.joint_feature(x, z) + self.loss(y, z))

    def predict(self, x, w):
        return max((0, 1), key=lambda z: w @ self.joint_feature(x, z))


def points():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 30)
    return list(rng.normal(size=(30, 2)) + y[:, None]), y.tolist()


def test_own_problems():
    X, y = points()
    constraints = mm.WeightConstraints(nonnegative=[0, 2], fixed={1: -0.5})
    model = mm.StructuralSVM(Points(), C=0.1, weight_constraints=constraints, random_state=0)
    model.fit(X, y)
    assert model.coef_[[0, 2]].min() >= 0.0 and model.coef_[1] == -0.5
    assert model.result_.converged
    for again in (clone(model), pickle.loads(pickle.dumps(model))):
        assert again.weight_constraints == constraints
        assert np.array_equal(again.fit(X, y).coef_, model.coef_)
    with pytest.raises(ValueError, match="nonnegative has weight 4, but there are 4 weights"):
        clone(model).set_params(weight_constraints=mm.WeightConstraints([4])).fit(X, y)
    with pytest.raises(ValueError, match="must be WeightConstraints or None"):
        clone(model).set_params(weight_constraints="nonnegative").fit(X, y)
    with pytest.raises(ValueError, match="not for hard margins"):
        clone(model).set_params(slack="none").fit(X, y)


def test_warm_starts_of_estimators():
    X, y = points()
    model = mm.StructuralSVM(Points(), C=0.1, warm_start=True, tol=1e-6, random_state=0).fit(X, y)
    for constraints in (mm.WeightConstraints(True), mm.WeightConstraints(mean=np.ones(4)), None):
        model.set_params(weight_constraints=constraints)
        for C in (0.1, 1.0):
            model.set_params(C=C).fit(X, y)
            fresh = clone(model).fit(X, y)
            assert model.result_.primal == pytest.approx(fresh.result_.primal, rel=1e-5)
            assert model.coef_ == pytest.approx(fresh.coef_, abs=1e-2)


# ----- priors ------------------------------------------------------------------------------------


def classes(n, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    centers = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]) + shift
    y = rng.integers(0, 3, n)
    return centers[y] + rng.normal(size=(n, 3)), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack", "sgd"])
def test_classifiers_with_a_prior(solver):
    X, y = classes(300)
    prior = mm.MulticlassSVM(C=0.1, random_state=0).fit(X, y)
    few = classes(9, shift=0.5, seed=1)
    for inputs in (few[0], sp.csr_matrix(few[0])):
        near = mm.MulticlassSVM(C=1e-7, solver=solver, random_state=0)
        near.fit(inputs, few[1], prior=prior)
        assert near.coef_ == pytest.approx(prior.coef_, abs=1e-3)
    drawn = mm.MulticlassSVM(C=0.02, solver=solver, random_state=0).fit(*few, prior=prior)
    alone = mm.MulticlassSVM(C=0.02, solver=solver, random_state=0).fit(*few)
    test = classes(500, shift=0.5, seed=2)
    assert drawn.score(*test) > alone.score(*test)


def test_priors_with_other_classes():
    X, y = classes(300)
    prior = mm.MulticlassSVM(C=0.1, random_state=0).fit(X[y != "b"], y[y != "b"])
    assert prior.coef_.shape == (1, 4 - 1)
    model = mm.MulticlassSVM(C=0.1, random_state=0).fit(X[y != "c"], y[y != "c"], prior=prior)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.seen_classes_.tolist() == ["a", "b"]
    found = model.predict(X)
    assert np.mean(found[y == "c"] == "c") > 0.1  # without an example of it in the new data
    assert np.mean(found[y != "c"] == y[y != "c"]) > 0.7


def test_classifiers_refuse_what_is_no_prior():
    X, y = classes(30)
    model = mm.MulticlassSVM(random_state=0)
    fitted = clone(model).fit(X, y)
    with pytest.raises(ValueError, match="prior must be a fitted MulticlassSVM, got array"):
        model.fit(X, y, prior=fitted.coef_)
    with pytest.raises(NotFittedError):
        model.fit(X, y, prior=clone(model))
    with pytest.raises(ValueError, match="X has 2 features, but the prior was fitted with 3"):
        model.fit(X[:, :2], y, prior=fitted)
    with pytest.raises(ValueError, match="the same fit_intercept: False, got True"):
        mm.MulticlassSVM(fit_intercept=False).fit(X, y, prior=fitted)
    with pytest.raises(ValueError, match="the same kernel"):
        mm.MulticlassSVM(kernel="rbf").fit(X, y, prior=fitted)
    kernel = mm.MulticlassSVM(kernel="rbf", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="prior needs kernel='linear'"):
        mm.MulticlassSVM(kernel="rbf").fit(X, y, prior=kernel)


@pytest.mark.parametrize("kind", [str, object])
def test_classes_and_those_of_a_prior_are_not_mixed_up(kind):
    X, y = classes(30)
    names, numbers = y.astype(kind), np.unique(y, return_inverse=True)[1]
    for first, second in ((names, numbers), (numbers, names)):
        prior = mm.MulticlassSVM(random_state=0).fit(X, first)
        with pytest.raises(ValueError, match="those of the prior are of another type"):
            mm.MulticlassSVM(random_state=0).fit(X, second, prior=prior)


SENTENCES = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"], ["barks"]], [["cat"], ["sleeps"]]]
TAGS = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]


@pytest.mark.parametrize("solver", ["auto", "n_slack", "one_slack", "sgd"])
def test_taggers_with_a_prior(solver, tmp_path):
    prior = mm.SequenceTagger(boundary_weights=True, random_state=0).fit(SENTENCES, TAGS)
    new = [[["the"], ["barks"]]], [["D", "N"]]
    options = {"boundary_weights": True, "solver": solver, "random_state": 0}
    near = mm.SequenceTagger(C=1e-7, **options).fit(*new, prior=prior)
    assert near.coef_ == pytest.approx(prior.coef_, abs=1e-3)
    assert near.predict(SENTENCES) == TAGS  # the label V is not in the new data
    assert near.predict([[["the"], ["barks"]]]) == [["D", "V"]]
    drawn = mm.SequenceTagger(C=1.0, **options).fit(*new, prior=prior)
    assert drawn.predict(new[0]) == new[1]
    drawn.save(tmp_path / "tagger")
    assert np.array_equal(mm.load(tmp_path / "tagger").coef_, drawn.coef_)


def test_taggers_take_over_the_features_of_a_prior():
    prior = mm.SequenceTagger(random_state=0).fit(SENTENCES, TAGS)
    model = mm.SequenceTagger(random_state=0)
    model.fit([[["the"], ["zebra"]]], [["D", "N"]], prior=prior)  # a word that it has not seen
    assert model.n_features_in_ == prior.n_features_in_
    assert model.classes_.tolist() == ["D", "N", "V"]
    with pytest.raises(ValueError, match="label 'X' is not known to the model"):
        clone(model).fit([[["the"], ["zebra"]]], [["D", "X"]], prior=prior)
    with pytest.raises(ValueError, match="the same boundary_weights"):
        mm.SequenceTagger(boundary_weights=True).fit(SENTENCES, TAGS, prior=prior)
    with pytest.raises(ValueError, match=r"made with order=.*: 1, .* and no transition features"):
        mm.SequenceTagger(order=2).fit(SENTENCES, TAGS, prior=prior)
    with pytest.raises(ValueError, match="prior needs labels that are all known"):
        clone(model).fit([[["the"], ["cat"]]], [["D", None]], prior=prior)
    with pytest.raises(ValueError, match="prior must be a fitted SequenceTagger"):
        clone(model).fit(SENTENCES, TAGS, prior="the")


def test_a_prior_costs_nothing_where_it_is_right():
    """Trained again on its own data with its own weights as the mean, only rounding is left."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(20)]
    y = [(x[:, 0] > 0).astype(int).tolist() for x in X]
    prior = mm.SequenceTagger(C=100.0, random_state=0, tol=1e-6).fit(X, y)
    assert prior.score(X, y) == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        again = mm.SequenceTagger(C=1.0, random_state=0, tol=1e-4).fit(X, y, prior=prior)
    result = again.result_
    assert result.status in ("converged", "rounding") and result.primal < 1e-6
    assert result.converged == (result.relative_gap <= 1e-4) and result.n_passes <= 15
    moved = np.linalg.norm(again.coef_ - prior.coef_)
    assert moved <= 1e-2 * np.linalg.norm(prior.coef_)
