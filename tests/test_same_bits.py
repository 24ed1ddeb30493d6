"""The same data and seed give the same weights, bit by bit, whatever the clock says."""

import random
import time
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.datasets import make_digit_words
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.work import ORACLE_CALL
from maxmargin.features import pack_sequences
from maxmargin.formulation import Formulation
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.class_features import ClassFeatureProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import SOLVERS, make_solver


def chains():
    words = make_digit_words(n_train=60, n_test=1, noise=0.5, random_state=0)
    tokens, offsets = pack_sequences(words.X_train)
    return ChainProblem(tokens, offsets, np.concatenate(words.y_train))


def classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 120)
    return MulticlassProblem(rng.normal(size=(4, 10))[y] + rng.normal(size=(120, 10)), y)


def described_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 60)
    X = rng.normal(size=(4, 6))[y] + rng.normal(size=(60, 6))
    return ClassFeatureProblem(X, y, rng.integers(0, 2, (4, 3)) + np.eye(4, 3))


PROBLEMS = [chains, classes, described_classes]


@pytest.mark.parametrize("make", PROBLEMS)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_clock_that_runs_wild_changes_nothing(make, name, monkeypatch):
    def weights():
        solver = make_solver(name, tol=1e-4, max_passes=30, random_state=3)
        return solver.solve(make(), Formulation(), 1.0).w

    expected, clock = weights(), random.Random(0)
    monkeypatch.setattr(time, "perf_counter", lambda: clock.uniform(0.0, 100.0))
    again = weights()
    assert again.tobytes() == expected.tobytes()


@pytest.mark.parametrize("make", PROBLEMS)
def test_problems_know_what_their_searches_cost(make):
    problem = make()
    if make is not classes:  # whose store visits and revisits alike
        assert 0.0 < Oracle(problem, Formulation()).work < ORACLE_CALL


def test_a_problem_that_does_not_say_what_its_searches_cost():
    duck = SimpleNamespace(n_examples=1, n_features=1)
    assert Oracle(duck, Formulation()).work == ORACLE_CALL
