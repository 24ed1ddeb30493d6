"""Parts of examples to train on and to judge by, whatever the task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..estimators.examples import examples_at, n_examples_of
from ..metrics.tallies import Tally
from ..registry import Task, import_name
from ..report.subjects import describe
from ..types import Ints
from .training import Examples

__all__ = ["Evaluated", "Fold", "count_of", "fit_on", "split"]


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


def count_of(task: Task) -> Callable[[Any, Examples], Tally]:
    """What counts the scores of examples: a function of the task, or that of reports."""
    try:
        count: Callable[[Any, Examples], Tally] = import_name(task.module, "count")
    except AttributeError:
        return _count
    return count


def _count(estimator: Any, examples: Examples) -> Tally:
    """Scores as reports have them."""
    return describe(estimator, examples.X, examples.y, **examples.params).tally


def fit_on(estimator: Any, examples: Examples) -> Any:
    """Train."""
    return estimator.fit(*_data(examples), **examples.params)


def _data(examples: Examples) -> tuple[Any, ...]:
    """Inputs and outputs; some inputs, such as treebanks, have the outputs in them."""
    return (examples.X,) if examples.y is None else (examples.X, examples.y)


def split(examples: Examples, n_folds: int, seed: int) -> Iterator[Fold]:
    """Folds of about the same size, at random; rows of a group stay together."""
    n = n_examples_of(examples.X if examples.y is None else examples.y)
    groups = np.arange(n) if examples.groups is None else np.asarray(examples.groups)
    names, numbers = np.unique(groups, return_inverse=True)
    if n_folds > len(names):
        what = "examples" if examples.groups is None else "groups of examples"
        raise ValueError(
            f"--folds {n_folds} is more than there are {what} in the training file: {len(names)}"
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
