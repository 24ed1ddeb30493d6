"""Drawn faces: 5,000 images, 8 parts, 400 positions each, mean deviation in per cent of the size.

The setting of Franc (2014), LANDMARK, on generated data: a tree of deformable parts, epsilon = 0.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from maxmargin.core.formulation import C_from_paper
from maxmargin.datasets import FACE_TREE, make_faces
from maxmargin.problems.tree.grid_parts import GridLayout, GridPartsProblem, pack_maps
from maxmargin.problems.tree.labels import root_tree

from ..case import Case, Floats, Options, Target
from ..solvers import ours

FASOLE_PASSES = {1.0: 8, 0.1: 15, 0.01: 39}  # Table 2, on the paper's own images
SIDE, PATCH = 20, 9
MOST_SECONDS = 120.0


def part_layout(y: NDArray[np.int64]) -> GridLayout:
    """The tree of parts, with the anchors and spreads of the positions."""
    parent, order = root_tree(y.shape[1], FACE_TREE)
    inner = parent >= 0
    offsets = y[:, inner] - y[:, parent[inner]]
    anchors, spreads = np.zeros((len(parent), 2)), np.ones((len(parent), 2))
    anchors[inner], spreads[inner] = offsets.mean(axis=0), np.maximum(1.0, offsets.std(axis=0))
    return GridLayout(parent, order, PATCH, 1, anchors, spreads)


def problem_maker(
    images: Floats, y: NDArray[np.int64], layout: GridLayout | None = None
) -> Callable[[int | None], GridPartsProblem]:
    """Makes the problem of the first so many images, or of all."""
    layout = layout or part_layout(y)
    maps = list(images[..., None])

    @cache
    def problem(limit: int | None = None) -> GridPartsProblem:
        return GridPartsProblem(pack_maps(maps[:limit], PATCH), y[:limit], layout)

    return problem


def cases(options: Options) -> Iterator[Case]:
    """The paper's grid of lambda."""
    n = options.size(quick=60, full=5000) or 5000
    drawn = make_faces(n, 1, size=SIDE)
    problem = problem_maker(drawn.X_train, drawn.y_train)
    for penalty, paper in FASOLE_PASSES.items():
        C = C_from_paper(penalty, n, "franc")
        yield Case(
            f"faces lambda = {penalty:g}, epsilon = 0.1",
            [
                ours(name, problem, C, epsilon=0.1)
                for name in options.of_ours(["auto", "fasole", "sdm"])
            ],
            [
                Target("time of auto", "auto", "cpu", "paper: hours", "s", at_most=MOST_SECONDS),
                Target("passes of auto", "auto", "passes", f"paper's fasole, faces: {paper}"),
                Target("passes of fasole", "fasole", "passes", f"paper, its faces: {paper}"),
                Target("passes of sdm", "sdm", "passes"),
            ],
            problem,
            C,
        )
