"""Taxonomies as tab-separated text: node, parent, and the class where a node is one."""

from __future__ import annotations

import re
from typing import Any

from ..problems.classes.taxonomy import Taxonomy
from .opening import Source, open_text

__all__ = ["read_taxonomy"]

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
    with open_text(path, encoding) as stream:
        for number, line in enumerate(stream, 1):
            fields = [field.strip() for field in line.rstrip("\r\n").split("\t")]
            if not any(fields) or (number == 1 and tuple(fields[:2]) == HEADER):
                continue
            if not 2 <= len(fields) <= 3 or not fields[0]:
                raise ValueError(
                    f"{path}:{number}: expected node, parent and perhaps a class, separated by "
                    f"tabs, found {line.strip()!r:.60}"
                )
            node, parent, label = (*fields, "")[:3]
            above = parents.setdefault(node, [])
            if parent:
                above.append(parent)
            if label:
                if class_of.setdefault(node, (label, number))[0] != label:
                    raise ValueError(
                        f"{path}:{number}: node {node!r:.40} has class {label!r:.40} here and "
                        f"{class_of[node][0]!r:.40} in line {class_of[node][1]}"
                    )
                if node_of.setdefault(label, node) != node:
                    raise ValueError(
                        f"{path}:{number}: class {label!r:.40} is at node {node!r:.40} here and at "
                        f"{node_of[label]!r:.40} in line {class_of[node_of[label]][1]}"
                    )
    if not parents:
        raise ValueError(f"{path}: expected at least one node, found none")
    whole = all(_WHOLE.fullmatch(label) for label in node_of)
    classes: dict[Any, str] = {int(k) if whole else k: node for k, node in node_of.items()}
    try:
        return Taxonomy(parents, classes or None)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
