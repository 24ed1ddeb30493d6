"""Rankings: the documents of a query from the first place down, with what they are worth."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ranking"]

SHOWN = 40


def ranking(relevances: Any, scores: Any) -> str:
    """A bar for each document in the order found, as high as it is relevant."""
    order = np.argsort(-np.asarray(scores, np.float64), kind="stable")[:SHOWN]
    worth = np.asarray(relevances, np.float64)
    low, high = float(worth.min()), float(worth.max())
    bars = []
    for place, document in enumerate(order.tolist()):
        height = 4.0 + 40.0 * (worth[document] - low) / ((high - low) or 1.0)
        bars.append(
            f'<rect x="{14 * place}" y="{46 - height:.1f}" width="11" height="{height:.1f}" '
            f'style="fill:var(--blue)"><title>place {place + 1}: relevance {worth[document]:g}, '
            f"score {float(scores[document]):.4g}</title></rect>"
        )
    return (
        f'<svg viewBox="0 0 {14 * len(order)} 48" width="{14 * len(order)}" role="img">'
        f'{"".join(bars)}</svg><p class="muted">documents by their place; height: relevance</p>'
    )
