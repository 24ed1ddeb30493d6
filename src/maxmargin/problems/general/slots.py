"""Outputs that are a label for each of some slots, given a search for sums over slots.

Matchings, labellings of graphs and 0/1 vectors have this form, with constraints that only their own
search knows. One question to that search is enough for every rescaling: the best labelling, where
each label of each slot gets a bonus on top of the scores; a bonus of -inf forbids it.

    margin rescaling      the bonus is the loss
    slack rescaling, or   the bonus is a multiple of the loss, with some slots held right or wrong:
    the root of the loss  an exact branch and bound (see `bounded_search`)
    no rescaling, or      the best of the searches in which one slot is held wrong
    zero-one loss
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np

from ...core.cutting_planes import BoundedPlanes, Planes, difference, stack
from ...core.formulation import RESCALINGS, Rescaling
from ...core.problem import Problem
from ...search.bounded_search import Candidate, Decoder, Violation, most_violated
from ...search.k_best import Found, Region, k_best
from ...search.limits import as_examples, as_weights
from ...search.modes import ADDITIVE, BEST_NON_GOLD, search_mode
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice

__all__ = ["LOSSES", "SlotLoss", "SlotProblem", "SlotScores"]

SlotLoss = Literal["hamming", "normalized_hamming", "zero_one"]
LOSSES: tuple[SlotLoss, ...] = ("hamming", "normalized_hamming", "zero_one")


class SlotScores(Protocol):
    """Scores of the outputs of one input at given weights."""

    def best(self, bonus: Floats) -> Ints:
        """Labels of the output with the largest score plus bonus, shape (n_slots, n_labels)."""

    def score(self, labels: Ints) -> float:
        """Score of an output."""


class SlotProblem(Problem):
    """A label for each slot, with a loss that counts wrong slots; a subclass has the search.

    Parameters
    ----------
    loss : {"hamming", "normalized_hamming", "zero_one"}
        Number of wrong slots, their share, or 1 if there are any.
    """

    rescalings = RESCALINGS

    def __init__(self, loss: SlotLoss = "hamming") -> None:
        check_choice(loss, LOSSES, "loss")
        self.loss_name = loss

    # ----- what a subclass writes ---------------------------------------------------------------

    @abstractmethod
    def shape_of(self, x: Any) -> tuple[int, int]:
        """Number of slots, and of labels that a slot may have."""

    @abstractmethod
    def labels_of(self, x: Any, y: Any) -> Ints:
        """An output as the numbers of its labels."""

    @abstractmethod
    def output_of(self, x: Any, labels: Ints) -> Any:
        """The inverse of `labels_of`."""

    @abstractmethod
    def scores_of(self, x: Any, w: Floats) -> SlotScores:
        """The search for an input at these weights."""

    @abstractmethod
    def width_of(self, x: Any) -> int:
        """Number of joint features."""

    @abstractmethod
    def input_of(self, x: Any, where: str = "") -> Any:
        """An input as the other methods take it; ValueError that begins with ``where``."""

    @abstractmethod
    def check_output(self, x: Any, y: Any, where: str) -> None:
        """Raise ValueError, beginning with ``where``, if this is no output of the input."""

    # ----- what follows from it -----------------------------------------------------------------

    def bind(self, X: Sequence[Any], Y: Sequence[Any]) -> Problem:
        """Return a copy of the problem that holds these examples; see `Problem.bind`."""
        inputs = [self.input_of(x, f"example {i}: ") for i, x in enumerate(X)]
        for i, (x, y) in enumerate(zip(inputs, Y, strict=False)):
            self.check_output(x, y, f"example {i}: ")
            if self.width_of(x) != self.width_of(inputs[0]):
                raise ValueError(
                    f"example {i} has {self.width_of(x)} features, but example 0 has "
                    f"{self.width_of(inputs[0])}"
                )
        return super().bind(inputs, Y)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Loss of an output."""
        true, found = np.asarray(y), np.asarray(y_hat)
        if true.shape != found.shape:
            raise ValueError(f"outputs of shapes {true.shape} and {found.shape} cannot be compared")
        wrong = true != found
        return (
            float(self._unit(len(wrong)) * np.count_nonzero(wrong))
            if self._counts
            else float(wrong.any())
        )

    def predict(self, x: Any, w: Floats) -> Any:
        """``argmax_y <w, psi(x, y)>``."""
        x = self.input_of(x)
        if self.width_of(x) != len(w):
            raise ValueError(f"there are {len(w)} weights, but {self.width_of(x)} features")
        return self.output_of(x, self.scores_of(x, w).best(np.zeros(self.shape_of(x))))

    def predict_k(self, x: Any, w: Floats, k: int) -> list[tuple[Any, float]]:
        """The k outputs of the largest score, best first, with their scores."""
        x = self.input_of(x)
        scores, shape = self.scores_of(x, w), self.shape_of(x)

        def find(region: Region) -> Found | None:
            bonus, n_fixed = np.zeros(shape), len(region.fixed)
            bonus[:n_fixed] = -np.inf
            bonus[np.arange(n_fixed), region.fixed] = 0.0
            if region.excluded:
                bonus[n_fixed, list(region.excluded)] = -np.inf
            labels = best_allowed(scores, bonus)
            return None if labels is None else (labels, scores.score(labels))

        ranked = k_best(lambda regions: [find(region) for region in regions], k)
        return [(self.output_of(x, labels), score) for labels, score in ranked]

    def most_violated(self, x: Any, y: Any, w: Floats, rescaling: Rescaling) -> Any:
        """The most violated output of one example."""
        return self.output_of(x, self._most_violated(x, y, w, rescaling, False))

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes | BoundedPlanes:
        """Most violated output of each listed example; see `Problem.oracle`."""
        examples = as_examples(indices, self.n_examples)
        w = as_weights(w, int(self.n_features or 0))
        rows, losses = [], np.zeros(len(examples))
        for row, i in enumerate(examples.tolist()):
            x, y = self.X[i], self.Y[i]
            found = self.output_of(x, self._most_violated(x, y, w, rescaling, sqrt_loss))
            losses[row] = self.loss(y, found)
            rows.append(difference(self.joint_feature(x, y), self.joint_feature(x, found)))
        return stack(rows, losses)

    @property
    def _counts(self) -> bool:
        """Whether the loss grows with every wrong slot."""
        return self.loss_name != "zero_one"

    def _unit(self, n_slots: int) -> float:
        """Loss of one wrong slot."""
        return 1.0 / max(n_slots, 1) if self.loss_name == "normalized_hamming" else 1.0

    def _most_violated(
        self, x: Any, y: Any, w: Floats, rescaling: Rescaling, sqrt_loss: bool
    ) -> Ints:
        """Labels of the most violated output, or of the truth."""
        mode = search_mode(rescaling, sqrt_loss, not self._counts)
        gold = self.labels_of(x, y)
        n_slots, n_labels = self.shape_of(x)
        if n_slots == 0:
            return gold
        unit = self._unit(n_slots)
        losses = np.full((n_slots, n_labels), unit)
        losses[np.arange(n_slots), gold] = 0.0
        scores = self.scores_of(x, w)
        if mode.kind == ADDITIVE:
            return scores.best(losses)
        if mode.kind == BEST_NON_GOLD:
            other = self.best_other(x, scores, gold)
            better = other is not None and 1.0 + scores.score(other) - scores.score(gold) > 0.0
            return other if better and other is not None else gold
        largest = np.where(n_labels > 1, losses.max(axis=1), 0.0)
        violation = Violation(mode.slack, mode.sqrt_loss)
        best = most_violated(_decoder(scores, losses, gold), largest, violation, unit)
        return gold if best is None else best.output

    def best_other(self, x: Any, scores: SlotScores, gold: Ints) -> Ints | None:
        """The best output other than the truth, None if there is none: some slot is wrong."""
        best, best_score = None, -np.inf
        for slot, label in enumerate(gold):
            bonus = np.zeros(self.shape_of(x))
            bonus[slot, label] = -np.inf
            found = best_allowed(scores, bonus)
            if found is not None and (score := scores.score(found)) > best_score:
                best, best_score = found, score
        return best


class NoOutput(ValueError):
    """Raised by `SlotScores.best` where the bonus forbids every output."""


def best_allowed(scores: SlotScores, bonus: Floats) -> Ints | None:
    """The best output, or None where all are forbidden."""
    try:
        return scores.best(bonus)
    except NoOutput:
        return None


def _decoder(scores: SlotScores, losses: Floats, gold: Ints) -> Decoder:
    """The search for sums of gain and loss; see `bounded_search`."""
    slots = np.arange(len(gold))
    gold_score = scores.score(gold)

    def decode(lower: Floats, upper: Floats, multiplier: float) -> Candidate:
        strip_prefix = (lower[:, None] < losses) & (losses <= upper[:, None])
        labels = scores.best(np.where(strip_prefix, multiplier * losses, -np.inf))
        found = losses[slots, labels]
        gain = 0.0 if not found.any() else scores.score(labels) - gold_score
        return Candidate(labels, found, float(found.sum()), gain)

    return decode
