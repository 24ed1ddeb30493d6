"""Parse trees: words in a row, constituents above them."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import Any

from ...formats.trees import Tree, as_tree
from ..trees import tree_height

__all__ = ["parse_tree"]

LETTER, GAP, LEVEL = 7.5, 16.0, 34.0


def parse_tree(found: Any, truth: Any = None) -> str:
    """Draw a tree; constituents that the true one does not have are red."""
    tree = as_tree(found)
    expected = None if truth is None else Counter(as_tree(truth).spans())
    drawing = _Drawing(tree, expected)
    return (
        f'<div class="scroll"><svg width="{drawing.width:.0f}" height="{drawing.height + 12:.0f}" '
        f'style="max-width:none" role="img">{"".join(drawing.parts)}</svg></div>'
    )


class _Drawing:
    """What is drawn so far."""

    def __init__(self, tree: Tree, expected: Counter[tuple[str, int, int]] | None) -> None:
        self.expected = expected
        self.height = LEVEL * (tree_height(tree) + 2)
        self.parts: list[str] = []
        self.places: list[float] = []
        x = 8.0
        for word, tag in zip(tree.words(), tree.tags(), strict=True):
            width = LETTER * max(len(word), len(tag))
            self.places.append(x + 0.5 * width)
            self._text(self.places[-1], self.height, word, "--ink", "font-style:italic")
            x += width + GAP
        self.width = x
        self._node(tree, 0)

    def _node(self, tree: Tree, start: int) -> tuple[float, float, int]:
        """Draw a subtree that begins at a word; its place, level and end."""
        level = self.height - LEVEL * (tree_height(tree) + 1)
        if tree.is_tag:
            self._text(self.places[start], level, tree.label, "--muted")
            return self.places[start], level, start + 1
        end, below = start, []
        for child in tree.children:
            if isinstance(child, Tree):
                x, y, end = self._node(child, end)
                below.append((x, y))
        middle = 0.5 * (below[0][0] + below[-1][0])
        for x, y in below:
            self.parts.append(
                f'<line class="grid" x1="{middle:.1f}" y1="{level + 4:.1f}" x2="{x:.1f}" '
                f'y2="{y - 13:.1f}"/>'
            )
        is_right = self.expected is None or self.expected[tree.label, start, end] > 0
        if self.expected is not None:
            self.expected[tree.label, start, end] -= 1
        self._text(middle, level, tree.label, "--ink" if is_right else "--red", "font-weight:600")
        return middle, level, end

    def _text(self, x: float, y: float, text: str, color: str, style: str = "") -> None:
        """Write a word or a label."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" '
            f'style="fill:var({color});{style}">{escape(text)}</text>'
        )
