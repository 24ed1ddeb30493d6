"""Warnings that point at the user's own line, however deep in the package they arise."""

from __future__ import annotations

import inspect
import warnings

__all__ = ["warn_user"]

#: Packages between the user's line and ours; scikit-learn's tools call estimators for the user.
_BETWEEN = ("maxmargin", "sklearn", "joblib")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if the line that called the package had done so."""
    frame, level = inspect.currentframe(), 1  # None where Python has no frames
    while frame is not None and _package(frame.f_globals) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    """The package that a frame's global names belong to."""
    return str(names.get("__name__", "")).partition(".")[0]
