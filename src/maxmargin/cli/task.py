"""What the command line does with an estimator."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from ..utils.defaults import TOL

__all__ = ["Task"]

if TYPE_CHECKING:
    from ..formats.opening import Source
    from ..metrics.tallies import Tally
    from .evaluation import Evaluation
    from .files import Model
    from .training import Examples, Plan, Training


class Task:
    """A task, ``maxmargin train NAME``: what it reads, trains, writes and scores.

    An `Evaluation` with a `Tally` (its scores as ratios of sums over sentences, examples, ...) gets
    intervals and paired tests in ``evaluate``, and training can be watched by it (``train --dev``).
    """

    name: ClassVar[str]
    #: Kinds of labelled files, by their names in `formats.recognising.Kind`.
    reads: ClassVar[tuple[str, ...]]
    #: Those files in a few words, for errors.
    expects: ClassVar[str]
    #: And in more words, for the help.
    description: ClassVar[str]
    #: What predictions look like.
    writes: ClassVar[str]
    #: What evaluate reports.
    scores: ClassVar[str]
    #: What --loss takes, the default first; without any, there is no --loss.
    losses: ClassVar[tuple[str, ...]] = ()
    #: What a stream is cut into, by its name in `cli.files`.
    unit: ClassVar[str] = "line"
    #: "k", "scores", "confidence", where predict has these options.
    answers: ClassVar[tuple[str, ...]] = ()
    #: Kinds of files that can be labelled only.
    reads_unlabelled: ClassVar[tuple[str, ...]] = ()
    #: Of those options of train that not every task has.
    options: ClassVar[tuple[str, ...]] = ()
    #: Help on options whose meaning depends on the task.
    option_help: ClassVar[Mapping[str, str]] = MappingProxyType({})
    #: What --on-violation takes.
    violations: ClassVar[tuple[str, ...]] = ()
    #: Where training stops unless --tol says otherwise.
    tol: ClassVar[float] = TOL
    #: Whether train has --stream, for data larger than memory.
    streams: ClassVar[bool] = False

    def plan(self, arguments: argparse.Namespace) -> Plan:
        """Check the options of train; the plan then reads the data."""
        from .training import Plan

        return Plan([], partial(self.make, arguments))

    def make(self, arguments: argparse.Namespace) -> Training:
        """Read the data, and make the estimator to be trained."""
        raise NotImplementedError

    def load_schema(self, path: str, estimator: Any, extra: dict[str, Any]) -> Any:
        """What a model file says of the files it is used on; nothing, as a rule."""
        return None

    def predict(self, model: Model, source: Source, arguments: argparse.Namespace) -> str:
        """Predictions for a file or a chunk of one, as text."""
        raise NotImplementedError

    def evaluate(self, model: Model, arguments: argparse.Namespace) -> Evaluation:
        """Scores on a labelled file."""
        raise NotImplementedError

    def examples(self, model: Model, arguments: argparse.Namespace) -> Examples:
        """A labelled file as the estimator takes it."""
        raise NotImplementedError

    def count(self, estimator: Any, examples: Examples) -> Tally:
        """Scores of examples; those of reports, as a rule."""
        from ..report.subjects import describe

        return describe(estimator, examples.X, examples.y, **examples.params).tally
