"""What trees of labels and trees of parts have in common: which search answers which question."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from ...core.cutting_planes import Planes, trim
from ...core.formulation import Rescaling
from ...engine.packed_problem import PackedProblem
from ...search.bounded_search import (
    Candidate,
    Decoder,
    Violation,
    best_with_loss,
    most_violated,
)
from ...search.limits import as_examples, as_weights
from ...search.modes import ADDITIVE, BEST_NON_GOLD, ERROR_COUNTS, SearchMode, search_mode
from ...utils.types import Floats, Ints
from .k_best import rank_labellings
from .kernels import LabellingScratch, TreeShape, best_between, score_labelling

__all__ = ["TreeProblem", "TreeScores", "make_work"]


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
