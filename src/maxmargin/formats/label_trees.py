"""Trees of labels as text: labelled nodes of examples, and taxonomies of classes.

Of label trees each line is a node, with its number, its head and its label.
Examples are separated by empty lines, and lines that begin with ``#`` are comments. A line has the
node's number (1, 2, ...), that of its head (0 for the root; ``_`` on all lines: not known), its
label (``_``: not known) and its features as ``index:value`` pairs::

    1 0 person 1:0.5 4:1
    2 1 adult 2:1
    3 1 tall

All examples have the same tree. Of taxonomies each line has a node, its parent and, where the node
is one, the class, with tabs between them.
"""

from __future__ import annotations

import re
from array import array
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..problems.classes.taxonomy import Taxonomy
from .opening import BadLine, NumberedLines, Source, read_blocks, read_lines
from .svmlight import append_pairs

__all__ = ["LabelTrees", "Node", "read_label_trees", "read_taxonomy"]

UNKNOWN = "_"


class Node(NamedTuple):
    """A node of an example: its head (None: not known), label and line, and what follows."""

    head: int | None
    label: str
    line: int
    pairs: str


class LabelTrees(NamedTuple):
    """Examples of a file of label trees.

    Attributes
    ----------
    X : list of csr_matrix, shape (n_examples, n_features)
        Features of each node.
    nodes : list of list of Node
        The nodes of each example, with their labels.
    edges : list of (int, int), or None
        Edges of the tree, node numbers from 0 with the head first; None if no heads are given.
    source : str
        Name of the file.
    """

    X: list[Any]
    nodes: list[list[Node]]
    edges: list[tuple[int, int]] | None
    source: str

    @property
    def labels(self) -> list[list[str]]:
        """Labels of the nodes of each example."""
        return [[node.label for node in example] for example in self.nodes]

    def check_known(self) -> None:
        """Raise ValueError for the first label that is not known."""
        for node in (node for example in self.nodes for node in example):
            if node.label == UNKNOWN:
                raise ValueError(
                    f"{self.source}:{node.line}: the label is {UNKNOWN!r}, expected a known one"
                )


def read_label_trees(path: Source, *, encoding: str = "utf-8") -> LabelTrees:
    """Read a file of label trees.

    Parameters
    ----------
    path : str or path-like
        Plain text, or ``.gz``, ``.xz``, ``.bz2``.
    encoding : str, default="utf-8"
        Text encoding.

    Returns
    -------
    LabelTrees

    Raises
    ------
    ValueError
        A line without number, head and label, numbers that do not count 1, 2, ..., bad pairs, heads
        that make no tree or another one than that of the first example, or no examples; the message
        names file and line.
    """
    indptr, indices, values = array("q", [0]), array("q"), array("d")
    examples: list[list[Node]] = []

    def add(block: NumberedLines) -> None:
        nodes: list[Node] = []
        for number, line in block:
            if line.lstrip().startswith("#"):
                continue
            try:
                nodes.append(_read_node(number, line, len(nodes) + 1))
                append_pairs(nodes[-1].pairs.split(), None, indices, values)
            except BadLine as error:
                raise BadLine(str(error), number) from None
            indptr.append(len(indices))
        if nodes:
            examples.append(nodes)
            _check_like_first(examples[0], nodes)

    for _ in read_blocks(path, add, encoding=encoding):
        pass
    if not examples:
        raise ValueError(f"{path}: no nodes found, expected number, head and label on each line")
    _check_tree(path, examples[0])
    columns = np.array(indices, dtype=np.int64) - 1
    shape = (len(indptr) - 1, int(columns.max(initial=-1)) + 1)
    rows = sparse.csr_matrix((np.array(values), columns, np.array(indptr)), shape=shape)
    n_nodes = len(examples[0])
    edges = [(node.head - 1, v) for v, node in enumerate(examples[0]) if node.head]
    has_heads = examples[0][0].head is not None
    X = [rows[v::n_nodes] for v in range(n_nodes)]
    return LabelTrees(X, examples, edges if has_heads else None, str(path))


def _read_node(number: int, line: str, expected: int) -> Node:
    """One line."""
    fields = line.strip().split(None, 3)
    if len(fields) < 3 or ":" in fields[2]:
        raise BadLine(f"expected number, head and label first, found {line.strip()!r:.60}")
    if fields[0] != str(expected):
        raise BadLine(f"expected the node number {expected}, found {fields[0]!r:.40}")
    head = None
    if fields[1] != UNKNOWN:
        if not (fields[1].isascii() and fields[1].isdigit() and len(fields[1]) < 10):
            raise BadLine(f"expected the number of the head or _, found {fields[1]!r:.40}")
        head = int(fields[1])
    return Node(head, fields[2], number, fields[3] if len(fields) > 3 else "")


def _check_like_first(first: list[Node], nodes: list[Node]) -> None:
    """Raise BadLine unless an example has the nodes and heads of the first one."""
    if len(nodes) != len(first):
        raise BadLine(
            f"{len(nodes)} nodes, but the example of line {first[0].line} has {len(first)}; all "
            "examples have one tree",
            nodes[0].line,
        )
    for node, model in zip(nodes, first, strict=True):
        if node.head != model.head:
            found, expected = (UNKNOWN if n.head is None else n.head for n in (node, model))
            raise BadLine(
                f"the head is {found}, but {expected} in line {model.line}; all examples have one "
                "tree",
                node.line,
            )


def _check_tree(path: Source, nodes: list[Node]) -> None:
    """Raise ValueError unless the heads, where there are any, make a tree."""
    heads = [node.head for node in nodes]
    if all(head is None for head in heads):
        return
    for node in nodes:
        if node.head is None:
            raise ValueError(f"{path}:{node.line}: the head is _, but others are known")
        if node.head > len(nodes):
            raise ValueError(
                f"{path}:{node.line}: the head is {node.head}, expected a number from 0 to "
                f"{len(nodes)}"
            )
    if heads.count(0) != 1:
        raise ValueError(
            f"{path}:{nodes[0].line}: {heads.count(0)} nodes have the head 0, expected one root"
        )
    for v, node in enumerate(nodes):
        seen, at = {v}, node.head or 0
        while at:
            if at - 1 in seen:
                raise ValueError(f"{path}:{node.line}: the heads of this node run in a circle")
            seen.add(at - 1)
            at = heads[at - 1] or 0


HEADER = ("node", "parent")
_WHOLE = re.compile("0|[1-9][0-9]{0,17}")  # as numbers are written, so that 07 and 7 stay two


def read_taxonomy(path: Source, *, encoding: str = "utf-8") -> Taxonomy:
    """Read a taxonomy, plain or compressed (``.gz``, ``.xz``, ``.bz2``).

    Each line holds a node, its parent and, in an optional third column, the class that the node
    stands for, separated by tabs. A node with several parents has several lines; a root has an
    empty parent or is only named as one. A first line ``node parent ...`` is a header. Without
    any class the leaves are the classes.

    Parameters
    ----------
    path : str or path-like
        File to read.
    encoding : str, default="utf-8"
        Text encoding.

    Returns
    -------
    Taxonomy
        Its classes are integers if all of them are written as whole numbers, else strings.

    Raises
    ------
    ValueError
        A line with too few or too many columns, a node with two classes, a class at two nodes, or
        a cycle; the message names the file and, where there is one, the line.
    """
    parents: dict[str, list[str]] = {}
    class_of: dict[str, tuple[str, int]] = {}
    node_of: dict[str, str] = {}

    def add(number: int, line: str) -> None:
        fields = [field.strip() for field in line.split("\t")]
        if number == 1 and tuple(fields[:2]) == HEADER:
            return
        if not 2 <= len(fields) <= 3 or not fields[0]:
            raise BadLine(
                "expected node, parent and perhaps a class, separated by tabs, found "
                f"{line.strip()!r:.60}"
            )
        node, parent, label = (*fields, "")[:3]
        above = parents.setdefault(node, [])
        if parent:
            above.append(parent)
        if not label:
            return
        if class_of.setdefault(node, (label, number))[0] != label:
            raise BadLine(
                f"node {node!r:.40} has class {label!r:.40} here and {class_of[node][0]!r:.40} in "
                f"line {class_of[node][1]}"
            )
        if node_of.setdefault(label, node) != node:
            raise BadLine(
                f"class {label!r:.40} is at node {node!r:.40} here and at {node_of[label]!r:.40} "
                f"in line {class_of[node_of[label]][1]}"
            )

    for _ in read_lines(path, add, encoding=encoding):
        pass
    if not parents:
        raise ValueError(f"{path}: expected at least one node, found none")
    whole = all(_WHOLE.fullmatch(label) for label in node_of)
    classes: dict[Any, str] = {int(k) if whole else k: node for k, node in node_of.items()}
    try:
        return Taxonomy(parents, classes or None)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
