"""Matplotlib's figure, which is an extra, with a word to those who lack it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_class() -> type[Figure]:
    """Return `matplotlib.figure.Figure`, or raise an ImportError that says how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib: python -m pip install "maxmargin[plot]"'
        ) from error
    return Figure
