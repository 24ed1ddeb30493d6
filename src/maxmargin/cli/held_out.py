"""Scores of a model on a labelled file that it is not trained on."""

from __future__ import annotations

import argparse
import hashlib
from typing import Any, NamedTuple

from ..formats.opening import open_binary
from ..metrics.tallies import Tally
from ..registry import Task, import_name
from .data import Model, open_input
from .folds import Evaluated

__all__ = ["HeldOutFile"]


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
                f"{self.path}: the task {self.task.name!r} has no single score to choose models by"
            )
        return tally

    def _of_task(self, function: str, estimator: Any) -> Any:
        """What a function of the task makes of an estimator and the file."""
        load_schema = import_name(self.task.module, "load_schema")
        files = load_schema(self.path, estimator, self.extra)
        model = Model(estimator, self.task, self.path, files)
        return import_name(self.task.module, function)(model, self.arguments)
