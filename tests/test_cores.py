"""n_jobs: threads change no bits, end with the work, and let errors and interrupts through."""

import contextvars
import gc
import os
import pickle
import signal
import threading
import time
import warnings
from itertools import pairwise

import joblib
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import maxmargin as mm
from every_estimator import KINDS, make
from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.engine import oracle as asking
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.parallel import threads
from maxmargin.engine.parallel.threads import Threads, count_threads, each_range, parallel_chunks
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.solvers import SOLVERS, certify, make_solver
from structures import STRUCTURES
from test_reproducibility import chains

BIT_FOR_BIT = ("one_slack", "n_slack", "perceptron", "mira", "sgd", "pegasos")


def own_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("maxmargin")]


@pytest.fixture(autouse=True)
def no_work_is_left():
    threads._pool.before_fork()  # ends the threads, if nobody uses them
    threads._pool.after_fork()
    threads._begin_anew()  # however many other tests have wanted
    assert not own_threads()
    yield
    assert threads._pool.wanted == 0
    most = max(2, joblib.cpu_count())  # for three, or for all cores
    for _ in range(1000):
        if len(own_threads()) <= most:  # those of a pool that was too small are about to end
            break
        time.sleep(0.01)
    assert len(own_threads()) <= most


@pytest.fixture
def all_work_is_shared(monkeypatch):
    monkeypatch.setattr(threads, "WORTH_SHARING", 0.0)


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
        for ask in ("call", "call_features", "predictions"):
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


def bits(value):
    """What is equal only where all bits are."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    return [bits(one) for one in value] if isinstance(value, (list, tuple)) else repr(value)


def answers(model, X):
    found = [bits(model.predict(X))]
    for method, more in (("predict_k", (2,)), ("predict_margins", ()), ("decision_function", ())):
        try:
            found.append(bits(getattr(model, method)(X, *more)))
        except (AttributeError, ValueError) as error:  # not of this kind of output
            found.append(str(error))
    return found


@pytest.mark.usefixtures("all_work_is_shared")
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_of_every_estimator(kind):
    X, y = KINDS[kind].first
    model = make(kind).fit(X, y)
    many = list(X) * 4 if isinstance(X, list) else np.concatenate([X] * 4)
    expected = answers(model, many)
    for n_jobs in (1, 2, 3, -1):
        assert answers(model.set_params(n_jobs=n_jobs), many) == expected


@pytest.mark.usefixtures("all_work_is_shared")
@pytest.mark.parametrize("options", [{}, {"order": 2}, {"constraints": "bio"}])
def test_predictions_from_words(options):
    X = [["the", "cat", "sat"], ["a", "dog"], ["dogs", "sit", "on", "cats"]] * 3
    y = [["B-x", "I-x", "O"], ["B-x", "I-x"], ["B-x", "O", "O", "B-x"]] * 3
    model = mm.SequenceTagger(features=mm.features.WindowFeatures(), **options).fit(X, y)
    X = [*X, ["unknown", "words", "sat"], ["sat"]]
    fixed = [[None, "I-x", None], *[None] * 10]
    model.calibrate(X[:9], y)

    def all_answers():
        more = model.predict(X, fixed), model.predict_proba(X), model.predict_k(X, 3, fixed)
        return [*answers(model, X), *map(bits, more)]

    expected = all_answers()
    assert expected[0] == [bits(model.predict([x])[0]) for x in X]
    for n_jobs in (2, 3):
        model.set_params(n_jobs=n_jobs)
        assert all_answers() == expected


@pytest.mark.usefixtures("all_work_is_shared")
def test_segments_from_words():
    X = [["the", "cat", "sat"], ["a", "dog"], ["dogs", "sit", "on", "cats"]] * 3
    y = [[(0, 2, "x")], [(0, 2, "x")], [(0, 1, "y"), (3, 4, "x")]] * 3
    model = mm.SequenceSegmenter(features=mm.features.WindowFeatures()).fit(X, y)
    assert model.predict(X) == y
    X = [*X, ["unknown", "words", "sat"], ["sat"]]
    expected = [model.predict([x])[0] for x in X]
    packed = model.features_.transform(X)
    for n_jobs in (2, 3):
        model.set_params(n_jobs=n_jobs)
        assert model.predict(X) == expected == model.predict(packed)


@pytest.mark.usefixtures("all_work_is_shared")
def test_products_of_sparse_rows():
    X, y = KINDS["classes"].first
    X = csr_matrix(np.where(X > 1.0, X, 0.0))
    model = mm.MulticlassSVM(random_state=0).fit(X, y)
    expected = answers(model, X)
    for n_jobs in (2, 3):
        assert answers(model.set_params(n_jobs=n_jobs), X) == expected


@pytest.mark.usefixtures("all_work_is_shared")
def test_the_sequence_that_nothing_is_allowed_for_is_named():
    X = [["a", "b"]] * 9
    model = mm.SequenceTagger(
        features=mm.features.WindowFeatures(["w[0]"]), constraints="bio", n_jobs=2
    ).fit(X, [["B-x", "I-x"]] * 8 + [["O", "O"]])
    fixed = [[None, None]] * 7 + [["I-x", None]] + [[None, None]]
    for inputs in (X, model.features_.transform(X)):
        for method, more in (("predict", ()), ("predict_k", (2,)), ("predict_margins", ())):
            with pytest.raises(ValueError, match="sequence 7: no labelling"):
                getattr(model, method)(inputs, *more, fixed=fixed)


@pytest.mark.usefixtures("all_work_is_shared")
def test_the_sequence_with_a_bad_value_is_named():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 4)) for _ in range(40)]
    y = [rng.integers(2, size=3).tolist() for _ in X]
    tagger = mm.SequenceTagger(max_passes=2, tol=None, n_jobs=2).fit(X, y)
    X[31] = np.where(np.arange(12).reshape(3, 4) == 6, np.nan, X[31])
    for given in (X, [csr_matrix(x) for x in X]):
        for method, more in (("predict", ()), ("predict_k", (2,)), ("predict_margins", ())):
            with pytest.raises(ValueError, match=r"sequence 31, token 1 has a NaN"):
                getattr(tagger, method)(given, *more)


@pytest.mark.usefixtures("all_work_is_shared")
def test_the_sentence_with_a_bad_token_is_named():
    X = [[("a", "A"), ("b", "B")]] * 40
    parser = mm.DependencyParser(max_passes=1, tol=None, n_jobs=2, hash_bits=10)
    parser.fit(X, [[0, 1]] * 40)
    assert parser.predict(X) == [[0, 1]] * 40
    with pytest.raises(ValueError, match="sentence 37, word 1: 'b', expected"):
        parser.predict([*X[:37], [("a", "A"), "b"], *X[38:]])


@pytest.mark.usefixtures("small_pieces")
def test_weights_of_an_estimator():
    X, y = KINDS["tagger"].first
    weights = [
        make("tagger", solver="one_slack", n_jobs=n_jobs).fit(X * 5, list(y) * 5).coef_.tobytes()
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

    def most_violated(self, x, y, w, rescaling):
        time.sleep(1e-3)  # lets others have the GIL
        return super().most_violated(x, y, w, rescaling)


class OracleOfOnesOwn(ThreadedSigns):
    def oracle(self, *question):
        return super().oracle(*question)


@pytest.mark.usefixtures("small_pieces")
def test_threads_are_used_where_they_may_be():
    def seen(problem, n_jobs=None):
        make_solver("one_slack", n_jobs=n_jobs).solve(problem, Formulation(), 1.0)
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
@pytest.mark.parametrize("name", ["one_slack", "n_slack", "auto"])
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
    result = make_solver("one_slack", tol=1e-6, n_jobs=2).solve(problem, Formulation(), 1.0)
    assert result.status == "interrupted" and "maxmargin" in problem.seen
    assert result.primal == pytest.approx(
        0.5 * result.w @ result.w + hinge_values(problem, Formulation(), result.w).sum()
    )


def test_what_is_no_longer_asked_for_is_dropped():
    done = []
    values = Threads(2).map(lambda i: done.append(i) or i, range(10_000))
    assert [next(values) for _ in range(3)] == [0, 1, 2]
    values.close()
    assert len(done) < 100


@pytest.mark.usefixtures("all_work_is_shared")
def test_ranges_make_up_all():
    for bounds in ([0, 5], [0, 1, 2], [0, 9, 10, 11, 12], list(range(40)), [0, 0, 0, 0, 0, 7]):
        for n_jobs in (1, 2, 3):
            found = each_range(n_jobs, np.array(bounds), 1.0, lambda first, end: (first, end))
            assert found[0][0] == 0 and found[-1][1] == len(bounds) - 1
            assert all(a[1] == b[0] for a, b in pairwise(found))


def test_little_work_is_not_shared():
    bounds = np.arange(1001)
    few = threads.WORTH_SHARING / 1001
    assert each_range(2, bounds, few, lambda *ends: ends) == [(0, 1000)]
    assert len(each_range(2, bounds, 2.0 * few, lambda *ends: ends)) > 2


def test_ranges_are_as_long_as_is_worth_it():
    def ends(first, end):
        return first, end

    bounds, unit = np.arange(1001), threads.WORTH_SHARING / 100
    each_range(2, bounds, unit, ends)  # the first time one example is done by itself
    found = [
        [end - first for first, end in parallel_chunks(2, bounds, unit, ends, worth)]
        for worth in (0.0, 250.0 * unit, 1e3 * unit)
    ]
    assert [len(lengths) for lengths in found] == [2 * threads.RANGES, 4, 2]
    assert all(sum(lengths) == 1000 for lengths in found)
    assert found[1][-1] < found[1][1] <= found[1][0] + 1


def test_work_of_a_new_kind_begins_with_one_example():
    def ends(first, end):
        return first, end

    bounds, unit = np.arange(101), threads.WORTH_SHARING
    kinds = object(), object()
    found = [next(parallel_chunks(2, bounds, unit, ends, kind=kinds[0]))]  # dropped: not done
    for kind in (*kinds, kinds[0]):
        found.append(next(iter(list(parallel_chunks(2, bounds, unit, ends, kind=kind)))))
    assert found[:3] == [(0, 1)] * 3
    assert found[3][1] > 1


# ----- one pool -----------------------------------------------------------------------------------


def meet(parties):
    """A piece of work that ends only where so many threads are at it."""
    together = threading.Barrier(parties, timeout=30.0)
    return lambda item: together.wait() if item else threading.get_ident()


def test_threads_stay():
    first, second = (
        {thread.ident for thread in own_threads()}
        for _ in range(2)
        if list(Threads(3).map(meet(3), range(4)))
    )
    assert first == second and len(first) == 2


def test_nested_work_and_work_of_several_threads():
    def inner(item):
        return sum(Threads(3).map(lambda k: k * item, range(20)))

    expected = [190 * item for item in range(30)]
    found = []
    callers = [
        threading.Thread(target=lambda: found.append(list(Threads(2).map(inner, range(30)))))
        for _ in range(3)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == 3 * [expected]


def test_errors_are_raised_in_the_order_of_the_pieces():
    def work(item):
        if item >= 5:
            raise RuntimeError(str(item))
        return item

    for _ in range(20):
        given = []
        with pytest.raises(RuntimeError, match=r"^5$"):
            given.extend(Threads(3).map(work, range(50)))
        values = Threads(3).map(work, range(50))
        assert [next(values) for _ in range(5)] == list(range(5))


def test_pieces_see_the_context_of_who_asks():
    level = contextvars.ContextVar("level", default=0)
    level.set(7)
    together = meet(2)

    def work(item):
        together(item)
        before = level.get()
        if threading.current_thread() is not threading.main_thread():
            level.set(item)  # for this piece alone
        return before

    assert list(Threads(2).map(work, range(9))) == 9 * [7]
    assert level.get() == 7


def test_an_interrupt_of_who_asks_ends_the_work():
    seen = []

    def work(item):
        seen.append(item)
        if item == 4:
            signal.raise_signal(signal.SIGINT)
        return item

    with pytest.raises(KeyboardInterrupt):
        for _ in Threads(2).map(work, range(100_000)):
            pass
    assert len(seen) < 100_000 and threads._pool.wanted == 0


@pytest.mark.parametrize("n_before", [0, 20])
def test_items_that_end_by_an_error(n_before):
    def items():
        yield from range(n_before)
        raise ValueError("no more items")

    seen = []
    with pytest.raises(ValueError, match="no more items"):
        for value in Threads(3, compiled=True).map(lambda k: time.sleep(0.001) or k, items()):
            seen.append(value)
    assert seen == list(range(n_before))


def test_an_interrupt_before_the_work_leaves_nothing_behind(monkeypatch):
    def enter(pool, user):
        pool.users.add(user)
        raise KeyboardInterrupt

    monkeypatch.setattr(threads._Pool, "enter", enter)
    monkeypatch.setattr(threads._Pool, "leave", lambda pool, user: None)
    threads.note_done(str)
    with pytest.raises(KeyboardInterrupt):
        Threads(2).each(str, range(3), str)
    assert threads._pool.wanted == 0


def test_a_helper_that_meets_work_that_nobody_wants_any_more_does_not_wait_for_itself():
    helper_came, nobody_wants = threading.Event(), threading.Event()
    done = threading.Event()

    def work(item):
        if threading.current_thread() is not threading.main_thread():
            helper_came.set()
            nobody_wants.wait(60)
            gc.collect()
            done.set()
        return item

    def abandon():
        values = [Threads(2, compiled=True).map(work, range(3))]
        values.append(values)  # only the search for cycles finds it
        next(values[0])
        assert helper_came.wait(60)

    abandon()
    nobody_wants.set()
    assert done.wait(60)


def test_without_threads_who_asks_does_all(monkeypatch):
    monkeypatch.setattr(threads._Pool, "begin", lambda pool, work: False)
    assert list(Threads(3).map(lambda k: k * k, range(40))) == [k * k for k in range(40)]


def in_child(work):
    """What the work prints in the child of a fork; it has a minute."""
    reader, writer = os.pipe()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as answer:
        printed = answer.read()
    os.waitpid(child, 0)
    return printed, [str(warning.message) for warning in caught]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork():
    def work():
        return list(Threads(3).map(meet(3), range(4)))[1:] and len(own_threads())

    assert work() == 2
    printed, warned = in_child(work)
    assert printed == "2" and not [text for text in warned if "multi-threaded" in text]
    assert work() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_in_the_middle_of_work():
    values = Threads(2).map(lambda k: k, range(1000))
    assert next(values) == 0 and next(values) == 1
    assert in_child(lambda: sum(Threads(2).map(lambda k: k, range(100))))[0] == "4950"
    assert list(values) == list(range(2, 1000))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("end", ["close", "__next__"])
def test_work_goes_on_in_a_child_without_its_helpers(end):
    at_it, goes_on = threading.Event(), threading.Event()

    def work(item):
        if item == 1:  # by a helper
            at_it.set()
            goes_on.wait(60)
        return item

    def asked():
        goes_on.set()
        return getattr(values, end)()

    values = Threads(2, compiled=True).map(work, range(5))
    assert next(values) == 0 and at_it.wait(60)
    assert in_child(asked)[0] == ("None" if end == "close" else "1")
    goes_on.set()
    assert list(values) == [1, 2, 3, 4]


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
