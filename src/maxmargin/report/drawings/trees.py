"""Parse trees: a word in each line, constituents on their left, the root farthest.

Any sentence fits the width of a page this way: trees are deep by far less than they are wide.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...formats.trees import Tree, as_tree
from ..trees import tree_height
from .texts import LINE, short, text, width_of

__all__ = ["parse_tree"]

GAP = 14.0


def parse_tree(found: Any, truth: Any = None) -> str:
    """Draw a tree; constituents that the true one does not have are red."""
    tree = as_tree(found)
    expected = None if truth is None else Counter(as_tree(truth).spans())
    drawing = _Drawing(tree, expected)
    note = (
        "" if truth is None else '<p class="muted">red: constituents that the true tree lacks</p>'
    )
    return (
        f'<svg viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}" '
        f'width="{drawing.width:.0f}" role="img">{"".join(drawing.parts)}</svg>{note}'
    )


class _Drawing:
    """What is drawn so far."""

    def __init__(self, tree: Tree, expected: Counter[tuple[str, int, int]] | None) -> None:
        self.expected = expected
        words, tags = [short(word) for word in tree.words()], tree.tags()
        labels = [label for label, _, _ in tree.spans()]
        self.level = max(map(width_of, [*labels, *tags])) + GAP
        self.tags = GAP + self.level * tree_height(tree)  # where their column begins
        self.width = self.tags + self.level + max(map(width_of, words)) + GAP
        self.height = LINE * len(words)
        self.parts = [
            text(self.tags + self.level, _line(t), word, "--ink", style="font-style:italic")
            for t, word in enumerate(words)
        ]
        self._node(tree, 0)

    def _node(self, tree: Tree, start: int) -> tuple[float, float, int]:
        """Draw a subtree that begins at a word; its place, and where it ends."""
        x = self.tags - self.level * tree_height(tree)
        if tree.is_tag:
            self.parts.append(text(x, _line(start), tree.label, "--muted"))
            return x, _line(start), start + 1
        end, below = start, []
        for child in tree.children:
            if isinstance(child, Tree):
                child_x, child_y, end = self._node(child, end)
                below.append((child_x, child_y))
        y = 0.5 * (below[0][1] + below[-1][1])
        bend = x + self.level - GAP + 4.0
        begin = x + width_of(tree.label) + 2.0
        for child_x, child_y in below:
            self.parts.append(
                f'<path class="grid" fill="none" d="M{begin:.1f},{y - 4:.1f} '
                f'H{bend:.1f} V{child_y - 4:.1f} H{child_x - 3:.1f}"/>'
            )
        is_right = self.expected is None or self.expected[tree.label, start, end] > 0
        if self.expected is not None:
            self.expected[tree.label, start, end] -= 1
        color = "--ink" if is_right else "--red"
        self.parts.append(text(x, y, tree.label, color, style="font-weight:600"))
        return x, y, end


def _line(t: int) -> float:
    """Where a word is written."""
    return LINE * (t + 0.5) + 4.0
