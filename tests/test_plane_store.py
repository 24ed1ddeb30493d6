"""Plane stores: random sequences of operations, what a visit reports, other bounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from brute import all_planes
from brute_dependency import tree_case
from cases import BASIC_IDS, BASIC_KINDS, chain_case, make_case, multiclass_case
from checking import expand_blocks
from maxmargin.core.cutting_planes import Planes
from maxmargin.core.formulation import Formulation
from maxmargin.core.problem import Problem
from maxmargin.engine.oracle import Oracle
from maxmargin.engine.steps.block_steps import ALL_PLANES, FRANK_WOLFE, MVP, WSS2
from maxmargin.engine.store.block_store import StepRule, make_store
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.engine.training.verifying import hinge_values
from maxmargin.problems.classes.multiclass import ClassStore, MulticlassProblem
from maxmargin.problems.dependency.store import TreeStore
from stores import (
    PLENTY,
    check_store,
    operations,
    rules,
    run_operations,
    seeds,
    stored_planes,
    sweeps,
)


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
@pytest.mark.parametrize("loss", ["zero_one", "costs"])
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
    report = store.oracle_pass(np.arange(n), StepRule(ALL_PLANES, 0))
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
        store.oracle_pass(np.arange(5), rule)
    before = store.oracle_pass(np.array([0]), StepRule(ALL_PLANES, 1)).gaps[0]
    after = store.oracle_pass(np.array([0]), StepRule(ALL_PLANES, 0)).gaps[0]
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
        loss=data.draw(st.sampled_from(["hamming", "normalized_hamming"])),
        projective=data.draw(st.booleans()),
    )
    n = case.problem.n_examples
    caps = data.draw(st.sampled_from([0.01, 0.1, 20.0])) * rng.uniform(0.2, 2.0, n)
    slack, its_rules = data.draw(st.sampled_from([("l1", rules), ("l2", sweeps)]))
    oracle = Oracle(case.problem, Formulation(slack=slack, sqrt_loss=False))
    store = make_store(oracle, caps, PLENTY)
    assert isinstance(store, TreeStore)
    run_operations(store, case.twin, data.draw(operations(n, its_rules)))
    hinges = store.oracle_pass(np.arange(n), StepRule(WSS2, 0)).hinges
    expected = hinge_values(case.problem, store.formulation, store.w)
    np.testing.assert_allclose(hinges, expected, atol=1e-9)
    listed = list(stored_planes(store))[::-1]
    rows, parts = store.plane_rows(np.array([p for *_, p in listed], np.int64))
    for (_, _, plane, *_), first, last in zip(listed, rows.first, rows.last, strict=True):
        found = expand_blocks(parts, rows.ids[first:last], rows.values[first:last], len(store.w))
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
            store.oracle_pass(np.arange(20), StepRule(ALL_PLANES, 5))
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
        ("oracle_pass", every, StepRule(WSS2, 1)),
        ("extrapolate", 0.0),
        ("oracle_pass", every, StepRule(ALL_PLANES, 5, 0.1)),
        ("extrapolate", 3.0),
        ("cached_pass", every, StepRule(FRANK_WOLFE, 2)),
        ("oracle_pass", every, StepRule(MVP, 2, 0.0, 0.01)),
        ("evict", 1),
        ("compact", False),
        ("cached_pass", every, StepRule(MVP, 2)),
        ("compact", True),
        ("oracle_pass", every, StepRule(WSS2, 3)),
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
        store.oracle_pass(every, StepRule(WSS2, 1))
    report = store.oracle_pass(every, StepRule(WSS2, 0))
    blocks = all_planes(case.twin, store.formulation)
    slacks = [max(0.0, (b - A @ store.w).max()) for b, A in blocks]
    assert np.allclose(np.maximum(report.hinges, 0.0), slacks)
    primal = 0.5 * store.w @ store.w + caps @ slacks
    assert report.gaps.sum() == pytest.approx(primal - store.dual())
    again = store.oracle_pass(every, StepRule(WSS2, 0))
    assert np.allclose(report.gaps, again.gaps)
    # What was found is stored, so that a revisit sees the same gaps.
    assert np.allclose(store.cached_pass(every, StepRule(WSS2, 0)), report.gaps)


def test_a_small_gap_is_left_alone():
    case = chain_case(np.random.default_rng(1))
    store = PlaneStore(Oracle(case.problem, Formulation()), np.ones(4), PLENTY)
    report = store.oracle_pass(np.arange(4), StepRule(WSS2, 5, threshold=100.0))
    assert np.all(report.gaps > 0) and store.n_planes == 0 and not store.w.any()
    between = np.sort(report.gaps)[1:3].mean()
    store.oracle_pass(np.arange(4)[report.gaps > 0], StepRule(WSS2, 5, threshold=between))
    assert 0 < store.n_planes < 4


def test_a_plane_is_stored_once():
    case = chain_case(np.random.default_rng(1))
    store = PlaneStore(Oracle(case.problem, Formulation()), np.ones(4), PLENTY)
    for _ in range(3):
        store.oracle_pass(np.arange(4), StepRule(WSS2, 0))
    assert store.n_planes == 4


def test_revisits_of_blocks_without_planes():
    case = chain_case(np.random.default_rng(1))
    store = PlaneStore(Oracle(case.problem, Formulation()), np.ones(4), PLENTY)
    assert not store.cached_pass(np.arange(4), StepRule(WSS2, 5)).any()
    assert store.cached_pass(np.arange(0), StepRule(WSS2, 5)).shape == (0,)
    assert store.oracle_pass(np.arange(0), StepRule(WSS2, 5)).gaps.shape == (0,)
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
    store.oracle_pass(np.arange(2), StepRule(WSS2, 0))
    for _, offset, plane, *_ in stored_planes(store):
        assert offset == 1.0 and plane.tolist() == [1.5, 2.0, 0.0]
    store.cached_pass(np.arange(2), StepRule(WSS2, 1))
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
            store.oracle_pass(every, StepRule(ALL_PLANES, 50, 0.1))
            store.extrapolate(3.0)
        check_store(store)


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
        store.oracle_pass(every, StepRule(WSS2, 3))
        store.extrapolate(0.0)
    w, (linear, _) = store.w.copy(), store.dual_sums()
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
    assert np.array_equal(store.upper_bounds, new)
    dual = check_store(store)
    if kind in ("same", "larger", "smaller"):
        # Optimal planes stay those in use, with as much weight as C allows and the dual gains by.
        assert np.allclose(store.w, w * min(factor[0], linear / (w @ w)))
    for _ in range(3):  # the store goes on under the new bounds, the once empty block too
        store.extrapolate(1.0)
        store.oracle_pass(every, StepRule(WSS2, 3))
        after = check_store(store)
        assert after >= dual - 1e-10 * (1 + abs(dual))
        dual = after
