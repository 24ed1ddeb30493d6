"""Parse trees as pictures."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..formats.opening import PathLike
from ..formats.trees import Tree, as_tree
from .convergence import INK, MUTED, ORANGE
from .figure import figure_class, save_figure

__all__ = ["plot_tree", "tree_height"]


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
    _draw(tree, 0, axes, expected)
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


def _draw(
    tree: Tree, start: int, axes: Any, expected: Counter[tuple[str, int, int]] | None
) -> tuple[float, int]:
    """Draw a subtree that begins at a word; returns its node's place and where it ends."""
    height = tree_height(tree)
    if tree.is_tag:
        _label(axes, start, height, tree.label, MUTED)
        return float(start), start + 1
    end, places = start, []
    for child in tree.children:
        if isinstance(child, Tree):
            place, end = _draw(child, end, axes, expected)
            places.append((place, tree_height(child)))
    middle = (places[0][0] + places[-1][0]) / 2
    for place, below in places:
        # Right angles: straight lines to tags far below would cross other nodes.
        across, down = [middle, middle, place, place], [height - 0.25, height - 0.4]
        axes.plot(across, [*down, height - 0.4, below + 0.25], color=MUTED, linewidth=0.8)
    is_right = expected is None or expected[tree.label, start, end] > 0
    if expected is not None:
        expected[tree.label, start, end] -= 1
    _label(axes, middle, height, tree.label, INK if is_right else ORANGE, bold=not is_right)
    return middle, end


def _label(axes: Any, x: float, y: float, text: str, color: str, bold: bool = False) -> None:
    """Write a node's label."""
    weight = "bold" if bold else "normal"
    axes.text(x, y, text, ha="center", va="center", color=color, fontsize=9, fontweight=weight)
