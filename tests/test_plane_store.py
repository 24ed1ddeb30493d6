"""The plane stores: whatever is done to them, weights, multipliers and dual belong together."""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from brute import all_planes
from brute_dependency import tree_case
from cases import BASIC_IDS, BASIC_KINDS, chain_case, make_case, multiclass_case
from checking import expand_parts
from maxmargin.engine.block_steps import ALL_PLANES, COORDINATES, FRANK_WOLFE, MVP, WSS2
from maxmargin.engine.oracle import Oracle, hinge_values
from maxmargin.engine.planes import PlaneStore, StepRule, make_store
from maxmargin.formulation import Formulation
from maxmargin.plane_rows import Planes
from maxmargin.problem import Problem
from maxmargin.problems.classes.multiclass import ClassStore, MulticlassProblem
from maxmargin.problems.dependency.scores import arc_features
from maxmargin.problems.dependency.store import TreeStore

PLENTY = 10**9
seeds = st.integers(0, 2**32 - 1)
rules = st.builds(
    StepRule,
    kind=st.sampled_from([FRANK_WOLFE, MVP, WSS2, ALL_PLANES]),
    max_steps=st.sampled_from([0, 1, 3, 30]),
    precision=st.sampled_from([0.0, 0.1]),
    threshold=st.sampled_from([0.0, 0.05]),
    delta=st.sampled_from([0.0, 0.1]),
    recombine=st.booleans(),
    seed=st.integers(0, 2**31 - 2),
)
sweeps = rules.map(lambda rule: rule._replace(kind=COORDINATES))


# ----- what a store holds, read from its arrays --------------------------------------------------


def stored_planes(store):
    """``(block, offset, dense plane, multiplier, alive, id)`` of each plane in the arena."""
    arena = store.arena
    for i in range(len(store.caps)):
        known = []  # the block's own dictionary of parts
        p = store.blocks.first[i]
        while p >= 0:
            known += list(arena.new_features[arena.new_start[p] : arena.new_start[p + 1]])
            entries = slice(arena.entry_start[p], arena.entry_start[p + 1])
            used = [known[f] for f in arena.ids[entries]]
            plane = expand(store, i, used, arena.values[entries])
            yield i, arena.offset[p], plane, arena.alpha[p], bool(arena.alive[p]), p
            p = arena.next_plane[p]


def expand(store, i, used, values):
    """Dense vector of a plane of block i."""
    if not isinstance(store, TreeStore):
        return expand_parts(store.parts, used, values, len(store.w))
    arcs, dense = store.trees.arcs, np.zeros(len(store.w))
    first, end = arcs.bounds[i : i + 2]
    for number, value in zip(used, values, strict=True):
        arc, label = divmod(number, arcs.n_labels) if arcs.n_labels else (number, -1)
        features = np.empty(1000, np.int32)
        count = arc_features(arcs, first, *divmod(arc, end - first), label, features)
        np.add.at(dense, features[:count], value)
    return dense


def class_planes(store):
    """The same for a multiclass store, whose planes are implied."""
    problem = store.oracle.problem
    for i, row in enumerate(store.alpha):
        truth, x = problem.labels[i], problem.X[i]
        right = problem.joint_feature(x, truth).toarray().ravel()
        for y, alpha in enumerate(row):
            plane = right - problem.joint_feature(x, y).toarray().ravel()
            offset, scale = store.terms.offsets[truth, y], store.terms.scales[truth, y]
            yield i, offset, scale * plane, alpha, True, None


def check_store(store):
    """Everything the `BlockStore` contract promises; returns the dual by its definition."""
    listed = list(class_planes(store) if isinstance(store, ClassStore) else stored_planes(store))
    w, linear, sums = np.zeros(len(store.w)), 0.0, np.zeros(len(store.caps))
    for i, offset, plane, alpha, alive, _ in listed:
        assert alpha >= 0.0
        assert alive or alpha == 0.0, "a dropped plane carries weight"
        w += alpha * plane
        linear += alpha * offset
        sums[i] += alpha
    size = 1.0 + linear + w @ w
    dual = linear - 0.5 * float(w @ w)
    if store.formulation.slack == "l2":
        used = store.caps > 0
        assert not sums[~used].any()
        dual -= float(np.sum(sums[used] ** 2 / (4.0 * store.caps[used])))
    else:
        assert np.all(sums <= store.caps * (1.0 + 1e-9))
    assert np.allclose(store.w, w, atol=1e-9 * size)
    assert store.dual_now[0] == pytest.approx(dual, abs=1e-9 * size)
    assert store.dual() == pytest.approx(dual, abs=1e-9 * size)
    if isinstance(store, PlaneStore):
        assert store.n_planes == sum(alive for *_, alive, _ in listed)
        assert len(listed) == store.used[0]
        check_gram(store, listed)
    return dual


def check_gram(store, listed):
    """The products of planes of one block that steps rely on."""
    arena = store.arena
    for i in range(len(store.caps)):
        block = [(p, plane) for j, _, plane, _, alive, p in listed if j == i and alive]
        for later, (p, plane) in enumerate(block):
            for q, other in block[: later + 1]:
                product = arena.gram[arena.gram_start[p] + arena.position[q]]
                assert product == pytest.approx(plane @ other, abs=1e-9)


def check_planes_are_genuine(store, twin):
    """Every stored plane is that of an output (true as long as none were merged)."""
    genuine = all_planes(twin, store.formulation)
    for i, offset, plane, *_ in stored_planes(store):
        b, A = genuine[i]
        distance = np.abs(b - offset) + np.abs(A - plane).max(axis=1)
        assert distance.min() < 1e-9


# ----- random sequences of operations ------------------------------------------------------------


def operations(n, rules=rules):
    some = st.lists(st.integers(0, n - 1), min_size=1, max_size=2 * n)
    return st.lists(
        st.one_of(
            st.tuples(st.just("visit"), some, rules),
            st.tuples(st.just("visit"), st.just(list(range(n))), rules),
            st.tuples(st.just("revisit"), some, rules),
            st.tuples(st.just("extrapolate"), st.sampled_from([0.0, 1.0, 3.0])),
            st.tuples(st.just("evict"), st.integers(0, 3)),
            st.tuples(st.just("compact"), st.booleans()),
        ),
        min_size=4,
        max_size=15,
    )


def apply(store, operation, *arguments):
    """Carry out one drawn operation; returns the gain it claims, if it does."""
    if operation == "visit":
        examples, rule = arguments
        report = store.visit(np.array(examples), rule)
        assert report.gaps.shape == report.hinges.shape == (len(examples),)
        assert np.all(report.gaps >= -1e-9)
    elif operation == "revisit":
        examples, rule = arguments
        assert np.all(store.revisit(np.array(examples), rule) >= -1e-9)
    elif operation == "extrapolate":
        return store.extrapolate(*arguments)
    elif operation == "evict":
        store.evict(*arguments)
    elif isinstance(store, PlaneStore):
        store._compact(merge=arguments[0])
    return None


def run_operations(store, twin, drawn):
    dual, merged = check_store(store), False
    for operation, *arguments in drawn:
        gain = apply(store, operation, *arguments)
        after = check_store(store)
        size = 1.0 + abs(after)
        assert after >= dual - 1e-10 * size, f"{operation} lowered the dual"
        if gain is not None:
            assert gain == pytest.approx(after - dual, abs=1e-9 * size)
        if operation in ("evict", "compact"):
            assert after == pytest.approx(dual, abs=1e-9 * size)
        merged |= operation == "compact" and arguments[0]
        if isinstance(store, PlaneStore) and not merged:
            check_planes_are_genuine(store, twin)
        dual = after


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize(("structure", "loss"), BASIC_KINDS, ids=BASIC_IDS)
@settings(max_examples=15)
@given(data=st.data())
def test_the_general_store(structure, loss, rescaling, data):
    rng = np.random.default_rng(data.draw(seeds))
    case = make_case(structure, rng, loss=loss)
    n = case.problem.n_examples
    caps = data.draw(st.sampled_from([0.1, 1.0, 20.0])) * rng.uniform(0.2, 2.0, n)
    caps[rng.integers(n)] = 0.0
    store = PlaneStore(Oracle(case.problem, Formulation(rescaling)), caps, PLENTY)
    run_operations(store, case.twin, data.draw(operations(n)))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("loss", ["zero-one", "costs"])
@settings(max_examples=30)
@given(data=st.data())
def test_the_multiclass_store(loss, layout, data):
    """Also with two classes, which share weights, and with many, of which few are scored."""
    rng = np.random.default_rng(data.draw(seeds))
    case = multiclass_case(
        rng,
        loss=loss,
        K=data.draw(st.sampled_from([2, 3, 4, 7, 9, 20])),
        fit_intercept=data.draw(st.booleans()),
        layout=layout,
        n_inputs=data.draw(st.sampled_from([1, 3, 6])),
    )
    n = case.problem.n_examples
    caps = data.draw(st.sampled_from([0.1, 1.0, 20.0])) * rng.uniform(0.2, 2.0, n)
    caps[rng.integers(n)] = 0.0
    rescaling = data.draw(st.sampled_from(["margin", "slack", "none"]))
    slack, its_rules = data.draw(st.sampled_from([("l1", rules), ("l2", sweeps)]))
    store = make_store(Oracle(case.problem, Formulation(rescaling, slack)), caps, PLENTY)
    assert isinstance(store, ClassStore)
    run_operations(store, case.twin, data.draw(operations(n, its_rules)))
    report = store.visit(np.arange(n), StepRule(ALL_PLANES, 0))
    expected = Oracle(case.problem, store.formulation).violations(store.w).hinges
    np.testing.assert_allclose(report.hinges, expected, atol=1e-9)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("slack", ["l1", "l2"])
@settings(max_examples=30)
@given(seed=seeds, C=st.sampled_from([0.05, 1.0, 50.0]), K=st.sampled_from([2, 3, 8, 12]))
def test_a_visit_solves_a_block_of_classes(layout, slack, seed, C, K):
    """Whatever classes are listed before: all that may get weight take part."""
    case = multiclass_case(np.random.default_rng(seed), n=5, K=K, layout=layout)
    store = make_store(Oracle(case.problem, Formulation("margin", slack)), np.full(5, C), PLENTY)
    for rule in (StepRule(WSS2, 1), StepRule(ALL_PLANES, 1), StepRule(WSS2, 2)):
        store.visit(np.arange(5), rule)
    before = store.visit(np.array([0]), StepRule(ALL_PLANES, 1)).gaps[0]
    after = store.visit(np.array([0]), StepRule(ALL_PLANES, 0)).gaps[0]
    assert abs(after) <= 1e-9 * (1.0 + before)


@pytest.mark.parametrize("n_labels", [0, 2])
@settings(max_examples=25)
@given(data=st.data())
def test_the_store_of_dependency_trees(n_labels, data):
    """Also with squared slacks and their sweeps, with either kind of tree and all steps."""
    rng = np.random.default_rng(data.draw(seeds))
    case = tree_case(
        rng,
        lengths=(3, 1, 4, 2) if n_labels == 0 else (2, 1, 3),
        n_labels=n_labels,
        loss=data.draw(st.sampled_from(["hamming", "normalized-hamming"])),
        projective=data.draw(st.booleans()),
    )
    n = case.problem.n_examples
    caps = data.draw(st.sampled_from([0.01, 0.1, 20.0])) * rng.uniform(0.2, 2.0, n)
    slack, its_rules = data.draw(st.sampled_from([("l1", rules), ("l2", sweeps)]))
    oracle = Oracle(case.problem, Formulation(slack=slack, sqrt_loss=False))
    store = make_store(oracle, caps, PLENTY)
    assert isinstance(store, TreeStore)
    run_operations(store, case.twin, data.draw(operations(n, its_rules)))
    hinges = store.visit(np.arange(n), StepRule(WSS2, 0)).hinges
    expected = hinge_values(case.problem, store.formulation, store.w)
    np.testing.assert_allclose(hinges, expected, atol=1e-9)
    listed = list(stored_planes(store))[::-1]
    rows, parts = store.plane_rows(np.array([p for *_, p in listed], np.int64))
    for (_, _, plane, *_), first, last in zip(listed, rows.first, rows.last, strict=True):
        found = expand_parts(parts, rows.ids[first:last], rows.values[first:last], len(store.w))
        np.testing.assert_allclose(found, plane, atol=1e-12)


@pytest.mark.parametrize("width", [1, 7, 8, 63, 64])
@pytest.mark.parametrize("bias", [False, True])
def test_dense_and_sparse_classes_have_the_same_weights(width, bias):
    rng = np.random.default_rng(width)
    X, y = rng.normal(size=(20, width)), rng.integers(0, 3, 20)
    stores = []
    for features in (X, sp.csr_array(X)):
        problem = MulticlassProblem(features, y, 3, fit_intercept=bias)
        store = make_store(Oracle(problem, Formulation()), np.ones(20), PLENTY)
        for factor in (0.0, 1.0):
            store.visit(np.arange(20), StepRule(ALL_PLANES, 5))
            store.extrapolate(factor)
        stores.append(store)
    dense, sparse = stores
    assert dense.w.shape == (3 * (width + bias),)
    np.testing.assert_allclose(dense.w, sparse.w, atol=1e-12)
    before = dense.w
    dense.rebuild()
    np.testing.assert_allclose(dense.w, before, atol=1e-12)


@pytest.mark.nojit
@pytest.mark.parametrize("structure", ["multiclass", "chain", "trees"])
def test_stores_without_compilation(structure):
    rng = np.random.default_rng(2)
    case = tree_case(rng) if structure == "trees" else make_case(structure, rng)
    every = list(range(case.problem.n_examples))
    caps = np.full(len(every), 2.0)
    drawn = [
        ("visit", every, StepRule(WSS2, 1)),
        ("extrapolate", 0.0),
        ("visit", every, StepRule(ALL_PLANES, 5, 0.1)),
        ("extrapolate", 3.0),
        ("revisit", every, StepRule(FRANK_WOLFE, 2)),
        ("visit", every, StepRule(MVP, 2, 0.0, 0.01)),
        ("evict", 1),
        ("compact", False),
        ("revisit", every, StepRule(MVP, 2)),
        ("compact", True),
        ("visit", every, StepRule(WSS2, 3)),
    ]
    for store in (
        make_store(Oracle(case.problem, Formulation()), caps, PLENTY),
        PlaneStore(Oracle(case.problem, Formulation("slack")), caps, PLENTY),
    ):
        run_operations(store, case.twin, drawn)


# ----- what a visit reports ----------------------------------------------------------------------


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "classes"])
def test_gaps_and_hinges_at_a_fixed_w(compact):
    """Without steps the gaps add up to the duality gap, and hinges are the slacks."""
    rng = np.random.default_rng(0)
    case = multiclass_case(rng, loss="costs")
    caps, every = rng.uniform(0.5, 2.0, 6), np.arange(6)
    make = make_store if compact else PlaneStore
    store = make(Oracle(case.problem, Formulation()), caps, PLENTY)
    for _ in range(2):
        store.visit(every, StepRule(WSS2, 1))
    report = store.visit(every, StepRule(WSS2, 0))
    blocks = all_planes(case.twin, store.formulation)
    slacks = [max(0.0, (b - A @ store.w).max()) for b, A in blocks]
    assert np.allclose(np.maximum(report.hinges, 0.0), slacks)
    primal = 0.5 * store.w @ store.w + caps @ slacks
    assert report.gaps.sum() == pytest.approx(primal - store.dual())
    again = store.visit(every, StepRule(WSS2, 0))
    assert np.allclose(report.gaps, again.gaps)
    # What was found is stored, so that a revisit sees the same gaps.
    assert np.allclose(store.revisit(every, StepRule(WSS2, 0)), report.gaps)


def test_a_small_gap_is_left_alone():
    case = chain_case(np.random.default_rng(1))
    store = PlaneStore(Oracle(case.problem, Formulation()), np.ones(4), PLENTY)
    report = store.visit(np.arange(4), StepRule(WSS2, 5, threshold=100.0))
    assert np.all(report.gaps > 0) and store.n_planes == 0 and not store.w.any()
    between = np.sort(report.gaps)[1:3].mean()
    store.visit(np.arange(4)[report.gaps > 0], StepRule(WSS2, 5, threshold=between))
    assert 0 < store.n_planes < 4


def test_a_plane_is_stored_once():
    case = chain_case(np.random.default_rng(1))
    store = PlaneStore(Oracle(case.problem, Formulation()), np.ones(4), PLENTY)
    for _ in range(3):
        store.visit(np.arange(4), StepRule(WSS2, 0))
    assert store.n_planes == 4


def test_revisits_of_blocks_without_planes():
    case = chain_case(np.random.default_rng(1))
    store = PlaneStore(Oracle(case.problem, Formulation()), np.ones(4), PLENTY)
    assert not store.revisit(np.arange(4), StepRule(WSS2, 5)).any()
    assert store.revisit(np.arange(0), StepRule(WSS2, 5)).shape == (0,)
    assert store.visit(np.arange(0), StepRule(WSS2, 5)).gaps.shape == (0,)
    assert store.extrapolate(3.0) == 0.0
    store.evict(1)
    assert check_store(store) == 0.0


class RepeatedColumns(Problem):
    """A row may name a column twice, or name one whose values cancel."""

    n_features = 3
    n_examples = 2

    def oracle(self, indices, w, rescaling="margin", sqrt_loss=False):
        n = len(indices)
        return Planes(
            np.arange(n + 1) * 5,
            np.tile(np.array([0, 1, 0, 2, 2], np.int32), n),
            np.tile([1.0, 2.0, 0.5, 1.0, -1.0], n),
            np.ones(n),
        )


def test_repeated_columns_add_up():
    store = PlaneStore(Oracle(RepeatedColumns(), Formulation()), np.ones(2), PLENTY)
    store.visit(np.arange(2), StepRule(WSS2, 0))
    for _, offset, plane, *_ in stored_planes(store):
        assert offset == 1.0 and plane.tolist() == [1.5, 2.0, 0.0]
    store.revisit(np.arange(2), StepRule(WSS2, 1))
    check_store(store)


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "classes"])
def test_extrapolation_does_not_drift(compact):
    """Rounding of ``w`` must not be extrapolated along with it, round after round."""
    for seed in range(12):
        case = (multiclass_case if compact else chain_case)(np.random.default_rng(seed))
        every = np.arange(case.problem.n_examples)
        store = make_store(Oracle(case.problem, Formulation()), np.full(len(every), 100.0), PLENTY)
        store.extrapolate(0.0)
        for _ in range(150):
            store.visit(every, StepRule(ALL_PLANES, 50, 0.1))
            store.extrapolate(3.0)
        check_store(store)


# ----- eviction ----------------------------------------------------------------------------------


def busy_store(cache_bytes=PLENTY, C=10.0, seed=0):
    """Twelve sequences of 64 outputs each, so that far more planes exist than a budget holds."""
    case = chain_case(np.random.default_rng(seed), lengths=[3] * 12, n_inputs=8, K=4)
    return PlaneStore(Oracle(case.problem, Formulation()), np.full(12, C), cache_bytes), case


def test_idle_planes_are_dropped_and_used_ones_kept():
    store, case = busy_store()
    every = np.arange(12)
    for _ in range(15):
        store.visit(every, StepRule(WSS2, 2))
    before = [(i, plane) for i, _, plane, alpha, _, _ in stored_planes(store) if alpha > 0]
    dual, n_planes = store.dual(), store.n_planes
    assert len(before) < n_planes
    store.evict(10**6)
    assert store.n_planes == n_planes, "no plane was idle that long"
    for _ in range(3):
        store.revisit(every, StepRule(WSS2, 0, threshold=-1.0))
    store.evict(0)
    assert store.n_planes == len(before)
    assert store.n_evicted == n_planes - len(before)
    kept = [(i, plane) for i, _, plane, _, alive, _ in stored_planes(store) if alive]
    for i, plane in before:
        assert any(i == j and np.allclose(plane, other) for j, other in kept)
    assert check_store(store) == pytest.approx(dual)
    check_planes_are_genuine(store, case.twin)
    store.visit(every, StepRule(WSS2, 2))
    assert check_store(store) >= dual


# A compaction shrinks the dictionary of a block. Its kernel must not write past an array, so this
# runs uncompiled, where that is an error and not a crash.
SHRINKING_DICTIONARY = """
import numpy as np
from maxmargin.engine.block_steps import WSS2
from maxmargin.formulation import Formulation
from maxmargin.engine.oracle import Answer, Oracle
from maxmargin.engine.planes import PlaneStore, StepRule
from maxmargin.problem import Problem
from maxmargin.plane_rows import Planes

class Empty(Problem):
    n_features, n_examples = 400, 1

store = PlaneStore(Oracle(Empty(), Formulation()), np.ones(1), 10**8)
rng = np.random.default_rng(0)

def add(features, loss, steps):
    row = Planes(np.array([0, len(features)]), np.array(features, np.int32),
                 0.1 * rng.normal(size=len(features)), np.array([float(loss)]))
    answer = Answer(row, *store.formulation.plane_terms(row.losses))
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


@pytest.mark.parametrize("cache_bytes", [60_000, 70_000, 80_000, 90_000])
def test_the_budget_is_kept(cache_bytes, caplog):
    store, _ = busy_store(cache_bytes)
    free, _ = busy_store()
    every, dual = np.arange(12), 0.0
    caplog.set_level(logging.WARNING, "maxmargin")
    for k in range(60):
        for some in store, free:
            some.visit(every, StepRule(WSS2, 3))
            some.extrapolate(0.0 if k == 0 else 1.0)
        assert store.nbytes <= cache_bytes
        after = check_store(store)
        assert after >= dual - 1e-10 * abs(dual)
        dual = after
    assert not caplog.records, "one plane per example fits many times"
    assert store.n_planes <= free.n_planes
    # Bounded memory slows the ascent down; it does not stop it.
    assert dual >= 0.9 * free.dual()


def test_merging_happens_under_pressure(caplog):
    caplog.set_level(logging.DEBUG, "maxmargin")
    store, _ = busy_store(40_000)
    for _ in range(60):
        store.visit(np.arange(12), StepRule(WSS2, 3))
    assert any("merging" in record.message for record in caplog.records)


def test_a_budget_too_small_for_one_plane_each_says_so(caplog):
    store, _ = busy_store(1_000)
    dual = 0.0
    for _ in range(10):
        store.visit(np.arange(12), StepRule(WSS2, 3))
        after = check_store(store)
        assert after >= dual - 1e-10 * abs(dual)
        dual = after
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 1 and "cache_mb is too small" in warned[0].message
    assert store.nbytes < 200_000  # merged all the same, not grown without end
    assert dual > 0.0


def test_nbytes_counts_all_arrays_of_planes():
    store, _ = busy_store()
    empty = store.nbytes
    for _ in range(20):
        store.visit(np.arange(12), StepRule(WSS2, 3))
    planes, entries, features, gram = store.used
    least = 12 * entries + 4 * features + 8 * gram + 8 * planes
    assert store.nbytes >= max(least, empty)


@given(seed=seeds, C=st.sampled_from([0.1, 1.0, 30.0]), rounds=st.integers(1, 6))
def test_merging_keeps_weights_and_dual(seed, C, rounds):
    store, _ = busy_store(C=C, seed=seed % 5)
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        store.visit(rng.permutation(12)[:8], StepRule(WSS2, 2))
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
    report = store.visit(np.arange(12), StepRule(WSS2, 0))
    assert np.all(report.gaps >= -1e-9)


def test_merging_planes_that_have_no_weight_yet():
    """A pass without steps may leave a block several planes, all with multiplier 0."""
    store, _ = busy_store()
    every = np.arange(12)
    for _ in range(4):
        store.visit(every[:6], StepRule(WSS2, 2))
        store.visit(every, StepRule(WSS2, 0))  # w has moved: new planes for the others
    fresh = store.arena.alpha[: store.used[0]][store.arena.block[: store.used[0]] == 11]
    assert len(fresh) > 1 and not fresh.any()
    dual = store.dual()
    store._compact(merge=True)
    assert check_store(store) == pytest.approx(dual)
    for _, offset, plane, *_ in stored_planes(store):
        assert np.isfinite(offset) and np.isfinite(plane).all()


# ----- other bounds ------------------------------------------------------------------------------


@pytest.mark.parametrize("compact", [False, True], ids=["planes", "classes"])
@given(data=st.data())
def test_rescaling_fits_new_bounds(compact, data):
    rng = np.random.default_rng(data.draw(seeds))
    case = multiclass_case(rng, loss="costs")
    make = make_store if compact else PlaneStore
    caps = rng.uniform(0.5, 2.0, 6)
    caps[0] = 0.0
    store = make(Oracle(case.problem, Formulation()), caps, PLENTY)
    every = np.arange(6)
    for _ in range(3):
        store.visit(every, StepRule(WSS2, 3))
        store.extrapolate(0.0)
    w = store.w.copy()
    kind = data.draw(st.sampled_from(["same", "larger", "smaller", "mixed", "some zero"]))
    factor = {
        "same": np.ones(6),
        "larger": np.full(6, 10.0),
        "smaller": np.full(6, 0.01),
        "mixed": rng.uniform(0.1, 10.0, 6),
        "some zero": rng.integers(0, 2, 6).astype(float),
    }[kind]
    new = caps * factor
    new[0] = 1.0
    store.rescale(new)
    assert np.array_equal(store.caps, new)
    dual = check_store(store)
    if kind in ("same", "larger", "smaller"):
        assert np.allclose(store.w, w * factor[0])  # optimal planes stay those in use
    for _ in range(3):  # the store goes on under the new bounds, the once empty block too
        store.extrapolate(1.0)
        store.visit(every, StepRule(WSS2, 3))
        after = check_store(store)
        assert after >= dual - 1e-10 * (1 + abs(dual))
        dual = after
