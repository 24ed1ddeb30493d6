"""Weights chosen by a score of held-out data, while training goes on."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...core.formulation import Formulation
from ...core.objective import Certificate, Stopping, primal_value
from ...core.problem import Problem
from ...core.result import Progress, Result, WeightsCallback
from ...engine.training.state import from_text, to_text
from ...engine.training.verifying import hinge_values
from ...progress import running_clock
from ...solvers import Solver
from ...utils.schema import Amount, Count, Number, checked_arrays, from_values, numbers
from ...utils.types import Floats

__all__ = ["EarlyStopping", "Evaluation", "choosing"]


class Evaluation(NamedTuple):
    """How good the weights were after so many passes; more merit is better."""

    passes: Number
    merit: Number


class _Seen(NamedTuple):
    """What a choice has seen so far."""

    evaluations: list[Evaluation]
    best: Count | None
    since_best: Count
    pause: Amount


class EarlyStopping(WeightsCallback):
    """Judges weights as training goes on, and keeps the best; of those as good, the latest.

    Parameters
    ----------
    judge : callable
        ``judge(estimator)`` gives the merit of a fitted estimator; more is better.
    patience : int, optional
        End training when so many judgements in a row have found nothing better.
    pause : float, default=1.0
        Passes between two judgements, at least: counted, not timed, so that the same data give the
        same choice.
    content : str, default=""
        A hash of what is judged by: a training goes on from a checkpoint with the same only.

    Attributes
    ----------
    judgements : list of Evaluation
        All of them, the last one of the weights that training ended with.
    best : Evaluation
        The best of them.
    kept : Evaluation or None
        That of the weights which ``fit`` has set: the best, unless a Ctrl-C came in between.
    """

    def __init__(
        self,
        evaluate: Callable[[Any], float],
        *,
        patience: int | None = None,
        pause: float = 1.0,
        content: str = "",
    ) -> None:
        if patience is not None and patience < 1:
            raise ValueError(f"patience must be 1 or more, got {patience!r}")
        self.evaluate = evaluate
        self.patience = patience
        self.pause = pause
        self.content = content
        self.evaluations: list[Evaluation] = []
        self.best = Evaluation(0.0, -np.inf)
        self.kept: Evaluation | None = None
        self._best_w: Floats | None = None
        self._since_best = 0
        self._ended = False

    @property
    def n_examples(self) -> int:
        """Number of examples that are trained on."""
        return self._problem.n_examples

    def begin(
        self,
        draft: Any,
        problem: Problem,
        following: Callable[[Problem, list[Floats]], list[dict[str, Any]]] | None,
    ) -> None:
        """Get ready for a training: the draft has all that predictions need but the weights."""
        if draft.slack == "none":
            raise ValueError(
                "early stopping needs slack='l1' or 'l2': without slacks only the last weights "
                "satisfy the constraints"
            )
        self._draft, self._problem, self._following = draft, problem, following

    def __call__(
        self, progress: Progress, weights: Callable[[], Floats] | None = None
    ) -> bool | None:
        """Judge the weights, unless that was done a moment ago; True ends the training."""
        if self._ended:  # the record of the last certificate
            return True
        passes = progress.oracle_calls / self.n_examples
        last = self.evaluations[-1].passes if self.evaluations else -np.inf
        if weights is None or passes - last < self.pause:
            return None
        self._see(weights(), passes)
        self._ended = self.patience is not None and self._since_best >= self.patience
        return self._ended

    # ----- checkpoints ----------------------------------------------------------------------------

    def identity(self) -> dict[str, str]:
        """See `WeightsCallback`."""
        return {"patience of the choice": repr(self.patience), "held-out data": self.content}

    def arrays(self) -> dict[str, Any]:
        """See `WeightsCallback`."""
        seen = {
            "evaluations": self.evaluations,
            "best": next((k for k, own in enumerate(self.evaluations) if own is self.best), None),
            "since_best": self._since_best,
            "pause": self.pause,
        }
        w = np.empty(0) if self._best_w is None else self._best_w
        return {"numbers": to_text(seen), "best_w": w}

    def restore(self, arrays: dict[str, Any]) -> None:
        """See `WeightsCallback`."""
        seen = from_values(_Seen, from_text(arrays["numbers"]), "numbers")
        if not (seen.best or 0) < max(len(seen.evaluations), 1) or seen.since_best > len(
            seen.evaluations
        ):
            raise ValueError("numbers.best: expected one of the evaluations")
        self.evaluations, self._since_best, self.pause = (
            seen.evaluations,
            seen.since_best,
            seen.pause,
        )
        if seen.best is not None:
            size = int(self._problem.n_features or 0)
            self._best_w = checked_arrays(arrays, {"best_w": numbers(size)})["best_w"]
            self.best = self.evaluations[seen.best]

    # ----- judgements -----------------------------------------------------------------------------

    def _see(self, w: Floats, passes: float) -> None:
        """Judge weights, and keep a copy if there are none better."""
        own = w.copy()  # now, for a Ctrl-C is to find the best weights with the best judgement
        with running_clock("evaluation"):
            evaluation = Evaluation(passes, float(self.evaluate(self._model(w))))
        self._since_best = 0 if evaluation.merit > self.best.merit else self._since_best + 1
        if evaluation.merit >= self.best.merit:
            self.best, self._best_w = evaluation, own
        self.evaluations.append(evaluation)

    def _model(self, w: Floats) -> Any:
        """The estimator with these weights, and all that follows from them."""
        model = copy.copy(self._draft)
        kept = model._kept_weights([w])[0]
        model._set_weights(kept)
        if self._following is not None:
            model.__dict__.update(self._following(self._problem, [kept])[0])
        model.result_ = Result(kept, None, None, False, "unfinished", 0.0, 0, 0, 0, 0.0)
        return model

    def chosen(
        self, result: Result, solver: Solver, formulation: Formulation, C: float, weights: Floats
    ) -> Result:
        """The result with the weights chosen, certified by true oracle calls at them.

        The dual value is a bound on the optimum whatever the weights, and stays as it is.
        """
        status = "early_stopping" if self._ended else result.status
        try:
            is_best = self._best_w is not None and np.array_equal(self._best_w, result.w)
            if not is_best:
                self._see(result.w, result.n_passes)
            if is_best or self.best is self.evaluations[-1]:
                self.kept = self.best
                return replace(result, status=status)
            assert self._best_w is not None
            if result.primal is None or result.dual is None:
                self.kept = self.best
                return replace(result, w=self._best_w, status=status, state=None)
            started = time.perf_counter()
            with running_clock("certificate"):
                slacks = hinge_values(self._problem, formulation, self._best_w)
        except KeyboardInterrupt:  # the weights that training ended with have a certificate
            return replace(result, status="interrupted")
        change = formulation.change(self._best_w)
        primal = primal_value(change, slacks, formulation, C, weights)
        stopping = Stopping(
            getattr(solver, "tol", None), getattr(solver, "epsilon", None), C * float(weights.sum())
        )
        converged = stopping.is_satisfied(Certificate(primal, result.dual))
        if status == "converged" and not converged:
            status = "early_stopping"
        self.kept = self.best
        return replace(
            result,
            w=self._best_w,
            primal=primal,
            converged=converged,
            status=status,
            n_passes=result.n_passes + 1.0,
            n_oracle_calls=result.n_oracle_calls + self.n_examples,
            seconds=result.seconds + time.perf_counter() - started,
            bound_gap=None,
            state=None,
        )


@contextmanager
def choosing(estimator: Any, choice: EarlyStopping) -> Iterator[None]:
    """Let ``estimator.fit`` choose its weights so, inside the block."""
    estimator._choice = choice
    try:
        yield
    finally:
        vars(estimator).pop("_choice", None)
