"""Labels of variables that factors tie together in a tree, which may be another for each input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...search.limits import as_numbers
from ...utils.types import Floats, Ints
from .slots import NoOutput, SlotProblem

__all__ = ["FactorTree", "Factors"]


class Factors(NamedTuple):
    """An input of `FactorTree`.

    Attributes
    ----------
    variables : list of array of shape (n_labels, n_features)
        For each variable, the features of each of its labels; they may differ in number.
    pairs : list of (int, int)
        Variables that a factor ties together. They must form a tree, or several.
    tables : list of array of shape (n_labels of the first, n_labels of the second, n_features)
        For each of these pairs, the features of each pair of labels.
    """

    variables: Sequence[ArrayLike]
    pairs: Sequence[tuple[int, int]] = ()
    tables: Sequence[ArrayLike] = ()


class FactorTree(SlotProblem):
    """Label the variables of trees, given the features of every label and of every pair of labels.

    An input is a `Factors`, an output the number of a label for each variable. The joint feature
    vector is the sum of the features of the labels and of the tied pairs of labels.

    Parameters
    ----------
    loss : {"hamming", "normalized_hamming", "zero_one"}
        Number of wrong variables, their share, or 1 if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> one, agree = np.array([[1.0, 0.0], [0.0, 0.0]]), np.eye(2)[:, :, None] * [0.0, 1.0]
    >>> x = mm.Factors([one, 0 * one, 0 * one], [(0, 1), (1, 2)], [agree, agree])
    >>> mm.FactorTree().bind([x], [[0, 0, 0]]).predict(x, np.ones(2)).tolist()
    [0, 0, 0]
    """

    trusted = True

    def input_of(self, x: Any, where: str = "") -> _Tree:
        """See `SlotProblem`."""
        return _as_tree(x, where)

    def check_output(self, x: _Tree, y: Any, where: str) -> None:
        """See `SlotProblem`."""
        labels = np.asarray(y)
        if labels.shape != (len(x.sizes),) or labels.dtype.kind not in "iu":
            raise ValueError(
                f"{where}there are {len(x.sizes)} variables; expected as many numbers of labels, "
                f"got {y!r:.60}"
            )
        outside = np.flatnonzero((labels < 0) | (labels >= x.sizes))
        if len(outside):
            v = outside[0]
            raise ValueError(
                f"{where}the label of variable {v} is {labels[v]}; its labels are numbered from 0 "
                f"to {x.sizes[v] - 1}"
            )

    def width_of(self, x: _Tree) -> int:
        """See `SlotProblem`."""
        return x.n_features

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """Sum of the features of labels and of tied pairs of labels."""
        tree = _as_tree(x)
        self.check_output(tree, y, "")
        total = np.zeros(tree.n_features)
        for features, label in zip(tree.variables, y, strict=True):
            total += features[label]
        for (u, v), table in zip(tree.pairs, tree.tables, strict=True):
            total += table[y[u], y[v]]
        return total

    def shape_of(self, x: Any) -> tuple[int, int]:
        """See `SlotProblem`."""
        sizes = _as_tree(x).sizes
        return len(sizes), int(sizes.max(initial=1))

    def labels_of(self, x: Any, y: Any) -> Ints:
        """See `SlotProblem`."""
        return np.asarray(y, np.int64)

    def output_of(self, x: Any, labels: Ints) -> Ints:
        """See `SlotProblem`."""
        return labels

    def scores_of(self, x: Any, w: Floats) -> _TreeScores:
        """See `SlotProblem`."""
        return _TreeScores(_as_tree(x), w)


class _Tree(NamedTuple):
    """Checked `Factors`, with the variables in an order in which children come after parents."""

    variables: list[Floats]
    pairs: list[tuple[int, int]]
    tables: list[Floats]
    sizes: Ints
    n_features: int
    order: list[int]
    above: list[int]  # the pair that ties a variable to its parent; -1 for roots


class _TreeScores:
    """Scores of labels and of pairs of labels."""

    def __init__(self, tree: _Tree, w: Floats) -> None:
        self.tree = tree
        self.single = [features @ w for features in tree.variables]
        self.tied = [table @ w for table in tree.tables]

    def best(self, bonus: Floats) -> Ints:
        """See `SlotScores`; max-product from the leaves to the roots, and back."""
        tree = self.tree
        best = [s + bonus[v, : len(s)] for v, s in enumerate(self.single)]
        choice: dict[int, Ints] = {}
        for v in reversed(tree.order):
            if (edge := tree.above[v]) < 0:
                continue
            parent, table = self._seen_from(v, edge)
            sums = table + best[v]
            choice[v] = sums.argmax(axis=1)
            best[parent] = best[parent] + sums.max(axis=1)
        labels = np.empty(len(tree.sizes), np.int64)
        for v in tree.order:
            if (edge := tree.above[v]) < 0:
                labels[v] = best[v].argmax()
                if best[v][labels[v]] == -np.inf:
                    raise NoOutput
            else:
                labels[v] = choice[v][labels[self._seen_from(v, edge)[0]]]
        return labels

    def _seen_from(self, v: int, edge: int) -> tuple[int, Floats]:
        """The parent of a variable, and the scores of their labels, the parent's by row."""
        a, b = self.tree.pairs[edge]
        return (a, self.tied[edge]) if b == v else (b, self.tied[edge].T)

    def score(self, labels: Ints) -> float:
        """See `SlotScores`."""
        total = sum(s[k] for s, k in zip(self.single, labels, strict=True))
        ties = zip(self.tree.pairs, self.tied, strict=True)
        return float(total + sum(table[labels[u], labels[v]] for (u, v), table in ties))


def _as_tree(x: Any, where: str = "") -> _Tree:
    """Factors with their tree; ValueError that says what is wrong with them."""
    if isinstance(x, _Tree):
        return x
    if not isinstance(x, Factors):
        raise ValueError(f"{where}expected Factors, got {type(x).__name__!r} object {x!r:.60}")
    variables = [
        as_numbers(features, f"{where}variable {v}: ") for v, features in enumerate(x.variables)
    ]
    tables = [as_numbers(table, f"{where}table {t}: ") for t, table in enumerate(x.tables)]
    pairs = [_as_pair(pair, where) for pair in x.pairs]
    if not variables:
        raise ValueError(f"{where}there are no variables")
    n_features = np.shape(variables[0])[-1] if np.ndim(variables[0]) else 0
    for v, features in enumerate(variables):
        if features.ndim != 2 or features.shape[1] != n_features or not len(features):
            raise ValueError(
                f"{where}variable {v} needs features of shape (n_labels, {n_features}), got shape "
                f"{features.shape}"
            )
    sizes = np.array([len(features) for features in variables])
    if len(tables) != len(pairs):
        raise ValueError(f"{where}there are {len(pairs)} pairs, but {len(tables)} tables")
    for (u, v), table in zip(pairs, tables, strict=True):
        if not (0 <= u < len(sizes) and 0 <= v < len(sizes)):
            raise ValueError(f"{where}the pair ({u}, {v}) names no two of {len(sizes)} variables")
        if table.shape != (sizes[u], sizes[v], n_features):
            raise ValueError(
                f"{where}the table of the pair ({u}, {v}) needs shape "
                f"{(int(sizes[u]), int(sizes[v]), n_features)}, got {table.shape}"
            )
    if not all(np.isfinite(values).all() for values in (*variables, *tables)):
        raise ValueError(f"{where}there are features that are not finite")
    order, above = _walk(len(sizes), pairs, where)
    return _Tree(variables, pairs, tables, sizes, n_features, order, above)


def _as_pair(pair: Any, where: str) -> tuple[int, int]:
    """Two variables; ValueError for anything else."""
    numbers = np.asarray(pair)
    if numbers.shape != (2,) or numbers.dtype.kind not in "iu":
        raise ValueError(f"{where}expected pairs of numbers of variables, got {pair!r:.60}")
    return int(numbers[0]), int(numbers[1])


def _walk(n: int, pairs: list[tuple[int, int]], where: str) -> tuple[list[int], list[int]]:
    """Variables from the roots on, and the pair above each; ValueError where there is a cycle."""
    edges: list[list[int]] = [[] for _ in range(n)]
    for edge, (u, v) in enumerate(pairs):
        edges[u].append(edge)
        edges[v].append(edge)
    order: list[int] = []
    above, seen = [-1] * n, [False] * n
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        start = len(order)
        order.append(root)
        while start < len(order):
            v = order[start]
            start += 1
            for edge in edges[v]:
                if edge == above[v]:
                    continue
                other = sum(pairs[edge]) - v
                if seen[other]:
                    raise ValueError(f"{where}the pair {pairs[edge]} closes a cycle")
                seen[other], above[other] = True, edge
                order.append(other)
    return order, above
