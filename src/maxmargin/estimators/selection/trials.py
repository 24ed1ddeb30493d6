"""Training and scores of the candidates of a search, in each fold."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from ...checkpoints import FOLD, part_of
from ...progress import running_clock
from ...utils.types import Ints
from ..examples import examples_at, n_examples_of
from ..parameters import training_options
from ..training import NoPathError
from .path import path

__all__ = [
    "Evaluator",
    "Fold",
    "Trial",
    "by_name",
    "described",
    "groups_of",
    "in_order",
    "make_fold",
    "path_to",
    "refit",
    "results_of",
    "was_interrupted",
]


class Fold(NamedTuple):
    """One split of the examples, with what else ``fit`` and ``score`` are given."""

    number: int
    train: tuple[Any, Any, dict[str, Any]]
    test: tuple[Any, Any, dict[str, Any]]


def make_fold(
    estimator: Any,
    number: int,
    X: Any,
    y: Any,
    train: Ints,
    test: Ints,
    fit_params: dict[str, Any],
    score_params: dict[str, Any],
) -> Fold:
    """The examples of one split."""
    train, test = (
        np.flatnonzero(some) if np.asarray(some).dtype == bool else np.asarray(some)
        for some in (train, test)
    )
    # Of precomputed kernels, columns are examples too.
    is_square = get_tags(estimator).input_tags.pairwise
    X_train, X_test = (
        examples_at(X, some) if not is_square else X[np.ix_(some, train)] for some in (train, test)
    )
    return Fold(
        number,
        (X_train, examples_at(y, train), _of_examples(fit_params, X, train)),
        (X_test, examples_at(y, test), _of_examples(score_params, X, test)),
    )


def _of_examples(params: dict[str, Any], X: Any, indices: Ints) -> dict[str, Any]:
    """Parameters of ``fit``; of those with an entry for each example, the entries of some."""
    n = n_examples_of(X)
    return {
        name: examples_at(value, indices) if _n_entries(value) == n else value
        for name, value in params.items()
    }


def _n_entries(value: Any) -> int | None:
    """How many entries a parameter has; None of what is no list of them."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__"):
        return n_examples_of(value) if hasattr(value, "shape") and value.shape else None
    return n_examples_of(value)


class Trial(NamedTuple):
    """One candidate in one fold: its scores by name, or why there are none."""

    scores: dict[str, float] | None
    fit_time: float
    score_time: float
    model: Any = None
    error: str = ""


@dataclass(frozen=True)
class Evaluator:
    """Trains candidates that differ in C alone in a fold, and scores them on the other examples."""

    estimator: Any
    candidates: list[dict[str, Any]]
    is_numbered: bool  # whether checkpoints of a fold have the candidate's number
    scorer: Any
    has_scoring: bool  # whether the scorer is another than the estimator's own
    best_by: str  # the score that messages name
    error_score: Any

    def __call__(self, group: list[int], fold: Fold, keeps: bool = False) -> list[Trial]:
        """Train candidates that differ in C alone, and score them on the held-out examples."""
        found = self._train([self.candidates[i] for i in group], group, fold)
        trials = []
        with running_clock("evaluation") as clock:
            for trial in found:
                scores, error, began = None, trial.error, time.perf_counter()
                if trial.model is not None:
                    X, y, params = fold.test
                    try:
                        scores = by_name(self.scorer(trial.model, X, y, **params))
                    except Exception as failure:
                        if self.error_score == "raise":
                            raise
                        error = f"{type(failure).__name__}: {failure}"
                seconds = time.perf_counter() - began
                model = trial.model if keeps else None
                trials.append(Trial(scores, trial.fit_time, seconds, model, error))
            known = [
                (trial.scores[self.best_by], i)
                for trial, i in zip(trials, group, strict=True)
                if trial.scores is not None and not np.isnan(trial.scores.get(self.best_by, np.nan))
            ]
            if known:
                score, i = max(known, key=lambda pair: pair[0])
                clock.say(f"best {described(self.candidates[i])}, score {score:.4f}")
        return trials

    def _train(
        self, candidates: list[dict[str, Any]], numbers: list[int], fold: Fold
    ) -> list[Trial]:
        """Train candidates that differ in C alone, along a path if there is one."""
        X, y, params = fold.train
        began = time.perf_counter()
        needs_confidences = self.has_scoring and getattr(
            self._made(candidates[0]), "probability", False
        )
        if "C" in candidates[0] and not needs_confidences:
            Cs = [float(candidate["C"]) for candidate in candidates]
            number = numbers[0] if self.is_numbered else None
            try:
                found = path(self._made(candidates[0], fold, number), X, y, Cs, **params)
            except NoPathError:
                pass
            except Exception as failure:
                return [self._failed(failure, began)] * len(candidates)
            else:
                seconds = {C: r.seconds for C, r in zip(found.Cs, found.results, strict=True)}
                total = time.perf_counter() - began
                shared = max(total - sum(seconds.values()), 0.0) / len(seconds)
                return [
                    Trial(None, shared + seconds[C], 0.0, found.at(C))
                    if C in seconds
                    else Trial(None, 0.0, 0.0)  # an interrupt came before
                    for C in Cs
                ]
        trials: list[Trial] = []
        for candidate, number in zip(candidates, numbers, strict=True):
            began = time.perf_counter()
            if trials and was_interrupted(trials[-1].model):
                trials.append(Trial(None, 0.0, 0.0))
                continue
            try:
                model = self._made(candidate, fold, number).fit(X, y, **params)
                trials.append(Trial(None, time.perf_counter() - began, 0.0, model))
            except Exception as failure:
                trials.append(self._failed(failure, began))
        return trials

    def _made(
        self, params: dict[str, Any], fold: Fold | None = None, number: int | None = None
    ) -> Any:
        """The estimator of a candidate, whose checkpoint in a fold is a file of its own."""
        made = clone(self.estimator).set_params(**clone(params, safe=False))
        checkpoint = training_options(made.training).checkpoint
        if fold is not None and checkpoint is not None:
            name = part_of(checkpoint, FOLD, fold.number)
            made.set_params(training__checkpoint=name if number is None else f"{name}-{number}")
        return made

    def _failed(self, failure: Exception, began: float) -> Trial:
        """What became of a fit that failed."""
        if self.error_score == "raise":
            raise failure
        seconds = time.perf_counter() - began
        return Trial(None, seconds, 0.0, error=f"{type(failure).__name__}: {failure}")


def groups_of(candidates: list[dict[str, Any]]) -> list[list[int]]:
    """Numbers of the candidates that differ in C alone."""
    groups: dict[Any, list[int]] = {}
    for i, params in enumerate(candidates):
        groups.setdefault(_rest(params), []).append(i)
    return list(groups.values())


def _rest(params: dict[str, Any]) -> tuple[Any, ...]:
    """What candidates that differ in C alone have in common: all else are the same objects."""
    return "C" in params, tuple((name, id(value)) for name, value in params.items() if name != "C")


def path_to(params: dict[str, Any], candidates: list[dict[str, Any]]) -> list[float]:
    """The values of C up to that of a candidate, of those that differ from it in C alone."""
    same = (other for other in candidates if _rest(other) == _rest(params))
    return sorted({float(other["C"]) for other in same if other["C"] <= params["C"]})


def refit(
    estimator: Any,
    params: dict[str, Any],
    candidates: list[dict[str, Any]],
    X: Any,
    y: Any,
    fit_params: dict[str, Any],
) -> Any:
    """Train on all data with the best parameters, along the path of C that the folds took.

    Of all weights within the precision, a fit from scratch may find others.
    """
    chosen = clone(estimator).set_params(**clone(params, safe=False))
    # A path is not calibrated.
    if "C" in params and not getattr(chosen, "probability", False):
        try:
            return path(chosen, X, y, path_to(params, candidates), **fit_params)._fitted
        except NoPathError:
            pass
    return chosen.fit(X, y, **fit_params)


def in_order(groups: list[list[int]], found: Sequence[list[Trial]]) -> list[Trial]:
    """Trials by the numbers of the candidates; of groups that an interrupt left out, empty ones."""
    by_number = {
        i: trial
        for group, trials in zip(groups, found, strict=False)
        for i, trial in zip(group, trials, strict=True)
    }
    return [by_number.get(i, Trial(None, 0.0, 0.0)) for i in range(sum(map(len, groups)))]


def results_of(
    candidates: list[dict[str, Any]],
    trials: list[list[Trial]],
    names: list[str],
    error_score: Any,
) -> dict[str, Any]:
    """What all trials have given, in the shape of GridSearchCV's ``cv_results_``."""
    results: dict[str, Any] = {}
    for key in ("fit_time", "score_time"):
        seconds = np.array([[getattr(trial, key) for trial in row] for row in trials])
        results[f"mean_{key}"], results[f"std_{key}"] = seconds.mean(axis=0), seconds.std(axis=0)
    for name in {name: None for params in candidates for name in params}:
        results[f"param_{name}"] = _column([params.get(name, _MISSING) for params in candidates])
    results["params"] = candidates
    for name in names:
        scores = np.array([[_score(trial, name, error_score) for trial in row] for row in trials])
        for k, row in enumerate(scores):
            results[f"split{k}_test_{name}"] = row
        means = results[f"mean_test_{name}"] = scores.mean(axis=0)
        results[f"std_test_{name}"] = scores.std(axis=0)
        filled = np.where(np.isnan(means), -np.inf, means)
        ranks = 1 + np.sum(filled[None, :] > filled[:, None], axis=1)
        results[f"rank_test_{name}"] = ranks.astype(np.int32)
    return results


_MISSING = object()


def _column(values: list[Any]) -> Any:
    """The values of a parameter, masked where a candidate has none."""
    mask = [value is _MISSING for value in values]
    known = [value for value in values if value is not _MISSING]
    is_numeric = all(isinstance(value, Real) for value in known)
    column = np.ma.masked_all(len(values), np.array(known).dtype if is_numeric else object)
    for i, value in enumerate(values):
        if not mask[i]:
            column[i] = value
    return column


def _score(trial: Trial, name: str, error_score: Any) -> float:
    """One score of a candidate in a fold."""
    if trial.scores is not None:
        return trial.scores[name]
    return float(error_score) if trial.error else np.nan


def by_name(scores: Any) -> dict[str, float]:
    """Scores by name; a single one is "score"."""
    named = scores if isinstance(scores, Mapping) else {"score": scores}
    for name, value in named.items():
        if not isinstance(value, Real) and np.ndim(value):
            raise ValueError(f"scoring must give a number, got {value!r:.60} as {name!r}")
    return {name: float(value) for name, value in named.items()}


def was_interrupted(model: Any) -> bool:
    """Whether an interrupt ended the training of a model."""
    return model is not None and bool(model.result_.status == "interrupted")


def described(params: Mapping[str, Any]) -> str:
    """Parameters in a few words."""
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value!s:.40}"
        for name, value in params.items()
    )
