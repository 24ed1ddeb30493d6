"""What tests of plane stores share: what a store holds, and random sequences of operations."""

import numpy as np
import pytest
from hypothesis import strategies as st

from brute import all_planes
from checking import expand_blocks
from maxmargin.engine.steps.block_steps import ALL_PLANES, COORDINATES, FRANK_WOLFE, MVP, WSS2
from maxmargin.engine.store.block_store import StepRule
from maxmargin.engine.store.planes import PlaneStore
from maxmargin.problems.classes.multiclass import ClassStore
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
    for i in range(len(store.upper_bounds)):
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
        return expand_blocks(store.feature_blocks, used, values, len(store.w))
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
    w, linear, sums = np.zeros(len(store.w)), 0.0, np.zeros(len(store.upper_bounds))
    for i, offset, plane, alpha, alive, _ in listed:
        assert alpha >= 0.0
        assert alive or alpha == 0.0, "a dropped plane carries weight"
        w += alpha * plane
        linear += alpha * offset
        sums[i] += alpha
    size = 1.0 + linear + w @ w
    dual = linear - 0.5 * float(w @ w)
    if store.formulation.slack == "l2":
        used = store.upper_bounds > 0
        assert not sums[~used].any()
        dual -= float(np.sum(sums[used] ** 2 / (4.0 * store.upper_bounds[used])))
    else:
        assert np.all(sums <= store.upper_bounds * (1.0 + 1e-9))
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
    for i in range(len(store.upper_bounds)):
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
            st.tuples(st.just("cached_pass"), some, rules),
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
        report = store.oracle_pass(np.array(examples), rule)
        assert report.gaps.shape == report.hinges.shape == (len(examples),)
        assert np.all(report.gaps >= -1e-9)
    elif operation == "cached_pass":
        examples, rule = arguments
        assert np.all(store.cached_pass(np.array(examples), rule) >= -1e-9)
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
