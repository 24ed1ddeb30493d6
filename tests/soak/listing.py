"""Problems written out: every output of every example, with its joint features and its loss.

Nothing here is shared with the package: planes, objective and argmax are computed from the lists.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

MISSED = 1e-9  # by how much a hard margin may be missed
ROUNDING = 1e-11  # of sums, as a share of the magnitudes that are added up


class Example(NamedTuple):
    """All outputs of one input.

    ``psi`` and ``losses`` are those of the candidates in training, ``truth`` is the psi of the true
    output, and ``answers`` has what `predict` may return, with the psi of each in a row (in several
    where an output has hidden parts, such as the alignment behind a chosen homologue).
    """

    truth: np.ndarray
    psi: np.ndarray
    losses: np.ndarray
    answers: dict[Hashable, np.ndarray]

    @classmethod
    def of(cls, truth, psi_of, loss_of, outputs, others=()):
        """List ``outputs``, which compete in training, and ``others``, which may be predicted."""
        psi = {output: psi_of(output) for output in (*outputs, *others, truth)}
        rows = np.array([psi[output] for output in outputs])
        losses = np.array([loss_of(output) for output in outputs], float)
        answers = {output: psi[output][None, :] for output in (*outputs, *others)}
        return cls(psi[truth], rows, losses, answers)

    def scores(self, w):
        """Score of each answer."""
        return {output: float((rows @ w).max()) for output, rows in self.answers.items()}


@dataclass
class Task:
    """Data with the estimator that learns from it, and how to list its outputs.

    ``list_examples`` gets a fitted estimator, for the layout of its weights; ``key`` turns one
    prediction into a key of ``Example.answers``.
    """

    name: str
    make: Callable[..., Any]
    X: Any
    Y: Any
    list_examples: Callable[[Any], list[Example]]
    key: Callable[[Any], Hashable]
    n_examples: int
    savable: bool = True
    has_sqrt_loss: bool = True
    has_k_best: bool = True  # predict_k, and MIRA with several candidates
    margin_only: bool = False  # other rescalings and roots of losses are refused
    refusals: list[tuple[Any, Any]] = field(default_factory=list)  # X, Y that fit must refuse

    def fit(self, model, sample_weight=None):
        arguments = (self.X,) if self.Y is None else (self.X, self.Y)
        return model.fit(*arguments, sample_weight=sample_weight)

    def predict(self, model):
        """One prediction for each example."""
        return model.predict(self.X)

    def keys(self, model):
        return [self.key(output) for output in self.predict(model)]


class Formulation(NamedTuple):
    rescaling: str = "margin"
    slack: str = "l1"
    sqrt_loss: bool | None = None

    @property
    def uses_sqrt_loss(self):
        if self.rescaling == "none":
            return False
        return self.slack == "l2" if self.sqrt_loss is None else self.sqrt_loss

    def planes(self, example):
        """Offsets b and rows a of all candidates; the hinge value is b - <a, w>."""
        losses = np.sqrt(example.losses) if self.uses_sqrt_loss else example.losses
        if self.rescaling == "none":
            losses = (losses > 0).astype(float)
        scales = np.ones(len(losses)) if self.rescaling == "margin" else losses
        return losses, scales[:, None] * (example.truth - example.psi)


class Objective:
    """The primal objective of a task, by definition."""

    def __init__(self, examples, formulation, C, sample_weight):
        self.blocks = [formulation.planes(example) for example in examples]
        self.slack = formulation.slack
        self.upper_bounds = C * np.asarray(sample_weight, float)

    def slacks(self, w):
        return np.array([max(0.0, (b - A @ w).max(initial=0.0)) for b, A in self.blocks])

    def primal(self, w):
        """Primal value; infinite where a hard margin is not met, rounding apart."""
        slacks = self.slacks(w)
        if self.slack == "none":
            broken = (slacks > MISSED + self.errors(w)) & (self.upper_bounds > 0)
            return np.inf if broken.any() else 0.5 * w @ w
        return 0.5 * w @ w + self.upper_bounds @ (slacks**2 if self.slack == "l2" else slacks)

    def missed(self, optimum):
        """How much a hard margin that is missed by a little saves: weights shrink by that share."""
        least = min((b[b > 0].min(initial=1.0) for b, _ in self.blocks), default=1.0)
        return 2.0 * optimum * MISSED / least

    def errors(self, w):
        """How far rounding may take each slack."""
        sizes = [(np.abs(b) + np.abs(A) @ np.abs(w)).max(initial=0.0) for b, A in self.blocks]
        return ROUNDING * np.array(sizes)

    def rounding(self, w):
        """How far rounding may take the primal value."""
        errors = self.errors(w)
        if self.slack == "l2":
            errors = 2.0 * self.slacks(w) * errors + errors**2
        total = 0.0 if self.slack == "none" else self.upper_bounds @ errors
        return ROUNDING * (1.0 + w @ w) + total
