"""Training for a problem of the user's own."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..formulation import Rescaling, Slack
from ..problem import Problem
from ..result import Callback
from ..solvers import Solver
from .base import MaxMarginEstimator, with_shared_parameters

__all__ = ["StructuralSVM"]


@with_shared_parameters
class StructuralSVM(MaxMarginEstimator):
    """Structural SVM for outputs of your own.

    Parameters
    ----------
    problem : Problem
        Joint features, loss, search for the most violated output, and prediction; it holds no
        examples yet. ``maxmargin.check_problem(problem.bind(X, Y))`` tests it.
    {shared parameters}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the joint features.
    problem_ : Problem
        The problem that predicts, without the training examples.
    result_ : Result
        Certificate and history of the training. The gap is a certificate only if the problem's
        oracle is exact.

    Notes
    -----
    The oracle's answers are checked on the way: a negative loss is an error that names the
    example, and an output that is worse than the truth gives a warning.
    """

    def __init__(
        self,
        problem: Problem,
        C: float = 1.0,
        *,
        rescaling: Rescaling = "margin",
        slack: Slack = "l1",
        sqrt_loss: bool | None = None,
        solver: str | Solver = "auto",
        tol: float | None = 1e-3,
        epsilon: float | None = None,
        max_passes: float | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Iterable[Callback] = (),
    ) -> None:
        super().__init__(
            C=C,
            rescaling=rescaling,
            slack=slack,
            sqrt_loss=sqrt_loss,
            solver=solver,
            tol=tol,
            epsilon=epsilon,
            max_passes=max_passes,
            max_time=max_time,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            callbacks=callbacks,
        )
        self.problem = problem

    def fit(
        self, X: Sequence[Any], Y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> StructuralSVM:
        """Train on examples.

        Parameters
        ----------
        X, Y : sequence
            Inputs and outputs, as the problem's methods take them.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        if isinstance(self.problem, type) or not callable(getattr(self.problem, "bind", None)):
            raise ValueError(
                f"problem must be a maxmargin.Problem, got {type(self.problem).__name__!r} object "
                f"{self.problem!r:.60}"
            )
        if len(X) == 0:
            raise ValueError("expected at least one example, found none")
        bound = self.problem.bind(X, Y)
        if bound.n_examples != len(X):
            raise ValueError(
                f"{type(bound).__name__} has {bound.n_examples} examples of its own, but X has "
                f"{len(X)}; give a problem whose examples come from bind(X, Y)"
            )
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        data = (type(self.problem), _content(self.problem, X, Y)) if self.warm_start else ()
        problem = self._train(lambda: bound, data, weights)
        self.problem_ = copy.copy(problem)
        self.problem_.X, self.problem_.Y = (), ()
        return self

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
        self._check_fitted()
        return [self.problem_.predict(x, self.coef_) for x in X]

    def score(
        self, X: Sequence[Any], Y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> float:
        """Minus the mean loss of the predictions, so that higher is better and 0 is perfect.

        Parameters
        ----------
        X, Y : sequence
            Inputs and true outputs.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return -float(np.average(self.losses(X, Y), weights=weights))

    def losses(self, X: Sequence[Any], Y: Sequence[Any]) -> NDArray[np.float64]:
        """Loss of the prediction for each example.

        Parameters
        ----------
        X, Y : sequence
            Inputs and true outputs.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        if len(X) != len(Y):
            raise ValueError(
                f"X has {len(X)} examples but Y has {len(Y)}; first without a partner: "
                f"{min(len(X), len(Y))}"
            )
        pairs = zip(Y, self.predict(X), strict=True)
        return np.array([self.problem_.loss(y, y_hat) for y, y_hat in pairs], dtype=np.float64)

    def score_outputs(self, X: Sequence[Any], Y: Sequence[Any]) -> NDArray[np.float64]:
        """Scores ``<w, psi(x, y)>`` of given outputs.

        Parameters
        ----------
        X, Y : sequence
            Inputs and outputs.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        self._check_fitted()
        scores = []
        for x, y in zip(X, Y, strict=True):
            features = self.problem_.joint_feature(x, y)
            if isinstance(features, dict):
                scores.append(sum(self.coef_[k] * v for k, v in features.items()))
            else:
                scores.append(float(np.asarray(features @ self.coef_).item()))
        return np.array(scores, dtype=np.float64)


def _content(problem: Problem, X: Sequence[Any], Y: Sequence[Any]) -> bytes:
    """What tells whether a problem and its examples are the same as before.

    Examples can be any objects, so their pickled form stands for them; where there is none,
    nothing is ever the same, and every fit starts afresh.
    """
    try:
        return pickle.dumps((vars(problem), X, Y))
    except Exception:  # whatever the user's objects raise
        return os.urandom(16)
