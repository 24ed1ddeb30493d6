"""How sure a model is of what it predicts, as one more column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["confidence_of"]


def confidence_of(estimator: Any, X: Any, predicted: Sequence[Any]) -> list[str]:
    """The probability of each predicted label, or its margin if the model is not calibrated."""
    is_calibrated = hasattr(estimator, "calibration_")
    tables = estimator.predict_proba(X) if is_calibrated else estimator.predict_margins(X)
    number = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    codes = np.array([number[label] for label in predicted], np.int64)
    table = tables if isinstance(tables, np.ndarray) else np.concatenate(tables)
    return [f"{value:.6g}" for value in table[np.arange(len(codes)), codes].tolist()]
