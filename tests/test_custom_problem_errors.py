"""What strangers do wrong in problems of their own: errors say what, where, by which numbers."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint

import maxmargin as mm

X = list(np.random.default_rng(0).normal(size=(8, 2)))
Y = [int(x[0] > 0) for x in X]
EYE = np.eye(2)


class Halves(mm.Problem):
    """Two labels of a point; tests make its methods wrong."""

    rescalings = ("margin",)

    def joint_feature(self, x, y):
        return np.concatenate([x * (y == 0), x * (y == 1)])

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        return max((0, 1), key=lambda z: (z != y) + float(w @ Halves.joint_feature(self, x, z)))

    def predict(self, x, w):
        return max((0, 1), key=lambda z: float(w @ Halves.joint_feature(self, x, z)))


class Answering(Halves):
    """An oracle whose answer is changed before it is given."""

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        return self.changed(super().oracle(indices, w, rescaling, sqrt_loss))


def with_methods(base=Halves, **methods):
    return type("Changed", (base,), methods)()


def fit(problem, **options):
    return mm.StructuralSVM(problem, **options).fit(X, Y)


def column(self, x, y):
    return sp.csc_matrix(Halves.joint_feature(self, x, y)[:, None])


# ----- plain Python -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"loss": lambda self, y, z: "a"},
            r"loss\(y, y_hat\) is 'a' for example \d; it must be a n",
        ),
        ({"loss": lambda self, y, z: None}, r"loss\(y, y_hat\) is None for example \d"),
        ({"joint_feature": lambda self, x, y: None}, r"returned None for example 0; is a return"),
        ({"joint_feature": lambda self, x, y: 1.0}, r"returned float for example 0, of shape \(\)"),
        ({"joint_feature": lambda self, x, y: np.ones((2, 2))}, r"of shape \(2, 2\); expected a v"),
        ({"joint_feature": column, "n_features": 4}, r"one row of features, .* of shape \(4, 1\)"),
        (
            {"joint_feature": lambda self, x, y: {1.5 * y: 1.0}, "n_features": 4},
            r"whole numbers, g",
        ),
        (
            {"joint_feature": lambda self, x, y: {"a": y}, "n_features": 4},
            r"whole numbers, got 'a'",
        ),
        ({"joint_feature": lambda self, x, y: {2**40: y}, "n_features": 4}, r"no feature 10995116"),
        ({"n_features": "4"}, r"n_features must be a whole number >= 0, got '4'"),
        ({"n_features": -1}, r"n_features must be a whole number >= 0, got -1"),
    ],
)
def test_methods_that_return_nonsense(methods, message):
    with pytest.raises(ValueError, match=message):
        fit(with_methods(**methods))


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"loss": lambda self, y, z: -1.0 * (y != z)},
            r"loss -1\.0 for example \d; losses must be",
        ),
        (
            {"loss": lambda self, y, z: np.nan if y != z else 0.0},
            r"loss nan for example \d; losses must be finite",
        ),
        ({"loss": lambda self, y, z: np.nan}, r"loss\(y, y\) is nan for example 0; it must be 0"),
        ({"loss_unit": 2.0}, r"loss 1 for example \d, which is not a multiple of .* loss_unit 2"),
        ({"loss_unit": -1.0}, r"loss_unit must be a finite number >= 0, got -1\.0"),
        ({"loss_unit": np.nan}, r"loss_unit must be a finite number >= 0, got nan"),
        ({"loss_unit": "a"}, r"loss_unit must be a finite number >= 0, got 'a'"),
    ],
)
def test_slack_rescaling_through_a_margin_oracle_checks_its_losses(methods, message):
    """Negative losses meant that nothing was violated, and a wrong unit made bounds tighter."""
    with pytest.raises(ValueError, match=message):
        fit(with_methods(**methods), rescaling="slack")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda planes: None,
            r"oracle must return Planes, or planes.*, got None",
        ),
        (tuple, r"oracle must return Planes, .* got \(array"),
        (
            lambda planes: planes._replace(indices=planes.indices + 0.5),
            r"indices must be whole numbers, got float64",
        ),
    ],
)
def test_answers_that_are_none(change, message):
    problem = with_methods(Answering, changed=lambda self, planes: change(planes))
    with pytest.raises(ValueError, match=message):
        fit(problem)
    with pytest.raises(ValueError, match=message):
        mm.check_problem(problem.bind(X, Y))


@pytest.mark.filterwarnings("ignore:training ended:UserWarning")
def test_bounds_that_tell_nothing_leave_an_infinite_gap():
    endless = with_methods(
        Answering, changed=lambda self, p: p.with_bounds(np.full(len(p.losses), np.inf))
    )
    result = fit(endless).result_
    assert result.status == "loose bounds" and result.relative_gap == result.gap == np.inf


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have no notes yet")
def test_errors_of_methods_say_for_which_example():
    def search(self, x, y, w, rescaling):
        if x is X[5]:
            raise KeyError("mine")
        return Halves.most_violated(self, x, y, w, rescaling)

    with pytest.raises(KeyError, match="mine") as raised:
        fit(with_methods(most_violated=search))
    assert raised.value.__notes__ == ["(raised for example 5)"]
    model = fit(Halves())
    with pytest.raises(ValueError, match=r"operands|shape|dimension|mismatch") as raised:
        model.predict([X[0], np.ones(7)])
    assert raised.value.__notes__ == ["(raised for example 1)"]


def test_what_estimators_are_given():
    with pytest.raises(ValueError, match="X must be a sequence of examples, got None"):
        mm.StructuralSVM(Halves()).fit(None, Y)
    with pytest.raises(ValueError, match="at least one example, found none"):
        fit(Halves()).score([], [])


# ----- check_problem ------------------------------------------------------------------------------


def change_weights(self, x, y, w, rescaling):
    w[1] = 5.0
    return 1 - y


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"most_violated": change_weights},
            r"most_violated has changed the weights .* weight 1 to 5",
        ),
        (
            {"loss_unit": 2.0},
            r"loss\(y, y_hat\) is 1\.0 for example \d, which is not a multiple of",
        ),
        ({"predict": lambda self, x, w: None}, r"predict returned None for example 0; is a return"),
    ],
)
def test_the_check_finds(methods, message):
    with pytest.raises(ValueError, match=message):
        mm.check_problem(with_methods(**methods).bind(X, Y), outputs=lambda x: (0, 1))


def test_searches_that_return_something_else_are_named():
    number = {"loss": lambda self, y, z: float(int(y) != int(z))}
    nothing = with_methods(most_violated=lambda self, x, y, w, rescaling: None, **number)
    with pytest.raises(ValueError, match="most_violated returned None for example 0; is a return"):
        mm.check_problem(nothing.bind(X, Y))

    def pair(self, x, y, w, rescaling):
        return Halves.most_violated(self, x, y, w, rescaling), 1.0

    with pytest.raises(TypeError) as raised:
        mm.check_problem(with_methods(most_violated=pair, **number).bind(X, Y))
    assert "joint_feature of most_violated's output (" in raised.value.__notes__[0]

    def most_violated(self, x, y, w):
        return y

    with pytest.raises(TypeError, match=r"must have the arguments \(x, y, w, rescaling\)"):
        mm.check_problem(with_methods(most_violated=most_violated).bind(X, Y))
    opposite = with_methods(joint_feature=lambda self, x, y: -Halves.joint_feature(self, x, y))
    with pytest.raises(ValueError, match=r"disagrees with joint_feature or loss"):
        mm.check_problem(opposite.bind(X, Y), outputs=lambda x: (0, 1))


def test_what_the_check_is_given():
    with pytest.raises(ValueError, match="check_problem needs a problem, got None"):
        mm.check_problem(None)
    with pytest.raises(ValueError, match=r"outputs must be a function of an input, got \[0, 1\]"):
        mm.check_problem(Halves().bind(X, Y), outputs=[0, 1])
    mm.check_problem(Halves().bind(X, Y), rescalings="slack")


# ----- declared searches --------------------------------------------------------------------------


@pytest.mark.parametrize("y", [np.nan, "a", "1", None, 0.5, -1])
def test_candidates_that_are_none(y):
    with pytest.raises(ValueError, match=f"example 1: there is no candidate {y!r}; they are num"):
        mm.CandidateProblem().bind([EYE, EYE], [0, y])


@pytest.mark.parametrize(
    ("problem", "x", "y"),
    [
        (mm.CandidateProblem(), [["a", "b"]], 0),
        (mm.CandidateProblem(), [[1], [1, 2]], 0),
        (mm.CandidateProblem(), EYE, ["a", "b"]),
        (mm.AssignmentProblem(), [[["a"]]], [0]),
        (mm.LinearProgramProblem(), ([["a"]], None), [0]),
        (mm.FactorTree(), mm.Factors(["ab"]), [0]),
    ],
)
def test_words_in_place_of_numbers(problem, x, y):
    with pytest.raises(ValueError, match=r"example 0: .*expected an array of numbers, got"):
        problem.bind([x], [y])


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (
            (EYE, "<= 1"),
            [0, 1],
            r"example 0: expected a scipy.optimize.LinearConstraint, .* '<= 1'",
        ),
        ((EYE, LinearConstraint(np.ones((1, 3)))), [0, 1], r"on 3 variables, but .* features of 2"),
    ],
)
def test_constraints_that_are_none(x, y, message):
    with pytest.raises(ValueError, match=message):
        mm.LinearProgramProblem().bind([x], [y])


@pytest.mark.parametrize("pair", [(0, 1, 1), (0, 0.7), 3])
def test_pairs_that_are_none(pair):
    with pytest.raises(ValueError, match=r"example 0: expected pairs of numbers of variables, got"):
        mm.FactorTree().bind([mm.Factors([EYE, EYE], [pair], [np.ones((2, 2, 2))])], [[0, 0]])


def test_variables_without_labels():
    with pytest.raises(ValueError, match=r"example 0: variable 0 needs features of shape"):
        mm.FactorTree().bind([mm.Factors([1.0])], [[0]])


@pytest.mark.parametrize(
    ("problem", "x", "y", "others"),
    [
        (
            mm.CandidateProblem(),
            EYE,
            0,
            [np.ones((2, 3)), np.ones((0, 2)), np.ones(2), EYE * np.nan],
        ),
        (mm.AssignmentProblem(), EYE[:, :, None], [0, 1], [np.ones((2, 2, 3)), EYE]),
        (mm.FactorTree(), mm.Factors([EYE]), [0], [mm.Factors([np.ones((2, 3))]), EYE]),
    ],
)
def test_inputs_that_do_not_fit_the_model(problem, x, y, others):
    """A row of features was taken for candidates, and what is not a number chose the first one."""
    model = mm.StructuralSVM(problem).fit([x], [y])
    for other in others:
        with pytest.raises(ValueError, match=r"weights, but|expected|NaN or infinite"):
            model.predict([other])


@pytest.mark.parametrize(
    ("problem", "x", "y", "others"),
    [
        (mm.CandidateProblem(), EYE, 0, [-1, 2]),
        (mm.AssignmentProblem(), EYE[:, :, None], [0, 1], [[0], [0, 2], [0, -2]]),
        (mm.LinearProgramProblem(), (EYE, None), [0, 1], [[0], [0, 1, 1]]),
        (mm.FactorTree(), mm.Factors([EYE, EYE]), [0, 1], [[0], [0, 2]]),
    ],
)
def test_scores_of_outputs_that_there_are_not(problem, x, y, others):
    """Negative numbers counted from the end, and a missing partner was taken for all."""
    model = mm.StructuralSVM(problem).fit([x], [y])
    for other in others:
        with pytest.raises(
            ValueError, match=r"there is no candidate|there are \d|label of variabl"
        ):
            model.score_outputs([x], [other])


def test_losses_need_outputs_of_the_same_length():
    """One partner was compared with all of them."""
    model = mm.StructuralSVM(mm.AssignmentProblem()).fit([EYE[:, :, None]], [[0, 1]])
    with pytest.raises(ValueError, match=r"outputs of shapes \(1,\) and \(2,\) cannot be compared"):
        model.score([EYE[:, :, None]], [[0]])
    model = mm.StructuralSVM(mm.CandidateProblem()).fit([EYE[::-1]], [1])
    with pytest.raises(ValueError, match=r"1 costs are given, but the candidate 1 was chosen"):
        model.score([EYE[::-1]], [[0.5]])
