"""Chains of higher orders and transition features: SequenceTagger, and what no twin of all has."""

import itertools
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin as mm
from brute_higher_order import HistoryTwin, history_case
from cases import CHAIN_LOSSES, random_inputs
from checking import SEARCHES, check_k_best, check_oracle, dense_rows, values_of
from maxmargin import check_problem
from maxmargin.cli import main
from maxmargin.core.formulation import Formulation
from maxmargin.engine.accelerators import accelerators_of
from maxmargin.engine.training.state import extends
from maxmargin.features import KernelMap, WindowFeatures
from maxmargin.problems.chain.layout import LabelTuples, label_tuples
from maxmargin.problems.chain.problem import ChainProblem

WORDS = [
    [("the", "D"), ("old", "A"), ("cat", "N"), ("sleeps", "V")],
    [("a", "D"), ("dog", "N"), ("barks", "V")],
    [("old", "A"), ("dogs", "N"), ("sleep", "V")],
    [("cats", "N"), ("bark", "V")],
]
TAGS = [["B", "I", "I", "O"], ["B", "I", "O"], ["B", "I", "O"], ["B", "O"]]


def tagger(**parameters):
    return mm.SequenceTagger(**{"random_state": 0, "tol": 1e-3, **parameters})


def runs(length, n=6, total=24):
    """Labels in runs of equal length, of which inputs tell the first ones only."""
    Y = [[(t + shift) // length % 2 for t in range(total)] for shift in range(n)]
    X = [np.zeros((total, 2)) for _ in Y]
    for x, y in zip(X, Y, strict=True):
        x[np.arange(length), y[:length]] = 1.0
    return X, Y


# ----- what orders are for ----------------------------------------------------------------------


@pytest.mark.parametrize(("length", "order"), [(2, 2), (3, 3)])
def test_an_order_sees_as_many_labels(length, order):
    X, Y = runs(length)
    assert tagger(C=100.0, order=order).fit(X, Y).predict(X) == Y
    assert tagger(C=100.0, order=order - 1).fit(X, Y).score(X, Y) < 0.9


def test_transition_features_see_pairs():
    """A token says whether the label stays or changes: neither labels nor pairs alone can tell."""
    rng = np.random.default_rng(0)
    turns = rng.integers(0, 2, (30, 8))
    turns[:, 0] = 0
    Y = (turns.cumsum(axis=1) % 2).tolist()
    X = [np.column_stack([t, 1 - t, np.arange(8) == 0]).astype(float) for t in turns]
    assert tagger(C=10.0).fit(X, Y).score(X, Y) < 0.7
    for parameters in ({"transition_features": [0, 1]}, {"order": {"emissions": 1}}):
        model = tagger(C=10.0, boundary_weights=True, **parameters).fit(X, Y)
        assert model.predict(X) == Y
    dear = tagger(C=10.0, boundary_weights=True, transition_features=[0, 1], order={"eta": 0.01})
    assert dear.fit(X, Y).score(X, Y) < 0.9


def test_a_first_order_chain_is_the_same_one():
    """The search over states finds what the first-order search finds; defaults use the latter."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 9, 20)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens, labels = random_inputs(rng, offsets[-1], 4), rng.integers(0, 5, offsets[-1])
    plain = ChainProblem(tokens, offsets, labels, 5, boundary_weights=True)
    other = ChainProblem(tokens, offsets, labels, 5, boundary_weights=True)
    assert plain.layout.is_first_order
    other.layout.is_first_order = False
    w = rng.normal(size=plain.n_features)
    for rescaling, sqrt_loss in SEARCHES:
        rows = [p.oracle(np.arange(20), w, rescaling, sqrt_loss) for p in (plain, other)]
        assert np.array_equal(rows[0].losses, rows[1].losses)
        assert np.allclose(dense_rows(rows[0], len(w)), dense_rows(rows[1], len(w)))
    X, Y = runs(4)
    model = tagger(tol=1e-6).fit(X, Y)
    # A weight that counts twice, and is half as large, costs a quarter.
    scaled = tagger(order={"eta": 2.0}, tol=1e-6).fit(X, Y)
    assert scaled.result_.primal < model.result_.primal - 0.1


# ----- searches ---------------------------------------------------------------------------------


@pytest.mark.nojit
@pytest.mark.parametrize("order", [1, 2, 3])
def test_labels_that_are_given(order):
    rng = np.random.default_rng(order)
    case = history_case(rng, order=order, n_extra=1, K=3, lengths=(4, 1, 3), constrained=order > 1)
    problem, twin = case
    w = rng.normal(size=problem.n_features)
    allowed = rng.random((len(problem.data.labels), 3)) < 0.5
    allowed[np.arange(len(allowed)), problem.data.labels] = True
    found = problem.decoder.decode(problem.data.inputs, problem.data.offsets, w, allowed)
    best = problem.decoder.decode_k_best(problem.data.inputs, problem.data.offsets, w, 5, allowed)
    ranked = best.listed(best.labels.tolist())
    for i, (first, end) in enumerate(itertools.pairwise(problem.data.offsets)):
        own = [y for y in twin.outputs(i) if all(allowed[first + t, k] for t, k in enumerate(y))]
        scores = sorted((w @ twin.psi(i, y) for y in own), reverse=True)
        assert tuple(found[first:end]) in own
        assert w @ twin.psi(i, tuple(found[first:end])) == pytest.approx(scores[0])
        assert [score for _, score in ranked[i]] == pytest.approx(scores[:5])
        assert len({tuple(path) for path, _ in ranked[i]}) == len(scores[:5])


@pytest.mark.nojit
@pytest.mark.parametrize("loss", ["hamming", "normalized_hamming"])
def test_costs_of_any_rows(loss):
    """Rows for labels that are not known: several labels may cost nothing."""
    rng = np.random.default_rng(0)
    lengths = (4, 2, 3)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens, labels = random_inputs(rng, 9, 2), rng.integers(0, 3, 9)
    costs = np.vstack([rng.uniform(0.5, 2.0, (3, 3)) * (1 - np.eye(3)), np.zeros(3)])
    rows = np.where(rng.random(9) < 0.3, 3, labels)
    assert (rows == 3).any()
    tuples = label_tuples(labels, offsets, 3, order=2, pairs=False)
    options = {"loss": loss, "costs": costs, "cost_rows": rows}
    problem = ChainProblem(tokens, offsets, labels, 3, tuples, **options)
    twin = HistoryTwin(tokens, offsets, labels, 3, order=2, tuples="seen", **options)
    for scale, (rescaling, sqrt_loss) in itertools.product((0.1, 1.0), SEARCHES):
        w = scale * rng.normal(size=problem.n_features)
        check_oracle((problem, twin), w, rescaling, sqrt_loss)
        if rescaling == "none" or (rescaling, sqrt_loss) == ("margin", False):
            check_k_best((problem, twin), w, 7, rescaling, sqrt_loss)


@pytest.mark.parametrize("kind", SEARCHES)
def test_costs_of_one_are_errors(kind):
    """By levels, and by bounds on costs: the same on sequences that cannot be listed."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 12, 13, 40])
    tokens, labels = rng.normal(size=(40, 3)), rng.integers(0, 4, 40)
    tuples = label_tuples(labels, offsets, 4, order=3, pairs=False)
    plain = ChainProblem(tokens, offsets, labels, 4, tuples)
    costly = ChainProblem(tokens, offsets, labels, 4, tuples, costs=1.0 - np.eye(4))
    for scale in (0.02, 0.2):
        w = scale * rng.normal(size=plain.n_features)
        found = [
            values_of(planes.losses, dense_rows(planes, len(w)), w, *kind)
            for planes in (p.oracle(np.arange(3), w, *kind) for p in (plain, costly))
        ]
        assert found[0] == pytest.approx(found[1], rel=1e-8) and found[0].max() > 0.0


@pytest.mark.nojit
@pytest.mark.parametrize("loss", [*CHAIN_LOSSES, "costs"])
def test_searches_at_scaled_weights(loss):
    case = history_case(np.random.default_rng(3), loss=loss, order=3)
    v = np.random.default_rng(0).normal(size=case.problem.n_features)
    every = np.arange(case.problem.n_examples)
    for rescaling, sqrt_loss in SEARCHES:
        offered = accelerators_of(case.problem, Formulation(rescaling, sqrt_loss=sqrt_loss))
        scaled = offered.oracle_at_scale(every, v, 0.1)
        plain = case.problem.oracle(every, 0.1 * v, rescaling, sqrt_loss)
        assert scaled.losses == pytest.approx(plain.losses)
        assert np.allclose(dense_rows(scaled, len(v)), dense_rows(plain, len(v)))


@pytest.mark.nojit
@pytest.mark.parametrize("loss", [*CHAIN_LOSSES, "costs"])
def test_the_problem_says_what_its_oracle_computes(loss):
    for options in ({}, {"order": 3, "emission_order": 1, "n_extra": 2, "boundary_weights": True}):
        case = history_case(np.random.default_rng(3), loss=loss, K=3, **options)
        check_problem(case.problem)
        part = case.problem.subset(np.array([2, 0]))
        w = np.random.default_rng(0).normal(size=case.problem.n_features)
        both, whole = part.oracle(np.arange(2), w), case.problem.oracle(np.array([2, 0]), w)
        assert all(np.array_equal(a, b) for a, b in zip(both, whole, strict=True))


@pytest.mark.nojit
def test_tuples_without_others_that_begin_or_end_them():
    """A file may list any: states are the same whichever shorter ones are there."""
    rng = np.random.default_rng(0)
    lengths = (5, 4)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens, labels = random_inputs(rng, 9, 2), rng.integers(0, 3, 9)
    tuples = LabelTuples(
        np.array([[0, 1], [2, 2]]),
        np.array([[2, 1, 0]]),
        np.array([[0, 0, 1, 2], [1, 0, 0, 1], [2, 2, 2, 2]]),
    )
    problem = ChainProblem(tokens, offsets, labels, 3, tuples, random_inputs(rng, 9, 1))

    class Listed(HistoryTwin):
        def known(self, n):
            return [tuple(t) for t in tuples[n - 2].tolist()]

    extra = problem.data.inputs.pair_rows
    extra = sp.csr_matrix((extra.values, extra.indices, extra.indptr), shape=(9, 1))
    twin = Listed(tokens, offsets, labels, 3, extra, order=3, tuples="listed")
    for rescaling, sqrt_loss in SEARCHES:
        w = rng.normal(size=problem.n_features)
        check_oracle((problem, twin), w, rescaling, sqrt_loss)


def test_states_are_few():
    labels, offsets = np.tile([0, 1, 2, 3, 4], 20), np.array([0, 100])
    seen = label_tuples(labels, offsets, 5, order=3, pairs=True)
    assert [len(table) for table in seen] == [5, 5, 5]
    problem = ChainProblem(np.ones((100, 1)), offsets, labels, 5, seen)
    assert problem.layout.model.states.n_states == 5 + 5 + 5
    every = label_tuples(labels, offsets, 5, order=3, pairs=True, which="allowed")
    assert [len(table) for table in every] == [25, 125, 625]


def test_tables_that_are_too_large_are_refused():
    rng = np.random.default_rng(0)
    labels, offsets = rng.integers(0, 4, 9000), np.array([0, 9000])
    tuples = label_tuples(labels, offsets, 4, order=2, pairs=False)
    problem = ChainProblem(np.ones((9000, 1)), offsets, labels, 4, tuples)
    w = np.zeros(problem.n_features)
    with pytest.raises(ValueError, match="9000 tokens with 20 states and 9001 numbers of errors"):
        problem.oracle(np.arange(1), w, "slack")
    problem.oracle(np.arange(1), w)


# ----- the tagger -------------------------------------------------------------------------------

TEMPLATES = ["w[0]", "p[0]", "p[-1]|p[0]"]


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ("p[0]", ["p[0]=A", "p[0]=D", "p[0]=N", "p[0]=V"]),
        (["p[0]=A", "w[0]=cat"], ["p[0]=A", "w[0]=cat"]),
        (["p[-1]|p[0]", "p[0]=V"], None),
        (re.compile(r"^w\[0\]=.*s$"), ["w[0]=barks", "w[0]=cats", "w[0]=dogs", "w[0]=sleeps"]),
        (WindowFeatures(["p[0]"]), ["p[0]=A", "p[0]=D", "p[0]=N", "p[0]=V"]),
    ],
)
def test_transition_features_are_chosen(chosen, names, tmp_path):
    model = tagger(features=WindowFeatures(TEMPLATES), transition_features=chosen).fit(WORDS, TAGS)
    transitions = model._model.transitions
    numbers = range(transitions.n_features)
    listed = list(transitions.feature_names(model._model.inputs, numbers).values())
    if names is None:
        assert all("p[-1]=" in name or name == "p[0]=V" for name in listed) and len(listed) == 8
    else:
        assert sorted(listed) == names
    strongest = model.top_transition_features(3)
    assert 0 < len(strongest) <= 3 and strongest[0][0] in listed and strongest[0][3] > 0.0
    assert all(weight < 0.0 for *_, weight in model.top_transition_features(3, against=True))
    assert model.predict(WORDS) == TAGS
    if not isinstance(chosen, re.Pattern):
        model.save(tmp_path / "model.mm")
    else:
        with pytest.warns(UserWarning, match="cannot store transition_features"):
            model.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert loaded.predict_k(WORDS, 3) == model.predict_k(WORDS, 3)
    assert loaded.top_transition_features() == model.top_transition_features()


def test_features_of_dicts_are_chosen_by_key():
    X = [[{"word": word, "size": len(word)} for word, _ in sentence] for sentence in WORDS]
    model = tagger(transition_features=["word", "size"]).fit(X, TAGS)
    assert model._model.transitions.n_features == model.n_features_in_
    assert tagger(transition_features="size").fit(X, TAGS)._model.transitions.n_features == 1


def test_models_are_kept(tmp_path):
    X, Y = runs(2)
    model = tagger(
        order={"transitions": 3, "emissions": 1, "eta": 0.5},
        boundary_weights=True,
        fit_intercept=True,
    ).fit(X, Y)
    model.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert loaded.predict(X) == model.predict(X)
    assert loaded.longer_transition_weights_ == model.longer_transition_weights_
    assert {len(labels) for labels in model.longer_transition_weights_} == {3, 4}
    best = [ranked[0] for ranked in model.predict_k(X, 2)]
    assert [labels for labels, _ in best] == model.predict(X)
    assert model.score_outputs(X, [labels for labels, _ in best]) == pytest.approx(
        [score for _, score in best]
    )
    assert clone(model).get_params() == model.get_params()
    assert tagger().fit(X, Y).longer_transition_weights_ == {}


def test_training_goes_on(tmp_path):
    X, Y = runs(2)
    parameters = {"solver": "perceptron", "order": 2, "transition_features": [0]}
    whole = tagger(**parameters, max_passes=3).fit(X, Y)
    model = tagger(**parameters)
    for _ in range(3):
        model.partial_fit(X, Y)
    assert np.array_equal(model.coef_, whole.coef_)
    size = len(model.coef_)
    model.partial_fit(X[:1], [[0, 0, 0, 1] * 6])  # with tuples that have no weights
    assert len(model.coef_) == size and (0, 0, 0) not in model.longer_transition_weights_
    model.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    loaded.partial_fit(X, Y)
    for changed in (
        {"order": 3},
        {"order": {"transitions": 2, "eta": 0.5}},
        {"transition_features": None},
    ):
        with pytest.raises(
            ValueError, match=r"made with order=.*2.* and transition features: call"
        ):
            clone(loaded).set_params(**changed)  # a clone has no model, and takes all
            loaded.set_params(**changed).partial_fit(X, Y)
        loaded.set_params(**parameters)


def test_training_from_a_file(tmp_path):
    data, model = tmp_path / "data.txt", tmp_path / "model.mm"
    data.write_text("the D\ncat N\nsleeps V\n\na D\ndog N\nbarks V\n")
    assert main(["train", "tag", str(data), "-o", str(model), "--order", "2", "-q"]) == 0
    loaded = mm.load(model)
    assert loaded.order == 2 and set(loaded.longer_transition_weights_) == {("D", "N", "V")}


@pytest.mark.parametrize("tuples", ["seen", "allowed"])
def test_constraints_hold(tuples):
    X, Y = runs(3, n=4)
    bad = [[1, 0] * 12]
    rules = [(1, 0)]
    ordered = [sorted(y) for y in Y]
    model = tagger(
        order={"transitions": 2, "label_tuples": tuples},
        transition_features=[0, 1],
        constraints=rules,
        on_violation="drop",
    )
    with pytest.warns(UserWarning, match="1 of 5 sequences break the constraints"):
        model.fit(X + X[:1], ordered + bad)
    assert all(y == sorted(y) for y in model.predict(X))
    assert all(labels == sorted(labels) for ranked in model.predict_k(X, 5) for labels, _ in ranked)
    longer = set(model.longer_transition_weights_)
    assert longer == {(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)}


def test_weights_of_sequences_multiply_their_slacks():
    X, Y = runs(2)
    model = tagger(order=2, tol=1e-6).fit(X, Y, sample_weight=[2.0, 1, 1, 1, 1, 3.0])
    same = tagger(order=2, tol=1e-6).fit([*X, X[0], X[5], X[5]], [*Y, Y[0], Y[5], Y[5]])
    assert model.result_.primal == pytest.approx(same.result_.primal, rel=1e-5)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"order": 4}, "order must be 1, 2 or 3, got 4"),
        ({"order": 0}, "order must be 1, 2 or 3, got 0"),
        ({"order": "2"}, "order must be 1, 2 or 3, got '2'"),
        ({"order": {"emissions": 2}}, "order: emissions must be 0 or 1, got 2"),
        ({"order": {"eta": 0.0}}, "order: eta must be a positive, finite number, got 0.0"),
        ({"order": {"eta": "much"}}, "order: eta must be a positive, finite number, got 'much'"),
        (
            {"order": {"tuples": 1}},
            "order has no option 'tuples'; its options are transitions, emiss",
        ),
        (
            {"order": {"label_tuples": "all"}},
            "order: label_tuples must be 'seen' or 'allowed', got 'all'",
        ),
        ({"transition_features": 2}, "transition_features: no column 2, tokens have 2 features"),
        (
            {"transition_features": ["x0", "pos"]},
            "no token feature matches 'pos'; there are 2, such as 'x0', 'x1'",
        ),
        ({"transition_features": [None]}, "must be an extractor, or names, .* got None"),
        ({"transition_features": []}, "transition_features is empty"),
    ],
)
def test_bad_parameters_are_named(parameters, said):
    with pytest.raises(ValueError, match=said):
        tagger(**parameters).fit(*runs(2))


def test_too_many_states_are_named():
    labels = [list(range(90))]
    with pytest.raises(
        ValueError, match=r"737190 states .* with 90 labels .* 66347100 moves .* at most 4194304"
    ):
        tagger(order={"transitions": 3, "label_tuples": "allowed"}).fit([np.ones((90, 1))], labels)
    tagger(order=3, max_passes=1, tol=None).fit([np.ones((90, 1))], labels)


# ----- what a hostile user may try ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": True}, "order must be 1, 2 or 3, got True"),
        ({"order": {"emissions": True}}, "order: emissions must be 0 or 1, got True"),
        ({"order": {"eta": True}}, "order: eta must be a positive, finite number, got True"),
        ({"order": {"label_tuples": np.array([1, 2])}}, "label_tuples must be 'seen' or 'allowed'"),
        ({"transition_features": b"x0"}, "must be an extractor.* got b'x0'"),
        (
            {"transition_features": WindowFeatures(["w[0]"])},
            "transition_features: sequence 0, token 0 ",
        ),
    ],
)
def test_odd_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tagger(**options).fit(*runs(2))


def test_no_more_than_all_labellings_are_ranked():
    model = tagger(order=2).fit([[[1.0], [0.0], [1.0]], [[0.0]]], [[0, 1, 0], [1]])
    assert [len(ranked) for ranked in model.predict_k([[[1.0]] * 3, [[0.0]]], 10**9)] == [8, 2]
    with pytest.raises(ValueError, match="use a smaller k"):
        model.predict_k([[[1.0]] * 40], 10**9)


def test_more_examples_go_on_from_the_planes_there_are():
    """Whether the earlier problem has been searched does not make it another one."""
    labels, offsets = np.tile([0, 1, 2, 0, 2, 1], 6), np.arange(0, 37, 6)
    tokens = np.random.default_rng(0).normal(size=(36, 3))
    tuples = label_tuples(labels, offsets, 3, order=2, pairs=False)
    few = ChainProblem(tokens[:24], offsets[:5], labels[:24], 3, tuples)
    few.oracle(np.arange(4), np.zeros(few.n_features))
    assert extends(ChainProblem(tokens, offsets, labels, 3, tuples), few)
    other = label_tuples(labels[:4], np.array([0, 4]), 3, order=2, pairs=False)
    assert not extends(ChainProblem(tokens, offsets, labels, 3, other), few)


# ----- partial labels, priors, paths ------------------------------------------------------------

KINDS = [
    {"order": 2},
    {"order": 3, "boundary_weights": True},
    {"order": 2, "emission_order": 1, "transition_features": [1], "eta": 0.5},
]


def as_tagger(parameters, **options):
    """The twin's parameters, as a tagger has them."""
    names = {"order": "transitions", "emission_order": "emissions", "eta": "eta"}
    order = {names[name]: value for name, value in parameters.items() if name in names}
    rest = {name: value for name, value in parameters.items() if name not in names}
    return {**rest, "order": {**order, **options}}


def small_data(seed, n=6):
    """Sequences that can be listed, of two labels."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(length, 2)) for length in rng.integers(3, 6, n)]
    return rng, X, [rng.integers(0, 2, len(x)).tolist() for x in X]


def twin_of(parameters, X, Y):
    """All labellings, with weights of all tuples."""
    tokens = np.vstack(X)
    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    own = {name: value for name, value in parameters.items() if name != "transition_features"}
    extra = tokens[:, parameters.get("transition_features", [])]
    return HistoryTwin(tokens, offsets, np.concatenate(Y), 2, extra, tuples="allowed", **own)


def slacks(twin, w, allowed):
    """Of the best right labelling against the worst violator, by lists; see `PartialChains`."""
    found = []
    for i, sets in enumerate(allowed):
        scores = {y: w @ twin.psi(i, y) for y in itertools.product(range(2), repeat=len(sets))}
        costs = {y: sum(k not in s for k, s in zip(y, sets, strict=True)) for y in scores}
        right = max(score for y, score in scores.items() if costs[y] == 0)
        found.append(max(costs[y] + score for y, score in scores.items()) - right)
    return np.array(found)


@pytest.mark.parametrize("parameters", KINDS)
def test_partially_labelled_data(parameters):
    rng, X, Y = small_data(0)
    known = [[{0: None, 1: {0, 1}}.get(rng.integers(0, 5), k) for k in y] for y in Y]
    sets = [[{k} if k in (0, 1) and k is not None else {0, 1} for k in y] for y in _hashable(known)]
    model = tagger(tol=1e-7, max_rounds=50, **as_tagger(parameters, label_tuples="allowed")).fit(
        X, known
    )
    twin, w = twin_of(parameters, X, Y), model.coef_
    assert len(w) == twin.n_features
    objective = 0.5 * w @ w + slacks(twin, w, sets).sum()
    assert model.rounds_[-1].objective == pytest.approx(objective, rel=1e-6)
    falls = [own.objective for own in model.rounds_]
    assert falls == sorted(falls, reverse=True)


def _hashable(known):
    return [[None if isinstance(k, set) else k for k in y] for y in known]


def test_tuples_of_partially_labelled_data_are_those_of_known_neighbours():
    X = [np.eye(2)[[0, 1, 0, 1, 0]]]
    model = tagger(order=2).fit(X, [["a", "b", "a", None, "b"]])
    assert list(model.longer_transition_weights_) == [("a", "b", "a")]


@pytest.mark.parametrize("parameters", KINDS)
def test_priors(parameters):
    _, X, Y = small_data(1)
    _, others, tags = small_data(2, 3)
    options = {"tol": 1e-7, **as_tagger(parameters, label_tuples="allowed")}
    prior = tagger(**options).fit(X, Y)
    near = tagger(C=1e-7, **options).fit(others, tags, prior=prior)
    assert near.coef_ == pytest.approx(prior.coef_, abs=1e-4)
    drawn = tagger(**options).fit(others, tags, prior=prior)
    twin, change = twin_of(parameters, others, tags), drawn.coef_ - prior.coef_
    losses = slacks(twin, drawn.coef_, [[{k} for k in y] for y in tags])
    assert drawn.result_.primal == pytest.approx(0.5 * change @ change + losses.sum(), rel=1e-6)
    assert np.abs(change).max() > 0.01
    with pytest.raises(ValueError, match="the model was made with order="):
        tagger(**as_tagger({**parameters, "order": 1})).fit(others, tags, prior=near)


def test_tuples_of_a_prior_stay():
    X = [np.eye(2)[[0, 1, 0]], np.eye(2)[[0, 0, 1]]]
    prior = tagger(order=2).fit(X[:1], [["a", "b", "a"]])
    model = tagger(order=2).fit(X[1:], [["a", "a", "b"]], prior=prior)
    assert list(model.longer_transition_weights_) == [("a", "b", "a")]
    assert model._model.chain.layout.is_like(prior._model.chain.layout)


@pytest.mark.parametrize("parameters", KINDS)
def test_paths(parameters):
    _, X, Y = small_data(3)
    options = {"tol": 1e-6, **as_tagger(parameters)}
    models = tagger(**options).fit_path(X, Y, [0.1, 1.0])
    for C in (0.1, 1.0):
        model, alone = models.at(C), tagger(C=C, **options).fit(X, Y)
        assert model.result_.primal == pytest.approx(alone.result_.primal, rel=1e-5)
        assert model.predict(X) == alone.predict(X)


@pytest.mark.parametrize("parameters", KINDS)
def test_margins_with_a_kernel(parameters):
    """Of the kernel's values, some sequences at a time, as of the same features."""
    _, X, Y = small_data(4)
    options = {"tol": 1e-6, **as_tagger(parameters)}
    plain = tagger(**options).fit(X, Y)
    by_kernel = tagger(kernel=KernelMap("poly", degree=1, gamma=1.0), **options).fit(X, Y)
    for one, other in zip(plain.predict_margins(X), by_kernel.predict_margins(X), strict=True):
        assert other == pytest.approx(one, abs=2e-2)
