"""Weights chosen by held-out data: which they are, and whose certificate they have."""

import numpy as np
import pytest

import maxmargin as mm
from every_estimator import KINDS
from maxmargin.core.result import Progress
from maxmargin.estimators.selection.early_stopping import EarlyStopping, choosing
from maxmargin.features import WindowFeatures
from maxmargin.problems.chain.store import ChainStore

PROBLEM_WEIGHTS = ChainStore.problem_weights.fget
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 6))
Y = np.argmax(X[:, :3] + RNG.normal(size=(80, 3)), axis=1)


def scripted(merits):
    """A judge that says so, one after the other, and then the last again; and what it has seen."""
    seen = []

    def evaluate(estimator):
        estimator.predict(X)
        seen.append(estimator._get_weights().copy())
        return merits[min(len(seen), len(merits)) - 1]

    return evaluate, seen


def chosen(estimator, merits, **options):
    """Fit with a scripted choice."""
    evaluate, seen = scripted(merits)
    choice = EarlyStopping(evaluate, **options)
    with choosing(estimator, choice):
        estimator.fit(X, Y)
    return choice, seen


def objective(w, C):
    """The objective of classes, as it is defined."""
    scores = X @ w.reshape(-1, 3)
    margins = scores + (np.arange(3) != Y[:, None])
    slacks = margins.max(axis=1) - scores[np.arange(80), Y]
    return 0.5 * w @ w + C * slacks.sum()


@pytest.mark.parametrize("solver", ["auto", "sdm", "bcfw", "n_slack", "one_slack", "cpd"])
def test_the_certificate_is_that_of_the_weights_chosen(solver):
    settings = {"C": 1.0, "fit_intercept": False, "random_state": 0, "tol": 1e-3, "solver": solver}
    plain = mm.MulticlassSVM(**settings).fit(X, Y)
    model = mm.MulticlassSVM(**settings)
    choice, seen = chosen(model, [0.1, 0.5, 0.2])
    assert len(seen) > 2 and choice.kept is choice.evaluations[1]
    w = model._get_weights()
    assert np.array_equal(w, seen[1]) and not np.array_equal(w, plain._get_weights())
    result = model.result_
    assert result.primal == pytest.approx(objective(w, 1.0))
    assert result.dual == pytest.approx(plain.result_.dual)
    assert result.primal > plain.result_.primal and result.gap > plain.result_.gap
    assert result.status == "early_stopping" and not result.converged
    assert result.n_oracle_calls == plain.result_.n_oracle_calls + 80  # those of its certificate


def test_weights_of_equal_merit_are_the_last_and_nothing_changes():
    plain = mm.MulticlassSVM(random_state=0).fit(X, Y)
    model = mm.MulticlassSVM(random_state=0)
    choice, seen = chosen(model, [0.5])
    assert np.array_equal(model.coef_, plain.coef_) and choice.kept is choice.evaluations[-1]
    assert model.result_.primal == plain.result_.primal and model.result_.status == "converged"
    assert "_choice" not in vars(model)
    model.fit(X, Y)
    assert len(seen) == len(choice.evaluations)  # the next fit is not judged


def test_patience_ends_training():
    model = mm.MulticlassSVM(random_state=0, tol=1e-6, solver="sdm")
    choice, seen = chosen(model, [0.1, 0.5, 0.5, 0.4, 0.6], patience=2)
    # The fourth ends training, whose certificate still changes the weights: they are the fifth.
    assert len(seen) == 5 and choice.kept is choice.evaluations[-1]
    assert np.array_equal(model._get_weights(), seen[4])
    assert model.result_.status == "early_stopping"
    model = mm.MulticlassSVM(random_state=0, tol=1e-6, solver="sdm")
    choice, seen = chosen(model, [0.1, 0.5, 0.5, 0.4, 0.4], patience=2)
    assert np.array_equal(model._get_weights(), seen[2])  # the newer one of those as good
    assert model.result_.status == "early_stopping"
    assert model.result_.primal == pytest.approx(mm_objective(model))


def mm_objective(model):
    """The objective of a model with an intercept."""
    w = model._get_weights()
    scores = np.column_stack([X, np.ones(80)]) @ w.reshape(-1, 3)
    slacks = (scores + (np.arange(3) != Y[:, None])).max(axis=1) - scores[np.arange(80), Y]
    return 0.5 * w @ w + slacks.sum()


def test_judgements_are_passes_apart():
    model = mm.MulticlassSVM(random_state=0, tol=1e-9, solver="sdm")
    choice, _ = chosen(model, [0.5], pause=3.0)
    passes = np.array([evaluation.passes for evaluation in choice.evaluations[:-1]])
    assert len(passes) > 2 and np.all(np.diff(passes) >= 3.0)


@pytest.mark.parametrize("solver", ["perceptron", "sgd"])
def test_online_solvers(solver):
    model = mm.MulticlassSVM(random_state=0, solver=solver, max_passes=6)
    _, seen = chosen(model, [0.1, 0.5, 0.2])
    assert len(seen) == 7 and np.array_equal(model._get_weights(), seen[1])
    assert model.result_.gap is None and model.result_.status == "max_passes"
    model = mm.MulticlassSVM(random_state=0, solver=solver, max_passes=6)
    _, seen = chosen(model, [0.1, 0.5, 0.2], patience=2)
    assert len(seen) == 5 and model.result_.status == "early_stopping"


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_estimator_predicts_while_it_is_trained(name):
    kind = KINDS[name]
    inputs, outputs = kind.first
    seen = []

    def evaluate(estimator):
        seen.append([repr(estimator.predict(inputs)), estimator._get_weights().copy()])
        return float(len(seen) == 1)

    model = kind.make(max_passes=3, tol=None, random_state=0)
    with choosing(model, EarlyStopping(evaluate)):
        model.fit(inputs, outputs)
    assert len(seen) >= 2
    if "kernel" not in name:  # whose weights are those of what the last model is made of
        assert np.array_equal(model._get_weights(), seen[0][1])
    assert repr(model.predict(inputs)) == seen[0][0]
    assert model.result_.primal >= model.result_.dual


def test_weights_that_are_out_of_the_way_are_seen_too(monkeypatch):
    """Of many weights, a store of chains works for a while on those that its planes touch."""
    rng = np.random.default_rng(0)
    words = [[f"w{k}" for k in rng.integers(0, 30, 6)] for _ in range(40)]
    tags = [[str((int(word[1:]) + rng.integers(0, 2)) % 4) for word in s] for s in words]
    monkeypatch.setattr("maxmargin.problems.chain.store.MANY_WEIGHTS", 1)
    seen = []

    def weights(store):
        own, was_apart = PROBLEM_WEIGHTS(store).copy(), store._all is not None
        store._return_to_all_weights()  # as the next visit does
        assert np.array_equal(own, store.w)
        seen.append(was_apart)
        return own

    monkeypatch.setattr(ChainStore, "problem_weights", property(weights))
    tagger = mm.SequenceTagger(features=WindowFeatures(), C=10.0, random_state=0)
    with choosing(tagger, EarlyStopping(lambda model: -np.abs(model.coef_).sum())):
        tagger.fit(words, tags)
    assert any(seen)


def test_an_interrupt_while_weights_are_judged_keeps_what_is_certified():
    plain = mm.MulticlassSVM(random_state=0).fit(X, Y)
    model = mm.MulticlassSVM(random_state=0, training={"on_interrupt": "return"})
    choice = EarlyStopping(lambda estimator: 0.0)
    see = choice._see

    def interrupted(w, passes):
        if np.array_equal(w, plain.result_.w):
            raise KeyboardInterrupt
        see(w, passes)

    choice._see = interrupted
    with choosing(model, choice), pytest.warns(UserWarning, match="interrupted"):
        model.fit(X, Y)
    assert choice.kept is None and np.array_equal(model.coef_, plain.coef_)
    assert model.result_.status == "interrupted"


def test_what_cannot_be_chosen_from():
    with pytest.raises(ValueError, match="early stopping needs slack='l1' or 'l2'"):
        chosen(mm.MulticlassSVM(slack="none", solver="n_slack"), [0.5])
    with pytest.raises(ValueError, match="patience must be 1 or more, got 0"):
        EarlyStopping(len, patience=0)
    tagger = mm.SequenceTagger()
    with (
        choosing(tagger, EarlyStopping(lambda _: 0.0)),
        pytest.raises(ValueError, match="all labels are"),
    ):
        tagger.fit([np.eye(2), np.eye(2)], [["a", None], ["a", "b"]])
    assert "_choice" not in vars(tagger)
    choice = EarlyStopping(lambda _: 0.0)
    model = mm.MulticlassSVM(random_state=0)
    with choosing(model, choice):
        model.fit(X, Y)
    assert choice(Progress(0.0, 10**9, None, None, None, 0)) is None  # without weights
