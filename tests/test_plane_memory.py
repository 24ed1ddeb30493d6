"""Plane stores: planes that are dropped, and the budget of memory."""

import functools
import logging
import os
import subprocess
import sys
import tracemalloc
import weakref
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import chain_case
from maxmargin.core.cutting_planes import Planes
from maxmargin.core.formulation import Formulation
from maxmargin.datasets import make_sentences
from maxmargin.engine.cuts import working_sets
from maxmargin.engine.oracle import Oracle, OracleResult
from maxmargin.engine.steps.block_steps import WSS2
from maxmargin.engine.store.arena import LARGE, SMALL, entry_types, grown
from maxmargin.engine.store.block_store import StepRule
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.features import WindowFeatures
from maxmargin.jit.compiling import ANNOUNCEMENT
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.solvers import make_solver
from stores import (
    PLENTY,
    check_planes_are_genuine,
    check_store,
    seeds,
    stored_planes,
)

# ----- eviction ----------------------------------------------------------------------------------


def busy_store(cache_bytes=PLENTY, C=10.0, seed=0):
    """Twelve sequences of 64 outputs each, so that far more planes exist than a budget holds."""
    case = chain_case(np.random.default_rng(seed), lengths=[3] * 12, n_inputs=8, K=4)
    return PlaneStore(Oracle(case.problem, Formulation()), np.full(12, C), cache_bytes), case


def test_idle_planes_are_dropped_and_used_ones_kept():
    store, case = busy_store()
    every = np.arange(12)
    for _ in range(15):
        store.oracle_pass(every, StepRule(WSS2, 2))
    before = [(i, plane) for i, _, plane, alpha, _, _ in stored_planes(store) if alpha > 0]
    dual, n_planes = store.dual(), store.n_planes
    assert len(before) < n_planes
    store.evict(10**6)
    assert store.n_planes == n_planes, "no plane was idle that long"
    for _ in range(3):
        store.cached_pass(every, StepRule(WSS2, 0, threshold=-1.0))
    store.evict(0)
    assert store.n_planes == len(before)
    assert store.n_evicted == n_planes - len(before)
    kept = [(i, plane) for i, _, plane, _, alive, _ in stored_planes(store) if alive]
    for i, plane in before:
        assert any(i == j and np.allclose(plane, other) for j, other in kept)
    assert check_store(store) == pytest.approx(dual)
    check_planes_are_genuine(store, case.twin)
    store.oracle_pass(every, StepRule(WSS2, 2))
    assert check_store(store) >= dual


# A compaction shrinks the dictionary of a block. Its kernel must not write past an array, so this
# runs uncompiled, where that is an error and not a crash.
SHRINKING_DICTIONARY = """
import numpy as np
from maxmargin.engine.steps.block_steps import WSS2
from maxmargin.core.formulation import Formulation
from maxmargin.engine.cuts import working_sets
from maxmargin.engine.oracle import OracleResult, Oracle
from maxmargin.engine.store.block_store import StepRule
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.core.problem import Problem
from maxmargin.core.cutting_planes import Planes

class Empty(Problem):
    n_features, n_examples = 400, 1

store = PlaneStore(Oracle(Empty(), Formulation()), np.ones(1), 10**8)
rng = np.random.default_rng(0)

def add(features, loss, steps):
    row = Planes(np.array([0, len(features)]), np.array(features, np.int32),
                 0.1 * rng.normal(size=len(features)), np.array([float(loss)]))
    answer = OracleResult(row, *store.formulation.plane_terms(row.losses))
    store.absorb(np.array([0]), answer, StepRule(WSS2, steps))

add(range(300, 400), 0.01, 0)
add(range(300), 3.0, 1)
for k in range(40):  # three quarters of the features that live planes know
    add(rng.permutation(300)[:225], 10.0 + k, 1)
    store.arena.alpha[1 : store.used[0]] = 0.02
store.w[:] = 0.0
n_planes = store.n_planes
store.arena.idle[0] = 100
store.evict(50)
assert store.n_planes == n_planes - 1, store.n_planes
store._compact()
assert store.used[0] == n_planes - 1
"""


def test_a_compaction_stays_within_its_arrays():
    run = subprocess.run(
        [sys.executable, "-c", SHRINKING_DICTIONARY],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr


# ----- the budget --------------------------------------------------------------------------------


@pytest.mark.parametrize("cache_bytes", [32_000, 36_000, 40_000, 50_000])
def test_the_budget_is_kept(cache_bytes, caplog):
    store, _ = busy_store(cache_bytes)
    free, _ = busy_store()
    every, dual = np.arange(12), 0.0
    caplog.set_level(logging.WARNING, "maxmargin")
    for k in range(60):
        for some in store, free:
            some.oracle_pass(every, StepRule(WSS2, 3))
            some.extrapolate(0.0 if k == 0 else 1.0)
        assert store.nbytes <= cache_bytes
        after = check_store(store)
        assert after >= dual - 1e-10 * abs(dual)
        dual = after
    told = [record for record in caplog.records if record.msg != ANNOUNCEMENT]  # of compiling
    assert not told, "one plane per example fits many times"
    assert store.n_planes <= free.n_planes
    # Bounded memory slows the ascent down; it does not stop it.
    assert dual >= 0.9 * free.dual()


def test_merging_happens_under_pressure(caplog):
    caplog.set_level(logging.DEBUG, "maxmargin")
    store, _ = busy_store(24_000)
    for _ in range(60):
        store.oracle_pass(np.arange(12), StepRule(WSS2, 3))
    assert any("merging" in record.message for record in caplog.records)
    assert entry_types(store.arena) is LARGE


def test_a_budget_too_small_for_one_plane_each_says_so(caplog):
    store, _ = busy_store(1_000)
    dual = 0.0
    for _ in range(10):
        store.oracle_pass(np.arange(12), StepRule(WSS2, 3))
        after = check_store(store)
        assert after >= dual - 1e-10 * abs(dual)
        dual = after
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warned and all("cache_mb is too small" in record.message for record in warned)
    said = [float(record.message.split()[-2]) * 2**20 for record in warned]
    assert all(more > 1.4 * less for less, more in pairwise(said)), "again only if it is far more"
    assert store.cache_bytes <= 1.6 * said[-1], "what is used, not what was used at first"
    assert store.nbytes < 200_000  # merged all the same, not grown without end
    assert dual > 0.0


def test_nbytes_counts_all_arrays_of_planes():
    store, _ = busy_store()
    empty = store.nbytes
    for _ in range(20):
        store.oracle_pass(np.arange(12), StepRule(WSS2, 3))
    planes, entries, features, gram = store.used
    least = 4 * entries + 4 * features + 8 * gram + 65 * planes
    assert store.nbytes >= max(least, empty)


@given(seed=seeds, C=st.sampled_from([0.1, 1.0, 30.0]), rounds=st.integers(1, 6))
def test_merging_keeps_weights_and_dual(seed, C, rounds):
    store, _ = busy_store(C=C, seed=seed % 5)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        store.oracle_pass(rng.permutation(12)[:8], StepRule(WSS2, 2))
    w, dual = store.w.copy(), store.dual()
    sums = np.bincount(
        store.arena.block[: store.used[0]], store.arena.alpha[: store.used[0]], minlength=12
    )
    store._compact(merge=True)
    assert check_store(store) == pytest.approx(dual, abs=1e-9 * (1.0 + dual))
    assert np.allclose(store.w, w)
    block, alpha = store.arena.block[: store.used[0]], store.arena.alpha[: store.used[0]]
    assert np.allclose(np.bincount(block, alpha, minlength=12), sums)
    assert np.bincount(block, minlength=12).max() <= 1
    # A merged plane is a mean of true ones, so hinges stay lower bounds of the slacks.
    report = store.oracle_pass(np.arange(12), StepRule(WSS2, 0))
    assert np.all(report.gaps >= -1e-9)


def test_merging_planes_that_have_no_weight_yet():
    """A pass without steps may leave a block several planes, all with multiplier 0."""
    store, _ = busy_store()
    every = np.arange(12)
    for _ in range(4):
        store.oracle_pass(every[:6], StepRule(WSS2, 2))
        store.oracle_pass(every, StepRule(WSS2, 0))  # w has moved: new planes for the others
    fresh = store.arena.alpha[: store.used[0]][store.arena.block[: store.used[0]] == 11]
    assert len(fresh) > 1 and not fresh.any()
    dual = store.dual()
    store._compact(merge=True)
    assert check_store(store) == pytest.approx(dual)
    for _, offset, plane, *_ in stored_planes(store):
        assert np.isfinite(offset) and np.isfinite(plane).all()


# ----- types of entries --------------------------------------------------------------------------


def long_store(length):
    """One sequence with so many tokens of four labels, and no planes yet."""
    case = chain_case(np.random.default_rng(0), lengths=[length], n_inputs=3, K=4)
    return PlaneStore(Oracle(case.problem, Formulation()), np.ones(1), PLENTY)


def absorb(store, parts, values, *, loss=5.0, scale=1.0):
    """Offer block 0 a plane of these parts, without steps."""
    rows = Planes(
        np.array([0, len(parts)]), np.array(parts, np.int32), np.array(values), np.array([loss])
    )
    answer = OracleResult(rows, rows.losses, np.array([scale]))
    store.absorb(np.zeros(1, np.int64), answer, StepRule(WSS2, 0))


def entries_of(store, p):
    """Feature blocks and values of plane p of a store with one block."""
    arena = store.arena
    entries = slice(arena.entry_start[p], arena.entry_start[p + 1])
    return arena.new_features[arena.ids[entries]], arena.values[entries]


@pytest.mark.parametrize(
    ("values", "scale", "types"),
    [
        ([1.0, -1.0, 3.0], 1.0, SMALL),
        ([1.0, -1.0, 3.0], 0.3, LARGE),
        ([0.5, -0.5, 2.0], 1.0, LARGE),
        ([0.5, -0.5, 2.0], 2.0, SMALL),
        ([32767.0, 0.0, 0.0], 1.0, SMALL),
        ([32767.0, 0.0, 1.0], 1.0, LARGE),
        ([40000.0, -1.0, 1.0], 1.0, LARGE),
    ],
)
def test_values_are_kept_exactly(values, scale, types):
    store = long_store(3)
    absorb(store, [0, 5], [1.0, -1.0])
    absorb(store, [1, 4, 9], values, loss=1e6, scale=scale)
    assert entry_types(store.arena) is types
    for p, expected in enumerate([([0, 5], [1.0, -1.0]), ([1, 4, 9], scale * np.array(values))]):
        parts, found = entries_of(store, p)
        kept = np.flatnonzero(expected[1])
        np.testing.assert_array_equal(parts, np.array(expected[0])[kept])
        np.testing.assert_array_equal(found, np.array(expected[1])[kept])


def test_entries_of_adding_parts_are_kept_exactly():
    store = long_store(3)
    absorb(store, [2, 2, 7], [20_000.0, 20_000.0, -1.0])
    assert entries_of(store, 0)[1].tolist() == [40_000.0, -1.0]


def test_a_block_with_more_parts_than_small_numbers():
    store = long_store(25_000)
    for k in range(3):
        parts = np.arange(30_000 * k, 30_000 * (k + 1), dtype=np.int32)
        absorb(store, parts, np.where(parts % 2, 1.0, -1.0), loss=10.0 + k)
        assert entry_types(store.arena) is (SMALL if k < 2 else LARGE)
    for p in range(3):
        np.testing.assert_array_equal(
            entries_of(store, p)[0], np.arange(30_000 * p, 30_000 * (p + 1))
        )


def test_a_state_of_an_earlier_version_is_gone_on_from():
    """It had 64 bits for the numbers of planes, and large entries; the outcome is the same."""
    store, _ = busy_store()
    every = np.arange(12)
    for _ in range(4):
        store.oracle_pass(every, StepRule(WSS2, 2))
    arrays = dict(store.arrays())
    old = {"block": np.int64, "next_plane": np.int64, "position": np.int64, **LARGE._asdict()}
    for name, kind in old.items():
        arrays[f"arena.{name}"] = arrays[f"arena.{name}"].astype(kind)
    other, _ = busy_store()
    other.restore(arrays)
    for _ in range(4):
        for some in store, other:
            some.oracle_pass(every, StepRule(WSS2, 2))
            some.evict(2)
    assert entry_types(store.arena) is SMALL and entry_types(other.arena) is LARGE
    assert other.arena.block.dtype == store.arena.block.dtype
    np.testing.assert_array_equal(other.w, store.w)


# ----- all memory of a training ------------------------------------------------------------------


@functools.cache
def sentences():
    """Sentences of 81,060 weights."""
    data = next(make_sentences(800))
    packed = WindowFeatures(["w[0]"]).fit_transform(data.select([0]))
    codes = np.unique(np.array(data.columns[1]), return_inverse=True)[1].astype(np.int32)
    return ChainProblem(packed.tokens, packed.offsets, codes)


def traced(solver, caplog):
    """What training on the sentences gives, and the most memory that it takes."""
    few, small = sentences().subset(np.arange(50)), replace(solver, cache_mb=solver.cache_mb / 16)
    for some in solver, small:  # what compiling takes is not asked for
        some.solve(few, Formulation(), 10.0)
    caplog.clear()
    caplog.set_level(logging.DEBUG, "maxmargin")
    tracemalloc.start()
    try:
        result = solver.solve(sentences(), Formulation(), 10.0)
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "cache_mb", "passes", "per_example"),
    [
        ("auto", 8.0, 12.0, 400),
        ("sda", 8.0, 18.0, 400),
        ("one_slack", 12.0, 6.0, 1040),
        ("n_slack", 6.0, 6.0, 400),
    ],
)
def test_training_adds_no_more_than_the_budget_says(name, cache_mb, passes, per_example, caplog):
    problem = sentences()
    result, peak = traced(make_solver(name, tol=1e-4, max_passes=passes, cache_mb=cache_mb), caplog)
    assert any("to keep within cache_mb" in record.message for record in caplog.records)
    assert not any("too small" in record.message for record in caplog.records)
    vectors, examples = 8 * 8 * problem.n_features, per_example * problem.n_examples
    assert peak <= cache_mb * 2**20 + vectors + examples
    if name in ("auto", "sda"):
        check_store(result.state.store)


def test_one_slack_adds_eight_vectors_even_where_candidates_do_not_fit(caplog):
    problem = sentences()
    _, peak = traced(make_solver("one_slack", tol=1e-4, max_passes=6.0, cache_mb=1.0), caplog)
    assert any("too small for a candidate of each" in record.message for record in caplog.records)
    assert peak <= 2**20 + 8 * 8 * problem.n_features + 1040 * problem.n_examples


def test_warnings_say_what_n_slack_uses(caplog):
    """The first one comes after few examples, when little is used yet."""
    result, peak = traced(make_solver("n_slack", tol=1e-4, max_passes=3.0, cache_mb=0.5), caplog)
    said = [record.args[0] for record in caplog.records if "too small" in record.message]
    assert said == sorted(set(said)) and len(said) > 1
    used = said[-1] * 2**20
    assert result.state.sets.cache_bytes <= 1.5 * used
    assert peak <= 1.5 * used + 8 * 8 * sentences().n_features + 400 * sentences().n_examples


def test_constraints_of_n_slack_are_not_held_twice_while_arrays_grow(monkeypatch):
    replaced = []

    def watched(array, *args, **options):
        assert not any(old() is not None for old in replaced), "kept by some name"
        larger = grown(array, *args, **options)
        if larger is not array:
            replaced.append(weakref.ref(array))
        return larger

    monkeypatch.setattr(working_sets, "grown", watched)
    case = chain_case(np.random.default_rng(0), lengths=[3] * 12, n_inputs=8, K=4)
    make_solver("n_slack", max_passes=20.0, cache_mb=0.01).solve(case.problem, Formulation(), 10.0)
    assert len(replaced) > 10
