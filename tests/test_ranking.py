"""RankSVM, and searches for rankings at sizes that cannot be listed."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import maxmargin as mm
from checking import dense_rows
from conftest import find_data
from maxmargin.core.formulation import C_from_paper, Formulation
from maxmargin.formats import read_svmlight
from maxmargin.metrics import average_precision, mean_swapped_pairs, ndcg, swapped_pairs
from maxmargin.problems.ranking import listwise
from maxmargin.problems.ranking.problem import LOSSES, RankingProblem

PARAMETERS = {loss: {"loss": loss, **({"k": 3} if loss == "ndcg" else {})} for loss in LOSSES}


def evaluated(n_queries=30, n_documents=8, seed=0):
    """Documents whose relevance is a linear score with noise, beside one that queries differ in."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), n_documents)
    X = rng.normal(size=(len(qid), 4))
    score = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.normal(size=len(qid))
    return X + 5.0 * (qid[:, None] % 3), np.clip(np.rint(score + 0.5), 0, 3), qid


X, Y, QID = evaluated()
X_TEST, Y_TEST, QID_TEST = evaluated(seed=1)


def ranker(**parameters):
    return mm.RankSVM(random_state=0, **parameters)


@pytest.mark.parametrize("loss", LOSSES)
def test_rankings_are_learned(loss, tmp_path):
    model = ranker(**PARAMETERS[loss]).fit(X, Y, qid=QID)
    assert model.result_.converged and model.result_.n_examples == 30
    assert model.score(X_TEST, Y_TEST, qid=QID_TEST) > 0.85
    scores = model.predict(X_TEST)
    assert np.allclose(scores, X_TEST @ model.coef_)
    model.save(tmp_path / "model")
    assert np.array_equal(mm.load(tmp_path / "model").predict(X_TEST), scores)


def test_scores_are_one_minus_the_loss():
    given = Y_TEST, ranker().fit(X, Y, qid=QID).predict(X_TEST), QID_TEST
    for loss, expected in (
        ("swaps", 1 - mean_swapped_pairs(*given)),
        ("normalized_swaps", 1 - mean_swapped_pairs(*given)),
        ("ndcg", ndcg(*given, k=3)),
        ("average_precision", average_precision(*given, empty=None)),
    ):
        model = ranker().fit(X, Y, qid=QID).set_params(**PARAMETERS[loss])
        assert model.score(X_TEST, Y_TEST, qid=QID_TEST) == expected


def test_ranks():
    model = ranker().fit(X, Y, qid=QID)
    ranks, scores = model.rank(X_TEST, qid=QID_TEST), model.predict(X_TEST)
    for query in range(30):
        own = QID_TEST == query
        assert np.array_equal(np.argsort(ranks[own]), np.argsort(-scores[own]))
        assert sorted(ranks[own]) == list(range(1, 9))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ties", [False, True])
def test_the_k_best_rankings(loss, ties):
    """All orders of some documents, by the joint features of the problem."""
    rng = np.random.default_rng(3)
    model = ranker(loss=loss).fit(*evaluated())
    X = rng.integers(0, 2, (9, 4)).astype(float) if ties else rng.normal(size=(9, 4))
    qid = np.array([7, 3, 7, 7, 3, 7, 5, 7, 3])  # of 5, 3 and 1 documents
    model.coef_ = rng.integers(-2, 3, 4).astype(float) if ties else model.coef_[:4]
    model.n_features_in_ = 4
    for k in (1, 2, 7, 200):
        found = model.predict_k(X, k, qid=qid)
        for query, ranked in zip((7, 3, 5), found, strict=True):
            rows = np.flatnonzero(qid == query)
            # Of documents of different relevance all pairs are compared.
            relevance = np.arange(float(len(rows)))
            pairs = "normalized_swaps" if loss == "average_precision" else loss
            problem = RankingProblem(X[rows], relevance, [0, len(rows)], pairs)
            known = {}
            for order in itertools.permutations(range(len(rows))):
                y = np.empty(len(rows))
                y[list(order)] = -np.arange(len(rows))
                known[order] = model.coef_ @ problem.joint_feature(problem.input_of(0), y)
            best = sorted(known.values(), reverse=True)[:k]
            assert [score for _, score in ranked] == pytest.approx(best)
            orders = [tuple(np.searchsorted(rows, documents)) for documents, _ in ranked]
            assert [known[order] for order in orders] == pytest.approx(best)
            assert len(set(orders)) == len(orders)
    places = model.rank(X, qid=qid)
    assert [places[documents].tolist() for [(documents, _)] in model.predict_k(X, 1, qid=qid)] == [
        [1, 2, 3, 4, 5],
        [1, 2, 3],
        [1],
    ]
    with pytest.raises(ValueError, match="k must be a whole number >= 1, got 0"):
        model.predict_k(X, 0)


def test_the_k_best_rankings_of_many_documents():
    model = ranker().fit(*evaluated())
    X = np.random.default_rng(0).normal(size=(3000, model.n_features_in_))
    [ranked] = model.predict_k(X, 20)
    scores = [score for _, score in ranked]
    assert scores == sorted(scores, reverse=True) and len(ranked) == 20
    gaps = -np.diff(np.sort(-model.predict(X))[::-1])
    assert scores[0] - scores[1] == pytest.approx(np.abs(gaps).min(), rel=1e-3)


def test_documents_come_in_any_order_and_form():
    expected = ranker(tol=1e-5).fit(X, Y, qid=QID)
    order = np.random.default_rng(0).permutation(len(Y))
    for matrix in (X, sp.csr_matrix(X), sp.coo_array(X).tocsc()):
        model = ranker(tol=1e-5).fit(matrix[order], Y[order], qid=QID[order])
        assert model.result_.primal == pytest.approx(expected.result_.primal, rel=1e-4)
    named = ranker(tol=1e-5).fit(X, Y, qid=np.array([f"query {q:02d}" for q in QID]))
    assert np.array_equal(named.coef_, expected.coef_)
    single = X.astype(np.float32)
    assert ranker().fit(single, Y, qid=QID).predict(single).dtype == np.float64


def test_without_queries_all_documents_are_compared():
    one = ranker().fit(X, Y)
    assert one.result_.n_examples == 1
    assert np.array_equal(one.coef_, ranker().fit(X, Y, qid=np.full(len(Y), 7)).coef_)


def test_weights_of_queries_multiply_their_slacks():
    weights = np.where(QID < 10, 3.0, 1.0)[:, None].ravel()
    model = ranker(tol=1e-6).fit(X, Y, qid=QID, sample_weight=weights)
    first = QID < 10
    repeated = [np.concatenate([a, a[first], a[first]]) for a in (X, Y)]
    numbers = np.concatenate([QID, QID[first] + 100, QID[first] + 200])
    same = ranker(tol=1e-6).fit(*repeated, qid=numbers)
    assert model.result_.primal == pytest.approx(same.result_.primal, rel=1e-5)
    assert np.allclose(model.coef_, same.coef_, atol=1e-2)
    with pytest.raises(ValueError, match=r"sample_weight\[1\] is 2.0, but 1.0 for another"):
        ranker().fit(X, Y, qid=QID, sample_weight=1.0 + (np.arange(len(Y)) == 1))


def test_searches_route_the_queries():
    with sklearn.config_context(enable_metadata_routing=True):
        model = ranker(loss="ndcg", k=3).set_fit_request(qid=True).set_score_request(qid=True)
        grid = {"C": [1e-3, 1.0]}
        search = GridSearchCV(model, grid, cv=GroupKFold(3)).fit(X, Y, qid=QID, groups=QID)
        by_hand = []
        for train, test in GroupKFold(3).split(X, Y, QID):
            best = clone(model).set_params(C=1.0).fit(X[train], Y[train], qid=QID[train])
            by_hand.append(best.score(X[test], Y[test], qid=QID[test]))
        assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand))
        assert search.best_score_ > 0.9
        pipeline = make_pipeline(StandardScaler(), model).fit(X, Y, qid=QID)
        assert pipeline.score(X_TEST, Y_TEST, qid=QID_TEST) > 0.9


def test_scores_without_queries_are_refused(tmp_path):
    model = ranker().fit(X, Y, qid=QID)
    model.save(tmp_path / "model.mm")
    for fitted in (model, mm.load(tmp_path / "model.mm")):
        with pytest.raises(ValueError, match="qid is missing: the model was trained on 30 q"):
            fitted.score(X_TEST, Y_TEST)
        with pytest.raises(ValueError, match="qid is missing"):
            fitted.report(X_TEST, Y_TEST)
        one = np.zeros(len(Y_TEST))
        assert fitted.score(X_TEST, Y_TEST, one) == 1.0 - swapped_pairs(
            Y_TEST, fitted.predict(X_TEST)
        )
    grid = {"C": [0.01, 1.0]}
    with pytest.raises(ValueError, match="set_score_request"):
        GridSearchCV(ranker(), grid, error_score="raise").fit(X, Y, qid=QID)
    with pytest.warns(UserWarning, match="set_score_request"):
        search = GridSearchCV(ranker(), grid, cv=2).fit(X, Y, qid=QID)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


def test_check_estimator():
    """But for weights of single documents, which are compared with others, and have none."""
    results = check_estimator(mm.RankSVM(), on_fail=None, on_skip=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert all("sample_weight" in name for name in failed), failed
    assert sum(r["status"] == "passed" for r in results) > 40


def test_losses_without_places_ignore_k():
    expected, found = (ranker(k=k).fit(X, Y, qid=QID) for k in (None, 5))
    assert np.array_equal(found.coef_, expected.coef_)
    grid = {"loss": ["swaps", "average_precision", "ndcg"], "k": [5]}
    for parameters in ParameterGrid(grid):
        ranker(max_passes=1, tol=None, **parameters).fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"loss": "pairs"}, {}, "loss must be 'swaps', .* got 'pairs'"),
        ({"k": 0}, {}, "k must be None or a whole number of places"),
        ({"loss": "ndcg", "k": 2.5}, {}, "k must be None or a whole number of places .*got 2.5"),
        ({"loss": "ndcg", "k": "3"}, {}, "k must be None or a whole number of places .*got '3'"),
        ({"loss": "ndcg"}, {"y": Y - 1}, r"relevance of document \d+ is -1.0; it must be in 0"),
        ({"loss": "ndcg", "slack": "l2"}, {}, "needs rescaling='margin' with slack='l1'"),
        ({"loss": "average_precision", "rescaling": "slack"}, {}, "rescaling='margin'"),
        ({}, {"qid": QID[:-1]}, r"the query of each of 240 documents, got qid of shape \(239,\)"),
        ({}, {"qid": np.append(QID[:-1], np.nan)}, r"qid\[239\] is nan"),
        ({}, {"qid": [*QID[:-1].tolist(), None]}, r"qid\[239\] is None"),
        ({}, {"y": Y[:-1]}, "X has 240 examples but y has 239"),
    ],
)
def test_bad_input(parameters, arguments, message):
    given = {"y": Y, "qid": QID, **arguments}
    with pytest.raises(ValueError, match=message):
        ranker(**parameters).fit(X, **given)


def test_names_of_queries_may_be_of_any_types():
    names = [int(q) if q % 2 else f"q{q}" for q in QID]
    expected, model = ranker().fit(X, Y, qid=QID), ranker().fit(X, Y, qid=np.array(names, object))
    assert np.array_equal(model.coef_, expected.coef_)
    assert np.array_equal(model.rank(X, np.array(names, object)), expected.rank(X, QID))


def test_weights_of_scores_are_checked():
    model = ranker().fit(X, Y, qid=QID)
    for wrong in (-1.0, np.nan):
        with pytest.raises(ValueError, match=rf"sample_weight\[0\] is {wrong}; .* finite and >= 0"):
            model.score(X, Y, qid=QID, sample_weight=np.full(len(Y), wrong))
    with pytest.raises(
        ValueError, match=r"sample_weight must have shape \(240,\), got shape \(3,\)"
    ):
        model.score(X, Y, qid=QID, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        model.score(X, Y, qid=QID, sample_weight=["a"] * len(Y))


def test_queries_with_nothing_to_rank_change_nothing():
    more = [np.concatenate([a, b]) for a, b in ((X, X[:6]), (Y, np.ones(6)), (QID, [90] * 6))]
    plain, added = ranker(tol=1e-6), ranker(tol=1e-6)
    plain.fit(X, Y, qid=QID)
    added.fit(*more[:2], qid=more[2])
    assert added.result_.primal == pytest.approx(plain.result_.primal, rel=1e-5)
    assert np.isnan(plain.score(X[:6], np.ones(6), np.zeros(6)))


@pytest.mark.parametrize(
    ("y", "qid", "loss", "message"),
    [
        ([1, 1, 1], None, "swaps", "no query has documents of different relevance"),
        ([1, 1, 2], [0, 0, 1], "ndcg", "no query has documents of different relevance"),
        ([1, 2, 3], [0, 1, 2], "swaps", "every document is a query of its own; .* the same qid"),
        ([1, 2, 3], None, "average_precision", "both documents of a relevance above 0 and others"),
    ],
)
def test_nothing_to_rank_at_all_is_an_error(y, qid, loss, message):
    with pytest.raises(ValueError, match=f"there is nothing to rank: .*{message}"):
        ranker(loss=loss).fit(X[:3], y, qid=qid)


def test_some_calls_of_partial_fit_may_have_nothing_to_rank():
    model = ranker(solver="sgd").partial_fit(X[:3], np.ones(3))
    assert not model.coef_.any()
    assert model.partial_fit(X, Y, qid=QID).coef_.any()


# ----- searches ----------------------------------------------------------------------------------


def value_of(problem, w):
    planes = problem.oracle(np.arange(1), w)
    return planes.losses[0] - dense_rows(planes, len(w))[0] @ w


def test_pairs_are_counted_as_if_they_were_listed():
    rng = np.random.default_rng(0)
    for real in (False, True):
        documents, w = rng.normal(size=(500, 3)), rng.normal(size=3)
        y = rng.normal(size=500) if real else rng.integers(0, 5, 500)
        scores = documents @ w
        hinges = np.maximum(0.0, 1.0 - (scores[:, None] - scores))[y[:, None] > y]
        problem = RankingProblem(documents, y, [0, 500])
        assert value_of(problem, w) == pytest.approx(hinges.sum())
        scaled = RankingProblem(documents, y, [0, 500], "normalized_swaps")
        assert value_of(scaled, w) == pytest.approx(hinges.mean())


@pytest.mark.parametrize("k", [None, 1, 4, 10])
def test_ndcg_by_counts_of_grades_and_by_assignment(k, monkeypatch):
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 10.0, 100.0):
        documents, y = rng.normal(size=(40, 4)), rng.integers(0, 4, 40)
        w = scale * rng.normal(size=4)
        problem = RankingProblem(documents, y, [0, 40], "ndcg", k)
        by_counts = value_of(problem, w)
        with monkeypatch.context() as patch:
            patch.setattr(listwise, "MOST_STATES", 0)
            assert value_of(problem, w) == pytest.approx(by_counts)


def test_ndcg_of_many_grades_of_many_documents_is_refused():
    rng = np.random.default_rng(0)
    problem = RankingProblem(rng.normal(size=(2001, 2)), rng.random(2001), [0, 2001], "ndcg")
    with pytest.raises(ValueError, match=r"2001 documents of 2001 grades, .* smaller k"):
        problem.oracle(np.arange(1), np.ones(2))


def test_average_precision_of_many_documents():
    """No order is more violated that exchanges of documents lead to."""
    rng = np.random.default_rng(0)
    documents, y = rng.normal(size=(60, 3)), (rng.random(60) < 0.3).astype(int)
    problem = RankingProblem(documents, y, [0, 60], "average_precision")
    x, gold = problem.X[0], problem.Y[0]
    for scale in (1.0, 20.0, 200.0):
        w = scale * rng.normal(size=3)
        best = value_of(problem, w)
        psi = problem.joint_feature(x, gold)
        order, reached = documents @ w, 0.0
        for _ in range(300):
            other = order.copy()
            a, b = rng.integers(0, 60, 2)
            other[a], other[b] = other[b], other[a]
            value = problem.loss(gold, other) + w @ (problem.joint_feature(x, other) - psi)
            assert value <= best + 1e-9
            if value > reached:
                order, reached = other, value


def test_parts_of_a_problem():
    for loss in LOSSES:
        offsets = np.arange(0, len(Y) + 1, 8)
        problem = RankingProblem(X, Y, offsets, loss, PARAMETERS[loss].get("k"))
        w = np.random.default_rng(0).normal(size=4)
        chosen = np.array([7, 2, 2, 29])
        whole, part = problem.oracle(chosen, w), problem.subset(chosen).oracle(np.arange(4), w)
        for a, b in zip(whole, part, strict=True):
            assert np.array_equal(a, b)
        rescalings = problem.rescalings if "swaps" in loss else ("margin",)  # refused otherwise
        mm.check_problem(
            problem, candidates=lambda x, rng: rng.permutation(8), rescalings=rescalings
        )


def test_the_error_of_svm_rank():
    """Trained on S1 to S3 of MQ2008 with c = 20, SVM-rank swaps 14.8 % of the pairs of S5."""
    parts = [
        read_svmlight(find_data(f"ranking/mq2008_S{k}.svm.gz"), n_features=46) for k in (1, 2, 3, 5)
    ]
    train, test = parts[:3], parts[3]
    qid = np.concatenate([part.qid for part in train])
    C = C_from_paper(20.0, len(np.unique(qid)), "joachims")
    model = ranker(C=C, solver="one_slack", tol=1e-3)
    model.fit(sp.vstack([p.X for p in train]), np.concatenate([p.y for p in train]), qid=qid)
    swapped = mean_swapped_pairs(test.y, model.predict(test.X), test.qid, empty=0.0)
    assert swapped == pytest.approx(0.148, abs=0.002)


def test_every_formulation_of_swaps_trains():
    for rescaling in ("margin", "slack", "none"):
        for slack in ("l1", "l2"):
            model = ranker(loss="normalized_swaps", rescaling=rescaling, slack=slack)
            model.fit(X[:80], Y[:80], qid=QID[:80])
            assert model.result_.converged, Formulation(rescaling, slack)
