"""Training and prediction leave the threads of the linear algebra library alone."""

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  whose library has threads of its own
from threadpoolctl import threadpool_info, threadpool_limits

import maxmargin as mm
from cases import chain_case, multiclass_case
from maxmargin.core.formulation import Formulation
from maxmargin.engine.parallel.blas_threads import single_blas_thread
from maxmargin.problems.classes import multiclass
from maxmargin.solvers import SOLVERS, make_solver


def blas_threads():
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("the library has no threads to limit")
        yield


@pytest.mark.usefixtures("two_threads")
def test_limits_are_lifted_again():
    with single_blas_thread():
        assert blas_threads() == {1}
        with single_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_who_leaves_last_lifts_the_limits():
    """As fits in two threads do that overlap."""
    first, second = single_blas_thread(), single_blas_thread()
    with second:
        first.__enter__()
    assert blas_threads() == {1}
    first.__exit__(None, None, None)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("make", [chain_case, multiclass_case])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_use_one(name, make):
    slack = SOLVERS[name].slacks[0]
    seen = []
    solver = make_solver(name, max_passes=3, tol=None)
    solver.solve(
        make(np.random.default_rng(0)).problem,
        Formulation(slack=slack),
        1.0,
        callbacks=[lambda progress: seen.append(blas_threads()) and False],
    )
    assert seen and all(threads == {1} for threads in seen)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_what_raises_leaves_the_limits_as_they_were():
    def fail(progress):
        raise RuntimeError("enough")

    problem = chain_case(np.random.default_rng(0)).problem
    with pytest.raises(RuntimeError, match="enough"):
        make_solver("auto").solve(problem, Formulation(), 1.0, callbacks=[fail])
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_predictions_use_one(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    model = mm.MulticlassSVM().fit(X, y)
    seen = []

    class Watched(np.ndarray):
        def __matmul__(self, other):
            seen.append(blas_threads())
            return np.asarray(self) @ other

    make_rows = multiclass.make_rows
    rows = make_rows(X, fit_intercept=True)
    rows = rows._replace(dense=rows.dense.view(Watched))
    multiclass.class_scores(rows, model.result_.w, 3)
    assert seen == [{1}]
