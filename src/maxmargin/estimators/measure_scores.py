"""How good scores of rows are, by the measures that `PerformanceSVM` is trained for."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    fbeta_score,
    precision_recall_curve,
    roc_auc_score,
)

from ..problems.measures.measure import Measure
from ..types import Bools, Floats

__all__ = ["measure_of_scores"]


def measure_of_scores(
    measure: Measure, positive: Bools, scores: Floats, row_weights: Floats | None = None
) -> float:
    """The measure in [0, 1], larger is better; see `PerformanceSVM.score`."""
    name = measure.name
    if name == "error":
        return float(accuracy_score(positive, scores > 0.0, sample_weight=row_weights))
    if name == "rocarea":
        return float(roc_auc_score(positive, scores, sample_weight=row_weights))
    if name == "average_precision":
        return float(average_precision_score(positive, scores, sample_weight=row_weights))
    if name in ("f1", "fbeta"):
        beta = 1.0 if name == "f1" else measure.beta
        labels = scores > 0.0
        return float(
            fbeta_score(positive, labels, beta=beta, sample_weight=row_weights, zero_division=0.0)
        )
    if not positive.any():
        raise ValueError(f"y has no positive row, so measure={name!r} is not defined")
    if measure.needs_floor:
        precision, recall, _ = precision_recall_curve(positive, scores, sample_weight=row_weights)
        value, other = (recall, precision) if name == "recall@precision" else (precision, recall)
        # The last point, of no row at all, has a precision by convention alone.
        return float(value[:-1][other[:-1] >= measure.floor].max(initial=0.0))
    if row_weights is not None:
        raise ValueError(f"measure={name!r} counts rows, and takes no sample_weight")
    n_positive = int(positive.sum())
    count = n_positive if name == "prbep" else int(measure.k or 0)
    if count > len(scores):
        raise ValueError(f"X has {len(scores)} rows, fewer than k={count}")
    found = _positive_among_best(positive, scores, count)
    return found / (n_positive if name == "recall@k" else count)


def _positive_among_best(positive: Bools, scores: Floats, count: int) -> float:
    """Positive rows among the best; of rows with equal scores a random choice, on average."""
    last = np.partition(scores, len(scores) - count)[len(scores) - count]
    above, equal = scores > last, scores == last
    share = float(positive[equal].mean())
    return float(positive[above].sum()) + (count - int(above.sum())) * share
