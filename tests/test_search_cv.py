"""SearchCV: as GridSearchCV chooses, with C along paths."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from every_estimator import KINDS
from maxmargin.estimators.selection import trials
from maxmargin.features.packing import PackedSequences

X, Y = load_digits(return_X_y=True)
X, Y = X[:300] / 16.0, Y[:300]
WORDS = [[{"w": "a"}, {"w": "b"}], [{"w": "b"}, {"w": "c"}, {"w": "a"}], [{"w": "c"}]] * 4
TAGS = [["A", "B"], ["B", "C", "A"], ["C"]] * 4


def digits(**parameters):
    return mm.MulticlassSVM(random_state=0, **parameters)


def tagger(**parameters):
    return mm.SequenceTagger(random_state=0, **parameters)


def same_as_grid(estimator, grid, *data, abs=0.02, fit_params=None, **options):
    """Both searches, with the same shape of results and about the same scores."""
    fit_params = fit_params or {}
    found = mm.SearchCV(estimator, grid, **options).fit(*data, **fit_params)
    expected = GridSearchCV(estimator, grid, **options).fit(*data, **fit_params)
    assert found.best_params_ == expected.best_params_
    assert list(found.cv_results_) == list(expected.cv_results_)
    assert found.n_splits_ == expected.n_splits_
    assert found.best_index_ == expected.best_index_
    assert found.cv_results_["params"] == expected.cv_results_["params"]
    for name, values in expected.cv_results_.items():
        if name.endswith("test_score") and "rank" not in name:
            assert found.cv_results_[name] == pytest.approx(values, abs=abs)
        if name.startswith("param_"):
            assert found.cv_results_[name].tolist() == values.tolist()
            assert found.cv_results_[name].dtype.kind == values.dtype.kind
        if name.endswith("time"):
            assert np.all(found.cv_results_[name] >= 0)
    return found, expected


def test_chooses_as_a_grid_search_does():
    Cs, folds = [1e-4, 1e-2, 1.0], KFold(3)
    found, grid = same_as_grid(digits(tol=1e-4), {"C": Cs}, X, Y, cv=folds)
    assert np.array_equal(found.predict(X), grid.predict(X))
    assert found.score(X, Y) == grid.score(X, Y)
    assert found.decision_function(X).shape == (300, 10)
    ranks = grid.cv_results_["rank_test_score"], found.cv_results_["rank_test_score"]
    assert ranks[0].tolist() == ranks[1].tolist()
    by_values = mm.SearchCV(digits(tol=1e-4), Cs[::-1], cv=folds).fit(X, Y)
    assert by_values.best_params_ == found.best_params_
    assert by_values.cv_results_["param_C"].tolist() == Cs


def test_other_parameters_by_grid():
    grid = [
        {"C": [1e-3, 1.0], "slack": ["l1", "l2"], "rescaling": ["margin"]},
        {"fit_intercept": [False]},
    ]
    found, _ = same_as_grid(digits(tol=1e-4), grid, X, Y, cv=2)
    assert found.cv_results_["param_C"].mask.tolist() == [False] * 4 + [True]


def test_one_path_for_each_combination(monkeypatch):
    calls = []
    original = trials.path

    def counted(estimator, X, y, Cs, **params):
        calls.append((estimator.slack, list(Cs)))
        return original(estimator, X, y, Cs, **params)

    monkeypatch.setattr(trials, "path", counted)
    grid = {"slack": ["l1", "l2"], "C": [1.0, 0.01]}
    search = mm.SearchCV(digits(), grid, cv=2).fit(X, Y)
    best = search.best_params_
    folds = [("l1", [1.0, 0.01]), ("l2", [1.0, 0.01])] * 2
    assert calls == [*folds, (best["slack"], sorted({0.01, best["C"]}))]


@pytest.mark.parametrize(
    "parameters",
    [{"solver": "sgd"}, {"slack": "none", "solver": "n_slack"}, {"probability": True}],
    ids=str,
)
def test_where_there_is_no_path_each_candidate_is_trained_by_itself(parameters):
    scoring = "neg_log_loss" if "probability" in parameters else None
    Xs, ys = X[:60], Y[:60] % 2
    same_as_grid(digits(**parameters), {"C": [0.01, 1.0]}, Xs, ys, cv=2, scoring=scoring, abs=1e-9)


def test_partially_labelled_sequences():
    partial_tags = [[None, *own[1:]] for own in TAGS]

    def score(model, X, y):
        return -model.C

    search = mm.SearchCV(tagger(), [0.1, 1.0], cv=2, scoring=score).fit(WORDS, partial_tags)
    assert search.best_params_ == {"C": 0.1} and len(search.best_estimator_.rounds_) >= 1


def test_sequences_and_their_features():
    grid = {"C": [0.01, 1.0], "rescaling": ["margin", "slack"]}
    found, grid = same_as_grid(tagger(tol=1e-4), grid, WORDS, TAGS, cv=3)
    assert found.predict(WORDS) == grid.predict(WORDS)
    assert found.predict_k(WORDS[:1], 2) == grid.best_estimator_.predict_k(WORDS[:1], 2)


def test_containers_of_tokens():
    """They have other lengths than their examples."""
    rng = np.random.default_rng(0)
    packed = PackedSequences(rng.normal(size=(24, 3)), np.arange(0, 25, 2))
    labels = [["a", "b"], ["b", "b"]] * 6
    search = mm.SearchCV(tagger(), [0.1, 1.0], cv=3).fit(packed, labels)
    assert search.n_splits_ == 3 and len(search.predict(packed)) == 12


def test_custom_problems():
    kind = KINDS["own"]
    inputs, outputs = kind.first
    model = kind.make(tol=1e-7, random_state=0)
    search = mm.SearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(inputs, outputs)
    expected = GridSearchCV(model, {"C": [0.1, 1.0]}, cv=2).fit(inputs, outputs)
    assert search.cv_results_["mean_test_score"] == pytest.approx(
        expected.cv_results_["mean_test_score"], abs=0.05
    )
    assert len(search.predict(inputs)) == len(inputs)


def test_weights_are_split_with_the_examples():
    weights = np.where(np.arange(300) % 2, 1.0, 0.0)
    found, _ = same_as_grid(
        digits(tol=1e-7),
        {"C": [0.01, 1.0]},
        X,
        Y,
        cv=2,
        fit_params={"sample_weight": weights},
    )
    unweighted = mm.SearchCV(digits(tol=1e-7), {"C": [0.01, 1.0]}, cv=2).fit(X, Y)
    assert not np.array_equal(found.coef_, unweighted.coef_)
    assert len(mm.SearchCV(digits(), 3, cv=2).fit(X, Y).cv_results_["params"]) == 3


def ranking():
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(60, 3)), np.repeat(np.arange(10), 6)
    return X, np.round(X[:, 0] + 3.0 * queries + rng.normal(size=60)), queries


def test_each_query_is_scored_by_itself():
    """Documents of several queries are not to be compared, also where they are held out."""
    X, y, queries = ranking()
    ranker, folds = mm.RankSVM(tol=1e-6, random_state=0), GroupKFold(2)
    search = mm.SearchCV(ranker, [0.1, 1.0], cv=folds)
    search.fit(X, y, groups=queries, qid=queries)
    for row, (train, test) in enumerate(folds.split(X, y, queries)):
        ranker.set_params(C=0.1).fit(X[train], y[train], qid=queries[train])
        expected = ranker.score(X[test], y[test], qid=queries[test])
        assert search.cv_results_[f"split{row}_test_score"][0] == pytest.approx(expected)


def test_metadata_routing():
    X, y, queries = ranking()
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = mm.RankSVM(tol=1e-6, random_state=0)
        ranker.set_fit_request(qid=True).set_score_request(qid=True)
        folds = GroupKFold(2).set_split_request(groups=True)
        given = {"qid": queries, "groups": queries}
        found, _ = same_as_grid(ranker, {"C": [0.1, 1.0]}, X, y, cv=folds, fit_params=given)
        assert found.score(X, y, qid=queries) == found.best_estimator_.score(X, y, qid=queries)
        piped = make_pipeline(StandardScaler(), found)
        assert piped.fit(X, y, **given)[-1].best_params_ == found.best_params_
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            mm.SearchCV(mm.RankSVM(), [0.1], cv=2).fit(X, y, qid=queries)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_folds_at_the_same_time(backend):
    grid = {"C": [0.01, 1.0], "slack": ["l1", "l2"]}
    alone = mm.SearchCV(digits(), grid, cv=2).fit(X, Y)
    with joblib.parallel_config(backend):
        found = mm.SearchCV(digits(), grid, cv=2, n_jobs=2).fit(X, Y)
    for name in ("split0_test_score", "split1_test_score"):
        assert found.cv_results_[name].tolist() == alone.cv_results_[name].tolist()
    assert found.coef_.tobytes() == alone.coef_.tobytes()


def test_several_metrics():
    scoring = {"accuracy": "accuracy", "macro": "f1_macro"}
    options = {"scoring": scoring, "refit": "macro", "cv": 2}
    found = mm.SearchCV(digits(tol=1e-4), {"C": [1e-4, 1.0]}, **options).fit(X, Y)
    expected = GridSearchCV(digits(tol=1e-4), {"C": [1e-4, 1.0]}, **options).fit(X, Y)
    assert list(found.cv_results_) == list(expected.cv_results_)
    assert found.best_params_ == expected.best_params_
    assert found.score(X, Y) == expected.score(X, Y) == scored_by(expected, "f1_macro")
    for refit in (True, "f1"):
        with pytest.raises(ValueError, match=r"one of the metrics of scoring \(accuracy, macro\)"):
            mm.SearchCV(digits(), 2, scoring=scoring, refit=refit).fit(X, Y)
    none = mm.SearchCV(digits(), 2, scoring=scoring, refit=False, cv=2).fit(X, Y)
    assert not hasattr(none, "best_index_") and "mean_test_macro" in none.cv_results_


def scored_by(search, name):
    return sklearn.metrics.get_scorer(name)(search.best_estimator_, X, Y)


def test_callables_score_and_choose():
    def score(model, X, y):
        return accuracy_score(y, model.predict(X))

    worst = lambda results: int(np.argmin(results["mean_test_score"]))  # noqa: E731
    found = mm.SearchCV(digits(), [1e-4, 1.0], cv=2, scoring=score, refit=worst).fit(X, Y)
    means = found.cv_results_["mean_test_score"]
    assert found.best_index_ == np.argmin(means) and means[0] != means[1]
    assert found.best_estimator_.C == found.best_params_["C"] and not hasattr(found, "best_score_")
    for wrong, error in ((lambda _: 2, IndexError), (lambda _: "0", TypeError)):
        with pytest.raises(error, match="refit"):
            mm.SearchCV(digits(), [1e-4, 1.0], cv=2, refit=wrong).fit(X, Y)


def test_scores_that_are_no_numbers_do_not_count():
    def score(model, X, y):
        return np.nan if model.C < 0.1 else model.score(X, y)

    search = mm.SearchCV(digits(), [0.01, 0.1], cv=2, scoring=score).fit(X, Y)
    assert search.best_params_ == {"C": 0.1}
    with pytest.raises(ValueError, match="not a number"):
        mm.SearchCV(digits(), [0.01], cv=2, scoring=score).fit(X, Y)


def test_candidates_that_fail():
    grid = {"C": [0.1], "rescaling": ["margin", "none such"]}
    with pytest.warns(FitFailedWarning, match=r"2 of 4 fits .* have the score -1.0; .*none such"):
        search = mm.SearchCV(digits(), grid, cv=2, error_score=-1.0).fit(X, Y)
    assert search.best_params_["rescaling"] == "margin"
    assert search.cv_results_["mean_test_score"][1] == -1.0
    with pytest.raises(ValueError, match="rescaling") as raised:
        mm.SearchCV(digits(), grid, cv=2, error_score="raise").fit(X, Y)
    assert "fits of the search" not in str(raised.value)
    with pytest.raises(
        ValueError, match=r"all 2 fits of the search failed.*ParameterError: rescaling"
    ):
        mm.SearchCV(digits(rescaling="none such"), [0.1], cv=2).fit(X, Y)

    def fails(model, X, y):
        raise RuntimeError("no score today")

    with pytest.raises(ValueError, match="RuntimeError: no score today"):
        mm.SearchCV(digits(), [0.1], cv=2, scoring=fails).fit(X, Y)
    with pytest.raises(ValueError, match="scoring must give a number"):
        mm.SearchCV(digits(), [0.1], cv=2, scoring=lambda m, X, y: [1, 2]).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"param_grid": 0}, ValueError, "param_grid must be 1 or more"),
        ({"param_grid": True}, ValueError, "param_grid must be 1 or more"),
        ({"param_grid": []}, ValueError, "param_grid: values of C must be positive"),
        ({"param_grid": [1.0, -1.0]}, ValueError, "values of C must be positive, finite"),
        ({"param_grid": {"C": [0.0]}}, ValueError, "values of C must be positive, finite"),
        ({"param_grid": {"C": "1"}}, (ValueError, TypeError), "C"),
        ({"param_grid": {"loss": "none"}}, TypeError, "loss"),
        ({"param_grid": {"loss": []}}, ValueError, "loss"),
        ({"param_grid": [{"C": [1.0]}, 3]}, TypeError, "grid"),
        ({"param_grid": {"c": [1.0]}}, ValueError, "Invalid parameter 'c'"),
        ({"error_score": "no"}, ValueError, "error_score must be a number or 'raise'"),
        ({"scoring": "none such"}, ValueError, "none such"),
        ({"cv": 1}, ValueError, "n_splits"),
    ],
    ids=str,
)
def test_what_is_no_search(options, error, message):
    with pytest.raises(error, match=message):
        mm.SearchCV(digits(), **options).fit(X, Y)


def test_a_pipeline_ends_with_the_search():
    with pytest.raises(
        TypeError, match=r"got Pipeline\. In a Pipeline, make SearchCV the last step"
    ):
        mm.SearchCV(make_pipeline(mm.MulticlassSVM()), [1.0], cv=2).fit(np.eye(4), [0, 0, 1, 1])
    search = make_pipeline(StandardScaler(), mm.SearchCV(digits(), [0.01, 0.1], cv=2))
    assert search.fit(X, Y).score(X, Y) > 0.9


@pytest.mark.parametrize("when", ["first", "second", "scoring"])
def test_an_interrupted_search_keeps_the_best_so_far(when):
    whole = mm.SearchCV(digits(), [0.01, 0.1], cv=3, refit=False).fit(X, Y)
    scored = []

    def interrupt(progress):
        if when == "first" or (when == "second" and len(scored) == 2):
            raise KeyboardInterrupt

    def score(model, X, y):
        scored.append(model)
        if when == "scoring" and len(scored) == 4:
            raise KeyboardInterrupt
        return model.score(X, y)

    def search(on_interrupt):
        scored.clear()
        estimator = digits(training={"callbacks": [interrupt], "on_interrupt": on_interrupt})
        return mm.SearchCV(estimator, [0.01, 0.1], cv=3, scoring=score).fit(X, Y)

    with pytest.raises(KeyboardInterrupt):
        search("raise")
    with pytest.warns(match="the search was interrupted; the best candidate so far, by 1 folds"):
        found = search("return")
    scores = found.cv_results_["split0_test_score"]
    assert found.n_splits_ == 1
    if when == "first":
        assert found.best_params_ == {"C": 0.01} and np.isnan(scores[1])
        assert found.best_estimator_.result_.status == "interrupted"
    else:
        assert np.array_equal(scores, whole.cv_results_["split0_test_score"])
        assert found.best_index_ == np.argmax(scores)
        assert found.best_estimator_.result_.converged
    assert len(found.predict(X)) == len(X)


def test_a_search_is_what_its_estimator_is():
    search = mm.SearchCV(digits(), 2, cv=2)
    assert is_classifier(search) and not hasattr(search, "classes_")
    assert search.fit(X, Y).classes_.tolist() == list(range(10))
    assert clone(search).get_params(deep=False).keys() == search.get_params(deep=False).keys()
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.predict(X), search.predict(X))


def test_all_methods_of_the_best_estimator(tmp_path):
    search = mm.SearchCV(tagger(), [0.1, 1.0], cv=2)
    assert hasattr(search, "predict_k") and not hasattr(search, "predict_proba")
    assert not hasattr(search, "coef_") and not hasattr(search, "partial_fit")
    assert hasattr(mm.SearchCV(tagger(probability=True)), "predict_proba")
    with pytest.raises(NotFittedError):
        search.predict_k(WORDS, 2)
    search.fit(WORDS, TAGS)
    best = search.best_estimator_
    assert search.predict_k(WORDS, 2) == best.predict_k(WORDS, 2)
    assert search.explain(WORDS[0]).__class__ is best.explain(WORDS[0]).__class__
    assert search.result_ is best.result_ and search.n_features_in_ == best.n_features_in_
    assert "predict_k" in dir(search) and "classes_" in dir(search)
    assert "Report" in type(search.report(WORDS, TAGS)).__name__
    search.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(WORDS) == search.predict(WORDS)
    for name in ("C", "none_such", "none_such_", "_get_state"):
        assert not hasattr(search, name)
    search.set_params(refit=False).fit(WORDS, TAGS)
    assert search.best_params_ and not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="refit=False: there is no best estimator"):
        search.predict(WORDS)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_is_quiet_unless_wanted(n_jobs, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mm.SearchCV(digits(), 2, cv=2, n_jobs=n_jobs).fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_the_refit_takes_the_path_that_the_folds_took():
    """A fit from scratch finds others, for a rare class w = 0, that are as precise."""
    rare = np.where(np.arange(240) % 12 == 0, 1, -1)
    points = np.random.default_rng(0).normal(size=(240, 4)) + 0.8 * (rare > 0)[:, None]
    for estimator, data, Cs in (
        (mm.PerformanceSVM(measure="f1", random_state=0), (points, rare), [0.1, 1.0, 10.0]),
        (digits(tol=0.1), (X, Y), [0.01, 0.1, 1.0]),
    ):
        search = mm.SearchCV(
            estimator, {"C": Cs, "rescaling": ["margin"]}, cv=2, refit=lambda results: 1
        ).fit(*data)
        assert search.best_params_["C"] == Cs[1] == search.best_estimator_.C
        on_path = mm.path(estimator, *data, Cs[:2]).at(Cs[1])
        alone = clone(estimator).set_params(C=Cs[1]).fit(*data)
        assert np.array_equal(search.coef_, on_path.coef_)
        assert not np.array_equal(search.coef_, alone.coef_)
        assert search.result_.state is None and search.result_.converged


def test_the_last_fit_of_probabilities_is_calibrated():
    search = mm.SearchCV(digits(probability=True), [0.01, 0.1], cv=2).fit(X, Y)
    assert search.predict_proba(X[:2]).sum(axis=1) == pytest.approx(1.0)
