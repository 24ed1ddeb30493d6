"""Scores on held-out examples: folds of a file, another file, and training watched by it."""

from __future__ import annotations

import argparse
import hashlib
import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from ..estimators.examples import examples_at, n_examples_of
from ..estimators.selection.early_stopping import EarlyStopping, choosing
from ..formats.opening import open_binary
from ..metrics.tallies import Tally
from ..utils.tables import named_score
from ..utils.types import Ints
from .files import Model, open_input
from .tasks import Task
from .training import Examples, say

__all__ = ["Evaluated", "Fold", "HeldOutFile", "Watch", "split"]


class Fold(NamedTuple):
    """What is trained on, and what is held out."""

    train: Examples
    test: Examples


class Evaluated(NamedTuple):
    """The score by which models are chosen; ``merit`` is larger for better models."""

    name: str
    score: float
    merit: float

    @classmethod
    def by(cls, tally: Tally) -> Evaluated:
        """The first score of a tally."""
        name, ratio = next(iter(tally.scores.items()))
        return cls(name, ratio.score, -ratio.score if ratio.smaller_is_better else ratio.score)


def split(examples: Examples, n_folds: int, seed: int) -> Iterator[Fold]:
    """Folds of about the same size, at random; rows of a group stay together."""
    n = n_examples_of(examples.X if examples.y is None else examples.y)
    groups = np.arange(n) if examples.groups is None else np.asarray(examples.groups)
    names, numbers = np.unique(groups, return_inverse=True)
    if n_folds > len(names):
        what = "examples" if examples.groups is None else "groups of examples"
        raise ValueError(
            f"--folds must be at most the number of {what} in the training file, "
            f"{len(names)}, got {n_folds}"
        )
    fold_of = np.empty(len(names), np.int64)
    order = np.random.default_rng(seed).permutation(len(names))
    for k, part in enumerate(np.array_split(order, n_folds)):
        fold_of[part] = k
    for k in range(n_folds):
        held_out = fold_of[numbers] == k
        train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        yield Fold(_chosen(examples, train), _chosen(examples, test))


def _chosen(examples: Examples, rows: Ints) -> Examples:
    """Some of the examples."""
    X = examples.X
    return examples._replace(
        X=[matrix[rows] for matrix in X] if examples.by_node else examples_at(X, rows),
        y=examples_at(examples.y, rows),
        params={name: examples_at(values, rows) for name, values in examples.params.items()},
        groups=None if examples.groups is None else np.asarray(examples.groups)[rows],
    )


class HeldOutFile(NamedTuple):
    """A labelled file, read as ``evaluate`` would read it."""

    task: Task
    path: str
    extra: dict[str, Any]
    arguments: argparse.Namespace

    @classmethod
    def named(
        cls, path: str, task: Task, extra: dict[str, Any], arguments: argparse.Namespace
    ) -> HeldOutFile:
        """The file of this name, which has to be there."""
        own = argparse.Namespace(**vars(arguments))
        own.data = open_input(path)  # a pipe can be read but once
        return cls(task, path, extra, own)

    def content(self) -> str:
        """A hash of what is in it."""
        with open_binary(self.arguments.data) as stream:
            return hashlib.sha256(stream.read()).hexdigest()

    def evaluate(self, estimator: Any) -> Evaluated:
        """The score of a fitted estimator by which models are chosen."""
        return Evaluated.by(self.tally(estimator))

    def calibrate(self, estimator: Any) -> None:
        """Fit the probabilities of an estimator to the file."""
        examples = self._of_task("examples", estimator)
        estimator.calibrate(examples.X, examples.y)

    def tally(self, estimator: Any) -> Tally:
        """All scores of a fitted estimator."""
        tally: Tally | None = self._of_task("evaluate", estimator).tally
        if tally is None:
            raise ValueError(
                f"{self.path}: the task {self.task.name!r} has no single score by which to "
                "choose models"
            )
        return tally

    def _of_task(self, function: str, estimator: Any) -> Any:
        """What a function of the task makes of an estimator and the file."""
        files = self.task.load_schema(self.path, estimator, self.extra)
        model = Model(estimator, self.task, self.path, files)
        return getattr(self.task, function)(model, self.arguments)


#: Oracle calls of the training for each held-out example that is evaluated, at least: this is to
#: take a small part of the time. Where files count something else than the training, not for ever.
CALLS_PER_EXAMPLE = 2.0
LONGEST_PAUSE = 10.0  # passes


class Watch:
    """Evaluates the weights on a file during training, and has the best of them kept."""

    def __init__(self, file: HeldOutFile, arguments: argparse.Namespace) -> None:
        self.file = file
        self.arguments = arguments
        self.evaluated: list[Evaluated] = []
        self._shown_at = -math.inf
        self.choice = EarlyStopping(
            self._evaluate, patience=arguments.patience, content=file.content()
        )

    def watching(self, estimator: Any) -> AbstractContextManager[None]:
        """Watch the training of an estimator inside the block."""
        return choosing(estimator, self.choice)

    def _evaluate(self, estimator: Any) -> float:
        """The merit of an estimator; shows its score."""
        tally = self.file.tally(estimator)
        wanted = CALLS_PER_EXAMPLE * tally.n_units / self.choice.n_examples
        self.choice.pause = min(max(1.0, wanted), LONGEST_PAUSE)
        own = Evaluated.by(tally)
        is_best = own.merit > self.choice.best.merit
        self.evaluated.append(own)
        now = time.monotonic()
        if is_best or now - self._shown_at >= 1.0:  # others as often as progress is shown
            self._shown_at = now
            note = ", the best so far" if is_best else ""
            say(self.arguments, f"dev {named_score(own.name, own.score)}{note}")
        return own.merit

    def summary(self, estimator: Any) -> str:
        """What became of it, for the end; of the weights that are saved, those of the estimator."""
        evaluations, kept = self.choice.evaluations, self.choice.kept
        if kept is None:
            return "the last weights were not evaluated, because training was interrupted"
        known = (own for own in self.evaluated if own.merit == kept.merit)
        # Those from before a checkpoint are evaluated again.
        best = next(known, None) or Evaluated.by(self.file.tally(estimator))
        is_last = kept is evaluations[-1]
        which = "that training ended with" if is_last else f"after {kept.passes:.1f} passes"
        return (
            f"dev {named_score(best.name, best.score)}, the best of {len(evaluations)} "
            f"evaluations: the weights are those {which}"
        )
