"""Joint kernels beyond what all structures share: points as they come, bounds, bad kernels."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import maxmargin as mm
from brute import all_planes
from brute_general import KernelLabels, ListedTwin
from exact_qp import solve_exactly
from maxmargin.core.formulation import Formulation
from maxmargin.problems.general.kernel_points import output_key
from maxmargin.solvers import SOLVERS
from solving import ONLINE, SLOW, solve

K = 3


def psi(x, y):
    """Sums of the rows under each label, and counts of neighbouring labels."""
    rows, pairs = np.zeros((K, x.shape[1])), np.zeros((K, K))
    np.add.at(rows, list(y), x)
    np.add.at(pairs, (list(y)[:-1], list(y)[1:]), 1.0)
    return np.concatenate([rows.ravel(), pairs.ravel()])


def labellings(x):
    return list(itertools.product(range(K), repeat=len(x)))


class ByKernel(mm.JointKernelProblem):
    """What `psi` says, told by inner products alone."""

    def outputs(self, x):
        return labellings(x)

    def joint_kernel(self, x, y, x2, y2):
        return float(psi(x, y) @ psi(x2, y2))

    def loss(self, y, y_hat):
        return float(sum(a != b for a, b in zip(y, y_hat, strict=True)))


def drawn(n=10, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 4), 2)) for _ in range(n)]
    W = rng.normal(size=(2, K))
    Y = [tuple((x @ W + 0.7 * rng.normal(size=(len(x), K))).argmax(axis=1).tolist()) for x in X]
    return X, Y


X, Y = drawn()
TWIN = ListedTwin(Y, [labellings(x) for x in X], lambda i, y: psi(X[i], y), "hamming")
NEW = drawn(20, seed=1)[0]


def optimum(formulation, C):
    return solve_exactly(all_planes(TWIN, formulation), C, slack=formulation.slack)


def fitted(problem, X=X, Y=Y, **options):
    return mm.StructuralSVM(problem, **{"tol": 1e-6, **options}).fit(X, Y)


def scores(model, inputs):
    """Of every output of every input."""
    pairs = [(x, y) for x in inputs for y in labellings(x)]
    return model.score_outputs(*zip(*pairs, strict=True))


# ----- the same as with features ------------------------------------------------------------------


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(
    ("name", "slack"),
    [
        (name, slack)
        for name in ("auto", "n_slack", "one_slack", "sdm", "fasole", "bcfw", "dcd")
        for slack in ("l1", "l2")
        if slack in SOLVERS[name].slacks
    ],
)
def test_points_as_they_come_lead_to_the_optimum_of_the_features(name, slack, rescaling):
    formulation = Formulation(rescaling, slack, sqrt_loss=False)
    tol = 1e-2 if name in SLOW else 1e-4
    result = solve(name, ByKernel().bind(X, Y), 0.3, formulation, tol=tol)
    best = optimum(formulation, 0.3)
    assert result.converged and result.relative_gap <= tol
    assert best.dual * (1 - 1e-9) <= result.primal <= best.primal * (1 + 1.01 * tol)
    assert result.dual <= best.primal * (1 + 1e-9)


@pytest.mark.parametrize("name", ONLINE)
def test_online_solvers_measure_the_same_objective(name):
    result = solve(name, ByKernel().bind(X, Y), 0.3, max_passes=3, certificate=True)
    assert result.w.any() and result.primal >= optimum(Formulation(), 0.3).dual * (1 - 1e-9)


def test_predictions_are_those_of_the_features():
    model, best = fitted(ByKernel(), C=0.3, tol=1e-9), optimum(Formulation(), 0.3)
    expected = [best.w @ psi(x, y) for x in NEW for y in labellings(x)]
    assert scores(model, NEW) == pytest.approx(np.array(expected), abs=1e-4)
    assert model.predict(NEW) == [max(labellings(x), key=lambda y: best.w @ psi(x, y)) for x in NEW]


def test_points_in_the_span_of_others_add_no_coordinates():
    problem = ByKernel().bind(X, Y)
    solve("auto", problem, 0.3)
    assert problem.kernel_report.n_points <= len(psi(X[0], Y[0]))
    twice = ByKernel().bind(X * 2, Y * 2)
    assert solve("auto", twice, 0.15).primal == pytest.approx(optimum(Formulation(), 0.3).value)
    assert twice.kernel_report.n_points <= len(psi(X[0], Y[0]))


def test_a_model_keeps_points_with_coefficients_and_nothing_else():
    model = fitted(KernelLabels(), X, [tuple(k % 2 for k in y) for y in Y], C=1.0)
    problem = model.problem_
    assert len(model.coef_) == problem.n_features < 2 * len(X) * 4
    assert len(problem.X) == 0 and problem._space.size == len(model.coef_)
    x, y = NEW[0], (0,) * len(NEW[0])
    points = zip(model.coef_, problem._space.inputs, problem._space.outputs, strict=True)
    by_hand = sum(c * problem.joint_kernel(x2, y2, x, y) for c, x2, y2 in points)
    assert model.score_outputs([x], [y])[0] == pytest.approx(by_hand)
    assert problem.kernel_report.n_points >= len(model.coef_)
    assert problem.kernel_report.largest_residual == 0.0
    with pytest.raises(ValueError, match=r"bind them with problem\.bind"):
        KernelLabels().kernel_report  # noqa: B018


def test_a_kernel_for_many_points_at_once():
    class AtOnce(ByKernel):
        def joint_kernel(self, x, y, x2, y2):
            raise AssertionError("not asked for")

        def joint_kernels(self, x, outputs, X2, Y2):
            others = np.array([psi(x2, y2) for x2, y2 in zip(X2, Y2, strict=True)])
            return np.array([psi(x, y) for y in outputs]) @ others.T

    assert fitted(AtOnce(), C=0.3).predict(NEW) == fitted(ByKernel(), C=0.3).predict(NEW)


@pytest.mark.parametrize("cache_mb", [0.0, 0.02])
def test_what_is_kept_of_values_is_bounded_and_changes_nothing(cache_mb):
    kept, free = ByKernel(), ByKernel().bind(X, Y)
    kept.cache_mb = cache_mb
    bound = kept.bind(X, Y)
    results = [solve("auto", problem, 0.3, tol=1e-4) for problem in (bound, free)]
    assert results[0].primal == pytest.approx(results[1].primal, rel=1e-9)
    assert bound.kernel_report.n_bytes <= 1e6 * cache_mb + 8 * 64**2 < free.kernel_report.n_bytes


def test_values_are_computed_once():
    asked = []

    class Counting(ByKernel):
        def joint_kernel(self, x, y, x2, y2):
            asked.append((id(x), y, id(x2), y2))
            return super().joint_kernel(x, y, x2, y2)

    problem = Counting().bind(X, Y)
    solve("fasole", problem, 0.3)
    n_points = problem.kernel_report.n_points
    n_outputs = sum(len(labellings(x)) for x in X)
    passes = n_points * n_outputs  # what one pass without memory takes
    assert len(asked) < 1.5 * passes + 5000


# ----- searches of one's own ----------------------------------------------------------------------


class Chain(ByKernel):
    """Viterbi search on the expansion: the kernel is a sum over rows and neighbours."""

    rescalings = ("margin",)
    outputs = mm.JointKernelProblem.outputs

    def argmax(self, x, value):
        w = sum((c * psi(x2, y2) for c, x2, y2 in value.expansion()), np.zeros(K * 2 + K * K))
        gains = x @ w[: K * 2].reshape(K, 2).T
        if value.truth is not None:
            assert value.rescaling == "margin"
            gains += np.arange(K) != np.array(value.truth)[:, None]
        pairs = w[K * 2 :].reshape(K, K)
        best, back = gains[0], []
        for gain in gains[1:]:
            sums = best[:, None] + pairs
            back.append(sums.argmax(axis=0))
            best = sums.max(axis=0) + gain
        path = [int(best.argmax())]
        for pointers in reversed(back):
            path.append(int(pointers[path[-1]]))
        return np.array(path[::-1])


def test_a_search_of_ones_own_uses_the_expansion():
    mm.check_problem(Chain().bind(X, Y), outputs=labellings)
    model, listed = fitted(Chain(), C=0.3), fitted(ByKernel(), C=0.3)
    assert model.result_.primal == pytest.approx(listed.result_.primal, rel=1e-6)
    assert [tuple(y.tolist()) for y in model.predict(NEW)] == listed.predict(NEW)


def test_a_search_that_knows_margins_serves_slack_rescaling_with_bounds():
    result = solve("auto", Chain().bind(X, Y), 0.3, Formulation("slack"), tol=1e-3)
    assert result.primal >= optimum(Formulation("slack"), 0.3).dual * (1 - 1e-9)


# ----- the bound on points ------------------------------------------------------------------------


def test_beyond_max_points_the_best_expansion_over_the_first_is_found():
    """As with the features of a twin, projected on the span of those points."""
    problem = ByKernel()
    problem.max_points = 6
    bound = problem.bind(X, Y)
    with pytest.warns(UserWarning, match=r"more than max_points=6 points .* Set max_points=12"):
        result = solve("auto", bound, 0.3, tol=1e-6)
    points = bound._space.points
    basis = np.array([psi(x, y) for x, y in zip(points.inputs, points.outputs, strict=True)])
    onto = np.linalg.pinv(basis) @ basis
    twin = ListedTwin(Y, TWIN.all_outputs, lambda i, y: onto @ psi(X[i], y), "hamming")
    best = solve_exactly(all_planes(twin, Formulation()), 0.3)
    assert best.dual * (1 - 1e-9) <= result.primal <= best.primal * (1 + 2e-6)
    assert result.primal > optimum(Formulation(), 0.3).value * 1.001
    assert bound.kernel_report.n_points == 6
    assert 0.0 < bound.kernel_report.largest_residual <= 1.0


def test_there_is_no_warning_where_all_points_have_their_place():
    problem = ByKernel()
    problem.max_points = len(psi(X[0], Y[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # In another order a point may be left over by rounding alone, and take a place.
        model = fitted(problem, C=0.3, random_state=0)
    assert model.result_.primal == pytest.approx(optimum(Formulation(), 0.3).value, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "value"), [("max_points", 0), ("max_points", 2.5), ("cache_mb", -1), ("cache_mb", "1")]
)
def test_bounds_have_to_make_sense(name, value):
    problem = ByKernel()
    setattr(problem, name, value)
    with pytest.raises(ValueError, match=rf"{name} must be a .*number >= ., got {value!r}"):
        problem.bind(X, Y)


# ----- kernels that are none ----------------------------------------------------------------------


def test_a_kernel_that_no_lengths_allow_names_two_points():
    class Wide(ByKernel):
        def joint_kernel(self, x, y, x2, y2):
            return 1.0 if x is x2 and y == y2 else 2.0

    message = (
        r"joint_kernel is 2 for the output \(.*\) of example \d+ and the output \(.*\) of exam"
    )
    with pytest.raises(ValueError, match=message):
        fitted(Wide())


def test_a_kernel_that_is_not_positive_semidefinite():
    class Distance(mm.JointKernelProblem):
        """Any two values are possible, but not those of three points."""

        def outputs(self, x):
            return [0, 1, 2]

        def joint_kernel(self, x, y, x2, y2):
            return [[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]][y][y2]

        def loss(self, y, y_hat):
            return float(y != y_hat)

    message = r"not positive semidefinite: .* of example 0 has apart from 2 other points is -3\.26"
    with pytest.raises(ValueError, match=message):
        fitted(Distance(), [0], [1], C=10.0)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            lambda x, y, x2, y2: -1.0,
            r"of the output \(.*\) of example \d+ with itself is -1; it mu",
        ),
        (lambda x, y, x2, y2: np.nan, r"joint_kernel is nan for the output \(.*\) of the input"),
        (lambda x, y, x2, y2: [1.0], r"returned shape \(1, 1, 1\)"),
        (
            lambda x, y, x2, y2: 5.0 * (x is x2 and y == y2) + float(sum(y) > sum(y2)),
            r"not symmetric: it is \d for the output \(.*\) of example \d+ and the output",
        ),
    ],
)
def test_values_that_are_none(kernel, message):
    class Wrong(ByKernel):
        def joint_kernel(self, x, y, x2, y2):
            return kernel(x, y, x2, y2)

    with pytest.raises(ValueError, match=message):
        fitted(Wrong())


@pytest.mark.parametrize(
    ("methods", "error", "message"),
    [
        (
            {"loss": lambda self, y, z: -1.0 * (y != z)},
            ValueError,
            r"is -1\.0 for example \d+ and the output",
        ),
        (
            {"loss": lambda self, y, z: np.nan if y != z else 0.0},
            ValueError,
            r"is nan for example \d+ and the output",
        ),
        ({"argmax": lambda self, x, value: None}, ValueError, r"argmax returned None for example"),
        ({"outputs": lambda self, x: []}, ValueError, r"outputs\(x\) lists nothing for the input"),
        (
            {"outputs": mm.JointKernelProblem.outputs},
            NotImplementedError,
            r"must define outputs\(x\), or else argmax",
        ),
        (
            {"joint_kernel": mm.JointKernelProblem.joint_kernel},
            NotImplementedError,
            r"Wrong must define joint_kernel\(x, y, x2, y2\)",
        ),
    ],
)
def test_methods_that_are_wrong_are_named(methods, error, message):
    wrong = type("Wrong", (ByKernel,), methods)
    with pytest.raises(error, match=message):
        fitted(wrong())


def test_weights_of_no_points_are_refused():
    problem = ByKernel().bind(X, Y)
    with pytest.raises(ValueError, match=r"there are 0 points, but weights of others are not 0"):
        problem.oracle(np.arange(1), np.ones(problem.n_features))
    with pytest.raises(ValueError, match=r"bind them with problem\.bind"):
        ByKernel().predict(X[0], np.zeros(3))


def test_the_check_accepts_it_and_finds_a_search_that_misses_outputs():
    rescalings = ["margin", "slack", "none"]
    mm.check_problem(ByKernel().bind(X, Y), outputs=labellings, rescalings=rescalings)
    blind = type("Blind", (ByKernel,), {"outputs": lambda self, x: labellings(x)[:-1]})
    with pytest.raises(ValueError, match=r"argmax does not find the best"):
        mm.check_problem(blind().bind(X, Y), outputs=labellings)


# ----- what happens to models ---------------------------------------------------------------------


def test_paths_clones_pickles_and_searches():
    model = mm.StructuralSVM(ByKernel(), tol=1e-6)
    models = mm.path(model, X, Y, [0.05, 0.3])
    for C in (0.05, 0.3):
        alone = clone(model).set_params(C=C).fit(X, Y)
        assert scores(models.at(C), NEW) == pytest.approx(scores(alone, NEW), abs=1e-2)
    assert pickle.loads(pickle.dumps(models.at(0.3))).predict(NEW) == models.at(0.3).predict(NEW)
    found = GridSearchCV(model, {"C": [0.05, 0.3]}, cv=2).fit(X, Y)
    assert len(found.best_estimator_.predict(NEW)) == len(NEW)


@pytest.mark.parametrize("solver", ["auto", "one_slack", "n_slack", "perceptron"])
def test_warm_starts_go_on_from_the_same_points(solver):
    options = {"solver": solver, "warm_start": True, "max_passes": 3, "random_state": 0}
    model = mm.StructuralSVM(ByKernel(), C=0.3, tol=1e-3, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = model.fit(X, Y).result_
        model.predict(NEW)
        second = (
            model.set_params(max_passes=None if solver != "perceptron" else 3).fit(X, Y).result_
        )
    if solver != "perceptron":
        assert second.primal == pytest.approx(optimum(Formulation(), 0.3).value, rel=2e-3)
    # Other examples have points of their own: nothing of the old ones fits them.
    others = drawn(8, seed=3)
    fresh = clone(model).fit(*others)
    assert model.fit(*others).predict(NEW) == fresh.predict(NEW)
    assert first.w.shape == second.w.shape


def test_parts_of_a_problem_share_its_points():
    problem = ByKernel().bind(X, Y)
    w = solve("auto", problem, 0.3).w
    part = problem.subset(np.array([3, 1]))
    alone, whole = (p.oracle(i, w) for p, i in ((part, np.arange(2)), (problem, np.array([3, 1]))))
    assert np.array_equal(alone.values, whole.values) and np.array_equal(alone.losses, whole.losses)


def test_an_interrupted_kernel_leaves_all_as_it_was():
    calls = itertools.count()

    class Interrupted(ByKernel):
        def joint_kernel(self, x, y, x2, y2):
            if next(calls) % 997 == 99:
                raise RuntimeError("now and then")
            return super().joint_kernel(x, y, x2, y2)

    problem, w = Interrupted().bind(X, Y), np.zeros(2000)
    found = []
    for i in range(len(X)):
        while len(found) <= i:
            try:
                found.append(problem.oracle(np.array([i]), w))
            except RuntimeError:
                continue
    factor = problem._space.factor
    points = problem._space.points
    rows = np.array([psi(x, y) for x, y in zip(points.inputs, points.outputs, strict=True)])
    assert factor @ factor.T == pytest.approx(rows @ rows.T)


def test_equal_outputs_are_one():
    equal = [(1, 2), [1, 2], np.array([1, 2]), np.array([1.0, 2.0]), [np.int64(1), 2]]
    assert len({output_key(y) for y in equal}) == 1
    assert output_key({1, 2}) == output_key({2, 1}) != output_key((1, 2))
    assert output_key({"a": 1}) == output_key({"a": 1})


@pytest.mark.parametrize("width", [1.0, 100.0])
def test_many_points_give_true_objectives(width):
    """By coefficients, values of the kernel and all outputs; wide Gaussians are nearly singular."""
    rng = np.random.default_rng(0)
    inputs = list(rng.normal(size=(50, 1, 2)) / width)
    given = [(int(rng.random() < 0.5),) for _ in inputs]
    bound = KernelLabels().bind(inputs, given)
    result = solve("auto", bound, 10.0, tol=1e-3)
    points = bound._space.points
    pairs = list(zip(points.inputs, points.outputs, strict=True))
    gram = np.array([[bound.joint_kernel(*p, *q) for q in pairs] for p in pairs])
    assert bound._space.factor @ bound._space.factor.T == pytest.approx(gram, abs=1e-9)
    assert width > 1.0 or len(pairs) > 64  # more than room was made for at first
    reduced, (c,) = bound.predictor([result.w])
    kept = list(zip(reduced._space.inputs, reduced._space.outputs, strict=True))
    gram = np.array([[bound.joint_kernel(*p, *q) for q in kept] for p in kept])

    def score(x, y):
        return sum(a * bound.joint_kernel(*p, x, y) for a, p in zip(c, kept, strict=True))

    slacks = [
        max(0.0, 1.0 + score(x, (1 - y[0],)) - score(x, y))
        for x, y in zip(inputs, given, strict=True)
    ]
    primal = 0.5 * c @ gram @ c + 10.0 * sum(slacks)
    assert result.converged and result.primal == pytest.approx(primal, rel=1e-6)


def test_a_kernel_of_inputs_under_equal_classes_is_that_of_the_multiclass_estimator():
    class Classes(mm.JointKernelProblem):
        def outputs(self, x):
            return [0, 1, 2]

        def joint_kernel(self, x, y, x2, y2):
            return float(y == y2) * np.exp(-0.5 * np.sum((x - x2) ** 2))

        def loss(self, y, y_hat):
            return float(y != y_hat)

    rng = np.random.default_rng(0)
    inputs, classes = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    ours = fitted(Classes(), list(inputs), classes.tolist(), C=0.5, tol=1e-5)
    options = {"kernel": "rbf", "gamma": 0.5, "fit_intercept": False, "C": 0.5, "tol": 1e-5}
    native = mm.MulticlassSVM(**options).fit(inputs, classes)
    assert ours.result_.primal == pytest.approx(native.result_.primal, rel=2e-5)
    others = rng.normal(size=(20, 2))
    expected = native.decision_function(others)
    found = np.array([ours.score_outputs([x] * 3, [0, 1, 2]) for x in others])
    assert found == pytest.approx(expected, abs=2e-2)


def test_outputs_without_a_hash_that_cannot_be_pickled_are_named():
    class Own:
        def __eq__(self, other):
            return True

        def __repr__(self):
            return "an output"

    with pytest.raises(ValueError, match=r"an output has no hash.* give Own a method __hash__"):
        output_key(Own())


def test_there_are_no_weights_to_compact():
    model = mm.StructuralSVM(ByKernel(), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="weights of features, but ByKernel has a joint kernel"):
        model.compact(X, Y, tol=0.1)


def test_there_are_no_weights_to_constrain():
    model = mm.StructuralSVM(ByKernel(), weight_constraints=mm.WeightConstraints(nonnegative=True))
    with pytest.raises(ValueError, match="need features, but ByKernel has a joint kernel"):
        model.fit(X, Y)
