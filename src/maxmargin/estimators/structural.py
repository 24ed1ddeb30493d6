"""Training for a problem of the user's own."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..core.problem import Problem, loss_value, raise_for_example
from ..core.weight_constraints import WeightConstraints
from ..features.containers import as_list
from ..utils.sparse_format import check_sparse
from ..utils.types import Floats
from ..utils.validation import as_floats, as_sample_weights, check_same_length
from .base import MaxMarginEstimator
from .costs import score_weights
from .examples import Outputs
from .parameters import with_inherited_parameters
from .training import Trainer, TrainingSet

__all__ = ["StructuralSVM"]


@dataclass(eq=False, repr=False)
class _OwnProblem:
    """What comes before all other parameters, for those of the last base class are the first."""

    problem: Problem


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class StructuralSVM(MaxMarginEstimator, _OwnProblem):
    """Structural SVM for outputs of your own.

    Parameters
    ----------
    problem : Problem
        Joint features, loss, search for the most violated output, and prediction; it holds no
        examples yet. ``maxmargin.check_problem(problem.bind(X, Y))`` tests it.
    weight_constraints : WeightConstraints, optional
        Weights that may not be negative, or not positive, weights that are fixed, and weights that
        those learned are to differ from as little as they can.
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the joint features; of a `JointKernelProblem`, coefficients of the points in
        ``problem_``, while ``result_.w`` has as many entries as it may have points.
    problem_ : Problem
        The problem that predicts, without the training examples.
    result_ : Result
        Certificate and history of the training. The gap is a certificate only if the problem's
        oracle is exact.

    Notes
    -----
    The oracle's answers are checked on the way: a negative loss is an error that names the
    example, and an output that is worse than the given one gives a warning.

    There is no ``predict_k``: a problem predicts one output of an input. To list several, search
    with ``model.problem_`` and ``model.coef_``.
    """

    weight_constraints: WeightConstraints | None = None
    problem_: ClassVar[Problem]  # set by fit

    def fit(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> StructuralSVM:
        """Train on examples.

        Parameters
        ----------
        X, y : sequence
            Inputs and outputs, as the problem's methods take them.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        if isinstance(self.problem, type) or not callable(getattr(self.problem, "bind", None)):
            raise ValueError(
                f"problem must be a maxmargin.Problem, got {type(self.problem).__name__!r} object "
                f"{self.problem!r:.60}"
            )
        X, y = as_list(X), as_list(y, "y")
        _check_lengths(X, y)
        if len(X) == 0:
            raise ValueError("expected at least one example, found none")
        for i, x in enumerate(X):
            check_sparse(x, f"X[{i}]")
        bound = self.problem.bind(X, y)
        if bound.n_examples != len(X):
            raise ValueError(
                f"{type(bound).__name__} has {bound.n_examples} examples already, but X has "
                f"{len(X)}; use a problem that takes its examples from bind(X, Y)"
            )
        _check_gold_losses(bound)
        weights = as_sample_weights(sample_weight)
        data = (type(self.problem), _content(self.problem, X, y)) if self.warm_start else ()
        constraints = self.weight_constraints
        if constraints is not None and not getattr(bound, "has_features", True):
            raise ValueError(
                f"weight_constraints need features, but {type(bound).__name__} has a joint kernel"
            )
        return TrainingSet(lambda: bound, data, weights, constraints, following=_predictors)

    def predict(self, X: Iterable[Any]) -> list[Any]:
        """Best output for each input.

        Parameters
        ----------
        X : sequence
            Inputs.

        Returns
        -------
        list
        """
        weights, found = self._weights, Outputs()
        for i, x in enumerate(as_list(X)):
            check_sparse(x, f"X[{i}]")
            try:
                found.append(self.problem_.predict(x, weights))
            except Exception as error:
                raise_for_example(error, i)
        return found

    def score(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> float:
        """Minus the mean loss of the predictions, so that higher is better and 0 is perfect.

        Parameters
        ----------
        X, y : sequence
            Inputs and true outputs.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        losses = self.losses(X, y)
        return -float(np.average(losses, weights=score_weights(sample_weight, len(losses))))

    def losses(self, X: Sequence[Any], y: Sequence[Any]) -> Floats:
        """Loss of the prediction for each example.

        Parameters
        ----------
        X, y : sequence
            Inputs and true outputs.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        X, y = as_list(X), as_list(y, "y")
        _check_lengths(X, y)
        if len(X) == 0:
            raise ValueError("expected at least one example, found none")
        pairs = zip(y, self.predict(X), strict=True)
        return as_floats([self.problem_.loss(*pair) for pair in pairs], "losses")

    def score_outputs(self, X: Sequence[Any], y: Sequence[Any]) -> Floats:
        """Scores ``<w, psi(x, y)>`` of given outputs.

        Parameters
        ----------
        X, y : sequence
            Inputs and outputs.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        weights = self._weights
        scores = []
        for i, pair in enumerate(zip(as_list(X), y, strict=True)):
            check_sparse(pair[0], f"X[{i}]")
            features = self.problem_.joint_feature(*pair)
            if isinstance(features, dict):
                scores.append(sum(weights[k] * v for k, v in features.items()))
            else:
                scores.append(float(np.asarray(features @ weights).item()))
        return np.array(scores, dtype=np.float64)

    def _n_weights(self) -> int:
        """See `Savable`."""
        return int(self.problem_.n_features or len(self.coef_))


def _predictors(problem: Problem, solutions: list[Floats]) -> list[dict[str, Any]]:
    """What predictions need of the problem, and the weights that go with it.

    Results keep those that were certified, from which a warm start goes on.
    """
    # Problems may be duck-typed.
    predictor = getattr(problem, "predictor", None) or partial(Problem.predictor, problem)
    kept, weights = predictor(solutions)
    return [{"problem_": kept, "coef_": w} for w in weights]


def _check_gold_losses(problem: Problem) -> None:
    """Raise ValueError for a gold output with a loss: what is trained would be meaningless."""
    if getattr(problem, "trusted", False) or getattr(type(problem), "loss", None) in (
        None,
        Problem.loss,
    ):
        return
    for i, y in enumerate(problem.Y):
        try:
            loss = problem.loss(y, y)
        except Exception as error:
            raise_for_example(error, i)
        if not abs(loss_value(loss, i)) <= 1e-9:
            raise ValueError(
                f"loss(y, y) is {loss} for example {i}; it must be 0: the gold output has no loss"
            )


def _check_lengths(X: Sequence[Any], y: Sequence[Any]) -> None:
    """Refuse inputs without outputs and outputs without inputs."""
    for name, given in (("X", X), ("y", y)):
        if not hasattr(given, "__len__"):
            raise ValueError(f"{name} must be a sequence of examples, got {given!r:.60}")
    check_same_length(len(X), len(y))


def _content(problem: Problem, X: Sequence[Any], y: Sequence[Any]) -> bytes:
    """What tells whether a problem and its examples are the same as before.

    Examples can be any objects, so their pickled form stands for them; where there is none,
    nothing is ever the same, and every fit starts afresh.
    """
    try:
        return pickle.dumps((vars(problem), X, y))
    except Exception:  # whatever the user's objects raise
        return os.urandom(16)
