"""Graphs of labels: bounds, searches that prove nothing, larger graphs against other solvers."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from brute import all_planes
from brute_graph import graph_case, packed, random_edges
from checking import dense_rows
from exact_qp import solve_exactly
from maxmargin.core.cutting_planes import split_bounds
from maxmargin.core.formulation import Formulation
from maxmargin.engine.packed_problem import sparse_rows
from maxmargin.problems.graph.data import pack_graphs
from maxmargin.problems.graph.kernels import score_of, tighten
from maxmargin.problems.graph.max_flow import best_of_cut
from maxmargin.problems.graph.problem import GraphModel, GraphProblem
from solving import solve

PAIRWISE = ("full", "symmetric", "potts", "directed")


def grid_edges(height, width):
    nodes = np.arange(height * width).reshape(height, width)
    across = np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()], axis=1)
    down = np.stack([nodes[:-1].ravel(), nodes[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def random_graph(rng, n, edges, K, potts=False):
    """A packed graph without features, and scores of its labels."""
    data = packed([(np.ones((n, 1)), edges, np.ones((len(edges), 1)))])
    unary = rng.normal(size=(n, K))
    pair = rng.normal(size=(len(edges), 1, 1) if potts else (len(edges), K, K))
    return data.shapes[0], unary, rng.choice([0.3, 1.0, 3.0]) * pair


def best_score(shape, unary, pair):
    """The score of the best labels, of all listed."""
    n, K = unary.shape
    return max(
        score_of(shape, unary, pair, np.array(labels, np.int64)) for labels in np.ndindex(*[K] * n)
    )


def programmed_score(shape, unary, pair):
    """The score of the best labels, by an integer program over nodes and edges."""
    n, K = unary.shape
    m = len(shape.low)
    tables = pair * np.eye(K) if pair.shape[1] == 1 else pair
    size = n * K + m * K * K
    equations = lil_matrix((n + 2 * m * K, size))
    for s in range(n):
        equations[s, s * K : (s + 1) * K] = 1.0
    row = n
    for e in range(m):
        table = n * K + e * K * K + np.arange(K * K).reshape(K, K)
        for node, columns in ((shape.low[e], table), (shape.high[e], table.T)):
            for k in range(K):
                equations[row, columns[k]] = 1.0
                equations[row, node * K + k] = -1.0
                row += 1
    right = np.concatenate([np.ones(n), np.zeros(2 * m * K)])
    whole = np.concatenate([np.ones(n * K), np.zeros(m * K * K)])
    found = milp(
        -np.concatenate([unary.ravel(), tables.ravel()]),
        constraints=LinearConstraint(equations.tocsr(), right, right),
        integrality=whole,
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert found.success
    return -found.fun


@pytest.mark.nojit
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), potts=st.booleans(), K=st.integers(2, 3))
def test_bounds_hold_at_any_messages(seed, potts, K):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    shape, unary, pair = random_graph(rng, n, random_edges(rng, n, "any"), K, potts)
    m = len(shape.low)
    messages = rng.normal(size=(2, m, K)) * rng.choice([0.0, 1.0, 10.0])
    start = rng.integers(0, K, n)
    value = score_of(shape, unary, pair, start)
    best = best_score(shape, unary, pair)
    for sweeps in (1, 1, 30):
        bound, found = tighten(
            shape, unary, pair, messages[0], messages[1], start, value, 0.0, sweeps
        )
        assert value - 1e-9 <= found <= best + 1e-9 <= bound + 2e-9
        assert found == pytest.approx(score_of(shape, unary, pair, start), abs=1e-9)
        value = found


@pytest.mark.nojit
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), potts=st.booleans())
def test_a_cut_is_the_best_of_two_labels(seed, potts):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 10))
    shape, unary, pair = random_graph(rng, n, random_edges(rng, n, "any"), 2, potts)
    if potts:
        pair = np.abs(pair)
    else:
        lack = pair[:, 0, 1] + pair[:, 1, 0] - pair[:, 0, 0] - pair[:, 1, 1]
        pair[:, 0, 0] += np.maximum(lack, 0.0)
    if rng.random() < 0.3:  # a label that is forbidden
        unary[0, rng.integers(2)] = -np.inf
    labels = np.empty(n, np.int64)
    found = best_of_cut(shape, unary, pair, labels)
    assert found == pytest.approx(best_score(shape, unary, pair), abs=1e-9)
    assert found == score_of(shape, unary, pair, labels)


@pytest.mark.parametrize("seed", range(50))
def test_grids_against_an_integer_program(seed):
    rng = np.random.default_rng(seed)
    K = 2 + seed % 3
    height, width = rng.integers(2, 6, 2)
    n = height * width
    shape, unary, pair = random_graph(rng, n, grid_edges(height, width), K, potts=seed % 2 == 0)
    expected = programmed_score(shape, unary, pair)
    data = packed([(np.ones((n, 1)), grid_edges(height, width), np.ones((len(pair), 1)))])
    for inference, nodes in (("exact", 0), ("auto", 20), ("trws", 0)):
        model = GraphModel(K, "potts" if pair.shape[1] == 1 else "full", inference, nodes)
        model.potentials = lambda *_: (unary.copy(), pair)  # scores, not weights, are drawn
        found = model.predict(data, 0, np.empty(0))
        assert found.score <= expected + 1e-6 <= found.bound + 2e-6
        if inference == "exact":
            assert found.is_proven
        if found.is_proven:
            assert found.score == pytest.approx(expected, abs=1e-6)


def test_a_large_cut_against_trws():
    rng = np.random.default_rng(0)
    shape, unary, pair = random_graph(rng, 900, grid_edges(30, 30), 2, potts=True)
    pair = np.abs(pair)
    labels = np.empty(900, np.int64)
    found = best_of_cut(shape, unary, pair, labels)
    messages = np.zeros((2, len(pair), 2))
    bound, value = tighten(
        shape, unary, pair, messages[0], messages[1], labels.copy(), -np.inf, 0.0, 300
    )
    assert value - 1e-6 <= found <= bound + 1e-6
    assert bound == pytest.approx(found, rel=1e-3)


# ----- the problem --------------------------------------------------------------------------------


def loose_case(rng, **options):
    """Graphs whose searches prove little: large pair weights without order, TRW-S alone."""
    return graph_case(
        rng, sizes=(5, 5, 4), K=3, kind="any", inference="trws", n_edge_inputs=2, **options
    )


@pytest.mark.parametrize("pairwise", PAIRWISE)
def test_bounds_of_the_oracle(pairwise):
    loose = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        case = loose_case(rng, pairwise=pairwise)
        for _ in range(3):
            w = 3.0 * rng.normal(size=case.problem.n_features)
            answer = case.problem.oracle(np.arange(3), w)
            planes, bounds = split_bounds(answer)
            values = planes.losses - dense_rows(planes, len(w)) @ w
            for i, candidates in enumerate(case.twin.listed):
                best = max(0.0, (candidates.losses - candidates.dpsi @ w).max())
                assert values[i] <= best + 1e-9
                if bounds is None:
                    assert values[i] == pytest.approx(best, abs=1e-8)
                else:
                    assert bounds[i] >= best - 1e-8
                    loose += bounds[i] > best + 1e-6
    assert loose > 0 or pairwise in ("symmetric", "potts")
    assert case.problem.n_calls.tolist() == [3, 3, 3]
    assert (case.problem.n_proven <= 3).all()


@pytest.mark.parametrize("inference", ["exact", "trws"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("solver", ["auto", "one_slack", "n_slack"])
def test_certificates_are_true(solver, rescaling, inference):
    formulation = Formulation(rescaling)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        case = graph_case(rng, sizes=(4, 3, 4), K=3 if seed % 2 else 2, inference=inference)
        C = (0.03, 0.3, 1.0, 3.0)[seed]
        result = solve(solver, case.problem, C, formulation, tol=1e-4, max_passes=500)
        exact = solve_exactly(all_planes(case.twin, formulation), C)
        assert result.dual <= exact.primal * (1 + 1e-7) + 1e-9
        assert exact.dual <= result.primal * (1 + 1e-7) + 1e-9
        if inference == "exact" and rescaling == "margin":
            assert result.converged
            assert result.primal == pytest.approx(exact.primal, rel=2e-4)


def test_copies_begin_without_messages():
    case = graph_case(np.random.default_rng(0), sizes=(5, 5), K=3, kind="any", inference="trws")
    problem = case.problem
    w = np.random.default_rng(1).normal(size=problem.n_features)
    before = problem.oracle(np.arange(2), 0.1 * w)
    problem.oracle(np.arange(2), w)
    copy = pickle.loads(pickle.dumps(problem))
    assert copy._messages == [None, None] and None not in problem._messages
    again = split_bounds(copy.oracle(np.arange(2), 0.1 * w))
    for found, expected in zip(again, split_bounds(before), strict=True):
        assert np.array_equal(found, expected) or np.array_equal(found.values, expected.values)


def test_messages_make_the_next_search_tighter():
    case = loose_case(np.random.default_rng(3), pairwise="full")
    w = 3.0 * np.random.default_rng(1).normal(size=case.problem.n_features)
    totals = []
    for _ in range(3):
        planes, bounds = split_bounds(case.problem.oracle(np.arange(3), w))
        values = planes.losses - dense_rows(planes, len(w)) @ w
        totals.append(float(np.sum(values if bounds is None else bounds)))
    assert totals[2] <= totals[1] <= totals[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_labels": 1}, "at least 2 labels, got 1"),
        ({"pairwise": "half"}, "pairwise"),
        ({"inference": "ad3"}, "inference"),
        ({"n_labels": 3, "inference": "max_flow"}, "needs two labels, got 3"),
        ({"max_nodes": -1}, "max_nodes must be at least 0"),
    ],
)
def test_what_a_model_refuses(change, message):
    options = {"n_labels": 2, "pairwise": "full", "inference": "auto", "max_nodes": 10} | change
    with pytest.raises(ValueError, match=message):
        GraphModel(*options.values())


def test_what_a_problem_refuses():
    rng = np.random.default_rng(0)
    case = graph_case(rng)
    data, model = case.problem.data, case.problem.model
    with pytest.raises(ValueError, match="expected 8 labels, got 3"):
        GraphProblem(data, [0, 1, 0], model)
    with pytest.raises(ValueError, match="y"):
        GraphProblem(data, np.full(8, 2), model)
    with pytest.raises(ValueError, match="zeros on the diagonal"):
        GraphProblem(data, np.zeros(8, int), model, costs=np.ones((2, 2)))
    rows = sparse_rows(np.ones((2, 1)))
    ends = np.array([0, 2])
    for pair in ([0, 0], [0, 2], [-1, 0]):
        first, second = np.array([[0, 1], pair]).T.copy()
        with pytest.raises(ValueError, match="graph 0: edge 1 is"):
            pack_graphs(rows, ends, rows, ends, first, second)
