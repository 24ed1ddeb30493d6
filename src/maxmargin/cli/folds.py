"""Parts of examples to train on and to judge by, whatever the task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..formats import ConlluTreebank, TokenColumns
from ..metrics import Ratio
from ..metrics.tallies import Tally
from ..registry import Task, import_name
from ..types import Ints
from .training import Examples, Training

__all__ = ["Fold", "Judged", "count_of", "examples_of", "fit_on", "split"]


class Fold(NamedTuple):
    """What is trained on, and what is held out."""

    train: Examples
    test: Examples


class Judged(NamedTuple):
    """The score by which models are chosen; ``merit`` is larger for better models."""

    name: str
    score: float
    merit: float

    @classmethod
    def by(cls, tally: Tally) -> Judged:
        """The first score of a tally."""
        name, ratio = next(iter(tally.scores.items()))
        return cls(name, ratio.score, -ratio.score if ratio.smaller_is_better else ratio.score)


def examples_of(training: Training, task: Task) -> Examples:
    """The examples, if the task has them by themselves."""
    if training.examples is None:
        raise ValueError(f"the task {task.name!r} cannot be trained on parts of its file yet")
    return training.examples


def count_of(task: Task) -> Callable[[Any, Examples], Tally]:
    """What counts the scores of examples: a function of the task, or the estimator's ``score``."""
    try:
        count: Callable[[Any, Examples], Tally] = import_name(task.module, "count")
    except AttributeError:
        return _score
    return count


def _score(estimator: Any, examples: Examples) -> Tally:
    """The score that an estimator has of itself, in one piece."""
    score = estimator.score(*_data(examples), **examples.params)
    return Tally("files", {"score": Ratio(np.array([score]), np.ones(1))})


def fit_on(estimator: Any, examples: Examples) -> Any:
    """Train."""
    return estimator.fit(*_data(examples), **examples.params)


def _data(examples: Examples) -> tuple[Any, ...]:
    """Inputs and outputs; some inputs, such as treebanks, have the outputs in them."""
    return (examples.X,) if examples.y is None else (examples.X, examples.y)


def split(examples: Examples, n_folds: int, seed: int) -> Iterator[Fold]:
    """Folds of about the same size, at random; rows of a group stay together."""
    n = _number_of(examples.X)
    groups = np.arange(n) if examples.groups is None else np.asarray(examples.groups)
    names, numbers = np.unique(groups, return_inverse=True)
    if n_folds > len(names):
        what = "examples" if examples.groups is None else "groups of examples"
        raise ValueError(f"--folds {n_folds}: there are only {len(names)} {what}")
    fold_of = np.empty(len(names), np.int64)
    order = np.random.default_rng(seed).permutation(len(names))
    for k, part in enumerate(np.array_split(order, n_folds)):
        fold_of[part] = k
    for k in range(n_folds):
        held_out = fold_of[numbers] == k
        train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        yield Fold(_chosen(examples, train), _chosen(examples, test))


def _number_of(X: Any) -> int:
    """How many examples there are."""
    if isinstance(X, TokenColumns):
        return X.n_sequences
    if isinstance(X, ConlluTreebank):
        return X.n_sentences
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _chosen(examples: Examples, rows: Ints) -> Examples:
    """Some of the examples."""
    return Examples(
        _part(examples.X, rows),
        _part(examples.y, rows),
        {name: _part(values, rows) for name, values in examples.params.items()},
        None if examples.groups is None else np.asarray(examples.groups)[rows],
    )


def _part(data: Any, rows: Ints) -> Any:
    """Some rows of one thing."""
    if data is None:
        return None
    if isinstance(data, TokenColumns):
        return data.take(rows)
    if isinstance(data, ConlluTreebank):
        return data.select(rows.tolist())
    return data[rows] if hasattr(data, "shape") else [data[i] for i in rows.tolist()]
