"""How good scores of rows are, by the measures that `PerformanceSVM` is trained for."""

from __future__ import annotations

import importlib

import numpy as np

from ..problems.measures.measure import Measure
from ..types import Bools, Floats

__all__ = ["measure_of_scores"]


def measure_of_scores(
    measure: Measure, positive: Bools, scores: Floats, row_weights: Floats | None = None
) -> float:
    """The measure in [0, 1], larger is better; see `PerformanceSVM.score`."""
    name = measure.name
    if name == "error":
        return float(np.average(positive == (scores > 0.0), weights=row_weights))
    if name == "rocarea":
        right, wrong = _counts(positive, scores, row_weights)
        if not right[-1] or not wrong[-1]:
            return _undefined("roc_auc_score", positive, scores, row_weights)
        both = np.trapezoid(np.append(0.0, right), np.append(0.0, wrong))
        return float(both / (right[-1] * wrong[-1]))
    if name == "average_precision":
        right, wrong = _counts(positive, scores, row_weights)
        if not right[-1]:
            return _undefined("average_precision_score", positive, scores, row_weights)
        return float(np.diff(right, prepend=0.0) @ _share(right, right + wrong) / right[-1])
    if name in ("f1", "fbeta"):
        square = 1.0 if name == "f1" else measure.beta**2
        weights = np.ones(len(scores)) if row_weights is None else row_weights
        found, true = float(weights @ (scores > 0.0)), float(weights @ positive)
        both = float(weights @ (positive & (scores > 0.0)))
        return (1.0 + square) * both / (found + square * true) if both else 0.0
    if not positive.any():
        raise ValueError(f"y has no positive row, so measure={name!r} is not defined")
    if measure.needs_floor:
        right, wrong = _counts(positive, scores, row_weights)
        precision, recall = _share(right, right + wrong), _share(right, right[-1:])
        value, other = (recall, precision) if name == "recall@precision" else (precision, recall)
        return float(value[other >= (measure.floor or 0.0)].max(initial=0.0))
    if row_weights is not None:
        raise ValueError(f"measure={name!r} counts rows, and takes no sample_weight")
    n_positive = int(positive.sum())
    count = n_positive if name == "prbep" else int(measure.k or 0)
    if count > len(scores):
        raise ValueError(f"X has {len(scores)} rows, fewer than k={count}")
    found = _positive_among_best(positive, scores, count)
    return found / (n_positive if name == "recall@k" else count)


def _counts(positive: Bools, scores: Floats, row_weights: Floats | None) -> tuple[Floats, Floats]:
    """Positive and negative rows above each threshold that matters, the highest first."""
    weights = np.ones(len(scores)) if row_weights is None else row_weights
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=-np.inf))
    right = np.cumsum((weights * positive)[order])[last]
    wrong = np.cumsum((weights * ~positive)[order])[last]
    return right, wrong


def _share(part: Floats, whole: Floats) -> Floats:
    """Shares; 0 of nothing."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0.0)


def _undefined(name: str, positive: Bools, scores: Floats, row_weights: Floats | None) -> float:
    """What scikit-learn makes of a measure that is not defined, with its warning."""
    measure = getattr(importlib.import_module("sklearn.metrics"), name)
    return float(measure(positive, scores, sample_weight=row_weights))


def _positive_among_best(positive: Bools, scores: Floats, count: int) -> float:
    """Positive rows among the best; of rows with equal scores a random choice, on average."""
    last = np.partition(scores, len(scores) - count)[len(scores) - count]
    above, equal = scores > last, scores == last
    share = float(positive[equal].mean())
    return float(positive[above].sum()) + (count - int(above.sum())) * share
