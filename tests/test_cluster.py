"""Training in parts, here and on the workers of a cluster, which may be lost or late."""

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import maxmargin as mm
from cli_corpus import refused, write_corpus
from exact_qp import solve_exactly
from maxmargin.cli import main
from maxmargin.cluster import dask_executor
from maxmargin.cluster.ascent import Point, Points, ShardedAscent
from maxmargin.cluster.executor import ClusterLost, FileShard, InProcess, ShardConfig, cut
from maxmargin.cluster.shard import Packed, ShardOptions, pack, products
from maxmargin.cluster.solver import solve_by
from maxmargin.core.formulation import Formulation
from maxmargin.core.objective import primal_value
from maxmargin.core.weight_constraints import WeightConstraints
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.features import PackedSequences
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem
from maxmargin.solvers import Auto, OneSlack
from solving import check_optimal, medium_chains, medium_classes
from structures import STRUCTURES, small_case

SMALL = ("multiclass", "chain", "label tree", "any tree", "plain Python")
KINDS = [
    Formulation(),
    Formulation(slack="l2"),
    Formulation(rescaling="slack"),
    Formulation(rescaling="none"),
]


def in_process(problem, n_shards, C, formulation=None, weights=None, kind=InProcess):
    """A team without a cluster."""
    loaders, pieces = cut(problem, n_shards)
    config = [
        ShardConfig(
            formulation or Formulation(),
            C,
            None if weights is None else weights[piece],
            ShardOptions(seed=k),
        )
        for k, piece in enumerate(pieces)
    ]
    return kind(loaders, config)


def check_primal(result, problem, C, formulation=None):
    """The primal value is that of true oracle calls for all examples."""
    formulation = formulation or Formulation()
    slacks = hinge_values(problem, formulation, result.w)
    assert result.primal == pytest.approx(primal_value(result.w, slacks, formulation, C), rel=1e-9)


# ----- in this process ---------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [ShardedAscent, OneSlack])
@pytest.mark.parametrize("name", SMALL)
def test_parts_have_the_optimum_of_the_whole(name, solver):
    case = small_case(name, STRUCTURES[name].losses[0], 0)
    n = case.problem.n_examples
    rng = np.random.default_rng(0)
    for n_shards, formulation in zip((1, 2, n, 2), KINDS, strict=True):
        if formulation.slack == "l2" and name == "plain Python":
            formulation = Formulation(slack="l2", sqrt_loss=False)
        weights = rng.uniform(0.5, 2.0, n)
        weights[0] = 0.0 if n_shards == n else 1.0  # a part that counts for nothing
        team = in_process(case.problem, n_shards, 2.0, formulation, weights)
        result = solve_by(team, solver(tol=1e-7, max_passes=3000), formulation, 2.0, ())
        check_optimal(result, case, 2.0, formulation, weights)
        assert result.n_examples == n


def test_constraints_on_weights():
    problem = medium_classes()
    formulation = Formulation(constraints=WeightConstraints(nonnegative=[0, 5], fixed={1: 0.5}))
    whole = Auto(tol=1e-5).solve(problem, formulation, 0.1)
    team = in_process(problem, 3, 0.1)
    result = solve_by(team, OneSlack(tol=1e-4), formulation, 0.1, ())
    assert result.primal == pytest.approx(whole.primal, rel=2e-4)
    assert result.w[1] == 0.5 and result.w[0] >= 0.0 and result.w[5] >= 0.0


class Unreliable(InProcess):
    """Shards are late, lose their memory, and are made again, again and again."""

    def __init__(self, loaders, config):
        super().__init__(loaders, config)
        self.loaders, self.config = loaders, config
        self.rng = np.random.default_rng(0)
        self.late = {}
        self.n_lost = self.n_late = 0

    def call(self, method, w, messages, *, may_be_late=False):
        late = {k: self.late.pop(k) for k in messages if k in self.late}
        asked = {k: m for k, m in messages.items() if k not in late}
        for k in asked:
            if self.rng.random() < 0.1:
                self.shards[k] = InProcess([self.loaders[k]], [self.config[k]]).shards[0]
                self.n_lost += 1
        answers = super().call(method, w, asked) | late
        if may_be_late:
            for k in list(asked):
                if self.rng.random() < 0.2:
                    self.late[k] = answers.pop(k)
                    self.n_late += 1
        return answers


def test_late_and_lost_parts_change_no_optimum():
    case = small_case("chain", "hamming", 0)
    team = in_process(case.problem, 3, 2.0, kind=Unreliable)
    duals = []
    result = solve_by(
        team, ShardedAscent(tol=1e-6), Formulation(), 2.0, [lambda p: duals.append(p.dual)]
    )
    check_optimal(result, case, 2.0)
    assert team.n_lost > 3 and team.n_late > 3
    assert all(np.diff(duals) >= 0.0)  # what lost parts have contributed stays


def test_bytes_of_a_round_do_not_depend_on_the_number_of_examples():
    """Dense features: what is sent has the length of w, whatever stands behind it."""
    rng = np.random.default_rng(0)
    most = []
    for n in (50, 200, 800):
        y = rng.integers(0, 4, n)
        X = rng.normal(size=(4, 10))[y] + rng.normal(size=(n, 10))
        problem = MulticlassProblem(X, y, 4)
        for solver in (ShardedAscent(tol=None, max_passes=12), OneSlack(tol=None, max_passes=6)):
            team = in_process(problem, 2, 1.0 / n)
            solve_by(team, solver, Formulation(), 1.0 / n, ())
            most.append((max(team.traffic.received), max(team.traffic.sent)))
    w = 8 * problem.n_features
    per_part = [2 * w + 100, w + 100]  # a plane and a point; a plane
    for k, (received, sent) in enumerate(most):
        assert received <= 2 * per_part[k % 2]
        assert sent <= w + 2 * 1000  # and factors of points


def test_points_are_combined_as_well_as_can_be():
    """Against the exact QP, before and after a part's points become one."""
    rng = np.random.default_rng(0)
    n_shards, n_features = 3, 5
    points = Points(n_shards, n_features)
    blocks = [[] for _ in range(n_shards)]
    for number in range(12):
        shard, v, d = number % n_shards, rng.normal(size=n_features), rng.uniform(0.0, 3.0)
        v[rng.random(n_features) < 0.5] = 0.0  # in either form
        points.add_all([Point(shard, number, pack(v), d)])
        blocks[shard].append((d, v))
    points.solve(1e-12)
    exact = solve_exactly(
        [(np.array([d for d, _ in own]), np.array([v for _, v in own])) for own in blocks], 1.0
    )
    w = points.weights()
    assert points.dual(w) == pytest.approx(exact.dual, rel=1e-8)
    restored = Points(n_shards, n_features)
    restored.restore(points.arrays())
    assert np.array_equal(restored.weights(), w)
    points.most = 1
    merged = points.merge_crowded(100)
    assert merged and all(set(points.factors(k)) == set(new) for k, new in merged.items())
    np.testing.assert_allclose(points.weights(), w, atol=1e-12)
    assert points.dual(points.weights()) == pytest.approx(exact.dual, rel=1e-8)


def test_products_of_long_vectors(monkeypatch):
    """One by one and as matrices, of vectors in either form."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(5, 100)) * (rng.random((5, 100)) < 0.4)
    vectors = [pack(matrix[0]), pack(matrix[1]), *(Packed(100, None, row) for row in matrix[2:])]
    assert vectors[0].ids is not None
    monkeypatch.setattr("maxmargin.cluster.shard.BLOCK", 30)
    for cost in (0.0, 1e9):  # of a gathered entry
        monkeypatch.setattr("maxmargin.cluster.shard.GATHERED", cost)
        found = products(vectors[1:], vectors, 100)
        np.testing.assert_allclose(found, matrix[1:] @ matrix.T, atol=1e-12)


@pytest.mark.parametrize("kind", [ShardedAscent, OneSlack])
def test_a_checkpoint_of_the_driver(tmp_path, kind):
    """Ascent goes on from the points that the driver has, cutting planes to the same bits."""
    problem, C = medium_chains(), 0.1

    def train(**options):
        solver = kind(tol=1e-3, **options)
        return solve_by(in_process(problem, 2, C), solver, Formulation(), C, ())

    path = tmp_path / "run.ckpt"
    first = train(max_passes=6, checkpoint=path, checkpoint_every=0.0)
    rest = train(checkpoint=path, checkpoint_every=1e9, resume=True)
    assert first.status == "max_passes" and rest.status == "converged"
    assert len(rest.history) > len(first.history) > 2
    assert rest.history[:2] == first.history[:2]  # it has not begun again
    check_primal(rest, problem, C)
    if kind is OneSlack:
        assert rest.w.tobytes() == train().w.tobytes()


def test_arrays_in_files_are_named_not_sent(tmp_path):
    rng = np.random.default_rng(0)
    X = np.ascontiguousarray(rng.normal(size=(300, 40)))
    y = rng.integers(0, 3, 300)
    np.save(tmp_path / "X.npy", X)
    mapped = MulticlassProblem(np.load(tmp_path / "X.npy", mmap_mode="r"), y, 3)
    loaders, pieces = cut(mapped, 3)
    assert all(isinstance(loader, FileShard) for loader in loaders)
    sent = pickle.dumps(loaders[1])
    assert len(sent) < X.nbytes / 4
    shard = pickle.loads(sent)()
    np.testing.assert_array_equal(shard.rows.dense, X[pieces[1]])
    loaders, pieces = cut(MulticlassProblem(X, y, 3), 3)
    shard = pickle.loads(pickle.dumps(loaders[1]))()
    np.testing.assert_array_equal(shard.rows.dense, X[pieces[1]])


def test_files_are_named_whatever_else_is_there(tmp_path):
    """Long arrays in memory beside those in files, and classes that workers cannot import."""
    X = np.random.default_rng(0).normal(size=(20_000, 10))
    np.save(tmp_path / "X.npy", X)

    class Own(MulticlassProblem):
        """Known here alone."""

    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    loaders, pieces = cut(Own(mapped, np.arange(20_000) % 3, 3), 2)
    sent = cloudpickle.dumps(loaders[1])
    assert len(sent) < X.nbytes / 4
    np.testing.assert_array_equal(pickle.loads(sent)().rows.dense, X[pieces[1]])


def test_no_stored_sequence_is_sent(tmp_path):
    offsets = 10 * np.arange(20_001)
    tokens = sp.random_array((offsets[-1], 50), density=0.1, rng=0, format="csr")
    labels = np.arange(offsets[-1]).reshape(-1, 10) % 3
    PackedSequences.write(tmp_path / "x", [(PackedSequences(tokens, offsets), labels)])
    packed = PackedSequences.open(tmp_path / "x")
    problem = ChainProblem(packed.tokens, packed.offsets, packed.labels.codes)
    loaders, _ = cut(problem, 2)
    assert len(cloudpickle.dumps(loaders[0])) < 0.05 * (tmp_path / "x").stat().st_size
    assert loaders[1]().n_examples == 10_000
    PackedSequences.write(tmp_path / "x", [(PackedSequences(2.0 * tokens, offsets), labels)])
    with pytest.raises(ValueError, match="not the file that was opened"):
        loaders[1]()


def test_empty_parts():
    """Some files may have no examples, but not all."""
    problem = medium_classes()
    pieces = [np.arange(0), np.arange(200), np.arange(0)]
    for solver in (ShardedAscent(tol=1e-2), OneSlack(tol=1e-2)):
        loaders = [partial(problem.subset, piece) for piece in pieces]
        config = [ShardConfig(Formulation(), 0.1, None, ShardOptions())] * 3
        result = solve_by(InProcess(loaders, config), solver, Formulation(), 0.1, ())
        check_primal(result, problem, 0.1)
        assert result.converged
    with pytest.raises(ValueError, match="all 2 shards are empty"):
        solve_by(InProcess(loaders[::2], config[:2]), solver, Formulation(), 0.1, ())


# ----- workers that fail, without a cluster -------------------------------------------------------


class FakeFuture:
    """An answer, or what has become of it."""

    status = "finished"

    def __init__(self, answer, lost):
        self.answer, self.lost = answer, lost

    def result(self, timeout=None):
        if self.lost:
            raise TimeoutError
        return self.answer

    def exception(self):
        return self.answer

    def cancel(self):
        pass


class FakeClient:
    """Two workers, of which the first takes no examples, or gives no answers."""

    status = "running"

    def __init__(self, takes=True, answers=True):
        self.takes, self.answers = takes, answers

    def nthreads(self, callback_timeout=None):
        return {"a": 1, "b": 1}

    def scatter(self, things, *, workers, **options):
        if workers == ["a"] and not self.takes:
            raise KeyError("a")
        return things

    def submit(self, function, *arguments, workers, **options):
        try:
            return FakeFuture(function(*arguments), workers == ["a"] and not self.answers)
        except ZeroDivisionError as error:
            future = FakeFuture(error, False)
            future.status = "error"
            return future


@pytest.mark.parametrize("fault", ["takes", "answers"])
def test_a_worker_out_of_reach(fault):
    loaders, _ = cut(medium_classes(), 2)
    config = [ShardConfig(Formulation(), 0.1, None, ShardOptions())] * 2
    with dask_executor.DaskExecutor(FakeClient(**{fault: False}), loaders, config, 0.1) as team:
        assert team.home == ["b", "b"]
        assert [info.n_examples for info in team.info] == [100, 100]
        assert len([key for key in dask_executor._PARTS if key[0] == team.job]) == 2
    assert not [key for key in dask_executor._PARTS if key[0] == team.job]
    late = dask_executor.work(team.job, 0, (loaders[0], config[0]), "info", None, ())
    assert (
        isinstance(late, dask_executor.Missing) and not dask_executor._PARTS
    )  # nobody would let it go again


def test_an_answer_that_is_gone_with_its_worker_is_not_waited_for():
    config = [ShardConfig(Formulation(), 0.1, None, ShardOptions())]
    team = dask_executor.DaskExecutor(FakeClient(), [medium_classes], config, 1000.0)

    class Silent(FakeFuture):
        def result(self, timeout=None):
            self.waited.append(timeout)
            raise TimeoutError

    for worker, expected in (("gone", [1.0]), ("a", [2.0**k for k in range(10)])):
        future = Silent(None, True)
        future.waited = []
        assert team._result(dask_executor.Request(future, worker, 0.0, 1)) is None
        assert future.waited == expected


def test_what_was_made_before_an_error_is_forgotten():
    loaders = [partial(medium_classes), partial(divmod, 1, 0)]
    config = [ShardConfig(Formulation(), 0.1, None, ShardOptions())] * 2
    with pytest.raises(ZeroDivisionError):
        dask_executor.DaskExecutor(FakeClient(), loaders, config, 0.1).__enter__()
    assert not dask_executor._PARTS


def test_a_part_that_takes_long_is_given_time():
    """Twice as much each time, or it would be begun again and again, and end nowhere.

    A part whose worker was lost takes no longer than before.
    """
    config = [ShardConfig(Formulation(), 0.1, None, ShardOptions())]
    team = dask_executor.DaskExecutor(FakeClient(), [medium_classes], config, 1000.0)
    request = dask_executor.Request(None, "a", time.monotonic() - 1500.0, 1)
    assert team._is_late(0, request, [0.1])
    team._move(0, ["a", "b"])
    assert team.home == ["b"] and team._is_late(0, request, [0.1])
    team._move_late(0, ["a", "b"])
    assert team.home == ["a"] and not team._is_late(0, request, [0.1])


def test_a_client_that_is_closed():
    from distributed import Client

    closed = object.__new__(Client)
    closed.status = "closed"
    with pytest.raises(ValueError, match="a closed client"):
        dask_executor.as_client(closed)
    client = FakeClient()
    config = [ShardConfig(Formulation(), 0.1, None, ShardOptions())]
    team = dask_executor.DaskExecutor(client, [medium_classes], config, 0.1)
    client.status = "closed"
    with pytest.raises(ClusterLost) as lost:
        team.call("info", None, {0: ()})
    assert "closed, or lost its scheduler" in lost.value.why


class Deserted(FakeClient):
    """Workers leave, or their scheduler does, after so many rounds."""

    def __init__(self, error=None):
        super().__init__()
        self.error, self.rounds_left = error, 5

    def nthreads(self, callback_timeout=None):
        if self.rounds_left > 0:
            return super().nthreads()
        if self.error is not None:
            raise self.error
        return {}

    def count(self, progress):
        self.rounds_left -= 1


def train_with(client, monkeypatch, callbacks=(), **options):
    """Train by a client that stands in for Dask's."""
    monkeypatch.setattr(dask_executor, "LEAST_WAIT", 0.2)
    monkeypatch.setattr("maxmargin.cluster.solver.as_client", lambda cluster: cluster)
    solver = mm.ClusterSolver(cluster=client, tol=1e-9, n_shards=2, timeout=0.1, **options)
    return solver.solve(medium_classes(), Formulation(), 0.1, callbacks=callbacks)


@pytest.mark.parametrize("method", ["auto", "one_slack"])
@pytest.mark.parametrize("what", ["workers", "scheduler"])
def test_what_was_found_before_all_are_gone_is_kept(monkeypatch, tmp_path, what, method):
    client = Deserted(OSError("gone") if what == "scheduler" else None)
    options = {"method": method, "checkpoint": tmp_path / "c", "checkpoint_every": 0.0}
    with pytest.warns(UserWarning, match=f"no {what} for .* s; the best weights so far are kept"):
        result = train_with(client, monkeypatch, [client.count], **options)
    assert result.status == "cluster lost" and not result.converged
    check_primal(result, medium_classes(), 0.1)
    assert 0.0 < result.dual <= result.primal < np.inf
    rest = train_with(FakeClient(), monkeypatch, **options, resume=True)  # and is gone on from
    assert rest.converged and rest.history[:2] == result.history[:2]
    client = Deserted()
    client.rounds_left = 0
    with pytest.raises(RuntimeError, match="has had no workers for"):
        train_with(client, monkeypatch)


class ClosedByDask(FakeClient):
    """A client that Dask closes after some rounds, or that looks for its scheduler."""

    def __init__(self, becomes):
        super().__init__()
        self.becomes, self.rounds_left = becomes, 5

    def count(self, progress):
        self.rounds_left -= 1
        if self.rounds_left == 0:
            self.status = self.becomes

    def refuse(self):
        if self.status != "running":
            raise AssertionError("an error of Dask's own")

    def nthreads(self, callback_timeout=None):
        self.refuse()  # or waits for half a minute
        return super().nthreads()

    def submit(self, *arguments, **options):
        if self.status == "closed":
            self.refuse()
        future = super().submit(*arguments, **options)
        future.cancel = self.refuse
        return future


@pytest.mark.parametrize(
    ("becomes", "why"), [("closed", "closed, or lost"), ("connecting", "no scheduler for")]
)
def test_a_client_that_loses_its_scheduler(monkeypatch, becomes, why):
    client = ClosedByDask(becomes)
    with pytest.warns(UserWarning, match=f"{why}.*the best weights so far are kept"):
        result = train_with(client, monkeypatch, [client.count])
    assert result.status == "cluster lost"
    check_primal(result, medium_classes(), 0.1)


class LostMeanwhile(ClosedByDask):
    """A client whose scheduler dies while parts work: their futures are cancelled."""

    def count(self, progress):
        self.rounds_left -= 1

    def scatter(self, things, **options):
        self.refuse()  # or waits for half a minute
        return things

    def submit(self, *arguments, **options):
        future = super().submit(*arguments, **options)
        return future if self.rounds_left > 0 else CancelledByDask(self)


class CancelledByDask(FakeFuture):
    """The future of a client that has just lost its scheduler."""

    def __init__(self, client):
        super().__init__(None, True)
        self.client = client

    @property
    def status(self):
        self.client.status = self.client.becomes
        return "cancelled"


def test_parts_are_not_sent_where_the_scheduler_is_lost(monkeypatch):
    client = LostMeanwhile("connecting")
    with pytest.warns(UserWarning, match="no scheduler for.*the best weights so far are kept"):
        result = train_with(client, monkeypatch, [client.count])
    assert result.status == "cluster lost"
    check_primal(result, medium_classes(), 0.1)


class Full(FakeClient):
    """From some round on no worker remembers a part, or has room for one."""

    def __init__(self):
        super().__init__()
        self.rounds_left = 5

    def count(self, progress):
        self.rounds_left -= 1
        if self.rounds_left == 0:
            dask_executor._PARTS.clear()
            self.takes = False

    def scatter(self, things, **options):
        if not self.takes:
            raise TimeoutError
        return things


def test_no_worker_takes_a_part_again(monkeypatch):
    client = Full()
    with pytest.warns(UserWarning, match="no worker accepts shard 0; 5 were tried"):
        result = train_with(client, monkeypatch, [client.count])
    assert result.status == "cluster lost"
    check_primal(result, medium_classes(), 0.1)


class Forgetful(FakeClient):
    """The first worker that certifies dies of it."""

    def __init__(self):
        super().__init__()
        self.n_lost = 0

    def submit(self, function, *arguments, workers, **options):
        future = super().submit(function, *arguments, workers=workers, **options)
        if arguments[3] == "measure" and not self.n_lost:
            future.status = "lost"
            self.n_lost = 1
        return future


def test_a_worker_is_lost_while_a_certificate_is_computed(monkeypatch):
    client = Forgetful()
    result = train_with(client, monkeypatch, max_time=0.0)
    assert client.n_lost == 1 and result.status == "max_time"
    check_primal(result, medium_classes(), 0.1)


class Deadly(FakeClient):
    """Every worker dies of the second part."""

    def submit(self, function, *arguments, workers, **options):
        future = super().submit(function, *arguments, workers=workers, **options)
        if arguments[1] == 1:
            future.status = "lost"
        return future


def test_a_part_that_no_worker_survives(monkeypatch):
    with pytest.raises(RuntimeError, match="shard 1 was sent to 10 workers in a row"):
        train_with(Deadly(), monkeypatch)


# ----- on a cluster ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    """Two workers, processes of their own."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster, Client(cluster) as client:
        yield client


def load(folder, first, end):
    """Some examples of a file, on a worker."""
    with np.load(folder / "data.npz") as arrays:
        return MulticlassProblem(arrays["X"][first:end], arrays["y"][first:end], 4)


def pids(client):
    return client.run(os.getpid)


@pytest.mark.parametrize("method", ["auto", "one_slack"])
def test_a_cluster_does_what_one_process_does(client, method):
    for problem in (medium_classes(), medium_chains()):
        solver = mm.ClusterSolver(cluster=client, method=method, n_shards=3, tol=1e-2)
        result = solver.solve(problem, Formulation(), 0.1)
        assert result.converged and result.n_examples == 200
        check_primal(result, problem, 0.1)
        whole = Auto(tol=1e-5).solve(problem, Formulation(), 0.1)
        assert whole.dual <= result.primal <= 1.0102 * whole.primal
    if method == "auto":
        again = solver.solve(problem, Formulation(), 0.1)
        assert again.w.tobytes() == result.w.tobytes()


def test_estimators_and_long_weights(client, monkeypatch):
    """Weights that are long are passed on from worker to worker."""
    monkeypatch.setattr(dask_executor, "SCATTERED", 0)
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(30)]
    y = [rng.integers(0, 3, 4).tolist() for _ in range(30)]
    alone = mm.SequenceTagger(C=0.1, tol=1e-4).fit(X, y)
    model = mm.SequenceTagger(C=0.1, tol=1e-4, training={"cluster": client}).fit(X, y)
    assert model.result_.primal == pytest.approx(alone.result_.primal, rel=2e-4)
    assert model.predict(X) == alone.predict(X)
    trees = mm.TreeLabeler(C=0.1, tol=1e-3, training={"cluster": client})
    shards = [rng.normal(size=(20, 2)) for _ in range(3)]
    labels = rng.integers(0, 2, (20, 3))
    found = trees.fit(shards, labels).result_
    expected = mm.TreeLabeler(C=0.1, tol=1e-4).fit(shards, labels).result_
    assert found.primal == pytest.approx(expected.primal, rel=2e-3)


def test_a_worker_is_killed(client, tmp_path):
    """Its part is read again elsewhere, and the result certified as ever."""
    problem = medium_classes()
    X = problem.rows.dense
    np.savez(tmp_path / "data.npz", X=X, y=problem.labels)
    problem = MulticlassProblem(X, problem.labels, 4)
    loaders = [partial(load, tmp_path, first, first + 50) for first in range(0, 200, 50)]
    killed = []

    def kill_one(progress):
        if len(killed) < 2 and progress.oracle_calls > 600 * (len(killed) + 1):
            worker, pid = min(pids(client).items())
            os.kill(pid, signal.SIGKILL)
            killed.append(worker)

    solver = mm.ClusterSolver(cluster=client, tol=1e-4)  # time for both to start again
    result = solver.solve(loaders, Formulation(), 0.1, callbacks=[kill_one])
    assert len(killed) == 2 and result.converged
    check_primal(result, problem, 0.1)
    whole = Auto(tol=1e-6).solve(problem, Formulation(), 0.1)
    assert result.dual <= whole.primal and whole.dual <= result.primal


def test_a_stuck_worker_keeps_nobody_waiting(client):
    client.wait_for_workers(2)
    problem, stopped = medium_classes(), []

    def stop_one(progress):
        if not stopped and progress.oracle_calls > 600:
            stopped.append(min(pids(client).items())[1])
            os.kill(stopped[0], signal.SIGSTOP)

    solver = mm.ClusterSolver(cluster=client, tol=1e-4, timeout=0.5, n_shards=2)
    try:
        result = solver.solve(problem, Formulation(), 0.1, callbacks=[stop_one])
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):  # its nanny may have lost patience
                os.kill(pid, signal.SIGCONT)
    assert stopped and result.converged
    check_primal(result, problem, 0.1)


def test_an_interrupt_keeps_the_best_model(client):
    rounds = []

    def interrupt(progress):
        rounds.append(progress)
        if len(rounds) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    problem = medium_chains()
    solver = mm.ClusterSolver(cluster=client, tol=1e-9)
    result = solver.solve(problem, Formulation(), 1.0, callbacks=[interrupt])
    assert result.status == "interrupted" and not result.converged
    check_primal(result, problem, 1.0)
    assert result.dual <= result.primal


def test_copies_of_what_has_a_client(client):
    """A clone shares it, a pickle has its address, from which it is trained again elsewhere."""
    address = client.scheduler.address
    X, y = np.eye(4), [0, 1, 0, 1]
    model = mm.MulticlassSVM(training={"cluster": client}).fit(X, y)
    assert clone(model).training.cluster is client
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert copied.training.cluster == address and model.training["cluster"] is client
        assert copied.predict(X).tolist() == model.predict(X).tolist()
    assert copied.fit(X, y).result_.primal == model.result_.primal
    options = mm.TrainingOptions(cluster=client.cluster)
    assert pickle.loads(pickle.dumps(options)).cluster == address
    assert clone(mm.MulticlassSVM(training=options)).training.cluster is client.cluster
    solver = mm.ClusterSolver(cluster=client, tol=0.1)
    assert not hasattr(solver, "start") and solver.limits(3).seconds is None
    assert pickle.loads(pickle.dumps(solver)) == mm.ClusterSolver(cluster=address, tol=0.1)
    assert dask_executor.address_of(object()) is None


def test_a_cluster_that_does_not_answer_is_noticed_before_data_are_read(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(dask_executor, "CONNECTING", 0.5)
    (tmp_path / "bad.txt").write_text("a B\nc\n")
    train = ["train", "tag", str(tmp_path / "bad.txt"), "-o", str(tmp_path / "m")]
    refused(train, "bad.txt", capsys)
    refused([*train, "--cluster", "tcp://127.0.0.1:1"], "--cluster tcp://127.0.0.1:1", capsys, 2)


def test_command_line(client, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "train.txt", 30)
    train = ["train", "tag", "train.txt", "--tol", "1e-3", "-q"]
    assert main([*train, "-o", "alone.mm"]) == 0
    assert main([*train, "-o", "model.mm", "--cluster", client.scheduler.address]) == 0
    alone, model = (mm.load(name) for name in ("alone.mm", "model.mm"))
    assert model.result_.primal == pytest.approx(alone.result_.primal, rel=2e-3)
    assert model.training == mm.TrainingOptions()
    to = ["--cluster", client.scheduler.address]
    assert main([*train, "-o", "stream.mm", "--stream", *to]) == 0
    assert mm.load("stream.mm").result_.primal == pytest.approx(alone.result_.primal, rel=2e-3)
    gc.collect()
    assert not [name for name in os.listdir() if "packed" in name]
    elsewhere = [*train, "-o", "m", "--cluster", "x"]
    refused([*elsewhere, "--solver", "sda"], "auto or one_slack", capsys, 2)
    refused([*elsewhere, "--slack", "none"], "hard margins", capsys, 2)


def test_a_cluster_without_workers_is_no_defect(tmp_path, monkeypatch, capsys):
    LocalCluster = pytest.importorskip("distributed").LocalCluster
    monkeypatch.setattr(dask_executor.DaskExecutor, "_wait_seconds", 0.2)
    write_corpus(tmp_path / "train.txt", 3)
    train = ["train", "tag", str(tmp_path / "train.txt"), "-o", str(tmp_path / "m")]
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as nobody:
        assert main([*train, "--cluster", nobody.scheduler_address]) == 1
    said = capsys.readouterr().err
    assert "has no workers yet" in said and "no workers for 0.2 s\n" in said


class Faulty(mm.Problem):
    """Fails where it is asked."""

    n_features = 2

    def most_violated(self, x, y, w, rescaling):
        raise ZeroDivisionError("of the user's own")


def test_errors_of_parts_arrive(client):
    solver = mm.ClusterSolver(cluster=client)
    with pytest.raises(ZeroDivisionError, match="of the user's own"):
        solver.solve(Faulty().bind([0, 1], [0, 1]), Formulation(), 1.0)
    shards = [partial(MulticlassProblem, np.eye(k), np.arange(k)) for k in (2, 3)]
    with pytest.raises(ValueError, match=r"different numbers of features: \[4, 9\]"):
        solver.solve(shards, Formulation(), 1.0)
    with pytest.raises(FileNotFoundError):
        solver.solve([partial(load, Path("/nowhere"), 0, 1)], Formulation(), 1.0)


def test_what_is_refused():
    with pytest.raises(ValueError, match="must be 'auto' or 'one_slack', got 'sda'"):
        mm.SequenceTagger(solver="sda", training={"cluster": "tcp://127.0.0.1:1"}).fit(
            [[[1.0]]], [["a"]]
        )
    with pytest.raises(ValueError, match="n_shards must be >= 1"):
        mm.ClusterSolver(cluster="x", n_shards=0)
    with pytest.raises(ValueError, match="slack must be in"):
        mm.ClusterSolver(cluster="x").solve(medium_classes(), Formulation(slack="none"), 1.0)
    with pytest.raises(ValueError, match="cluster must be a dask"):
        mm.ClusterSolver(cluster=3).solve(medium_classes(), Formulation(), 1.0)


def test_without_dask():
    """All but the training itself can be done, and it says what is missing."""
    script = (
        "import sys\n"
        "sys.modules['distributed'] = sys.modules['dask'] = None\n"
        "import maxmargin as mm\n"
        "mm.ClusterSolver, mm.MulticlassSVM()\n"
        "try:\n"
        "    training = {'cluster': 'tcp://127.0.0.1:1'}\n"
        "    mm.MulticlassSVM(training=training).fit([[0.0], [1.0]], [0, 1])\n"
        "except ImportError as error:\n"
        "    assert 'maxmargin[distributed]' in str(error), error\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_address_without_a_port_is_refused_before_dask_waits_for_it():
    with pytest.raises(ValueError, match=r"address of a scheduler such as .*got 'nonsense'"):
        dask_executor.as_client("nonsense")
