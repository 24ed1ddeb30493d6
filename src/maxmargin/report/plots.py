"""Pictures by matplotlib: the course of a training, the reliability diagram, parse trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.result import Progress, Result
from ..formats.opening import PathLike
from ..formats.trees import Tree, as_tree
from ..formats.writing import write_atomically
from ..metrics.labels import Reliability
from ..utils.validation import check_choice

__all__ = ["plot_convergence", "plot_reliability", "plot_tree", "tree_height"]

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


def picture_format(path: PathLike) -> str:
    """The format that the ending of a picture's name stands for; PNG without one."""
    known = figure_class()().canvas.get_supported_filetypes()
    ending = Path(path).suffix[1:].lower() or "png"
    if ending not in known:
        names = ", ".join(sorted(known))
        raise ValueError(
            f"{path}: pictures cannot be written in the format {ending!r}; expected one of {names}"
        )
    return ending


def save_figure(figure: Figure, path: PathLike) -> None:
    """Write a picture, which appears complete or not at all."""
    kind = picture_format(path)
    with write_atomically(path) as stream:
        figure.savefig(stream, format=kind)


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
    check_choice(x, ("seconds", "passes"), "x")
    if not result.history:
        raise ValueError("the result has no history to draw")
    figure = Figure(figsize=size, dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    n_examples = result.n_oracle_calls / result.n_passes if result.n_passes else 1.0

    def where(record: Progress) -> float:
        return record.seconds if x == "seconds" else record.oracle_calls / n_examples

    _draw_gap(left, result.history, where)
    draw_objective(right, result.history, where)
    for axes in (left, right):
        axes.set_xlabel("seconds" if x == "seconds" else "oracle calls per example", color=INK)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(MUTED)
        axes.tick_params(colors=MUTED, which="both", labelsize=8)
        axes.grid(True, which="major", color="#e6e8eb", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
    figure.suptitle(
        title if title is not None else _convergence_title(result), color=INK, fontsize=11
    )
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


def draw_objective(axes: Any, history: list[Progress], where: Any) -> None:
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


def _convergence_title(result: Result) -> str:
    """One line about the run."""
    gap = f"relative gap {result.relative_gap:.2g}" if result.relative_gap is not None else ""
    parts = [gap, f"{result.n_passes:.1f} oracle passes", f"{result.seconds:.1f} s"]
    return ", ".join(part for part in parts if part)


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
        What `maxmargin.metrics.labels` gives, of one model or of several.
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


def plot_tree(
    tree: Any,
    path: PathLike | None = None,
    *,
    truth: Any = None,
    title: str | None = None,
    axes: Any = None,
) -> Any:
    """Draw a tree with its words in a row below.

    Parameters
    ----------
    tree : Tree or anything that `maxmargin.formats.as_tree` takes
        What to draw.
    path : str or path-like, optional
        Picture to write; its ending tells the format.
    truth : tree, optional
        The true tree over the same words: constituents that it does not have are marked.
    title : str, optional
        Heading.
    axes : matplotlib.axes.Axes, optional
        Where to draw; by default in a figure of its own.

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
    tree = as_tree(tree)
    words = tree.words()
    if axes is None:
        size = (max(4.0, 0.75 * len(words)), 1.0 + 0.5 * tree_height(tree))
        axes = Figure(figsize=size, dpi=150, layout="constrained").add_subplot()
    expected = None if truth is None else Counter(as_tree(truth).spans())
    _draw_subtree(tree, 0, axes, expected)
    for t, word in enumerate(words):
        axes.text(t, -0.8, word, ha="center", va="center", color=INK, fontsize=9, style="italic")
    axes.set_xlim(-0.6, len(words) - 0.4)
    axes.set_ylim(-1.3, tree_height(tree) + 0.5)
    axes.axis("off")
    if title:
        axes.set_title(title, color=INK, fontsize=10)
    figure = axes.figure
    if path is not None:
        save_figure(figure, path)
    return figure


def tree_height(tree: Tree) -> int:
    """Number of steps from a node down to its farthest tag."""
    return 1 + max((tree_height(c) for c in tree.children if isinstance(c, Tree)), default=-1)


def _draw_subtree(
    tree: Tree, start: int, axes: Any, expected: Counter[tuple[str, int, int]] | None
) -> tuple[float, int]:
    """Draw a subtree that begins at a word; returns its node's place and where it ends."""
    height = tree_height(tree)
    if tree.is_tag:
        _write_label(axes, start, height, tree.label, MUTED)
        return float(start), start + 1
    end, places = start, []
    for child in tree.children:
        if isinstance(child, Tree):
            place, end = _draw_subtree(child, end, axes, expected)
            places.append((place, tree_height(child)))
    middle = (places[0][0] + places[-1][0]) / 2
    for place, below in places:
        # Right angles: straight lines to tags far below would cross other nodes.
        across, down = [middle, middle, place, place], [height - 0.25, height - 0.4]
        axes.plot(across, [*down, height - 0.4, below + 0.25], color=MUTED, linewidth=0.8)
    is_right = expected is None or expected[tree.label, start, end] > 0
    if expected is not None:
        expected[tree.label, start, end] -= 1
    _write_label(axes, middle, height, tree.label, INK if is_right else ORANGE, bold=not is_right)
    return middle, end


def _write_label(axes: Any, x: float, y: float, text: str, color: str, bold: bool = False) -> None:
    """Write a node's label."""
    weight = "bold" if bold else "normal"
    axes.text(x, y, text, ha="center", va="center", color=color, fontsize=9, fontweight=weight)
