"""Training that is watched on a held-out file (``train --dev``)."""

from __future__ import annotations

import argparse
import math
import time
from contextlib import AbstractContextManager
from typing import Any

from ..estimators.early_stopping import EarlyStopping, choosing
from ..tables import named_score
from .folds import Evaluated
from .held_out import HeldOutFile
from .training import say

__all__ = ["Watch"]

#: Oracle calls of the training for each held-out example that is judged, at least: judging is to
#: take a small part of the time. Where files count something else than the training, not for ever.
CALLS_PER_EXAMPLE = 2.0
LONGEST_PAUSE = 10.0  # passes


class Watch:
    """Judges the weights by a file as training goes on, and has the best of them kept."""

    def __init__(self, file: HeldOutFile, arguments: argparse.Namespace) -> None:
        self.file = file
        self.arguments = arguments
        self.evaluated: list[Evaluated] = []
        self._told_at = -math.inf
        self.choice = EarlyStopping(
            self._evaluate, patience=arguments.patience, content=file.content()
        )

    def watching(self, estimator: Any) -> AbstractContextManager[None]:
        """Watch the training of an estimator inside the block."""
        return choosing(estimator, self.choice)

    def _evaluate(self, estimator: Any) -> float:
        """The merit of an estimator; tells its score."""
        tally = self.file.tally(estimator)
        wanted = CALLS_PER_EXAMPLE * tally.n_units / self.choice.n_examples
        self.choice.pause = min(max(1.0, wanted), LONGEST_PAUSE)
        own = Evaluated.by(tally)
        is_best = own.merit > self.choice.best.merit
        self.evaluated.append(own)
        now = time.monotonic()
        if is_best or now - self._told_at >= 1.0:  # others as often as progress is shown
            self._told_at = now
            note = ", the best so far" if is_best else ""
            say(self.arguments, f"dev {named_score(own.name, own.score)}{note}")
        return own.merit

    def summary(self, estimator: Any) -> str:
        """What became of it, for the end; of the weights that are saved, those of the estimator."""
        evaluations, kept = self.choice.evaluations, self.choice.kept
        if kept is None:
            return "the weights that training ended with were not judged: it was interrupted"
        known = (own for own in self.evaluated if own.merit == kept.merit)
        # Those that were judged before a checkpoint are judged again.
        best = next(known, None) or Evaluated.by(self.file.tally(estimator))
        is_last = kept is evaluations[-1]
        which = "that training ended with" if is_last else f"after {kept.passes:.1f} passes"
        return (
            f"dev {named_score(best.name, best.score)}, the best of {len(evaluations)} judgements: "
            f"the weights are those {which}"
        )
