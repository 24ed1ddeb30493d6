"""Warm starts with more examples: the planes of the first ones are kept."""

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.core.formulation import Formulation
from maxmargin.engine.packed_problem import same_columns
from maxmargin.engine.rows import make_rows
from maxmargin.engine.training.state import extends
from maxmargin.estimators.parameters import solver_of
from maxmargin.features import WindowFeatures
from maxmargin.solvers import make_solver
from maxmargin.solvers.base import TrainingRequest
from structures import STRUCTURES

DUAL_ASCENT = ["auto", "fasole", "sda", "dcd"]


def solved(problem, warm_start=None, *, solver="auto", slack="l1", C=1.0, tol=1e-6, **arguments):
    solver = make_solver(solver, tol=tol, random_state=0, max_passes=2000)
    formulation = Formulation("margin", slack, sqrt_loss=False)
    return solver.solve(problem, formulation, C, warm_start=warm_start, **arguments)


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("solver", DUAL_ASCENT)
@pytest.mark.parametrize(
    "structure", ["multiclass", "chain", "any tree", "label tree", "plain Python"]
)
def test_training_goes_on_with_the_first_examples(structure, solver, slack):
    """Before any step, the dual is that of the first examples, which the others cannot lower."""
    problem = STRUCTURES[structure].make(np.random.default_rng(5)).problem
    n = problem.n_examples
    head = problem.subset(np.arange(n - 1))
    assert extends(problem, head) and not extends(head, problem)
    first = solved(head, solver=solver, slack=slack)
    seen = []
    warm = solved(problem, first, solver=solver, slack=slack, callbacks=[seen.append])
    cold = solved(problem, solver=solver, slack=slack)
    assert warm.converged and warm.dual == pytest.approx(cold.dual, rel=1e-5, abs=1e-9)
    assert seen[0].dual >= first.dual * (1 - 1e-9)
    begun = make_solver(solver, tol=0.0, random_state=0).start(
        TrainingRequest(
            problem, first.state.oracle.formulation, 1.0, np.ones(n), solved(head, slack=slack), ()
        )
    )
    assert begun.dual == pytest.approx(first.dual, rel=1e-5, abs=1e-9)


def test_bounds_may_change_with_the_examples():
    problem = STRUCTURES["chain"].make(np.random.default_rng(5)).problem
    n = problem.n_examples
    first = solved(problem.subset(np.arange(n - 1)), C=2.0)
    weights = np.linspace(0.0, 1.0, n)
    warm = solved(problem, first, C=0.5, sample_weight=weights)
    cold = solved(problem, C=0.5, sample_weight=weights)
    assert warm.dual == pytest.approx(cold.dual, rel=1e-5)


def test_other_examples_are_no_beginning():
    rng = np.random.default_rng(5)
    problem, other = (STRUCTURES["chain"].make(rng).problem for _ in range(2))
    head = other.subset(np.arange(2))
    assert not extends(problem, head)
    again, cold = solved(problem, solved(head)), solved(problem)
    assert again.w.tobytes() == cold.w.tobytes()


SENTENCES = [
    (["the", "cat", "sleeps"], ["D", "N", "V"]),
    (["a", "dog"], ["D", "N"]),
    (["dogs", "sleep"], ["N", "V"]),
    (["the", "dog", "sees", "a", "cat"], ["D", "N", "V", "D", "N"]),
    (["cats", "see", "the", "dogs"], ["N", "V", "D", "N"]),
    (["a", "cat", "sees"], ["D", "N", "V"]),
] * 3


def tagger(**parameters):
    features = WindowFeatures()
    return mm.SequenceTagger(features=features, tol=1e-4, random_state=0, **parameters)


def test_features_that_come_with_more_sentences_change_the_numbers_of_others():
    words, tags = zip(*SENTENCES, strict=True)
    model = tagger(warm_start=True).fit(words[:4], tags[:4])
    few, begun = model.n_features_in_, model.result_.n_planes
    model.fit(words, tags)
    cold = tagger().fit(words, tags)
    assert model.n_features_in_ > few and begun > 0
    assert model.result_.dual == pytest.approx(cold.result_.dual, rel=1e-3)
    assert model.result_.converged
    state = model.result_.state
    again = solver_of(model).start(
        TrainingRequest(
            state.oracle.problem, Formulation(), 1.0, np.ones(len(words)), model.result_, ()
        )
    )
    assert again.dual == pytest.approx(model.result_.dual, rel=1e-9)


def test_a_feature_that_becomes_frequent_enough_changes_the_first_sentences():
    """Their planes are others then, and training begins anew."""
    words, tags = zip(*SENTENCES, strict=True)
    model = mm.SequenceTagger(
        features=WindowFeatures(min_count=3), tol=1e-4, random_state=0, warm_start=True
    )
    model.fit(words[:4], tags[:4])
    before = model.result_.state.oracle.problem
    model.fit(words, tags)
    assert not extends(model.result_.state.oracle.problem, before)
    assert model.result_.converged


@pytest.mark.parametrize("factor", [-1.0, 2.0, 1.0 + 2.0**-52])
def test_a_value_that_changes_is_another_column(factor):
    """Doubles that differ in the sign or the exponent differ in their highest bits alone."""
    for n in range(1, 400):
        column = sp.csr_matrix(np.ones((n, 1)))
        other = column.copy()
        other.data[n // 2] *= factor
        assert same_columns(make_rows(column, sparse=True), make_rows(column, sparse=True))
        assert not same_columns(make_rows(column, sparse=True), make_rows(other, sparse=True))


@pytest.mark.parametrize("n", [30, 40])
def test_data_that_were_written_to_are_no_beginning(n):
    """The problem of the fit before refers to the same arrays: its planes are of none now."""
    rng = np.random.default_rng(0)
    X = list(rng.normal(size=(40, 2)))
    y = [int(x[0] + 0.5 * rng.normal() > 0) for x in X]
    model = mm.StructuralSVM(Sides(), tol=1e-6, random_state=0, warm_start=True).fit(X[:n], y[:n])
    for x in X[:10]:
        x *= -1.0
    model.fit(X, y)
    cold = mm.StructuralSVM(Sides(), tol=1e-6, random_state=0).fit(X, y)
    assert model.result_.dual <= cold.result_.primal * (1 + 1e-9)
    assert model.result_.primal == pytest.approx(cold.result_.primal, rel=1e-5)


def test_what_a_problem_leaves_out_of_a_pickle_still_counts():
    class Light(Sides):
        def __getstate__(self):
            return {}

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = [int(x[0] > 0.2) for x in X]
    model = mm.StructuralSVM(Light(), tol=1e-6, random_state=0, warm_start=True)
    model.fit(list(X[:15]), y[:15]).fit(list(-4.0 * X), y)
    cold = mm.StructuralSVM(Light(), tol=1e-6, random_state=0).fit(list(-4.0 * X), y)
    assert model.result_.dual <= cold.result_.primal * (1 + 1e-9)
    assert model.result_.primal == pytest.approx(cold.result_.primal, rel=1e-5)


@pytest.mark.parametrize("make", [mm.MulticlassSVM, mm.OrdinalSVM])
def test_equal_data_are_not_sought_in_arrays_that_were_written_to(make):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0)
    given = X.copy()
    model = make(tol=1e-6, random_state=0, warm_start=True).fit(given, y)
    primal = model.result_.primal
    given *= 5.0
    assert model.fit(X, y).result_.primal == pytest.approx(primal, rel=1e-5)


class Sides(mm.Problem):
    """Two classes, x under either."""

    def joint_feature(self, x, y):
        return np.concatenate([x * (1 - y), x * y])

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max((0, 1), key=lambda c: self.loss(y, c) + w @ self.joint_feature(x, c))

    def predict(self, x, w):
        return max((0, 1), key=lambda c: w @ self.joint_feature(x, c))


@pytest.mark.parametrize("solver", ["n_slack", "one_slack", "sgd"])
def test_other_solvers_begin_anew(solver):
    words, tags = zip(*SENTENCES, strict=True)
    model = tagger(warm_start=True, solver=solver).fit(words[:4], tags[:4]).fit(words, tags)
    cold = tagger(solver=solver).fit(words, tags)
    assert model.coef_.tobytes() == cold.coef_.tobytes()
