"""Arrays that the kernels for dependency trees work on, and the tuples they come in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...types import Floats, Hashes, Ints, Ints32
from .features import BETWEEN_HEAD, BETWEEN_MODIFIER, N_BUCKETS, ArcKeys
from .scores import count_fixed

__all__ = ["DependencyOptions", "DependencyScratch", "FoundTrees", "make_work", "most_arc_features"]


class DependencyOptions(NamedTuple):
    """Which trees are searched, and what is lost by a wrong one."""

    projective: bool
    single_root: bool
    normalized: bool
    zero_one: bool


class FoundTrees(NamedTuple):
    """Heads and labels by node, and a loss or score by sentence."""

    heads: Ints32
    labels: Ints32
    losses: Floats


class DependencyScratch(NamedTuple):
    """Scratch for sentences of up to N nodes; few arrays, for each costs time to compile.

    Attributes
    ----------
    scores, labels : arrays of shape (N, N)
        Scores and best labels of all arcs.
    gold_scores : array of shape (2, N)
        Scores of the true arcs, and of the same arcs under their best wrong labels.
    wrong : array of int of shape (2, N)
        Tokens whose arc is wrong; those whose true head goes with a wrong label.
    alone, passed : arrays
        For `score_arcs`.
    label_alone, label_scores : arrays
        For `score_labels`.
    features : array of shape (2, ...)
        Features of a true arc and of another.
    chart, stack : arrays of shape (4, N, N) and (2 N + 4, 3)
        For `eisner`.
    gain, target, cycles : arrays of shape (2 N, N), (2 N, N) and (6, 2 N)
        For `edmonds`.
    """

    scores: Floats
    labels: Ints32
    gold_scores: Floats
    wrong: Ints32
    alone: Floats
    passed: Hashes
    label_alone: Floats
    label_scores: Floats
    features: Ints32
    chart: Floats
    stack: Ints
    gain: Floats
    target: Ints32
    cycles: Ints32


def make_work(arcs: ArcKeys, longest: int, projective: bool) -> DependencyScratch:
    """Scratch for sentences of at most ``longest`` nodes, the root included."""
    N, K = longest, arcs.n_labels
    E, V = (N, 0) if projective else (0, 2 * N)
    L = N if K else 0
    return DependencyScratch(
        np.zeros((N, N)),  # the diagonal stands for no arc: never set, but added to
        _ints(L, L),
        np.empty((2, N)),
        _ints(2, N),
        np.empty((2, N, 2, N_BUCKETS)),
        np.empty(N, np.uint64),
        np.empty((2, L, 2, K)),
        np.empty(K),
        _ints(2, most_arc_features(arcs, N)),
        np.empty((4, E, E)),
        np.empty((2 * E + 4, 3), np.int64),
        np.empty((V, N)),
        _ints(V, N),
        _ints(6, V),
    )


def most_arc_features(arcs: ArcKeys, n_nodes: int) -> int:
    """Upper bound on the features of an arc in a sentence of so many nodes."""
    n_between = int(arcs.starts[BETWEEN_MODIFIER] - arcs.starts[BETWEEN_HEAD])
    return int(count_fixed(arcs)) + n_between * n_nodes


def _ints(*shape: int) -> Ints32:
    """An empty array of int32."""
    return np.empty(shape, dtype=np.int32)
