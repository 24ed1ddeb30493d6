"""The reliability diagram: how far probabilities can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..formats.opening import PathLike
from ..metrics.reliability import Reliability
from .convergence import INK, MUTED
from .figure import figure_class, save_figure

__all__ = ["plot_reliability"]

COLOURS = ("#2f6fb0", "#d9822b", "#3a9a5b", "#a5484f")


def plot_reliability(
    found: Reliability | Mapping[str, Reliability],
    path: PathLike | None = None,
    *,
    title: str | None = None,
    axes: Any = None,
) -> Any:
    """Draw the share of right predictions over their probability; calibrated ones are on a line.

    Parameters
    ----------
    found : Reliability, or mapping of name to Reliability
        What `maxmargin.metrics.reliability` gives, of one model or of several.
    path : str or path-like, optional
        Picture to write; its ending tells the format.
    title : str, optional
        Heading.
    axes : matplotlib.axes.Axes, optional
        Where to draw; by default in a figure of its own.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; it is not registered with pyplot, so it needs no closing. The area of a mark
        grows with the number of predictions (with its square root, or most would not be seen).

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    Figure = figure_class()
    if axes is None:
        axes = Figure(figsize=(4.6, 4.4), dpi=150, layout="constrained").add_subplot()
    models = {"": found} if isinstance(found, Reliability) else dict(found)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle="--")
    for k, (name, one) in enumerate(models.items()):
        colour, used = COLOURS[k % len(COLOURS)], one.counts > 0
        shares = np.sqrt(one.counts[used] / one.counts.sum())
        label = f"{name}  ECE {one.ece:.4f}".strip()
        axes.plot(
            one.confidence[used], one.accuracy[used], color=colour, linewidth=1.2, label=label
        )
        axes.scatter(one.confidence[used], one.accuracy[used], s=8 + 120 * shares, color=colour)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    axes.set_xlabel("probability of what is predicted", color=INK)
    axes.set_ylabel("share that is right", color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    if title:
        axes.set_title(title, color=INK, fontsize=10, loc="left")
    figure = axes.figure
    if path is not None:
        save_figure(figure, path)
    return figure
