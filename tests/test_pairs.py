"""Two threads inside one kernel: a true ascent, the same bits, and no thread left waiting."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import chain_case
from maxmargin._jit import kernel
from maxmargin.engine import threads
from maxmargin.engine.block_steps import COORDINATES, FRANK_WOLFE, WSS2
from maxmargin.engine.oracle import Oracle, hinge_values
from maxmargin.engine.pairs import in_pair, meet, post
from maxmargin.engine.planes import StepRule, make_store
from maxmargin.engine.threads import Threads
from maxmargin.formulation import Formulation
from maxmargin.problems.chain import store as chain_store
from maxmargin.problems.chain.pair_kernels import write_change
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.solvers import make_solver
from stores import check_store

PLENTY = 10**9
STEPS = StepRule(WSS2, 20)
LOOK = StepRule(WSS2, 0)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def every_visit_is_paired(monkeypatch):
    monkeypatch.setattr(chain_store, "FEWEST_PAIRED", 1)
    monkeypatch.setattr(chain_store, "may_pair", lambda: True)
    yield
    assert threads._pool.wanted == 0


def paired_store(problem, caps, slack="l1", cache_bytes=PLENTY):
    store = make_store(
        Oracle(problem, Formulation(slack=slack, sqrt_loss=False)), caps, cache_bytes
    )
    store.oracle.threads = Threads(2)
    return store


def random_case(rng, n=21, **options):
    return chain_case(rng, lengths=rng.integers(1, 6, n), K=3, n_inputs=3, **options).problem


@settings(max_examples=25, deadline=None)
@given(
    seeds,
    st.sampled_from(["hamming", "normalized-hamming"]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["dense", "csr"]),
    st.sampled_from(["l1", "l2"]),
    st.sampled_from([0.01, 1.0, 100.0]),
)
def test_paired_visits_ascend(seed, loss, boundary, constrained, copies, layout, slack, C):
    rng = np.random.default_rng(seed)
    problem = random_case(
        rng, loss=loss, boundary_weights=boundary, constrained=constrained, layout=layout
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chain_store, "FEW_WEIGHTS", 2**16 if copies else 0)
        store = paired_store(problem, C * rng.uniform(0.5, 2.0, 21), slack)
        kinds = [FRANK_WOLFE, WSS2] if slack == "l1" else [WSS2, COORDINATES]
        dual = 0.0
        for _ in range(6):
            examples = rng.permutation(21)[: rng.integers(1, 22)]
            rule = StepRule(int(rng.choice(kinds)), int(rng.integers(1, 20)))
            store.visit(examples, rule)
            after = check_store(store)
            assert after >= dual - 1e-10 * (1.0 + abs(dual))
            dual = after


@settings(max_examples=10, deadline=None)
@given(seeds, st.booleans())
def test_paired_visits_without_steps_are_true_oracle_calls(seed, boundary):
    rng = np.random.default_rng(seed)
    problem = random_case(rng, n=70, boundary_weights=boundary)
    store = paired_store(problem, np.ones(70))
    store.visit(rng.permutation(70), STEPS)
    w, examples = store.w.copy(), rng.permutation(70)
    report = store.visit(examples, LOOK)
    assert np.array_equal(store.w, w)
    true = hinge_values(problem, store.formulation, w)
    np.testing.assert_allclose(report.hinges, true[examples], atol=1e-9)
    batches = list(store.survey(examples, 16, LOOK))
    assert np.array_equal(np.concatenate([batch for batch, _ in batches]), examples)
    found = np.concatenate([report.hinges for _, report in batches])
    np.testing.assert_allclose(found, true[examples], atol=1e-9)


@pytest.mark.parametrize("copies", [False, True])
def test_steps_that_undo_each_other_are_cut(copies, monkeypatch):
    """Equal examples would all step as if alone: eight times too far."""
    monkeypatch.setattr(chain_store, "FEW_WEIGHTS", 2**16 if copies else 0)
    rng = np.random.default_rng(0)
    tokens, labels = np.tile(rng.normal(size=(3, 2)), (16, 1)), np.tile([0, 1, 2], 16)
    problem = ChainProblem(tokens, np.arange(0, 49, 3), labels, 3)
    store, dual = paired_store(problem, np.full(16, 10.0)), 0.0
    for _ in range(5):
        store.visit(np.arange(16), STEPS)
        after = check_store(store)
        assert after >= dual
        dual = after
    assert dual > 0.0


@kernel(allocates=False)
def write_first_change(arena, parts, changes, space, w):
    return write_change(arena, parts, changes, 0, True, space, w)


@pytest.mark.parametrize(
    ("linear", "curvature", "share"),
    [
        (1.0, 4.0, 0.25),
        (4.0, 1.0, 1.0),
        (1.0, 0.0, 1.0),
        (-1.0, 1.0, 0.0),
        (-1.0, 0.0, 0.0),
        (-1.0, -1e-3, 0.0),  # by rounding; the maximum along this line is far behind its end
        (1.0, -1e-3, 1.0),
    ],
)
def test_no_change_is_taken_beyond_its_end(linear, curvature, share):
    store = paired_store(random_case(np.random.default_rng(5)), np.ones(21))
    store.visit(np.arange(21), STEPS)
    alpha = float(store.arena.alpha[0])
    assert alpha > 0.0
    changes = store._changes()
    changes.numbers[0] = 1, 0, 1
    changes.planes[0, 0], changes.before[0, 0] = 0, 0.0
    changes.terms[0] = linear, curvature
    space = np.empty(1)
    gain = write_first_change(store.arena, store.parts, changes, space, store.w)
    assert store.arena.alpha[0] == pytest.approx(share * alpha)
    assert gain == pytest.approx(share * (linear - 0.5 * share * curvature))


def test_an_arena_that_is_too_small_is_grown_on_the_way():
    rng = np.random.default_rng(1)
    problem = random_case(rng, n=300)
    caps = np.ones(300)
    whole, small = paired_store(problem, caps), paired_store(problem, caps)
    small.arena = chain_store.PlaneStore(small.oracle, caps, 1)._first_arena(1)
    before = len(small.arena.block)
    for store in (whole, small):
        for _ in range(3):
            store.visit(np.arange(300), STEPS)
    assert before < 300 < len(small.arena.block)
    assert check_store(whole) == check_store(small)
    assert np.array_equal(whole.w, small.w)


def test_calls_are_short_where_examples_are_long(monkeypatch):
    """Ctrl-C and the time limit wait for the end of a call."""
    monkeypatch.setattr(chain_store, "FEWEST_PAIRED", 10)
    store = paired_store(random_case(np.random.default_rng(6), n=50), np.ones(50))
    assert store.least_batch == chain_store.PAIRED_BATCH
    assert [len(batch) for batch, _ in store.survey(np.arange(50), 1, LOOK)] == [50]
    store.oracle.work = chain_store.PAIRED_WORK / 20
    assert store.least_batch == 20
    assert [len(batch) for batch, _ in store.survey(np.arange(50), 1, LOOK)] == [20, 20, 10]
    store.oracle.work = chain_store.PAIRED_WORK
    assert store.least_batch == 10


@pytest.mark.parametrize("slack", ["l1", "l2"])
@pytest.mark.parametrize("name", ["auto", "sda", "dcd-light", "fasole"])
def test_the_optimum_is_that_of_one_thread_by_the_same_bits(name, slack):
    if name == "fasole" and slack == "l2":
        pytest.skip("not this slack")
    rng = np.random.default_rng(2)
    tokens, offsets = rng.normal(size=(600, 4)), np.arange(0, 601, 4)
    labels = np.argmax(tokens[:, :3] + 0.5 * rng.normal(size=(600, 3)), axis=1)
    problem = ChainProblem(tokens, offsets, labels, 3)
    formulation = Formulation(slack=slack, sqrt_loss=False)

    def trained(n_jobs):
        solver = make_solver(name, tol=1e-3, random_state=0, n_jobs=n_jobs)
        return solver.solve(problem, formulation, 0.1)

    one, two, again = trained(1), trained(2), trained(2)
    assert np.array_equal(two.w, again.w) and two.w.any()
    assert [step.dual for step in two.history] == [step.dual for step in again.history]
    assert two.converged
    assert two.dual <= one.primal * (1.0 + 1e-9) and one.dual <= two.primal * (1.0 + 1e-9)


def test_one_thread_goes_on_where_no_other_can_begin(monkeypatch):
    monkeypatch.setattr(threads._Pool, "begin", lambda pool, work: False)
    problem = random_case(np.random.default_rng(3))
    store, alone = paired_store(problem, np.ones(21)), paired_store(problem, np.ones(21))
    alone.oracle.threads = None
    for each in (store, alone):
        each.visit(np.arange(21), STEPS)
    assert np.array_equal(store.w, alone.w)


@kernel(allocates=False)
def wait_for_other(events, me, ticket):
    """A kernel that waits for what may never come."""
    post(events, me, 0, 1)
    return meet(events, 1 - me, 0, ticket)


@pytest.mark.parametrize("fails", [0, 1])
def test_nobody_waits_for_a_thread_that_has_failed(fails):
    wait_for_other(np.zeros(1000, np.int64), 0, 0)  # compiled

    def work(me, events):
        if me == fails:
            raise KeyboardInterrupt if me == 0 else MemoryError("no more")
        return int(wait_for_other(events, me, 10))

    with pytest.raises(KeyboardInterrupt if fails == 0 else MemoryError):
        in_pair(work)
    assert in_pair(lambda me, events: int(wait_for_other(events, me, 1))) == 1


def test_nobody_waits_for_one_who_was_interrupted_while_the_other_was_sent_for(monkeypatch):
    wait_for_other(np.zeros(1000, np.int64), 0, 0)
    begin, begun, waited_for, met = threads._Pool.begin, threading.Event(), [], []

    def begin_and_interrupt(pool, work):
        begin(pool, work)
        begun.wait()
        raise KeyboardInterrupt

    def work(me, events):
        waited_for.append(events)
        begun.set()
        met.append(bool(wait_for_other(events, me, 1)))
        return 1

    monkeypatch.setattr(threads._Pool, "begin", begin_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_pair(work)
    left = bool(met)
    waited_for[0].fill(1)  # so that a failure of this test is no thread that waits forever
    assert left and met == [False]


@pytest.mark.parametrize("error", [KeyboardInterrupt, None])
def test_a_thread_that_comes_too_late_does_not_begin(error, monkeypatch):
    """Its work may be left in the queue by an interrupt, or where no thread could begin."""
    queued, begun = [], []

    def put_into_queue(pool, work):
        queued.append(work)
        if error is not None:
            raise error
        return False

    monkeypatch.setattr(threads._Pool, "begin", put_into_queue)
    try:
        assert in_pair(lambda me, events: begun.append(me)) is None
    except KeyboardInterrupt:
        assert error is not None
    queued[0]()
    assert begun == []


def test_a_thread_that_leaves_late_does_not_see_the_next_run():
    """The first one may be back, and begin anew, while the second still looks for it."""
    wait_for_other(np.zeros(1000, np.int64), 0, 0)
    late = []

    def work(me, events):
        if me == 1:
            post(events, me, 0, 1)
            time.sleep(0.001)
            late.append(bool(meet(events, 0, 0, 1)))
            return 1
        return int(wait_for_other(events, me, 1))

    for _ in range(50):
        assert in_pair(work) == 1
    for _ in range(1000):
        if len(late) == 50:
            break
        time.sleep(0.01)
    assert late == [True] * 50


def test_pairs_of_several_threads_do_not_disturb_each_other():
    problem = random_case(np.random.default_rng(4), n=200)
    formulation = Formulation(slack="l1")
    found = {}

    def train(k):
        solver = make_solver("auto", tol=1e-3, random_state=0, n_jobs=2)
        found[k] = solver.solve(problem, formulation, 0.3).w

    workers = [threading.Thread(target=train, args=(k,)) for k in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 3
    assert all(np.array_equal(found[0], w) for w in found.values())
