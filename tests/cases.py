"""Random small problems, each with its brute-force twin."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from brute import ChainTwin, MulticlassTwin, Twin
from maxmargin.core.cutting_planes import Planes
from maxmargin.core.problem import Problem
from maxmargin.problems.chain.layout import ChainConstraints
from maxmargin.problems.chain.problem import ChainProblem
from maxmargin.problems.classes.multiclass import MulticlassProblem, class_scores

CLASS_LOSSES = ("zero_one", "costs")
CHAIN_LOSSES = ("hamming", "normalized_hamming", "zero_one")
#: The structures that solvers have kernels of their own for, with every loss they have.
BASIC_KINDS = [("multiclass", loss) for loss in CLASS_LOSSES] + [
    ("chain", loss) for loss in CHAIN_LOSSES
]
BASIC_IDS = [f"{structure}-{loss}" for structure, loss in BASIC_KINDS]
LAYOUTS = ("dense", "csr", "integers", "float32", "csr-float32")


class Case(NamedTuple):
    problem: Problem
    twin: Twin


def as_layout(X, layout):
    """The matrix in one of the forms a user may hand over."""
    if layout == "integers":
        return np.rint(2 * X).astype(np.int64)
    X = X.astype(np.float32) if layout.endswith("float32") else X
    return sp.csr_matrix(X) if layout.startswith("csr") else X


def random_inputs(rng, n, n_inputs, layout="dense"):
    """Normal features; sparse layouts have zeros, among them whole rows."""
    X = rng.normal(size=(n, n_inputs))
    if layout.startswith("csr"):
        X *= rng.random(X.shape) < 0.4
    return as_layout(X, layout)


def random_costs(rng, K):
    costs = rng.uniform(0.2, 3.0, (K, K))
    np.fill_diagonal(costs, 0.0)
    return costs


def multiclass_case(
    rng, *, n=6, n_inputs=3, K=3, loss="zero_one", fit_intercept=False, layout="dense"
):
    X = random_inputs(rng, n, n_inputs, layout)
    y = rng.integers(0, K, n)
    options = {"fit_intercept": fit_intercept}
    if loss == "costs":
        options["costs"] = random_costs(rng, K)
    elif loss == "own costs":
        costs, rows = label_costs(rng, y, K, "free" if K > 2 else "random", own_rows=True)
        options |= {"costs": costs, "cost_rows": rows}
    return Case(MulticlassProblem(X, y, K, **options), MulticlassTwin(X, y, K, **options))


def label_costs(rng, labels, K, kind, own_rows):
    """Costs by true label, or a row for each token; see `chain_case`."""
    truths = rng.permutation(labels) if own_rows else np.arange(K)
    costs = rng.uniform(0.2, 3.0, (len(truths), K))
    if kind != "random":
        costs = np.ceil(costs)
    if kind == "free":
        costs *= rng.random(costs.shape) < 0.6
        costs[0, :2] = 0.0  # one at least, whatever was drawn
    costs[np.arange(len(truths)), truths] = 0.0
    if not own_rows:
        return costs, None
    # Tokens of the same label may have different rows.
    rows = np.empty(len(labels), np.int64)
    for k in range(K):
        rows[labels == k] = np.flatnonzero(truths == k)
    return costs, rows


def random_constraints(rng, K):
    """Some forbidden transitions, first and last labels."""
    return ChainConstraints(rng.random((K, K)) < 0.7, rng.random(K) < 0.8, rng.random(K) < 0.8)


def chain_case(
    rng,
    *,
    lengths=(3, 1, 2, 3),
    n_inputs=2,
    K=3,
    loss="hamming",
    fit_intercept=False,
    boundary_weights=False,
    constrained=False,
    layout="dense",
    costs=None,
    own_rows=False,
):
    """Chains; their ``costs`` are "random", "whole" or "free": some wrong labels cost nothing."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = random_inputs(rng, offsets[-1], n_inputs, layout)
    options = {
        "loss": loss,
        "fit_intercept": fit_intercept,
        "boundary_weights": boundary_weights,
        "constraints": None,
    }
    labels = rng.integers(0, K, offsets[-1])
    while constrained and K > 1:
        # The truth has to be allowed, so it is drawn from all that is; some example must have a
        # choice. Where that is impossible, new constraints are drawn.
        options["constraints"] = random_constraints(rng, K)
        twin = ChainTwin(tokens, offsets, labels, K, **options)
        allowed = [twin.outputs(i) for i in range(len(lengths))]
        if all(allowed) and max(len(ys) for ys in allowed) > 1:
            labels = np.concatenate([ys[rng.integers(len(ys))] for ys in allowed])
            break
    if costs is not None:
        options["costs"], options["cost_rows"] = label_costs(rng, labels, K, costs, own_rows)
    return Case(
        ChainProblem(tokens, offsets, labels, K, **options),
        ChainTwin(tokens, offsets, labels, K, **options),
    )


def decode_chains(case, w):
    problem = case.problem
    labels = problem.decoder.decode(problem.data.inputs, problem.data.offsets, w)
    return [tuple(path.tolist()) for path in np.split(labels, problem.data.offsets[1:-1])]


def decode_classes(case, w):
    scores = class_scores(case.problem.rows, w, case.problem.n_classes)
    assert np.allclose(
        scores,
        [[w @ case.twin.psi(i, y) for y in case.twin.outputs(i)] for i in range(len(scores))],
    )
    return np.argmax(scores, axis=1).tolist()


def make_case(structure, rng, **options):
    return (
        multiclass_case(rng, **options) if structure == "multiclass" else chain_case(rng, **options)
    )


def small_oracle_rows(answers, n_classes):
    """Planes of answers ``(x, truth, candidate, loss)``, with all entries of both psi."""
    indices, values = [], []
    for x, truth, candidate, _ in answers:
        for f, value in enumerate(x):
            indices += [f * n_classes + truth, f * n_classes + candidate]
            values += [value, -value]
    indptr = np.cumsum([0] + [2 * len(x) for x, *_ in answers])
    losses = np.array([loss for *_, loss in answers])
    return Planes(indptr, np.array(indices, np.int32), np.array(values), losses)
