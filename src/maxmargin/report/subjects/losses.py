"""Outputs of which nothing is known but their losses."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ...metrics.tallies import tally_of_losses
from .subject import Errors, Subject, score_gaps

__all__ = ["describe"]

LONGEST = 2000


def describe(estimator: Any, X: Any, y: Any) -> Subject:
    """Losses by the estimator's own score, example by example."""
    losses = np.array([-estimator.score([x], [output]) for x, output in zip(X, y, strict=True)])
    found = estimator.predict(X)

    def margins() -> Any:
        return score_gaps(estimator, X, y, found)

    def draw(i: int) -> tuple[str, str]:
        shown = (
            f"{name}: {value!r:.{LONGEST}}" for name, value in (("true", y[i]), ("found", found[i]))
        )
        return f"example {i}: loss {losses[i]:.4g}", f"<pre>{escape(chr(10).join(shown))}</pre>"

    return Subject(tally_of_losses(losses), Errors(losses, None, margins), draw)
