"""Labels of the nodes of a tree, and positions of parts in images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...features.containers import as_list
from ...problems.tree.grid_parts import GridLayout
from ...problems.tree.labels import LabelLayout
from ...problems.tree.marginals import LabelTreeDistribution
from ...schema import Count, Labels
from ...solvers.base import checked_weights
from ...types import Floats, Ints
from ...validation import as_sample_weights, is_one_of
from ..abilities.confidence import (
    CalibratedMethod,
    Confidences,
    fit_calibration,
    margins_of,
    probabilities_of,
)
from ..abilities.explanation import Explanation
from ..abilities.partial_labels import PartialLabels, check_something_known
from ..base import MaxMarginEstimator, checked_k
from ..inputs.costs import CostTable, score_weights
from ..inputs.examples import materialize
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .tree_labels import NODES, NodeLabels, prepare_labels, tree_inputs_at
from .tree_positions import PARTS, PartPositions, prepare_positions

__all__ = ["TreeLabeler"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class TreeLabeler(Confidences, PartialLabels, MaxMarginEstimator):
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
    {parameters of MaxMarginEstimator}

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
            labels, made = prepare_labels(self, X, y, weights)
            self._model: NodeLabels | PartPositions = labels
            self.classes_, self.n_features_in_ = labels.classes, labels.n_features
        else:
            if (
                not (self.loss is None or isinstance(self.loss, str))
                or self.class_weight is not None
            ):
                raise ValueError("costs and class_weight are for labels, not for positions")
            self._model, made = prepare_positions(self, X, y)
            for name in ("classes_", "n_features_in_"):  # of an earlier fit to labels
                self.__dict__.pop(name, None)
        make_problem, data, make_partial = made
        if self.probability and (self.outputs != "labels" or make_partial is not None):
            raise ValueError("probability=True is for outputs='labels', all of them known")
        if make_partial is not None:
            partial = make_partial()
            wording = NODES if self.outputs == "labels" else PARTS
            check_something_known(partial.says_something, wording)
            weights = checked_weights(weights, partial.n_examples) * partial.says_something
            return TrainingSet(lambda: partial, sample_weight=weights, is_partial=True)
        return TrainingSet(
            make_problem,
            data,
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
        return self._model.predict(X, weights, fixed, self.n_jobs)

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
        k, weights = checked_k(k), self._weights
        ranked = self._model.rank(X, weights, k, fixed)
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
        n, weights = checked_k(n, "n"), self._weights
        if not isinstance(self._model, NodeLabels):
            raise ValueError("explain is for outputs='labels', not for positions")
        return self._model.explain(x, y_hat, weights, n)

    def _distribution(self, X: Any, fixed: Any = None) -> LabelTreeDistribution:
        """See `Confidences`."""
        weights = self._weights
        return self._labels().distribution(X, weights, fixed)

    def _with_gold(self, X: Any, y: Any) -> tuple[LabelTreeDistribution, Ints]:
        """See `Confidences`."""
        weights = self._weights
        return self._labels().with_gold(X, y, weights)

    def _labels(self) -> NodeLabels:
        """The model, which has confidences if it is one of labels."""
        if not isinstance(self._model, NodeLabels):
            raise ValueError(
                "margins and probabilities are for outputs='labels', not for positions"
            )
        return self._model

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
        if isinstance(self._model, NodeLabels):
            return self._model.losses(found, y)
        return self._model.losses(found, X, y, self.size)

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
        mean = float(np.average(losses, weights=score_weights(sample_weight, len(losses))))
        if not isinstance(self._model, NodeLabels):
            return -mean
        self._model.warn_of_unknown(y)
        return 1.0 - mean

    @property
    def tree_(self) -> list[tuple[int, int]]:
        """Edges of the tree, the parent first."""
        parents = self._model.layout.parent.tolist()
        return [(p, v) for v, p in enumerate(parents) if p >= 0]

    @property
    def n_edge_features_in_(self) -> int:
        """Number of features of an edge."""
        layout = self._model.layout
        return layout.n_edge_inputs - 1 if isinstance(layout, LabelLayout) else 0

    @property
    def templates_(self) -> Floats:
        """Templates of the parts."""
        if not isinstance(self._model, PartPositions):
            raise AttributeError("a tree of labels has no templates")
        return self._model.layout.templates(self._weights).copy()

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> TreeState:
        """See `Savable`."""
        if isinstance(self._model, PartPositions):
            return TreeState(self._model.layout)
        layout, classes, n_features, has_intercept, ranks = self._model
        return TreeState(layout, tuple(classes), tuple(n_features), has_intercept, tuple(ranks))

    def _set_state(self, state: TreeState) -> None:
        """See `Savable`."""
        layout = state.layout
        layout.check()
        if isinstance(layout, GridLayout):
            self._model = PartPositions(layout)
            return
        self.classes_, self.n_features_in_ = list(state.classes), list(state.n_features)
        lists = self.classes_, self.n_features_in_, state.intercept, list(state.edge_rank)
        model = self._model = NodeLabels(layout, *lists)
        model.check()

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._model.layout.size


class TreeState(NamedTuple):
    """What a file keeps of a model; only trees of labels have classes and all that follows."""

    layout: LabelLayout | GridLayout
    classes: tuple[Labels, ...] = ()
    n_features: tuple[Count, ...] = ()
    intercept: bool = False
    edge_rank: tuple[Count, ...] = ()
