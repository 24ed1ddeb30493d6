"""Problems of a user: what check_problem accepts, what it names, and what training refuses."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from cases import small_oracle_rows
from maxmargin.checking import check_problem
from maxmargin.core.cutting_planes import Planes
from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import SOLVERS as ALL_SOLVERS
from maxmargin.solvers import make_solver, solvers_for

# Online solvers do not judge the oracle's candidates: they have no use for the values.
L1_SOLVERS = solvers_for(Formulation())
SOLVERS = [name for name in L1_SOLVERS if ALL_SOLVERS[name].certified]
K, D = 3, 2


class Classes(Problem):
    """Three classes in plain Python, right in every respect."""

    rescalings = ("margin", "slack", "none")
    n_features = K * D

    def joint_feature(self, x, y):
        psi = np.zeros((D, K))
        psi[:, y] = x
        return psi.ravel()

    def loss(self, y, y_hat):
        return float(abs(y - y_hat))

    def value(self, x, y, z, w, rescaling):
        loss = self.loss(y, z)
        margin = w @ (Classes.joint_feature(self, x, y) - Classes.joint_feature(self, x, z))
        if z == y:
            return 0.0
        if rescaling == "none":
            return 1.0 - margin
        return loss - margin if rescaling == "margin" else loss * (1.0 - margin)

    def most_violated(self, x, y, w, rescaling):
        return max(range(K), key=lambda z: self.value(x, y, z, w, rescaling))

    def predict(self, x, w):
        return int(np.argmax(np.asarray(x) @ w.reshape(D, K)))


class SparseRows(Classes):
    def joint_feature(self, x, y):
        return sp.csr_matrix(super().joint_feature(x, y))


class SparseArrays(Classes):
    def joint_feature(self, x, y):
        return sp.coo_array(super().joint_feature(x, y))


class Dicts(Classes):
    def joint_feature(self, x, y):
        return {f * K + y: value for f, value in enumerate(x)}


class Lists(Classes):
    def joint_feature(self, x, y):
        return super().joint_feature(x, y).tolist()


class OwnOracle(Classes):
    """An oracle written in full, with rows that name a column more than once."""

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        rows = [
            (self.X[i], self.Y[i], self.most_violated(self.X[i], self.Y[i], w, rescaling))
            for i in indices
        ]
        return small_oracle_rows([(x, y, z, self.loss(y, z)) for x, y, z in rows], n_classes=K)


KINDS = [Classes, SparseRows, SparseArrays, Dicts, Lists, OwnOracle]


def bound(cls=Classes, n=8):
    rng = np.random.default_rng(0)
    return cls().bind(list(rng.normal(size=(n, D))), rng.integers(0, K, n).tolist())


def bound_to_easy_examples(cls):
    """Classes apart by more than their margin: most truths have no rival at the optimum."""
    labels = [0, 1, 2] * 4
    centres = np.array([[3.0, 0.0], [-2.0, 2.0], [-2.0, -2.0]])
    scales = np.linspace(1.0, 5.0, len(labels))[:, None]
    return cls().bind(list(scales * centres[labels]), labels)


def classes(x):
    return range(K)


# ----- good problems ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_good_problems_are_accepted(kind):
    problem = bound(kind)
    check_problem(problem)
    check_problem(
        problem,
        outputs=classes,
        candidates=lambda x, rng: int(rng.integers(K)),
        rescalings=("margin", "slack", "none"),
        n_weights=5,
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
def test_all_kinds_of_features_give_the_same_rows(kind, rescaling):
    w = np.random.default_rng(3).normal(size=K * D)
    asked = np.array([5, 0, 5, 2])
    expected, planes = (bound(cls).oracle(asked, w, rescaling) for cls in (Classes, kind))
    assert planes.indices.dtype == np.int32 and planes.values.dtype == np.float64
    assert np.allclose(planes.losses, expected.losses)
    for r in range(len(asked)):
        ours, theirs = (
            np.bincount(
                some.indices[some.indptr[r] : some.indptr[r + 1]],
                some.values[some.indptr[r] : some.indptr[r + 1]],
                minlength=K * D,
            )
            for some in (planes, expected)
        )
        assert np.allclose(ours, theirs)


def test_an_oracle_asked_for_nothing():
    planes = bound().oracle(np.arange(0), np.zeros(K * D))
    assert planes.indptr.tolist() == [0] and len(planes.indices) == len(planes.losses) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_features_are_trained_alike(kind):
    result = make_solver("auto", tol=1e-6).solve(bound(kind), Formulation(), 0.5)
    expected = make_solver("auto", tol=1e-6).solve(bound(), Formulation(), 0.5)
    assert result.converged
    assert result.primal == pytest.approx(expected.primal, rel=1e-5)


# ----- broken problems ----------------------------------------------------------------------------


class NegativeLoss(Classes):
    def loss(self, y, y_hat):
        return float(y != y_hat) * (1.0 if y_hat != 2 else -0.5)


class LossAtTheTruth(Classes):
    def loss(self, y, y_hat):
        return 0.25 + abs(y - y_hat)


class InfiniteLoss(Classes):
    def loss(self, y, y_hat):
        return float("inf") if y != y_hat else 0.0


class NotANumberLoss(Classes):
    def loss(self, y, y_hat):
        return float("nan") if y != y_hat else 0.0


class WorseThanTheTruth(Classes):
    """Never returns the truth, even where nothing beats it."""

    def most_violated(self, x, y, w, rescaling):
        others = [z for z in range(K) if z != y]
        return max(others, key=lambda z: self.value(x, y, z, w, rescaling))


class NotTheBest(Classes):
    """Never finds class 2, which only a rival can show."""

    def most_violated(self, x, y, w, rescaling):
        return max({0, 1, y}, key=lambda z: self.value(x, y, z, w, rescaling))


class ForgetsTheLoss(Classes):
    """Plain inference in place of the oracle: the classic mistake."""

    def most_violated(self, x, y, w, rescaling):
        return self.predict(x, w)


class IgnoresTheRescaling(Classes):
    def most_violated(self, x, y, w, rescaling):
        return super().most_violated(x, y, w, "margin")


class WorstPrediction(Classes):
    def predict(self, x, w):
        return int(np.argmin(np.asarray(x) @ w.reshape(D, K)))


class IndexTooLarge(Dicts):
    def joint_feature(self, x, y):
        return {f * K + y + 4: value for f, value in enumerate(x)}


class NegativeIndex(Dicts):
    def joint_feature(self, x, y):
        return {f * K + y - 1: value for f, value in enumerate(x)}


class InfiniteFeature(Classes):
    def joint_feature(self, x, y):
        return super().joint_feature(x, y) * (np.inf if y == 1 else 1.0)


class FlippedRow(OwnOracle):
    """psi of the candidate minus psi of the truth."""

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        planes = super().oracle(indices, w, rescaling, sqrt_loss)
        return planes._replace(values=-planes.values)


class TooFewRows(OwnOracle):
    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        return super().oracle(indices[:-1], w, rescaling, sqrt_loss)


BROKEN = {
    NegativeLoss: r"loss.*-0\.5.*example \d",
    LossAtTheTruth: r"loss\(y, y\) is 0\.25 for example 0; it must be 0",
    InfiniteLoss: r"loss inf for example \d; losses must be finite",
    NotANumberLoss: r"loss nan for example \d; losses must be finite",
    WorseThanTheTruth: r"margin oracle's candidate for example \d has value -.* the gold output",
    NotTheBest: r"margin oracle's candidate for example \d has value .*a listed output \(2\) has",
    ForgetsTheLoss: r"margin oracle's candidate for example \d has value",
    IgnoresTheRescaling: r"slack oracle's candidate for example \d has value",
    WorstPrediction: r"predict gives example \d an output of score .*, but .* has",
    IndexTooLarge: r"index \d+.*(n_features is 6|in 0\.\.5)",
    NegativeIndex: r"index -1",
    InfiniteFeature: r"example \d has value -?(inf|nan)",
    FlippedRow: "opposite sign",
    TooFewRows: r"called for 8 examples and returned 7 losses and 7 rows",
}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.parametrize(
    ("kind", "message"), BROKEN.items(), ids=lambda x: getattr(x, "__name__", "")
)
def test_broken_problems_are_named(kind, message):
    with pytest.raises(ValueError, match=message):
        check_problem(bound(kind), outputs=classes, rescalings=("margin", "slack"))


@pytest.mark.parametrize("kind", [WorseThanTheTruth, ForgetsTheLoss, NegativeLoss])
def test_most_mistakes_show_without_a_list_of_outputs(kind):
    """The truth, the prediction and random candidates are rivals enough."""
    with pytest.raises(ValueError, match="example"):
        check_problem(bound(kind), n_weights=6, candidates=lambda x, rng: int(rng.integers(K)))


def test_a_random_candidate_reveals_an_oracle_that_misses_outputs():
    with pytest.raises(ValueError, match=r"another candidate \(2\)"):
        check_problem(bound(NotTheBest), candidates=lambda x, rng: 2)


def test_the_prediction_is_a_rival():
    class NoSearch(Classes):
        def most_violated(self, x, y, w, rescaling):
            return y

    with pytest.raises(ValueError, match="the prediction"):
        check_problem(bound(NoSearch))


def test_only_what_is_asked_for_is_checked():
    check_problem(bound(IgnoresTheRescaling), outputs=classes, rescalings=("margin",))
    with pytest.raises(ValueError, match="none oracle"):
        check_problem(bound(ForgetsTheLoss), outputs=classes, rescalings=("none",))


def test_max_examples():
    class WrongLater(Classes):
        def loss(self, y, y_hat):
            return super().loss(y, y_hat) if any(y is known for known in self.Y[:4]) else -1.0

    problem = WrongLater().bind([np.ones(D)] * 6, [0, 1, 0, 1, 2, 2])
    check_problem(problem, max_examples=4)
    with pytest.raises(ValueError, match="example 4"):
        check_problem(problem)


def test_a_problem_without_examples_or_size():
    with pytest.raises(ValueError, match=r"no examples; bind them with problem\.bind"):
        check_problem(Classes())
    problem = bound()
    problem.n_features = None
    with pytest.raises(ValueError, match="no n_features"):
        check_problem(problem)


@pytest.mark.parametrize("name", ["joint_feature", "loss", "most_violated", "predict"])
def test_what_is_missing_is_named(name):
    class Incomplete(Classes):
        pass

    setattr(Incomplete, name, getattr(Problem, name))
    with pytest.raises(NotImplementedError, match=rf"Incomplete must define {name}\("):
        check_problem(bound(Incomplete))


def test_a_native_problem_is_checked_or_told_apart():
    """It has no joint_feature in Python; what must not happen is an IndexError from inside."""
    problem = MulticlassProblem(np.ones((2, 1)), [0, 1])
    try:
        check_problem(problem)
    except (ValueError, NotImplementedError):
        pass


# ----- binding examples ---------------------------------------------------------------------------


def test_bind_returns_a_copy():
    problem = Classes()
    first = problem.bind([np.ones(D)], [0])
    second = first.bind([np.ones(D)] * 2, [1, 2])
    assert (problem.n_examples, first.n_examples, second.n_examples) == (0, 1, 2)
    assert second.Y == [1, 2]


@pytest.mark.parametrize(("n_x", "n_y"), [(3, 2), (2, 3), (0, 1)])
def test_bind_needs_as_many_outputs_as_inputs(n_x, n_y):
    message = rf"X has {n_x} examples but Y has {n_y}; first without a partner: {min(n_x, n_y)}"
    with pytest.raises(ValueError, match=message):
        Classes().bind([np.ones(D)] * n_x, [0] * n_y)


@pytest.mark.parametrize("kind", [Classes, SparseRows, SparseArrays, Lists])
def test_bind_counts_the_features(kind):
    class Uncounted(kind):
        n_features = None

    assert Uncounted().bind([np.ones(D)], [0]).n_features == K * D


def test_features_in_a_dict_cannot_be_counted():
    class Uncounted(Dicts):
        n_features = None

    with pytest.raises(ValueError, match="dict, so the problem must set n_features itself"):
        Uncounted().bind([np.ones(D)], [0])


# ----- what training refuses ----------------------------------------------------------------------


def train(problem, solver="auto", **arguments):
    return make_solver(solver, tol=1e-3, max_passes=20).solve(
        problem, Formulation(), 1.0, **arguments
    )


class NegativeForOne(Classes):
    """A negative loss for one example out of eight."""

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        planes = super().oracle(indices, w, rescaling, sqrt_loss)
        planes.losses[np.asarray(indices) == 5] = -2.0
        return planes


@pytest.mark.parametrize("solver", L1_SOLVERS)
def test_a_negative_loss_is_an_error_that_names_the_example(solver):
    with pytest.raises(
        ValueError, match=r"loss -2\.0 for example 5; losses must be finite and >= 0"
    ):
        train(bound(NegativeForOne), solver)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (NotANumberLoss, r"loss nan for example \d"),
        (InfiniteLoss, r"loss inf for example \d"),
        (IndexTooLarge, r"difference for example \d has value .* at index \d+;.* in 0\.\.5"),
        (NegativeIndex, r"difference for example \d has value .* at index -1"),
        (TooFewRows, r"returned \d+ losses"),
    ],
)
def test_unusable_planes_are_errors(kind, message):
    with pytest.raises(ValueError, match=message):
        train(bound(kind))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_infinite_features_are_errors():
    with pytest.raises(ValueError, match=r"difference for example \d has value -?(inf|nan)"):
        train(bound(InfiniteFeature))


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_oracle_worse_than_the_truth_is_warned_of(solver):
    with pytest.warns(UserWarning, match=r"example \d+.*worse than the gold output.*check_problem"):
        train(bound_to_easy_examples(WorseThanTheTruth), solver)


@pytest.mark.filterwarnings("ignore:the oracle's candidate:UserWarning")
@pytest.mark.parametrize("solver", SOLVERS)
def test_negative_hinges_do_not_lower_the_primal_value(solver):
    """Where an oracle never returns the truth, the truth still bounds the slack by 0."""
    problem = bound_to_easy_examples(WorseThanTheTruth)
    result = make_solver(solver, tol=1e-2, max_passes=500).solve(problem, Formulation(), 0.1)
    slacks = [
        max(0.0, *(problem.value(x, y, z, result.w, "margin") for z in range(K)))
        for x, y in zip(problem.X, problem.Y, strict=True)
    ]
    assert min(slacks) == 0.0
    assert result.primal == pytest.approx(0.5 * result.w @ result.w + 0.1 * sum(slacks))
    assert result.status == "inexact oracle" and result.gap is None and not result.converged


def test_the_warning_comes_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(bound_to_easy_examples(WorseThanTheTruth))
    assert sum("worse than the gold output" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize("solver", L1_SOLVERS)
@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
def test_a_good_problem_is_not_warned_of(solver, rescaling):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = make_solver(solver, tol=1e-2, max_passes=200)
        solver.solve(bound(), Formulation(rescaling), 0.3)


def test_planes_are_rows_of_a_tuple():
    planes = Planes(np.zeros(1, int), np.empty(0, np.int32), np.empty(0), np.empty(0))
    assert planes._fields == ("indptr", "indices", "values", "losses")


# ----- outputs without loss, and arrays that do not fit ------------------------------------------


class Forgiving(Problem):
    """Output 1 is as good as the truth 0, and 2 is not; psi tells all three apart."""

    n_features = 3

    def joint_feature(self, x, y):
        return x * np.eye(3)[y]

    def loss(self, y, y_hat):
        return float(y_hat == 2)

    def most_violated(self, x, y, w, rescaling):
        return max(range(3), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        return max(range(3), key=lambda z: w @ self.joint_feature(x, z))


def test_a_wrong_output_without_loss_counts():
    problem = Forgiving().bind([1.0], [0])
    w = np.array([0.0, 5.0, 0.0])
    assert hinge_values(problem, Formulation(), w) == pytest.approx([5.0])


def test_native_problems_refuse_arrays_that_do_not_fit():
    X = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"y\[1\] is 5"):
        MulticlassProblem(X, [0, 5, 1], 2)
    with pytest.raises(ValueError, match="3 rows but y has 2"):
        MulticlassProblem(X, [0, 1])
    with pytest.raises(ValueError, match=r"labels\[2\] is -1"):
        ChainProblem(X, [0, 3], [0, 1, -1], 2)
    with pytest.raises(ValueError, match="offsets runs from 0 to 2"):
        ChainProblem(X, [0, 2], [0, 1, 1], 2)


@pytest.mark.parametrize("layout", ["csc", "duplicates"])
def test_any_sparse_layout_means_the_same(layout):
    dense = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, 1.0, 0.0]])
    twin = sp.csc_matrix(dense)
    if layout == "duplicates":
        row, column = np.nonzero(dense)
        half = dense[row, column] / 2
        pointers = np.searchsorted(np.repeat(row, 2), np.arange(4))
        twin = sp.csr_matrix((np.repeat(half, 2), np.repeat(column, 2), pointers), shape=(3, 3))
    w = np.arange(6.0)
    expected, found = (
        hinge_values(MulticlassProblem(X, [0, 1, 0]), Formulation(), w) for X in (dense, twin)
    )
    assert found == pytest.approx(expected)


class Halves(Problem):
    """Two labels of a point, with what a test makes wrong."""

    n_features = 2

    def joint_feature(self, x, y):
        return x * y

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max((-1, 1), key=lambda z: (z != y) + float(w @ (x * z)))

    def predict(self, x, w):
        return 1 if w @ x >= 0 else -1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"joint_feature": lambda self, x, y: None}, "joint_feature returned None for example 0"),
        ({"loss": lambda self, y, z: None}, r"loss\(y, y\) returned None for example 0"),
        (
            {"loss": lambda self, y, z: [0.0]},
            r"loss\(y, y\) is \[0.0\] for example 0; it must",
        ),
        ({"loss": lambda self, y, z: 0.1}, r"loss\(y, y\) is 0.1 for example 0; it must be 0"),
        ({"n_features": 3}, "returned 2 features for example 0, but n_features is 3"),
    ],
    ids=["features", "loss", "array", "offset", "size"],
)
def test_what_methods_return_is_checked_before_the_search(changes, message):
    problem = type("Changed", (Halves,), changes)().bind([np.ones(2)], [1])
    with pytest.raises(ValueError, match=message):
        check_problem(problem)


def test_checks_need_a_problem_and_its_outputs():
    problem = Halves().bind([np.ones(2)], [1])
    check_problem(problem, outputs=lambda x: [-1, 1])
    with pytest.raises(ValueError, match=r"outputs\(x\) lists nothing for example 0"):
        check_problem(problem, outputs=lambda x: [])
    with pytest.raises(ValueError, match="needs a problem, not the class Halves"):
        check_problem(Halves)
