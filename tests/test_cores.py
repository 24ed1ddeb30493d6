"""n_jobs: threads change no bits, end with the work, and let errors and interrupts through."""

import pickle
import signal
import threading
from itertools import pairwise

import joblib
import numpy as np
import pytest

import maxmargin as mm
from every_estimator import KINDS, make
from maxmargin.engine import oracle as asking
from maxmargin.engine.oracle import Oracle, hinge_values
from maxmargin.engine.threads import Threads, count_threads, each_range
from maxmargin.formulation import Formulation
from maxmargin.problem import Problem
from maxmargin.solvers import SOLVERS, certify, make_solver
from structures import STRUCTURES
from test_same_bits import chains

BIT_FOR_BIT = ("one-slack", "n-slack", "perceptron", "mira", "sgd", "pegasos")


@pytest.fixture(autouse=True)
def no_thread_is_left():
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert not [name for name in names if name.startswith("maxmargin")]


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(asking, "FEWEST", 3)
    monkeypatch.setattr(asking, "MOST", 3)


def solved(name, n_jobs, formulation=None):
    solver = make_solver(name, tol=1e-3, max_passes=20, random_state=3, n_jobs=n_jobs)
    result = solver.solve(chains(), formulation or Formulation(), 1.0)
    return result.w.tobytes(), result.primal, result.dual, result.n_oracle_calls


# ----- the same bits ------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", BIT_FOR_BIT)
def test_solvers_that_ask_at_fixed_weights_do_not_depend_on_it(name):
    expected = solved(name, None)
    assert [solved(name, n_jobs) for n_jobs in (1, 2, 3)] == 3 * [expected]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", sorted(set(SOLVERS) - set(BIT_FOR_BIT)))
def test_other_solvers_give_the_same_bits_every_time(name):
    one, two, again, three = (solved(name, n_jobs) for n_jobs in (1, 2, 2, 3))
    assert two == again == three
    assert two[1:3] == pytest.approx(one[1:3], rel=2e-3)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_every_structure_in_threads(name, rescaling):
    structure = STRUCTURES[name]
    case = structure.make(
        np.random.default_rng(0), loss=structure.losses[0], **structure.training[0]
    )
    problem = case.problem
    if not problem.in_threads or not structure.finds(rescaling, False):
        return
    examples = np.tile(np.arange(problem.n_examples), 5)
    w = problem.draw_weights(np.random.default_rng(1))
    one, more = Oracle(problem, Formulation(rescaling)), Oracle(problem, Formulation(rescaling))
    with more.in_threads(3):
        assert more.threads is not None
        for ask in ("ask", "ask_features", "predictions"):
            expected, found = getattr(one, ask)(examples, w), getattr(more, ask)(examples, w)
            for a, b in zip(
                (*expected.planes, *expected[1:]), (*found.planes, *found[1:]), strict=True
            ):
                assert a.tobytes() == b.tobytes() and a.dtype == b.dtype
        assert more.violations(w).values.tobytes() == one.violations(w).values.tobytes()
    assert more.calls == one.calls


@pytest.mark.usefixtures("small_pieces")
def test_certificates():
    problem, formulation = chains(), Formulation()
    result = make_solver("sgd", max_passes=2, random_state=0).solve(problem, formulation, 1.0)
    found = [certify(problem, formulation, 1.0, result, n_jobs=n) for n in (None, 1, 2, 3)]
    assert len({(r.primal, r.dual) for r in found}) == 1
    slacks = [hinge_values(problem, formulation, result.w, n).tobytes() for n in (None, 2)]
    assert slacks[0] == slacks[1]


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_every_estimator(kind):
    X, y = KINDS[kind].first
    model = make(kind).fit(X, y)
    many = list(X) * 4 if isinstance(X, list) else np.concatenate([X] * 4)
    expected = repr(model.predict(many))
    for n_jobs in (1, 2, 3, -1):
        assert repr(model.set_params(n_jobs=n_jobs).predict(many)) == expected


@pytest.mark.usefixtures("small_pieces")
def test_weights_of_an_estimator():
    X, y = KINDS["tagger"].first
    weights = [
        make("tagger", solver="one-slack", n_jobs=n_jobs).fit(X * 5, list(y) * 5).coef_.tobytes()
        for n_jobs in (None, 2)
    ]
    assert weights[0] == weights[1]


# ----- how many -----------------------------------------------------------------------------------


def test_what_n_jobs_means():
    assert count_threads(None) == count_threads(1) == 1
    assert count_threads(3) == 3
    assert count_threads(-1) == joblib.cpu_count()
    with joblib.parallel_config(n_jobs=2):
        assert count_threads(None) == 2 and count_threads(1) == 1
    for wrong in (0, "a", 1.5, True):
        with pytest.raises(ValueError, match="n_jobs must be None, a whole number"):
            count_threads(wrong)
        with pytest.raises(ValueError, match="n_jobs must be None, a whole number"):
            make_solver("auto", n_jobs=wrong).solve(chains(), Formulation(), 1.0)


class Signs(Problem):
    """Two labels; notes the threads that it is asked by."""

    n_features = 2

    def __init__(self, n=30):
        rng = np.random.default_rng(0)
        self.X, self.Y = list(rng.normal(size=(n, 2))), list(rng.choice([-1, 1], n))
        self.seen = set()

    def joint_feature(self, x, y):
        return x * y

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def most_violated(self, x, y, w, rescaling):
        self.seen.add(threading.current_thread().name.partition("_")[0])
        return max((-1, 1), key=lambda z: self.loss(y, z) + w @ self.joint_feature(x, z))

    def predict(self, x, w):
        return max((-1, 1), key=lambda z: w @ self.joint_feature(x, z))


class ThreadedSigns(Signs):
    in_threads = True


class OracleOfOnesOwn(ThreadedSigns):
    def oracle(self, *question):
        return super().oracle(*question)


@pytest.mark.usefixtures("small_pieces")
def test_threads_are_used_where_they_may_be():
    def seen(problem, n_jobs=None):
        make_solver("one-slack", n_jobs=n_jobs).solve(problem, Formulation(), 1.0)
        return problem.seen

    assert seen(ThreadedSigns(), 2) == {"MainThread", "maxmargin"}
    for problem in (Signs(), OracleOfOnesOwn()):
        assert seen(problem, 2) == {"MainThread"}
    assert seen(ThreadedSigns()) == {"MainThread"}
    with joblib.parallel_config(n_jobs=2):
        assert seen(ThreadedSigns()) == {"MainThread", "maxmargin"}
        assert seen(ThreadedSigns(), 1) == {"MainThread"}


def test_a_state_can_be_copied_while_threads_work_on_it():
    with (asked := Oracle(chains(), Formulation())).in_threads(2):
        asked.violations(np.zeros(asked.n_features))
        copied = pickle.loads(pickle.dumps(asked))
    assert copied.threads is None and copied.calls == asked.calls


# ----- errors and interrupts ----------------------------------------------------------------------


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["one-slack", "n-slack", "auto"])
def test_errors_come_through(name):
    class Failing(ThreadedSigns):
        def most_violated(self, x, y, w, rescaling):
            if x is self.X[20]:
                raise RuntimeError("cannot be searched")
            return super().most_violated(x, y, w, rescaling)

    with pytest.raises(RuntimeError, match="cannot be searched"):
        make_solver(name, n_jobs=2).solve(Failing(), Formulation(), 1.0)


@pytest.mark.usefixtures("small_pieces")
def test_an_interrupt_in_the_middle_of_a_pass():
    class Interrupting(ThreadedSigns):
        calls = 0

        def most_violated(self, x, y, w, rescaling):
            self.calls += 1
            if self.calls == 50:  # in the second pass
                signal.raise_signal(signal.SIGINT)
            return super().most_violated(x, y, w, rescaling)

    problem = Interrupting()
    result = make_solver("one-slack", tol=1e-6, n_jobs=2).solve(problem, Formulation(), 1.0)
    assert result.status == "interrupted" and "maxmargin" in problem.seen
    assert result.primal == pytest.approx(
        0.5 * result.w @ result.w + hinge_values(problem, Formulation(), result.w).sum()
    )


def test_what_is_no_longer_asked_for_is_dropped():
    done = []
    with Threads(2) as threads:
        values = threads.map(lambda i: done.append(i) or i, range(10_000))
        assert [next(values) for _ in range(3)] == [0, 1, 2]
        values.close()
    assert len(done) < 100


def test_ranges_make_up_all():
    for bounds in ([0, 5], [0, 1, 2], [0, 9, 10, 11, 12], list(range(40)), [0, 0, 0, 0, 0, 7]):
        for n_jobs in (1, 2, 3):
            found = each_range(n_jobs, np.array(bounds), lambda first, end: (first, end))
            assert found[0][0] == 0 and found[-1][1] == len(bounds) - 1
            assert all(a[1] == b[0] for a, b in pairwise(found))


def fitted_in_process(n_jobs):
    return make("tagger", n_jobs=n_jobs).fit(*KINDS["tagger"].first).coef_


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_inside_other_processes_and_threads(backend):
    fitted_in_process(2)  # with threads, before processes are forked
    with joblib.parallel_config(backend, n_jobs=2):
        found = joblib.Parallel()(joblib.delayed(fitted_in_process)(2) for _ in range(2))
    assert found[0].tobytes() == found[1].tobytes() == fitted_in_process(2).tobytes()


def test_grid_search():
    from sklearn.model_selection import GridSearchCV

    X, y = KINDS["classes"].first
    search = GridSearchCV(mm.MulticlassSVM(n_jobs=2), {"C": [0.1, 1.0]}, cv=2, n_jobs=2)
    assert search.fit(X, y).best_params_["C"] in (0.1, 1.0)
