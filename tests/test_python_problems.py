"""Problems in plain Python, without a kernel of their own."""

import numpy as np
import pytest

from maxmargin.formulation import Formulation
from maxmargin.problem import Problem
from solving import PRECISE, RESCALINGS, check_optimal, small_case, solve


class PythonClasses(Problem):
    """The multiclass problem as a user would write it."""

    def __init__(self, costs, n_inputs):
        self.costs = costs
        self.n_features = n_inputs * len(costs)

    def joint_feature(self, x, y):
        K = len(self.costs)
        return {f * K + y: value for f, value in enumerate(x)}

    def loss(self, y, y_hat):
        return float(self.costs[y][y_hat])

    def most_violated(self, x, y, w, rescaling):
        scores = np.asarray(x) @ w.reshape(len(x), len(self.costs))

        def violation(z):
            margin = scores[y] - scores[z]
            if z == y:
                return 0.0
            if rescaling == "none":
                return 1.0 - margin
            loss = self.loss(y, z)
            return loss - margin if rescaling == "margin" else loss * (1.0 - margin)

        return max(range(len(self.costs)), key=violation)

    def predict(self, x, w):
        return int(np.argmax(np.asarray(x) @ w.reshape(len(x), len(self.costs))))


@pytest.mark.parametrize("solver", PRECISE)
@pytest.mark.parametrize("rescaling", RESCALINGS)
def test_a_python_problem_reaches_the_native_optimum(solver, rescaling):
    case = small_case("multiclass", "costs", 0)
    twin, formulation = case.twin, Formulation(rescaling)
    problem = PythonClasses(twin.costs, twin.X.shape[1]).bind(list(twin.X), twin.y)
    result = solve(solver, problem, 0.5, formulation)
    native = solve(solver, case.problem, 0.5, formulation)
    assert result.primal == pytest.approx(native.primal, rel=1e-6)
    check_optimal(result, case, 0.5, formulation)


def test_a_python_problem_has_no_root_of_the_loss():
    case = small_case("multiclass", "costs", 0)
    problem = PythonClasses(case.twin.costs, 3).bind(list(case.twin.X), case.twin.y)
    with pytest.raises(ValueError, match="PythonClasses has no oracle for the square root"):
        solve("auto", problem, 1.0, Formulation(sqrt_loss=True))


def test_an_object_with_an_oracle_is_a_problem():
    """The contract may be duck-typed: examples, features and the oracle are all a solver needs."""
    case = small_case("chain", "hamming", 0)

    class Duck:
        n_examples = case.problem.n_examples
        n_features = case.problem.n_features

        def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
            return case.problem.oracle(indices, w, rescaling, sqrt_loss)

    check_optimal(solve("auto", Duck(), 1.0), case, 1.0)
