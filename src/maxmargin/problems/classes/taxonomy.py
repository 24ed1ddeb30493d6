"""Taxonomies of classes: trees, or graphs without cycles, whose nodes are shared features.

A class has one feature for each of its ancestors and one for itself, so what is learned about a
node serves all classes below it (Tsochantaridis et al. 2005, section 4.2). The loss of taking one
class for another is the height of their first common ancestor (section 5.1).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...utils.types import Floats
from ...utils.validation import is_at_least

__all__ = ["Taxonomy"]


class _State(NamedTuple):
    """What a file keeps of a taxonomy."""

    parents: list[tuple[Hashable, list[Hashable]]]
    classes: list[tuple[Hashable, Hashable]]
    weights: list[tuple[Hashable, float]]


class Taxonomy:
    """Classes arranged under nodes, each with one parent or several.

    Parameters
    ----------
    parents : mapping of node to parent
        Parent of each node; a list of parents where a node has several; None for a root. Parents
        that are not listed themselves are roots. Several roots share one above them.
    classes : mapping of class to node, optional
        Where the classes are; inner nodes are allowed, but no two classes at one node. By default
        every leaf is a class of that name.
    weights : mapping of node to float, optional
        Values of the nodes' features: nodes of large weight are learned faster. Nodes that a
        mapping leaves out have 1, so ``{}`` gives the binary features of the paper. By default the
        weights are balanced; see Notes.

    Notes
    -----
    The balanced weight of a node is the square root of ``step / (top * count)``: how much lower it
    is than its lowest parent, over the height of the whole taxonomy and the number of classes at or
    below it. What the classes below a node have in common is then their mean, not their sum, so
    that large groups do not attract inputs that resemble nothing, and the products of a leaf's
    features with those of all leaves of a tree add up to 1, as for plain classes; where all classes
    are children of one root, they are plain classes. Inputs should be centred, and an intercept is
    best left out where classes have about as many examples each: a constant input says nothing of
    the classes, but with shared features and few examples it favours some of them.

    Examples
    --------
    >>> animals = Taxonomy({"cat": "mammal", "dog": "mammal", "mammal": "animal", "eel": "animal"})
    >>> animals.losses(["cat", "dog", "eel"]).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 2.0], [2.0, 2.0, 0.0]]
    """

    def __init__(
        self,
        parents: Mapping[Any, Any],
        classes: Mapping[Any, Any] | None = None,
        weights: Mapping[Any, float] | None = None,
    ) -> None:
        self.parents: dict[Hashable, tuple[Hashable, ...]] = {}
        for node, above in parents.items():
            several = above if isinstance(above, (list, set, frozenset)) else [above]
            self.parents[node] = tuple(dict.fromkeys(p for p in several if p is not None))
        for above in list(self.parents.values()):
            for node in above:
                self.parents.setdefault(node, ())
        if not self.parents:
            raise ValueError("a taxonomy needs at least one node")
        self._order = _parents_first(self.parents)
        self._heights = self._measure_heights()
        if classes is None:
            classes = {node: node for node in self._order if self._heights[node] == 0}
        self.classes: dict[Hashable, Hashable] = dict(classes)
        self.weights: dict[Hashable, float] = {
            node: _weight(node, value) for node, value in (weights or {}).items()
        }
        self._check()
        self._above = self._list_ancestors()
        if weights is None:
            self.weights = self._balanced_weights()

    def __repr__(self) -> str:
        return f"Taxonomy of {len(self.parents)} nodes and {len(self.classes)} classes"

    def height(self, node: Any) -> int:
        """Length of the longest way down from a node to a leaf.

        Parameters
        ----------
        node : hashable
            A node.

        Returns
        -------
        int
        """
        return self._heights[node]

    def features(self, classes: Iterable[Any] | None = None) -> tuple[sp.csr_matrix, list[Any]]:
        """Output features of classes: the weight of each node at or above a class.

        Nodes that are above all of the classes, or none, tell nothing apart and are left out, as
        are those of weight 0.

        Parameters
        ----------
        classes : iterable, optional
            Classes; by default all, in the order of ``self.classes``.

        Returns
        -------
        features : csr_matrix of shape (n_classes, n_nodes)
            Features, one class per row.
        nodes : list
            Node of each column.
        """
        chosen = list(self.classes if classes is None else classes)
        above = [self._ancestors_of(label) for label in chosen]
        counts: dict[Hashable, int] = dict.fromkeys(self._order, 0)
        for nodes in above:
            for node in nodes:
                counts[node] += 1
        tells = (node for node in self._order if 0 < counts[node] < len(chosen))
        columns = [node for node in tells if self._weight(node) > 0.0]
        column_of = {node: column for column, node in enumerate(columns)}
        rows, indices, values = [], [], []
        for row, nodes in enumerate(above):
            for node in nodes:
                if node in column_of:
                    rows.append(row)
                    indices.append(column_of[node])
                    values.append(self._weight(node))
        shape = (len(chosen), len(columns))
        return sp.csr_matrix((np.array(values, float), (rows, indices)), shape=shape), columns

    def losses(self, classes: Iterable[Any] | None = None) -> Floats:
        """Height of the first common ancestor of all pairs of classes.

        Where two classes have several common ancestors none of which is above another, the lowest
        one counts.

        Parameters
        ----------
        classes : iterable, optional
            Classes; by default all, in the order of ``self.classes``.

        Returns
        -------
        ndarray of shape (n_classes, n_classes)
        """
        chosen = list(self.classes if classes is None else classes)
        below: dict[Hashable, list[int]] = {}
        for number, label in enumerate(chosen):
            for node in self._ancestors_of(label):
                below.setdefault(node, []).append(number)
        losses = np.full((len(chosen), len(chosen)), float(self._top()))
        for node in sorted(below, key=lambda node: -self._heights[node]):
            losses[np.ix_(below[node], below[node])] = self._heights[node]
        np.fill_diagonal(losses, 0.0)
        return losses

    def mean_loss(
        self, y_true: Sequence[Any] | NDArray[Any], y_pred: Sequence[Any] | NDArray[Any]
    ) -> float:
        """Mean tree loss of predictions.

        Parameters
        ----------
        y_true, y_pred : sequence
            True and predicted classes.

        Returns
        -------
        float
        """
        if len(y_true) != len(y_pred) or len(y_true) == 0:
            raise ValueError(
                f"expected as many predictions as true classes and at least one, found "
                f"{len(y_true)} true classes and {len(y_pred)} predictions"
            )
        number = {label: k for k, label in enumerate(self.classes)}
        losses = self.losses()
        codes = []
        for labels in (y_true, y_pred):
            plain = np.asarray(labels).tolist()
            for label in plain:
                self._ancestors_of(label)
            codes.append([number[label] for label in plain])
        return float(losses[codes[0], codes[1]].mean())

    def with_shared_weight(self, shared: float) -> Taxonomy:
        """A copy in which what classes share counts less, or more, than what is their own.

        Of the nodes that are above the same classes, one counts: with weight ``shared`` if there
        are several such classes, with weight 1 if there is one. A long way down to a class then
        makes it no different from others.

        Parameters
        ----------
        shared : float
            Weight of the nodes above several classes; 0 leaves the classes without any relation.

        Returns
        -------
        Taxonomy
        """
        if not is_at_least(shared, 0):
            raise ValueError(f"the shared weight must be finite and >= 0, got {shared!r:.40}")
        below = self._classes_below()
        weights: dict[Hashable, float] = {}
        seen: set[tuple[Hashable, ...]] = set()
        for node in self._order:
            group = tuple(below[node])
            weights[node] = 0.0 if group in seen else (1.0 if len(group) == 1 else float(shared))
            seen.add(group)
        parents = {node: list(above) for node, above in self.parents.items()}
        return Taxonomy(parents, self.classes, weights)

    def to_state(self) -> dict[str, Any]:
        """Everything, in plain values."""
        return {
            "parents": [[node, list(above)] for node, above in self.parents.items()],
            "classes": [[label, node] for label, node in self.classes.items()],
            "weights": [[node, weight] for node, weight in self.weights.items()],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Taxonomy:
        """The inverse of `to_state`."""
        from ...utils.schema import from_values

        known = from_values(_State, state, "taxonomy")
        return cls(dict(known.parents), dict(known.classes), dict(known.weights))

    def _weight(self, node: Hashable) -> float:
        """Value of a node's feature."""
        return self.weights.get(node, 1.0)

    def _top(self) -> int:
        """Height of the root, or of the one above several roots."""
        roots = sum(not above for above in self.parents.values())
        return max(self._heights.values()) + (roots > 1)

    def _classes_below(self) -> dict[Hashable, list[Hashable]]:
        """For every node, the classes at or below it."""
        below: dict[Hashable, list[Hashable]] = {node: [] for node in self._order}
        for label, nodes in self._above.items():
            for node in nodes:
                below[node].append(label)
        return below

    def _balanced_weights(self) -> dict[Hashable, float]:
        """The weights by default; see the notes of the class."""
        top = self._top()
        weights = {}
        for node, below in self._classes_below().items():
            above = min((self._heights[parent] for parent in self.parents[node]), default=top)
            step = above - self._heights[node]
            weights[node] = float(np.sqrt(step / (max(top, 1) * max(len(below), 1))))
        return weights

    def _ancestors_of(self, label: Any) -> tuple[Hashable, ...]:
        """A class's node and all above it."""
        try:
            return self._above[label]
        except KeyError:
            known = ", ".join(repr(name) for name in list(self.classes)[:3])
            raise ValueError(
                f"the taxonomy has no class {label!r:.40}; it has {len(self.classes)} classes, "
                f"among them {known}"
            ) from None

    def _list_ancestors(self) -> dict[Hashable, tuple[Hashable, ...]]:
        """For every class, its node and all above it, each once."""
        above: dict[Hashable, dict[Hashable, None]] = {}
        for node in self._order:
            above[node] = {node: None}
            for parent in self.parents[node]:
                above[node].update(above[parent])
        return {label: tuple(above[node]) for label, node in self.classes.items()}

    def _measure_heights(self) -> dict[Hashable, int]:
        """Longest way down from each node."""
        heights: dict[Hashable, int] = dict.fromkeys(self._order, 0)
        for node in reversed(self._order):
            for parent in self.parents[node]:
                heights[parent] = max(heights[parent], heights[node] + 1)
        return heights

    def _check(self) -> None:
        """Refuse classes without a node of their own, and bad weights."""
        owner: dict[Hashable, Hashable] = {}
        for label, node in self.classes.items():
            if node not in self.parents:
                raise ValueError(
                    f"class {label!r:.40} is at node {node!r:.40}, which the taxonomy lacks"
                )
            if node in owner:
                raise ValueError(
                    f"classes {owner[node]!r:.40} and {label!r:.40} are both at node {node!r:.40}"
                )
            owner[node] = label
        for node, weight in self.weights.items():
            if node not in self.parents:
                raise ValueError(f"weights has node {node!r:.40}, which the taxonomy lacks")
            if not (np.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of node {node!r:.40} is {weight}; it must be >= 0")


def _weight(node: Hashable, weight: Any) -> float:
    """The weight of a node as a number; ValueError unless it is one."""
    try:
        return float(weight)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"the weight of node {node!r:.40} is {weight!r:.40}; expected a finite number >= 0"
        ) from None


def _parents_first(parents: dict[Hashable, tuple[Hashable, ...]]) -> list[Hashable]:
    """Nodes in an order in which parents precede children; ValueError if there is a cycle."""
    children: dict[Hashable, list[Hashable]] = {node: [] for node in parents}
    missing = {}
    for node, above in parents.items():
        missing[node] = len(above)
        for parent in above:
            children[parent].append(node)
    order = [node for node, count in missing.items() if count == 0]
    for node in order:  # grows on the way
        for child in children[node]:
            missing[child] -= 1
            if missing[child] == 0:
                order.append(child)
    if len(order) < len(parents):
        strip_prefix = next(node for node, count in missing.items() if count > 0)
        raise ValueError(
            f"the taxonomy has a cycle: node {strip_prefix!r:.40} is on it or below it"
        )
    return order
