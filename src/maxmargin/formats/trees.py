"""Phrase-structure trees: bracketed text, nested tuples and tree objects of other libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..problems.grammar.rules import Tree
from .opening import PathLike, Source, open_text
from .writing import write_text_atomically

__all__ = ["Tree", "Treebank", "as_tree", "clean_tree", "parse_tree", "read_trees", "write_trees"]

NULL_TAG = "-NONE-"
DEEPEST = 200  # brackets inside each other; walks over trees are recursive
_TOKEN = re.compile(r"[()]|[^\s()]+")
# Function tags follow a hyphen or an equals sign; labels such as -LRB- begin with one.
_FUNCTION = re.compile(r"(?<=.)[-=].*")


class Treebank(NamedTuple):
    """Trees of a file, and what stands before each of them on its line (an empty string: nothing).

    Attributes
    ----------
    trees : list of Tree
        The trees, as they are in the file.
    ids : list of str
        Names of the documents, for files that give them.
    lines : list of int
        Lines of the file on which the trees begin, from 1.
    """

    trees: list[Tree]
    ids: list[str]
    lines: Sequence[int] = ()


def parse_tree(text: str) -> Tree:
    """Read one tree in brackets.

    Parameters
    ----------
    text : str
        For example ``"(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))"``. An outer bracket without a
        label is dropped.

    Returns
    -------
    Tree

    Raises
    ------
    ValueError
        Brackets that do not match, no tree or more than one.

    Examples
    --------
    >>> parse_tree("( (S (NP (PRP it)) (VP (VBZ works))))").tags()
    ['PRP', 'VBZ']
    """
    found = list(_scan([text], repr(text[:40])))
    if len(found) != 1:
        raise ValueError(f"expected one tree in brackets, found {len(found)} in {text[:40]!r}")
    return found[0][1]


def as_tree(value: Any) -> Tree:
    """Turn any tree we know of into a `Tree`.

    Parameters
    ----------
    value : Tree, str, tuple, list, or object with a ``label()`` method
        Brackets; nested tuples ``("S", ("NP", ("PRP", "it")), ...)``; or an ``nltk.Tree``.

    Returns
    -------
    Tree

    Raises
    ------
    ValueError
        If it is none of these, or a word has no tag.
    """
    if isinstance(value, Tree):
        return value
    if isinstance(value, str):
        return parse_tree(value)
    if callable(getattr(value, "label", None)):
        label, children = value.label(), list(value)
    elif isinstance(value, (tuple, list)) and len(value) > 1:
        label, children = value[0], list(value[1:])
    else:
        raise ValueError(f"expected a tree, found {value!r:.60}")
    if not isinstance(label, str):
        raise ValueError(f"expected a label, found {label!r:.60}")
    return _make(label, [c if isinstance(c, str) else as_tree(c) for c in children])


def clean_tree(tree: Tree, *, null_tag: str = NULL_TAG) -> Tree:
    """Remove what a parser cannot see: null elements, function tags, an outer bracket.

    Function tags are cut off at the first hyphen or equals sign of a label (``NP-SBJ-1`` becomes
    ``NP``); a node whose only child has the same label then takes that child's place.

    Parameters
    ----------
    tree : Tree
        Tree as in the Penn Treebank.
    null_tag : str, default="-NONE-"
        Tag of the null elements.

    Returns
    -------
    Tree

    Raises
    ------
    ValueError
        If nothing is left.

    Examples
    --------
    >>> tree = parse_tree("(S (NP-SBJ (NP (-NONE- *)) (NP (PRP it))) (VP (VBZ works)))")
    >>> print(clean_tree(tree))
    (S (NP (PRP it)) (VP (VBZ works)))
    """
    cleaned = _clean(tree, null_tag)
    if cleaned is None:
        raise ValueError(f"no words in the tree {str(tree)[:60]!r}")
    return cleaned


def read_trees(path: Source, *, encoding: str = "utf-8") -> Treebank:
    """Read a file of bracketed trees, such as the ``.mrg`` files of the Penn Treebank.

    A tree may take several lines, and a line may hold several trees. What stands before a tree on
    its line, outside of brackets, is kept as its id.

    Parameters
    ----------
    path : str or path-like
        Plain text, or ``.gz``, ``.xz``, ``.bz2``.
    encoding : str, default="utf-8"
        Text encoding.

    Returns
    -------
    Treebank

    Raises
    ------
    ValueError
        Brackets that do not match or are nested more than 200 deep, a word without a tag, or a
        file without trees; the message names file and line.
    """
    with open_text(path, encoding) as stream:
        found = list(_scan(stream, str(path)))
    if not found:
        raise ValueError(f"{path}: no trees found, expected trees in brackets")
    names, trees, lines = zip(*found, strict=True)
    return Treebank(list(trees), list(names), list(lines))


def write_trees(path: PathLike, trees: list[Tree], *, encoding: str = "utf-8") -> None:
    """Write trees in brackets, one on each line.

    Parameters
    ----------
    path : str or path-like
        File to write, compressed if it ends in ``.gz``, ``.xz`` or ``.bz2``.
    trees : list of Tree
        What to write.
    encoding : str, default="utf-8"
        Text encoding.
    """
    with write_text_atomically(path, encoding) as stream:
        stream.writelines(f"{tree}\n" for tree in trees)


# ----- reading ----------------------------------------------------------------------------------


def _scan(lines: Any, source: str) -> Iterator[tuple[str, Tree, int]]:
    """Yield ``(id, tree, line)`` for every outermost bracket."""
    name: list[str] = []
    stack: list[list[Tree | str]] = []  # of each open bracket: label, then children
    opened = number = 0
    for number, line in enumerate(lines, 1):
        if not stack:
            name = []
        for token in _TOKEN.findall(line):
            if token == "(":
                if not stack:
                    opened = number
                elif not stack[-1]:
                    stack[-1].append("")  # a bracket that begins with another has no label
                stack.append([])
                if len(stack) > DEEPEST:
                    raise ValueError(
                        f"{source}:{number}: expected at most {DEEPEST} brackets inside each other"
                    )
            elif token == ")":
                if not stack:
                    raise ValueError(f"{source}:{number}: found ')' without an open bracket")
                try:
                    node = _close(stack.pop())
                except ValueError as error:
                    raise ValueError(f"{source}:{number}: {error}") from None
                if stack:
                    stack[-1].append(node)
                else:
                    yield " ".join(name), node, opened
                    name = []
            elif stack:
                stack[-1].append(token)
            else:
                name.append(token)
    if stack:
        raise ValueError(f"{source}:{opened}: a bracket that is opened here is never closed")


def _close(content: list[Tree | str]) -> Tree:
    """Make a node of what stood between two brackets."""
    if len(content) < 2:
        raise ValueError("expected a label and what is below it between brackets")
    label, *children = content
    if label == "" and len(children) == 1 and isinstance(children[0], Tree):
        return children[0]
    return _make(str(label) or "TOP", children)


def _make(label: str, children: list[Tree | str]) -> Tree:
    """A node, once its children are known to be subtrees or one word."""
    words = [child for child in children if isinstance(child, str)]
    if words and len(children) > 1:
        raise ValueError(f"the word {words[0]!r:.40} below {label!r:.40} has no tag")
    if not children:
        raise ValueError(f"nothing is below {label!r:.40}")
    return Tree(label, tuple(children))


# ----- walking ----------------------------------------------------------------------------------


def _clean(tree: Tree, null_tag: str) -> Tree | None:
    """The tree without null elements and function tags; None if nothing is left."""
    if tree.is_tag:
        return None if tree.label == null_tag else Tree(tree.label, tree.children)
    cleaned = (_clean(child, null_tag) for child in tree.children if isinstance(child, Tree))
    kept = tuple(child for child in cleaned if child is not None)
    label = _FUNCTION.sub("", tree.label)
    if not kept:
        return None
    if len(kept) == 1 and not kept[0].is_tag and kept[0].label == label:
        return kept[0]
    return Tree(label, kept)
