"""Phrase-structure trees as they are learned and predicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Tree"]


@dataclass(frozen=True, slots=True)
class Tree:
    """A node with its children; the children of a tag are one word.

    Attributes
    ----------
    label : str
        Category, or part-of-speech tag.
    children : tuple of Tree, or tuple of one str
        Subtrees; for a tag, its word.
    is_fallback : bool
        Whether a parser made the tree up because its grammar has none for the sentence. It plays
        no part in comparisons.
    """

    label: str
    children: tuple[Tree | str, ...]
    is_fallback: bool = field(default=False, compare=False)

    @property
    def is_tag(self) -> bool:
        """Whether the node is a tag above a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def subtrees(self) -> Iterator[Tree]:
        """All nodes, parents before children, from left to right."""
        waiting: list[Tree] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += [child for child in reversed(node.children) if isinstance(child, Tree)]

    def leaves(self) -> list[tuple[str, str]]:
        """Words with their tags, as pairs ``(word, tag)``."""
        return [(str(node.children[0]), node.label) for node in self.subtrees() if node.is_tag]

    def words(self) -> list[str]:
        """The sentence."""
        return [word for word, _ in self.leaves()]

    def tags(self) -> list[str]:
        """Part-of-speech tags of the words."""
        return [tag for _, tag in self.leaves()]

    def spans(self) -> list[tuple[str, int, int]]:
        """Constituents ``(label, start, end)`` with their words ``start..end - 1``; no tags."""
        found: list[tuple[str, int, int]] = []
        _collect_spans(self, 0, found)
        return found

    def __str__(self) -> str:
        pieces: list[str] = []
        _write(self, pieces)
        return "".join(pieces)


def _collect_spans(tree: Tree, start: int, found: list[tuple[str, int, int]]) -> int:
    """Append the constituents of a tree that begins at a word; returns where it ends."""
    if tree.is_tag:
        return start + 1
    place = len(found)
    found.append((tree.label, start, start))
    end = start
    for child in tree.children:
        if isinstance(child, Tree):
            end = _collect_spans(child, end, found)
    found[place] = (tree.label, start, end)
    return end


def _write(tree: Tree, pieces: list[str]) -> None:
    """Append a tree in brackets."""
    pieces.append(f"({tree.label}")
    for child in tree.children:
        pieces.append(" ")
        if isinstance(child, Tree):
            _write(child, pieces)
        else:
            pieces.append(child)
    pieces.append(")")
