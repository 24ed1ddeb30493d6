"""What trees of labels and trees of parts have in common.

Which search answers which question; what is learned from outputs alone: edges of most information
or rigidity, typical offsets.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from ...core.cutting_planes import Planes, trim
from ...core.formulation import Rescaling
from ...engine.packed_problem import PackedProblem
from ...search.bounded_search import Candidate, Decoder, Violation, best_with_loss, most_violated
from ...search.limits import as_examples, as_weights
from ...search.modes import ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS, SearchMode, search_mode
from ...search.spanning_tree import cheapest_tree
from ...utils.types import Bools, Floats, Ints
from .kernels import LabellingScratch, TreeShape, best_between, rank_labellings, score_labelling

__all__ = [
    "TreeProblem",
    "TreeScores",
    "make_work",
    "scale_offsets",
    "tree_of_labels",
    "tree_of_positions",
]


def make_work(
    n_labels: Ints, most: int, tables: int, side: int, n_error_counts: int
) -> LabellingScratch:
    """Work arrays for trees of at most ``most`` labels a node, on grids of at most ``side``."""
    V = len(n_labels)
    by_error_count = (V, n_error_counts, most) if n_error_counts else (0, 0, 0)
    return LabellingScratch(
        n_labels,
        np.zeros(2, np.int64),
        np.zeros((V, 5)),
        np.zeros(tables),
        np.empty((V, most)),
        np.empty((V, most)),
        np.empty(most),
        np.empty(by_error_count),
        np.empty(by_error_count),
        np.empty(by_error_count),
        np.zeros(V, np.int64),
        np.zeros(V, np.int64),
        np.zeros(V, np.int64),
        np.zeros(V, np.int64),
        np.empty(most if side else 0),
        np.empty(side),
        np.empty(side),
        np.empty(side),
        np.empty(side),
        np.empty(side, np.int64),
    )


class TreeScores(Protocol):
    """Potentials of examples at given weights."""

    work: LabellingScratch

    def fill(self, i: int) -> LabellingScratch:
        """Put the potentials of example i into the work arrays, which are returned."""


class TreeProblem(PackedProblem):
    """Labellings of a tree with their losses; a subclass has the inputs.

    Attributes
    ----------
    labels : array of int, shape (n_examples, n_nodes)
        True labels.
    shape : TreeShape
        The tree.
    loss_name : str
        The loss: "zero_one", or one that adds up over nodes.
    counts_errors : bool
        Whether a wrong node costs the same whatever its label.
    has_free_labels : bool
        Whether a wrong label may cost nothing.
    loss_unit : float
        All losses are multiples of it; 0 if they may have any value.
    """

    in_threads = True

    labels: Ints
    shape: TreeShape
    loss_name: str
    counts_errors: bool = True
    has_free_labels: bool = False
    loss_unit: float = 0.0

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.labels)

    @abstractmethod
    def scores(self, examples: Ints, w: Floats) -> TreeScores:
        """Potentials of these examples."""

    @abstractmethod
    def node_losses(self, i: int) -> Floats:
        """Losses of example i by node and label, shape (n_nodes, at least all labels)."""

    @abstractmethod
    def search(self, examples: Ints, w: Floats, mode: SearchMode, n_error_counts: int) -> Planes:
        """Rows of the most violated labellings, untrimmed, by a search of `kernels`."""

    @abstractmethod
    def write(self, examples: Ints, found: Ints) -> Planes:
        """Rows of these labellings, shape (len(examples), n_nodes), untrimmed."""

    def _most_violated(
        self, examples: Ints, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Planes:
        """Most violated labelling of each listed example."""
        mode = search_mode(rescaling, sqrt_loss, self.loss_name == "zero_one")
        find: Callable[[Decoder, Floats], Candidate | None] | None = None
        if mode.kind == ERROR_COUNTS and not self.counts_errors:
            violation = Violation(mode.slack, mode.sqrt_loss)
            find = partial(most_violated, violation=violation, unit=self.loss_unit)
        elif mode.kind == BEST_NON_GOLD and self.has_free_labels:
            find = partial(best_with_loss, free_counts=rescaling == "margin")
        if find is not None:
            return trim(self.write(examples, self._find(examples, w, find)))
        n_error_counts = {ADDITIVE: 0, BEST_NON_GOLD: 2, ERROR_COUNTS: len(self.shape.order) + 1}[
            mode.kind
        ]
        return trim(self.search(examples, w, mode, n_error_counts))

    def k_best(
        self,
        indices: Ints,
        w: Floats,
        k: int,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """The k best wrong labellings of each listed example; see `Problem.k_best`."""
        kind = search_mode(rescaling, sqrt_loss, self.loss_name == "zero_one").kind
        if kind == ERROR_COUNTS or (kind == BEST_NON_GOLD and self.has_free_labels):
            raise ValueError(
                "the k best labellings of trees are found for losses that add up over nodes: use "
                "rescaling='margin' with sqrt_loss=False, or 'none', or loss='zero_one'"
            )
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, self.n_features)
        repeated = np.repeat(examples, k)
        found = self.labels[repeated]
        scores = self.scores(examples, w)
        for r, i in enumerate(examples.tolist()):
            work = scores.fill(i)
            if kind == ADDITIVE:
                losses = self.node_losses(i)
                work.unary[:, : losses.shape[1]] += losses
            ranked, _ = rank_labellings(self.shape, work, k + 1)
            wrong = ranked[(ranked != self.labels[i]).any(axis=1)][:k]
            found[r * k : r * k + len(wrong)] = wrong
        return trim(self.write(repeated, found))

    def _find(
        self, examples: Ints, w: Floats, find: Callable[[Decoder, Floats], Candidate | None]
    ) -> Ints:
        """Most violated labellings where losses have no levels, by a search of `bounded_search`."""
        found = self.labels[examples]
        scores = self.scores(examples, w)
        for r, i in enumerate(examples.tolist()):
            work, losses = scores.fill(i), self.node_losses(i)
            decode = _decoder(self.shape, work, losses, self.labels[i])
            best = find(decode, losses.max(axis=1))
            if best is not None:
                found[r] = best.output
        return found


def _decoder(shape: TreeShape, work: LabellingScratch, losses: Floats, gold: Ints) -> Decoder:
    """The search for sums of gain and loss; see `bounded_search`."""
    gold_score = score_labelling(shape, work, gold)
    nodes = np.arange(len(gold))

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        score = best_between(shape, work, losses, lower, upper, multiplier)
        slots = losses[nodes, work.path]
        return Candidate(work.path.copy(), slots, float(slots.sum()), float(score - gold_score))

    return decode


# ----- from outputs alone ------------------------------------------------------------------------


def tree_of_labels(codes: Ints, n_labels: Ints) -> list[tuple[int, int]]:
    """The tree of largest mutual information between neighbours (Chow and Liu).

    Negative codes are labels that are not known; pairs with such are not counted.
    """
    from sklearn.metrics import mutual_info_score

    V = codes.shape[1]
    information = np.zeros((V, V))
    for a in range(V):
        for b in range(a):
            counts = np.zeros((n_labels[a], n_labels[b]))
            known = (codes[:, a] >= 0) & (codes[:, b] >= 0)
            np.add.at(counts, (codes[known, a], codes[known, b]), 1.0)
            if known.any():
                information[a, b] = mutual_info_score(None, None, contingency=counts)
    return cheapest_tree(-information)


def tree_of_positions(positions: Ints, known: Bools) -> list[tuple[int, int]]:
    """The tree whose offsets between neighbours, where both are known, vary least."""
    offsets = positions[:, :, None, :] - positions[:, None, :, :]
    if known.all():
        return cheapest_tree(offsets.var(axis=0).sum(axis=2))
    both = known[:, :, None] & known[:, None, :]
    V = positions.shape[1]
    spread = np.full((V, V), np.inf)
    for a, b in zip(*np.nonzero(both.any(axis=0)), strict=True):
        spread[a, b] = offsets[both[:, a, b], a, b].var(axis=0).sum()
    seen = np.isfinite(spread)
    spread[~seen] = 1.0 + 2.0 * spread[seen].max(initial=0.0)  # rather any other edge
    return cheapest_tree(spread)


def scale_offsets(positions: Ints, parent: Ints, known: Bools) -> tuple[Floats, Floats]:
    """Mean and spread, at least one pixel, of the offset of each node from its parent."""
    inner = parent >= 0
    anchors, spreads = np.zeros((len(parent), 2)), np.ones((len(parent), 2))
    offsets = positions[:, inner] - positions[:, parent[inner]]
    if known.all():
        anchors[inner] = offsets.mean(axis=0)
        spreads[inner] = np.maximum(1.0, offsets.std(axis=0))
        return anchors, spreads
    both = known[:, inner] & known[:, parent[inner]]
    for place, v in enumerate(np.flatnonzero(inner)):
        if both[:, place].any():
            seen = offsets[both[:, place], place]
            anchors[v], spreads[v] = seen.mean(axis=0), np.maximum(1.0, seen.std(axis=0))
    return anchors, spreads
