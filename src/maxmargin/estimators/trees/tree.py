"""Labels of the nodes of a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...features.containers import as_list
from ...problems.tree.labels import LabelLayout, LabelTreeDistribution
from ...solvers.base import checked_weights
from ...utils.schema import Count, Labels
from ...utils.types import Floats, Ints
from ...utils.validation import as_sample_weights
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
from ..costs import CostTable, score_weights
from ..examples import materialize
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .tree_labels import NODES, NodeLabels, edges_of, prepare_labels, tree_inputs_at

__all__ = ["TreeLabeler"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class TreeLabeler(Confidences, PartialLabels, MaxMarginEstimator):
    """Labels for the nodes of a tree, certified by a duality gap; the search is exact.

    Every node has a label set of its own, weights for its input features under each label, and a
    table of weights for its label and its parent's. `PartLocator` finds positions of the nodes in
    images instead.

    Parameters
    ----------
    tree : sequence of pairs of nodes, optional
        Edges of the tree. By default it is learned: the one whose labels tell most about each other
        (largest mutual information).
    loss : {"hamming", "normalized_hamming", "zero_one"} or costs, default="hamming"
        Number of wrong nodes, their share, or 1 if any is wrong. Also a table of costs that add up:
        an array with the labels of all nodes, sorted, in rows where they are right and in columns
        where they are predicted; a mapping ``{(right, predicted): cost}`` or ``{right: {predicted:
        cost}}``, in which what is not named costs 1; or a list with a table for each node. Costs
        are not negative; right labels cost nothing. All go with every rescaling.
    class_weight : mapping of label to weight, or "balanced", optional
        Multiplies the costs of the nodes with this right label, 1 for labels that are not listed.
        "balanced": ``n_examples / (n_labels * n_examples of the label)`` at each node. "zero_one"
        ignores it, with a warning.
    fit_intercept : bool, default=True
        Append a constant feature to every node.
    {parameters of Confidences}
    {parameters of PartialLabels}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    tree_ : list of pairs of int
        Edges, the parent first; node 0 is the root.
    classes_ : list of ndarray
        The label set of each node.
    n_edge_features_in_ : int
        Number of features of an edge.
    coef_ : ndarray
        All weights; see `maxmargin.problems.tree.labels`.
    result_ : Result
        Certificate and history of the training.
    rounds_ : list of Round
        Objectives and gaps of the rounds, if labels were known in part.
    calibration_ : Calibration
        After `calibrate`, or with ``probability``: the temperature of the probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[[1.0], [0.0]], [[0.0], [1.0]], [[1.0], [1.0]], [[0.0], [0.0]]])
    >>> y = [["on", "off"], ["off", "on"], ["on", "on"], ["off", "off"]]
    >>> model = TreeLabeler(tree=[(0, 1)], C=10.0, random_state=0).fit(X, y)
    >>> model.predict(X[:2]).tolist()
    [['on', 'off'], ['off', 'on']]
    """

    tree: Sequence[tuple[int, int]] | None = None
    loss: Literal["hamming", "normalized_hamming", "zero_one"] | CostTable | Sequence[Any] = (
        "hamming"
    )
    class_weight: Any = None
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> TreeLabeler:
        """Train on examples.

        Parameters
        ----------
        X : array, list or mapping
            An array of shape (n_examples, n_nodes, n_features), or a list with one matrix of shape
            (n_examples, n_features of the node), dense or sparse, for each node. A mapping
            ``{"nodes": ..., "edges": ...}`` also gives features of the edges, an array of shape
            (n_examples, n_edges, n_edge_features) in the order of ``tree``.
        y : array of shape (n_examples, n_nodes)
            Labels of any hashable type. In a list of lists, None instead of a label says that it is
            not known, a set or frozenset of labels that it is one of several; see
            ``partial_labels``.
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
        weights = as_sample_weights(sample_weight)
        self._model, made = prepare_labels(self, X, y, weights)
        self.classes_, self.n_features_in_ = self._model.classes, self._model.n_features
        make_problem, data, make_partial = made
        if make_partial is not None:
            if self.probability:
                raise ValueError("probability=True needs labels that are all known")
            partial = make_partial()
            check_something_known(partial.says_something, NODES)
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
        """Best labels of all nodes.

        Parameters
        ----------
        X : array, list or mapping
            As for `fit`.
        fixed : list, optional
            What is known already: for each node of each example None (nothing), its label, or a
            set of those it may have. None instead of an example says that nothing is known of it.
            What is found is the best of all that agrees with it.

        Returns
        -------
        ndarray of shape (n_examples, n_nodes)
        """
        weights = self._weights
        return self._model.predict(X, weights, fixed, self.n_jobs)

    def predict_k(
        self, X: Any, k: int, fixed: Any = None
    ) -> list[list[tuple[NDArray[Any], float]]]:
        """The k best labellings of each example, with their scores.

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
        list of list of (labels, score)
            For each example its k labellings of the largest score ``<w, psi(x, y)>``, best first,
            as arrays of shape (n_nodes,). The list is shorter where there are fewer.
        """
        k, weights = checked_k(k), self._weights
        ranked = self._model.rank(X, weights, k, fixed)
        return [list(zip(outputs, scores.tolist(), strict=True)) for outputs, scores in ranked]

    def predict_margins(self, X: Any, fixed: Any = None) -> list[Floats]:
        """By how much each label of a node beats the best other one (max-marginals).

        Parameters
        ----------
        X : array, list or mapping
            As for `fit`.
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
            As for `fit`.
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
            One example.
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
        return self._model.explain(x, y_hat, weights, n)

    def _distribution(self, X: Any, fixed: Any = None) -> LabelTreeDistribution:
        """See `Confidences`."""
        weights = self._weights
        return self._model.distribution(X, weights, fixed)

    def _with_gold(self, X: Any, y: Any) -> tuple[LabelTreeDistribution, Ints]:
        """See `Confidences`."""
        weights = self._weights
        return self._model.with_gold(X, y, weights)

    def losses(self, X: Any, y: Any) -> Floats:
        """Fraction of wrong nodes of each prediction.

        Parameters
        ----------
        X : array, list or mapping
            Inputs, as for `fit`.
        y : array
            True labels.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        X = X if isinstance(X, Mapping) else as_list(X)
        return self._model.losses(self.predict(X), y)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Fraction of nodes with the right label.

        Parameters
        ----------
        X : array, list or mapping
            Inputs, as for `fit`.
        y : array
            True labels.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        losses = self.losses(X, y)
        mean = float(np.average(losses, weights=score_weights(sample_weight, len(losses))))
        self._model.warn_of_unknown(y)
        return 1.0 - mean

    @property
    def tree_(self) -> list[tuple[int, int]]:
        """Edges of the tree, the parent first."""
        return edges_of(self._model.layout.parent)

    @property
    def n_edge_features_in_(self) -> int:
        """Number of features of an edge."""
        return self._model.layout.n_edge_inputs - 1

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> TreeState:
        """See `Savable`."""
        layout, classes, n_features, has_intercept, ranks = self._model
        return TreeState(layout, tuple(classes), tuple(n_features), has_intercept, tuple(ranks))

    def _set_state(self, state: TreeState) -> None:
        """See `Savable`."""
        layout = state.layout
        layout.check()
        self.classes_, self.n_features_in_ = list(state.classes), list(state.n_features)
        lists = self.classes_, self.n_features_in_, state.intercept, list(state.edge_rank)
        model = self._model = NodeLabels(layout, *lists)
        model.check()

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._model.layout.size


class TreeState(NamedTuple):
    """What a file keeps of a model."""

    layout: LabelLayout
    classes: tuple[Labels, ...]
    n_features: tuple[Count, ...]
    intercept: bool
    edge_rank: tuple[Count, ...]
