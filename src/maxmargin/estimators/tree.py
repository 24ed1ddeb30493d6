"""Labels of the nodes of a tree, and positions of parts in images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ..engine.cost_model import scoring_work
from ..engine.rows import Rows
from ..engine.threads import each_range
from ..features.containers import as_list
from ..problem import Problem
from ..problems.tree.grid_parts import (
    Choices,
    GridLayout,
    GridPartsProblem,
    Maps,
    find_parts,
    pack_maps,
    rank_parts,
)
from ..problems.tree.labels import (
    LabelLayout,
    LabelTreeProblem,
    decode_label_trees,
    pack_columns,
    rank_label_trees,
    root_tree,
)
from ..problems.tree.learning import scale_offsets, tree_of_labels, tree_of_positions
from ..problems.tree.marginals import LabelTreeDistribution
from ..problems.tree.partial import PartialLabelTrees, PartialParts, costs_of_node_choices
from ..schema import Count, Labels
from ..solvers.base import checked_weights
from ..types import Bools, Floats, Ints
from ..validation import as_sample_weights, is_at_least, is_one_of
from .base import checked_k
from .confidence import (
    CalibratedMethod,
    Confidences,
    fit_calibration,
    margins_of,
    probabilities_of,
)
from .example_weights import score_weights, used_class_weight
from .examples import materialize
from .explanation import Evidence, Explanation, Places, best_other
from .known_labels import allowed_node_labels, allowed_pixels, flatten_fixed
from .label_costs import CostTable, check_loss, costs_of_nodes
from .labels import FlatLabels, LabelEncoder, Wording, warn_of_unknown
from .parameters import with_inherited_parameters
from .partial_labels import PartialLabels, check_something_known, has_unknown, listed_labels
from .training import Trainer, TrainingSet
from .tree_data import (
    as_images,
    as_label_rows,
    as_positions,
    count_examples,
    edge_array,
    edge_ranks,
    known_positions,
    label_tree_evidence,
    node_matrices,
    split_inputs,
    tree_inputs_at,
)

__all__ = ["TreeLabeler"]

LARGEST_PATCH = 2**15  # whose weights can be counted
LABEL_LOSSES = ("hamming", "normalized-hamming", "zero-one")
NODES = Wording("example", "node", "label")
PARTS = Wording("image", "part", "position")


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class TreeLabeler(Confidences, PartialLabels):
    """Labels for the nodes of a tree, or positions of parts in images; the search is exact.

    With ``outputs="labels"`` every node has a label set of its own, weights for its input features
    under each label, and a table of weights for its label and its parent's. With
    ``outputs="positions"`` every node is a part of an image, with a template for the patch around
    it and a quadratic cost of its displacement from where its parent expects it; the best positions
    are found in time linear in the pixels.

    Parameters
    ----------
    outputs : {"labels", "positions"}, default="labels"
        What is predicted for the nodes.
    tree : sequence of pairs of nodes, optional
        Edges of the tree. By default it is learned: the one whose labels tell most about each other
        (largest mutual information), or whose offsets vary least.
    loss : {"hamming", "normalized-hamming", "zero-one", "deviation"}, optional
        Number of wrong nodes, their share, 1 if any is wrong, or, for positions and the default
        there, the mean distance from the true positions in per cent of the size. The default for
        labels is "hamming". All go with every rescaling; for "deviation" slack rescaling and square
        roots take some tens of searches for each image. With labels also a table of costs that add
        up: an array with the labels of all nodes, sorted, in rows where they are right and in
        columns where they are predicted; a mapping ``{(right, predicted): cost}`` or ``{right:
        {predicted: cost}}``, in which what is not named costs 1; or a list with a table for each
        node. Costs are not negative; right labels cost nothing.
    class_weight : mapping of label to weight, or "balanced", optional
        With labels: multiplies the costs of the nodes with this right label, 1 for labels that are
        not listed. "balanced": ``n_examples / (n_labels * n_examples of the label)`` at each node.
        "zero-one" ignores it, with a warning.
    fit_intercept : bool, default=True
        With labels: append a constant feature to every node.
    patch : int, default=9
        With positions: rows and columns of a part's template.
    size : float or pair of nodes, optional
        With positions: what 100 per cent of deviation are, in pixels, or two nodes whose true
        distance it is. By default the longer side of the image.
    {parameters of Confidences}
    {parameters of PartialLabels}
    {parameters of SharedParameters}

    Attributes
    ----------
    tree_ : list of pairs of int
        Edges, the parent first; node 0 is the root.
    classes_ : list of ndarray
        With labels: the label set of each node.
    n_edge_features_in_ : int
        With labels: number of features of an edge.
    templates_ : ndarray of shape (n_nodes, channels, patch, patch)
        With positions: the templates of the parts.
    coef_ : ndarray
        All weights; see `maxmargin.problems.tree.labels` and `maxmargin.problems.tree.grid_parts`.
    result_ : Result
        Certificate and history of the training.
    rounds_ : list of Round
        Objectives and gaps of the rounds, if labels or positions were known in part.
    calibration_ : Calibration
        After `calibrate`, or with ``probability``: the temperature of the probabilities.

    Examples
    --------
    >>> from maxmargin.datasets import make_faces
    >>> faces = make_faces(n_train=20, n_test=5, size=20)
    >>> finder = TreeLabeler(outputs="positions", patch=5, C=0.01, tol=0.05, random_state=0)
    >>> finder.fit(faces.X_train, faces.y_train).predict(faces.X_test).shape
    (5, 8, 2)
    """

    outputs: Literal["labels", "positions"] = "labels"
    tree: Sequence[tuple[int, int]] | None = None
    loss: (
        Literal["hamming", "normalized-hamming", "zero-one", "deviation"]
        | CostTable
        | Sequence[Any]
        | None
    ) = None
    class_weight: Any = None
    fit_intercept: bool = True
    patch: int = 9
    size: float | tuple[int, int] | None = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> TreeLabeler:
        """Train on examples.

        Parameters
        ----------
        X : array, list or mapping
            For labels: an array of shape (n_examples, n_nodes, n_features), or a list with one
            matrix of shape (n_examples, n_features of the node), dense or sparse, for each node. A
            mapping ``{"nodes": ..., "edges": ...}`` also gives features of the edges, an array of
            shape (n_examples, n_edges, n_edge_features) in the order of ``tree``. For positions:
            images of shape (height, width) or (height, width, channels), as one array or a list.
        y : array
            For labels: shape (n_examples, n_nodes), of any hashable type. For positions: shape
            (n_examples, n_nodes, 2), row and column of every part, rounded to whole pixels. In a
            list of lists, None in place of a label or position says that it is not known, a set or
            frozenset of labels that it is one of several; see ``partial``.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        X, y = materialize(X), materialize(y)
        self._check_partial()
        if not is_one_of(self.outputs, ("labels", "positions")):
            raise ValueError(f"outputs must be 'labels' or 'positions', got {self.outputs!r}")
        weights = as_sample_weights(sample_weight)
        if self.outputs == "labels":
            if isinstance(self.loss, str) and self.loss == "deviation":
                raise ValueError("loss='deviation' is for positions: set outputs='positions'")
            prepared = self._prepare_labels(X, y, weights)
        else:
            if (
                not (self.loss is None or isinstance(self.loss, str))
                or self.class_weight is not None
            ):
                raise ValueError("costs and class_weight are for labels, not for positions")
            prepared = self._prepare_positions(X, y)
        if self.probability and (self.outputs != "labels" or prepared.make_partial is not None):
            raise ValueError("probability=True is for outputs='labels', all of them known")
        if prepared.make_partial is not None:
            partial = prepared.make_partial()
            wording = NODES if self.outputs == "labels" else PARTS
            check_something_known(partial.says_something, wording)
            weights = checked_weights(weights, partial.n_examples) * partial.says_something
            return TrainingSet(lambda: partial, sample_weight=weights, is_partial=True)
        return TrainingSet(
            prepared.make_problem,
            prepared.data,
            weights,
            calibrate=lambda: fit_calibration(
                self, X, y, inputs_at=tree_inputs_at, sample_weight=sample_weight
            ),
        )

    def predict(self, X: Any, fixed: Any = None) -> NDArray[Any]:
        """Best labels or positions of all nodes.

        Parameters
        ----------
        X : array, list or mapping
            As for `fit`.
        fixed : list, optional
            What is known already: for each node of each example None (nothing), its label or
            position (row, column), or a set of those it may have. None in place of an example says
            that nothing is known of it. What is found is the best of all that agrees with it.

        Returns
        -------
        ndarray of shape (n_examples, n_nodes), or (n_examples, n_nodes, 2) for positions
        """
        weights = self._weights
        if isinstance(self._layout, GridLayout):
            maps = self._maps(X)
            return find_parts(maps, self._layout, weights, self._choices(fixed, maps), self.n_jobs)
        layout, (nodes, edges) = self._layout, self._columns(X)
        n = int(nodes[0].shape[0])
        allowed = self._allowed(fixed, n)

        def decode(first: int, end: int) -> Ints:
            own = ([matrix[first:end] for matrix in matrices] for matrices in (nodes, edges))
            mask = None if allowed is None else allowed[first:end]
            return decode_label_trees(pack_columns(*own), layout, weights, mask)

        entries = float(sum(matrix.nnz if sp.issparse(matrix) else matrix.size for matrix in nodes))
        work = scoring_work(entries / max(n, 1), int(layout.n_labels.max()))
        return self._decoded(np.concatenate(each_range(self.n_jobs, n, work, decode)))

    def predict_k(
        self, X: Any, k: int, fixed: Any = None
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """The k best labellings or sets of positions of each example, with their scores.

        Parameters
        ----------
        X : array, list or mapping
            As for `fit`.
        k : int
            How many to return for each example.
        fixed : list, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of list of (labels or positions, score)
            For each example its k outputs of the largest score ``<w, psi(x, y)>``, best first, as
            arrays of shape (n_nodes,) or (n_nodes, 2). The list is shorter where there are fewer.
        """
        k = checked_k(k)
        weights = self._weights
        if isinstance(self._layout, GridLayout):
            maps = self._maps(X)
            ranked = rank_parts(maps, self._layout, weights, k, self._choices(fixed, maps))
        else:
            rows = self._rows(X)
            allowed = self._allowed(fixed, rows.n_rows)
            found = rank_label_trees(rows, self._layout, weights, k, allowed)
            ranked = [(self._decoded(codes), scores) for codes, scores in found]
        return [list(zip(outputs, scores.tolist(), strict=True)) for outputs, scores in ranked]

    def predict_margins(self, X: Any, fixed: Any = None) -> list[Floats]:
        """By how much each label of a node beats the best other one (max-marginals).

        Parameters
        ----------
        X : array, list or mapping
            As for `fit`; for labels only.
        fixed : list, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of ndarray of shape (n_examples, n_labels of the node)
            For each node: the score of the best labelling with a label minus that of the best one
            with another label there; positive for what is predicted.
        """
        return margins_of(self, self._distribution(X, fixed))

    @CalibratedMethod
    def predict_proba(self, X: Any, fixed: Any = None) -> list[Floats]:
        """Probabilities of the labels of all nodes; the estimator has to be calibrated.

        Parameters
        ----------
        X : array, list or mapping
            As for `fit`; for labels only.
        fixed : list, optional
            What is known already, as for `predict`; probabilities are those given that.

        Returns
        -------
        list of ndarray of shape (n_examples, n_labels of the node)
            For each node marginals over all labellings, in the order of its ``classes_``.
        """
        return probabilities_of(self, self._distribution(X, fixed))

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted labels, and not others: the features that decided, node by node.

        Parameters
        ----------
        x : array of shape (n_nodes, n_features), or an X of a single example
            One example; for labels only.
        y_hat : sequence of labels, optional
            Other labels of all nodes, to be compared with those predicted. By default there is a
            rival for each node: the best labelling with another label there.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions node by node. With ``y_hat`` nodes at which nothing differs are left out.
        """
        n, weights, layout = checked_k(n, "n"), self._weights, self._layout
        if not isinstance(layout, LabelLayout):
            raise ValueError("explain is for outputs='labels', not for positions")
        X = np.asarray(x)[None] if not isinstance(x, (Mapping, list)) and np.ndim(x) == 2 else x
        rows = self._rows(X)
        if rows.n_rows != 1:
            raise ValueError(f"x must be one example, got {rows.n_rows}")
        (own,) = decode_label_trees(rows, layout, weights)
        labels = [classes.tolist() for classes in self.classes_]

        def shown(codes: Any) -> list[Any]:
            return [own_labels[k] for own_labels, k in zip(labels, codes, strict=True)]

        def evidence(rival: Any) -> list[Evidence]:
            return label_tree_evidence(layout, weights, rows, labels, own, rival)

        places = Places(shown(own), shown(own), lambda v: f"node {v}", evidence)
        if y_hat is not None:
            given = as_label_rows([list(y_hat)]).tolist()[0]
            if len(given) != len(labels):
                raise ValueError(f"y_hat has {len(given)} labels; there are {len(labels)} nodes")
            numbers = [LabelEncoder(classes).numbers for classes in self.classes_]
            other = [known.get(label, -1) for known, label in zip(numbers, given, strict=True)]
            if -1 in other:
                v = other.index(-1)
                raise ValueError(f"y_hat: label {given[v]!r:.40} of node {v} is not known")
            return places.against(other, given, given, n)

        def rival_at(v: int, margins: Floats) -> tuple[Any, Ints] | None:
            best = best_other(margins[0], own[v])
            if best is None:
                return None
            fixed = [labels[v][best] if u == v else None for u in range(len(labels))]
            (rival,) = decode_label_trees(rows, layout, weights, self._allowed([fixed], 1))
            return labels[v][best], rival

        rivals = (rival_at(v, margins) for v, margins in enumerate(self.predict_margins(X)))
        return places.one_by_one(rivals, n)

    def _distribution(self, X: Any, fixed: Any = None) -> LabelTreeDistribution:
        """See `Confidences`."""
        weights = self._weights
        if isinstance(self._layout, GridLayout):
            raise ValueError(
                "margins and probabilities are for outputs='labels', not for positions"
            )
        rows = self._rows(X)
        return LabelTreeDistribution(rows, self._layout, weights, self._allowed(fixed, rows.n_rows))

    def _with_gold(self, X: Any, y: Any) -> tuple[LabelTreeDistribution, Ints]:
        """See `Confidences`."""
        labellings, labels = self._distribution(X), as_label_rows(y)
        n, V = labellings.rows.n_rows, len(self.classes_)
        if labels.shape != (n, V):
            raise ValueError(f"y has shape {labels.shape}; expected {(n, V)}")
        numbers = [LabelEncoder(classes).numbers for classes in self.classes_]
        gold = [[numbers[v].get(row[v], -1) for v in range(V)] for row in labels.tolist()]
        return labellings, np.array(gold, np.int64).ravel()

    def _allowed(self, fixed: Any, n: int) -> Bools | None:
        """Which labels nodes may have, if anything is known of them."""
        if fixed is None:
            return None
        numbers = [LabelEncoder(classes).numbers for classes in self.classes_]
        offsets = len(numbers) * np.arange(n + 1)
        return allowed_node_labels(flatten_fixed(fixed, offsets, NODES), numbers)

    def _choices(self, fixed: Any, maps: Maps) -> Choices | None:
        """Where parts may be, if anything is known of them."""
        if fixed is None:
            return None
        offsets = len(self._layout.parent) * np.arange(len(maps.grids) + 1)
        return allowed_pixels(flatten_fixed(fixed, offsets, PARTS), maps.grids)

    def _decoded(self, codes: Ints) -> NDArray[Any]:
        """Labels of codes, shape (n, n_nodes)."""
        columns = [labels[codes[:, v]] for v, labels in enumerate(self.classes_)]
        kinds = {column.dtype.kind for column in columns}
        if len(kinds) > 1:
            columns = [column.astype(object) for column in columns]
        return np.stack(columns, axis=1)

    def losses(self, X: Any, y: Any) -> Floats:
        """Share of wrong nodes, or mean deviation in per cent of the size, of each prediction.

        Parameters
        ----------
        X : array, list or mapping
            Inputs, as for `fit`.
        y : array
            True labels or positions.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        X = X if isinstance(X, Mapping) else as_list(X)
        found = self.predict(X)
        if isinstance(self._layout, GridLayout):
            gold = as_positions(y, len(found))
            if gold.shape != found.shape:
                raise ValueError(f"y has shape {gold.shape}; expected {found.shape}")
            grids = np.array([np.shape(image)[:2] for image in X])
            far = np.sqrt(((found - gold) ** 2).sum(axis=2)).mean(axis=1)
            return 100.0 * far / self._sizes(gold, grids)
        labels = as_label_rows(y)
        if labels.shape != found.shape:
            raise ValueError(f"y has shape {labels.shape}; expected {found.shape}")
        return np.mean(found.astype(object) != labels, axis=1)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Share of nodes with the right label; for positions, minus the mean deviation.

        Parameters
        ----------
        X : array, list or mapping
            Inputs, as for `fit`.
        y : array
            True labels or positions.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        losses = self.losses(X, y)
        if not isinstance(self._layout, GridLayout):
            rows, numbers = as_label_rows(y), [LabelEncoder(own).numbers for own in self.classes_]
            codes = [numbers[v].get(label, -1) for row in rows for v, label in enumerate(row)]
            offsets = len(numbers) * np.arange(len(rows) + 1)
            warn_of_unknown(np.array(codes), FlatLabels(rows.ravel().tolist(), offsets, NODES))
        mean = float(np.average(losses, weights=score_weights(sample_weight, len(losses))))
        return -mean if isinstance(self._layout, GridLayout) else 1.0 - mean

    @property
    def tree_(self) -> list[tuple[int, int]]:
        """Edges of the tree, the parent first."""
        parents = self._layout.parent.tolist()
        return [(p, v) for v, p in enumerate(parents) if p >= 0]

    @property
    def n_edge_features_in_(self) -> int:
        """Number of features of an edge."""
        return self._layout.n_edge_inputs - 1 if isinstance(self._layout, LabelLayout) else 0

    @property
    def templates_(self) -> Floats:
        """Templates of the parts."""
        if not isinstance(self._layout, GridLayout):
            raise AttributeError("a tree of labels has no templates")
        return self._layout.templates(self._weights).copy()

    # ----- labels -------------------------------------------------------------------------------

    def _prepare_labels(self, X: Any, y: Any, weights: Floats | None) -> _Prepared:
        """Encode labels, pack inputs; what makes the problem, and what it is made of."""
        labels = as_label_rows(y)
        n, V = labels.shape
        known = FlatLabels(labels.ravel().tolist(), V * np.arange(n + 1), NODES)
        is_partial = has_unknown(known)
        encoders = [LabelEncoder.of(listed_labels(known, v, V)) for v in range(V)]
        self.classes_ = [encoder.classes for encoder in encoders]
        if max(len(classes) for classes in self.classes_) < 2:
            raise ValueError("every node has a single label; some node needs at least 2")
        if is_partial:
            allowed = allowed_node_labels(known, [encoder.numbers for encoder in encoders])
            codes = np.where(allowed.sum(axis=2) == 1, allowed.argmax(axis=2), -1)
        else:
            codes = np.stack(
                [
                    encoder.encode(FlatLabels(list(labels[:, v]), np.arange(n + 1)))
                    for v, encoder in enumerate(encoders)
                ],
                axis=1,
            ).astype(np.int64)
        n_labels = np.array([len(classes) for classes in self.classes_], np.int64)
        edges = tree_of_labels(codes, n_labels) if self.tree is None else self._edges()
        parent, order = root_tree(V, edges)
        nodes, edge_inputs = split_inputs(X)
        if edge_inputs is not None and self.tree is None:
            raise ValueError("X has features of edges, so tree must say which edges there are")
        self._edge_rank = edge_ranks(edges, parent)
        matrices = node_matrices(nodes, n, V, None)
        self.n_features_in_ = [int(matrix.shape[1]) for matrix in matrices]
        self._has_intercept = bool(self.fit_intercept)
        inputs = np.array(self.n_features_in_, np.int64) + int(self._has_intercept)
        F_e = 1 + (0 if edge_inputs is None else edge_array(edge_inputs, n, V - 1).shape[2])
        self._layout: LabelLayout | GridLayout = LabelLayout(parent, order, n_labels, inputs, F_e)
        rows, layout = self._rows(X), self._layout
        costs = self._costs(codes, weights)
        loss: Any = self.loss if isinstance(self.loss, str) else "hamming"

        def make_problem() -> Problem:
            return LabelTreeProblem(rows, codes, layout, loss=loss, costs=costs)

        def make_partial() -> PartialLabelTrees:
            table, cost_rows = costs_of_node_choices(allowed, n_labels, costs)
            some = allowed.argmax(axis=2)
            problem = LabelTreeProblem(
                rows, some, layout, loss=loss, costs=table, cost_rows=cost_rows
            )
            return PartialLabelTrees(problem, allowed)

        data = (rows.indptr, rows.indices, rows.values, codes, parent, n_labels, F_e, loss, costs)
        return _Prepared(make_problem, data, make_partial if is_partial else None)

    def _costs(self, codes: Ints, weights: Floats | None) -> Floats | None:
        """Costs of the labels of all nodes, if they are not all the same."""
        loss = "hamming" if self.loss is None else self.loss
        check_loss(loss, LABEL_LOSSES)
        class_weight = used_class_weight(
            self.class_weight,
            not (isinstance(loss, str) and loss == "zero-one"),
            "it weighs nodes, and loss='zero-one' counts examples; use another loss, or "
            "sample_weight",
        )
        if weights is not None:
            weights = checked_weights(weights, len(codes))
        return costs_of_nodes(loss, class_weight, self.classes_, codes, weights)

    def _edges(self) -> list[Any]:
        """The tree that is given."""
        try:
            return list(self.tree)  # type: ignore[arg-type]
        except TypeError:
            raise ValueError(
                f"tree must be a list of edges (parent, child), got {self.tree!r:.60}"
            ) from None

    def _rows(self, X: Any) -> Rows:
        """Inputs of all nodes and edges, packed."""
        return pack_columns(*self._columns(X))

    def _columns(self, X: Any) -> tuple[list[Any], list[Any]]:
        """Matrices of all nodes, with constants if the model has them, and of all edges."""
        layout = self._layout
        assert isinstance(layout, LabelLayout)
        V = len(layout.parent)
        nodes, edge_inputs = split_inputs(X)
        n = count_examples(nodes)
        matrices = node_matrices(nodes, n, V, self.n_features_in_)
        one = np.ones((n, 1))
        if self._has_intercept:
            matrices = [part for matrix in matrices for part in (matrix, one)]
        extra = layout.n_edge_inputs - 1
        edges: list[Any] = [one] * (V - 1)
        if (edge_inputs is None) != (extra == 0):
            raise ValueError(
                f"expected {extra} features of each edge, found "
                f"{'none' if edge_inputs is None else 'some'}"
            )
        if edge_inputs is not None:
            given = edge_array(edge_inputs, n, V - 1)
            if given.shape[2] != extra:
                raise ValueError(f"expected {extra} features of each edge, found {given.shape[2]}")
            edges = [np.hstack([one, given[:, rank]]) for rank in self._edge_rank]
        return matrices, edges

    def _forget_labels(self) -> None:
        """Remove what an earlier fit to labels has left."""
        for name in ("classes_", "n_features_in_", "_has_intercept", "_edge_rank"):
            self.__dict__.pop(name, None)

    # ----- positions ----------------------------------------------------------------------------

    def _prepare_positions(self, X: Any, y: Any) -> _Prepared:
        """Pack images, set the scale of offsets; what makes the problem and what it is made of."""
        is_whole = is_at_least(self.patch, 1) and int(self.patch) == self.patch
        if isinstance(self.patch, bool) or not is_whole or self.patch > LARGEST_PATCH:
            raise ValueError(
                f"patch must be a whole number from 1 to {LARGEST_PATCH}, got {self.patch!r}"
            )
        images = as_images(X, None)
        positions, known = known_positions(y, len(images))
        edges = tree_of_positions(positions, known) if self.tree is None else self._edges()
        parent, order = root_tree(positions.shape[1], edges)
        scale, channels = scale_offsets(positions, parent, known), images[0].shape[2]
        self._forget_labels()
        self._layout = GridLayout(parent, order, int(self.patch), channels, *scale)
        maps, layout = pack_maps(images, int(self.patch)), self._layout
        sizes = self._sizes(positions, maps.grids)
        loss: Any = "deviation" if self.loss is None else self.loss

        def make_problem() -> Problem:
            return GridPartsProblem(maps, positions, layout, sizes=sizes, loss=loss)

        def make_partial() -> PartialParts:
            inside = np.minimum(positions, maps.grids[:, None, :] - 1)  # of images that differ
            places = np.where(known[:, :, None], positions, inside)
            problem = GridPartsProblem(maps, places, layout, sizes=sizes, loss=loss, known=known)
            return PartialParts(problem)

        data = (maps.values, maps.grids, positions, parent, self.patch, sizes, loss)
        return _Prepared(make_problem, data, None if known.all() else make_partial)

    def _maps(self, X: Any) -> Maps:
        """New images, packed."""
        assert isinstance(self._layout, GridLayout)
        return pack_maps(as_images(X, self._layout.channels), self._layout.patch)

    def _sizes(self, positions: Ints, grids: Ints) -> Floats:
        """What 100 per cent of deviation are in each image."""
        if self.size is None:
            return grids.max(axis=1).astype(np.float64)
        if isinstance(self.size, (tuple, list)):
            if [is_at_least(node, 0) for node in self.size] != [True, True]:
                raise ValueError(f"size must be two nodes or a number, got {self.size!r:.60}")
            a, b = (int(node) for node in self.size)
            if not (0 <= a < positions.shape[1] and 0 <= b < positions.shape[1]):
                raise ValueError(f"size names nodes {a} and {b} of {positions.shape[1]}")
            return np.sqrt(((positions[:, a] - positions[:, b]) ** 2).sum(axis=1))
        if not is_at_least(self.size, 0):
            raise ValueError(f"size must be two nodes or a positive number, got {self.size!r:.60}")
        return np.full(len(positions), float(self.size))

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> TreeState:
        """See `Savable`."""
        if isinstance(self._layout, GridLayout):
            return TreeState(self._layout)
        return TreeState(
            self._layout,
            tuple(self.classes_),
            tuple(self.n_features_in_),
            self._has_intercept,
            tuple(self._edge_rank),
        )

    def _set_state(self, state: TreeState) -> None:
        """See `Savable`."""
        self._layout = layout = state.layout
        layout.check()
        if isinstance(layout, LabelLayout):
            self.classes_, self.n_features_in_ = list(state.classes), list(state.n_features)
            self._has_intercept, self._edge_rank = state.intercept, list(state.edge_rank)
            inputs = [n + state.intercept for n in state.n_features]
            ranks = list(range(len(layout.parent) - 1))
            if (
                [len(classes) for classes in state.classes] != layout.n_labels.tolist()
                or inputs != layout.n_inputs.tolist()
                or sorted(state.edge_rank) != ranks
            ):
                raise ValueError("labels, features or edges are not those of the tree")

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._layout.size


class _Prepared(NamedTuple):
    """What makes the problem, what it is made of, and the same for labels known in part."""

    make_problem: Callable[[], Problem]
    data: tuple[Any, ...]
    make_partial: Callable[[], PartialLabelTrees | PartialParts] | None


class TreeState(NamedTuple):
    """What a file keeps of a model; only trees of labels have classes and all that follows."""

    layout: LabelLayout | GridLayout
    classes: tuple[Labels, ...] = ()
    n_features: tuple[Count, ...] = ()
    intercept: bool = False
    edge_rank: tuple[Count, ...] = ()
