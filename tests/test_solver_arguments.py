"""What solvers refuse, and how they say so."""

import numpy as np
import pytest

from maxmargin.core.formulation import Formulation
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import make_solver, solvers_for
from solving import ALL_SOLVERS, SOLVERS, small_case, solve


@pytest.mark.parametrize("slack", ["l1", "l2", "none"])
@pytest.mark.parametrize("solver", ALL_SOLVERS)
def test_other_slacks_are_refused(solver, slack):
    formulation = Formulation(slack=slack)
    if solver in solvers_for(formulation):
        pytest.skip(f"{solver} handles slack={slack!r}")
    with pytest.raises(
        ValueError, match=rf"'{solver}' does not support slack='{slack}'; use solver="
    ):
        solve(solver, small_case("chain", "hamming", 0).problem, 1.0, formulation)


def test_solvers_for_names_all_that_can():
    assert set(solvers_for(Formulation())) >= set(SOLVERS)
    for slack in ("l1", "l2", "none"):
        able = {name for name, solver in ALL_SOLVERS.items() if slack in solver.slacks}
        assert set(solvers_for(Formulation(slack=slack))) == able


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("solver", SOLVERS)
def test_bad_C(solver, C):
    with pytest.raises(ValueError, match="C must be a positive, finite number, got"):
        solve(solver, small_case("chain", "hamming", 0).problem, C)


@pytest.mark.parametrize("name", ["tol", "epsilon", "max_passes", "max_time"])
@pytest.mark.parametrize("value", [-1.0, np.nan, "1"])
def test_bad_limits(name, value):
    with pytest.raises(ValueError, match=f"{name} must be None or a number >= 0, got"):
        solve("auto", small_case("chain", "hamming", 0).problem, 1.0, **{name: value})


def test_training_has_to_end():
    unlimited = {"tol": None, "max_passes": None, "max_time": None}
    with pytest.raises(ValueError, match="nothing stops training: set tol"):
        solve("auto", small_case("chain", "hamming", 0).problem, 1.0, **unlimited)


def test_no_examples():
    problem = MulticlassProblem(np.empty((0, 2)), np.empty(0, int), 2)
    with pytest.raises(ValueError, match="no examples"):
        solve("auto", problem, 1.0)


def test_make_solver():
    assert make_solver("sda", tol=0.5).tol == 0.5
    solver = SOLVERS["bcfw"]()
    assert make_solver(solver) is solver
    with pytest.raises(ValueError, match=r"solver must be 'auto', .* or 'pegasos', got 'svmlight'"):
        make_solver("svmlight")
    with pytest.raises(ValueError, match="an object with a solve method, got 3"):
        make_solver(3)
    for name, cls in ALL_SOLVERS.items():
        assert cls.name == name


def test_a_C_at_which_the_objective_overflows():
    with pytest.raises(ValueError, match=r"C must be at most 1e\+100, got 1e\+308"):
        solve("auto", small_case("chain", "hamming", 0).problem, 1e308)
