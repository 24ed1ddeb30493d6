"""Drawn faces: 5,000 images, 8 parts, 400 positions each, mean deviation in per cent of the size.

The setting of Franc (2014), LANDMARK, on generated data: a tree of deformable parts, epsilon = 0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from maxmargin.core.formulation import C_from_paper
from maxmargin.datasets import FACE_TREE, make_faces
from maxmargin.problems.tree.grid_parts import GridLayout, GridPartsProblem, pack_maps
from maxmargin.problems.tree.labels import root_tree

from ..case import Case, Options, Target
from ..solvers import ours

FASOLE_PASSES = {1.0: 8, 0.1: 15, 0.01: 39}  # Table 2, on the paper's own images
SIDE, PATCH = 20, 9
MOST_SECONDS = 120.0


def cases(options: Options) -> Iterator[Case]:
    """The paper's grid of lambda."""
    n = options.size(quick=60, full=5000) or 5000
    faces = make_faces(n, 1, size=SIDE)
    images = list(faces.X_train[..., None])
    parent, order = root_tree(faces.y_train.shape[1], FACE_TREE)
    inner = parent >= 0
    offsets = faces.y_train[:, inner] - faces.y_train[:, parent[inner]]
    anchors, spreads = np.zeros((len(parent), 2)), np.ones((len(parent), 2))
    anchors[inner], spreads[inner] = offsets.mean(axis=0), np.maximum(1.0, offsets.std(axis=0))
    layout = GridLayout(parent, order, PATCH, 1, anchors, spreads)

    @cache
    def problem(limit: int | None = None) -> GridPartsProblem:
        return GridPartsProblem(pack_maps(images[:limit], PATCH), faces.y_train[:limit], layout)

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
