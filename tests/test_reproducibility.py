"""The same data and seed give the same weights, bit by bit, whatever the clock says."""

import random
import time
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.core.cutting_planes import Planes
from maxmargin.core.formulation import Formulation
from maxmargin.datasets import make_digit_words
from maxmargin.engine.cost_model import ORACLE_CALL
from maxmargin.engine.feature_blocks import _row_products, single_weights
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.rows import _square_sums
from maxmargin.features import pack_sequences
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


def test_sums_are_the_same_wherever_their_arrays_lie():
    """Also right behind what is added up, where an index below zero might point to."""
    rng = np.random.default_rng(0)
    n, length = 12, 40
    indptr = np.arange(n + 1) * length
    values, weights = rng.normal(size=(2, n * length))
    planes = Planes(indptr, np.arange(n * length, dtype=np.int32), values, np.zeros(n))
    parts = single_weights(n * length)
    squares, products, of_parts = np.empty(n), np.empty(n), np.empty(n * length)
    _square_sums(indptr, values, squares)
    _row_products(planes, parts, weights, of_parts, products)
    assert squares == pytest.approx((values**2).reshape(n, -1).sum(axis=1))
    assert products == pytest.approx((values * weights).reshape(n, -1).sum(axis=1))
    memory = np.empty(3 * n * length)
    near = memory[: n * length]
    for start in range(n * length, 2 * n * length, 7):
        found = memory[start : start + n]
        near[:] = values
        _square_sums(indptr, near, found)
        assert found.tobytes() == squares.tobytes()
        _row_products(planes, parts, weights, near, found)
        assert found.tobytes() == products.tobytes()
