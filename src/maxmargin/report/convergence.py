"""The course of a training run as a picture."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..formats.opening import PathLike
from ..result import Progress, Result
from .figure import figure_class, save_figure

__all__ = ["plot_convergence"]

INK, MUTED, BLUE, ORANGE, GREEN = "#222222", "#8a8f98", "#2f6fb0", "#d9822b", "#3a9a5b"


def plot_convergence(
    result: Result,
    path: PathLike | None = None,
    *,
    x: Literal["seconds", "passes"] = "seconds",
    title: str | None = None,
    size: tuple[float, float] = (9.0, 3.8),
) -> Any:
    """Draw how the duality gap closed, and how primal and dual value met.

    Parameters
    ----------
    result : Result
        Of an estimator, ``estimator.result_``, or of a solver.
    path : str or path-like, optional
        Picture to write; its ending tells the format.
    x : {"seconds", "passes"}, default="seconds"
        What the horizontal axes show.
    title : str, optional
        Heading.
    size : tuple of float, default=(9.0, 3.8)
        Width and height in inches.

    Returns
    -------
    matplotlib.figure.Figure
        The figure; it is not registered with pyplot, so it needs no closing.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    Figure = figure_class()
    if x not in ("seconds", "passes"):
        raise ValueError(f"x must be 'seconds' or 'passes', got {x!r}")
    if not result.history:
        raise ValueError("the result has no history to draw")
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    n_examples = result.n_oracle_calls / result.n_passes if result.n_passes else 1.0

    def where(record: Progress) -> float:
        return record.seconds if x == "seconds" else record.oracle_calls / n_examples

    _draw_gap(left, result.history, where)
    _draw_objective(right, result.history, where)
    for axes in (left, right):
        axes.set_xlabel("seconds" if x == "seconds" else "oracle calls per example", color=INK)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(MUTED)
        axes.tick_params(colors=MUTED, which="both", labelsize=8)
        axes.grid(True, which="major", color="#e6e8eb", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    figure.suptitle(title if title is not None else _summary(result), color=INK, fontsize=11)
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_gap(axes: Any, history: list[Progress], where: Any) -> None:
    """Estimates as a line, certified gaps as dots, and the target."""
    estimates = [
        (where(r), r.gap_estimate) for r in history if r.gap_estimate and r.gap_estimate > 0
    ]
    certified = [(where(r), r.gap) for r in history if r.gap is not None and r.gap > 0]
    targets = [(where(r), r.target) for r in history if r.target]
    if estimates:
        axes.plot(*np.array(estimates).T, color=BLUE, linewidth=1.6, label="estimate on the way")
    if certified:
        axes.plot(
            *np.array(certified).T, "o", color=ORANGE, markersize=6, label="certified", zorder=3
        )
    if targets:
        axes.plot(*np.array(targets).T, "--", color=MUTED, linewidth=1.0, label="target")
    axes.set_yscale("log")
    axes.set_title("duality gap", color=INK, fontsize=10, loc="left")


def _draw_objective(axes: Any, history: list[Progress], where: Any) -> None:
    """The dual value from below, certified primal values from above."""
    duals = [(where(r), r.dual) for r in history if r.dual is not None]
    primals = [(where(r), r.primal) for r in history if r.primal is not None]
    if duals:
        axes.plot(*np.array(duals).T, color=GREEN, linewidth=1.6, label="dual (lower bound)")
    if primals:
        axes.plot(
            *np.array(primals).T,
            "o",
            color=ORANGE,
            markersize=6,
            label="primal, certified",
            zorder=3,
        )
    axes.set_title("objective", color=INK, fontsize=10, loc="left")


def _summary(result: Result) -> str:
    """One line about the run."""
    gap = f"relative gap {result.relative_gap:.2g}" if result.relative_gap is not None else ""
    parts = [gap, f"{result.n_passes:.1f} oracle passes", f"{result.seconds:.1f} s"]
    return ", ".join(part for part in parts if part)
