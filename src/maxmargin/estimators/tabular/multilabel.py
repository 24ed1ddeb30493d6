"""Any number of labels for each example, trained for losses of the whole set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ...engine.rows import Rows
from ...metrics.sets import as_indicators
from ...problems.multilabel.graph import LabelGraph, all_pairs, make_graph, tree_of_labels
from ...problems.multilabel.inference import LOSSES, LabelLoss
from ...problems.multilabel.problem import (
    MultilabelProblem,
    flipped_labels,
    label_scores,
    predict_labels,
    rank_labels,
)
from ...utils.schema import Count, Names
from ...utils.sklearn_bases import Classifier
from ...utils.types import Bools, Floats, Ints
from ..abilities.explanation import Evidence, Explanation, Places, one_row
from ..base import ConditionalMethod, OnlineMethod, checked_k
from ..costs import check_loss, costs_of_sets, example_weights
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .base import TabularEstimator, canonical, check_lengths, check_rows, read_only

__all__ = ["MultilabelSVM"]


class _MethodWithoutEdges(ConditionalMethod):
    """A method that needs labels with scores of their own; a decorator."""

    def check(self, estimator: Any) -> None:
        """See `ConditionalMethod`."""
        if len(estimator.edges_) if hasattr(estimator, "edges_") else estimator.edges is not None:
            raise AttributeError(
                f"{self.method.__name__} needs labels without edges: with edges, single labels "
                "have no scores"
            )


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class MultilabelSVM(Classifier, TabularEstimator):  # type: ignore[misc]
    """Any number of labels for each example, certified by a duality gap; the search is exact.

    Parameters
    ----------
    loss : {"hamming", "f1", "zero_one"} or costs of labels, default="hamming"
        What a wrong set of labels costs: the number of wrong labels, 1 - F1 of the example (two
        empty sets have an F1 of 1), or 1 if any label is wrong, which is for few labels or for data
        that can be told apart: elsewhere it learns little. An array of shape (n_labels, 2) has what
        it costs to miss a label and to add one that is not there, which add up; a pair of numbers
        has both for all labels. None is negative. All go with every rescaling.
    class_weight : mapping of 0 and 1 to weights, list of mappings, or "balanced", optional
        Multiplies the costs of labels that are on (1), which may be missed, and of those that are
        off (0), which may be added; a list has a mapping for each label. "balanced": ``n_examples /
        (2 * n_examples)`` where the label is on, or off. For "hamming" and for costs; "f1" and
        "zero_one" ignore it, with a warning.
    edges : None, "tree", "pairs" or sequence of pairs of labels, optional
        Which pairs of labels have a weight for being on together: none; those of a tree that is
        learned (of Chow and Liu: neighbours tell most about each other in the training data); all;
        or those given by their column numbers. Edges with a cycle, such as all pairs, are for at
        most 14 labels, for which all sets of labels are tried.
    fit_intercept : bool, default=True
        Append a constant feature.
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Numbers of the labels, the columns of y.
    edges_ : ndarray of shape (n_edges, 2)
        Pairs of labels that have a weight.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features for each label.
    intercept_ : ndarray of shape (n_labels,)
        Weights of the constant feature; zeros without it.
    pair_weights_ : ndarray of shape (n_edges,)
        What it adds to the score of a set that both labels of an edge are in it.
    result_ : Result
        Certificate and history of the training.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    The score of a set of labels is the sum of the scores ``x @ coef_[l] + intercept_[l]`` of its
    labels and of the weights of the edges between them. With ``loss="hamming"`` and no edges the
    labels are learned independently, each by what ``LinearSVC(loss="hinge")`` minimises.

    In a tree, 1 - F1 takes time by the square of the number of labels that are on times that of
    those that are off; without edges by their product.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    >>> Y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]])
    >>> MultilabelSVM(C=10.0, loss="f1", random_state=0).fit(X, Y).predict(X).tolist()
    [[0, 1], [1, 0], [1, 1], [0, 0]]
    """

    loss: LabelLoss | NDArray[np.generic] | Sequence[Any] = "hamming"
    class_weight: Any = None
    edges: Literal["tree", "pairs"] | Sequence[tuple[int, int]] | None = None
    fit_intercept: bool = True

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> MultilabelSVM:
        """Train on examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array or sparse matrix of shape (n_examples, n_labels)
            1 where an example has a label, 0 elsewhere.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        X, gold, weights = self._examples(X, y, sample_weight, reset=True)
        self._set_model(gold, weights, bool(sp.issparse(y)))
        costs = costs_of_sets(self.loss, self.class_weight, gold, weights)
        loss = self.loss if isinstance(self.loss, str) else "hamming"
        data = (X, gold, self.edges_, loss, costs, self._has_intercept)
        return TrainingSet(lambda: self._problem(X, gold, costs), data, weights)

    @OnlineMethod
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> MultilabelSVM:
        """Make one pass over more examples, with an online solver.

        {passes}

        Edges of a learned tree are those of the first call.

        {C of all examples}

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array or sparse matrix of shape (n_examples, n_labels)
            1 where an example has a label, 0 elsewhere.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        self
        """
        return Trainer(self).partial_fit(X, y, sample_weight=sample_weight)

    def _training_batch(self, X: Any, y: Any, sample_weight: Any) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all examples at once, so partial_fit "
                "takes a mapping of 0 and 1 to weights, or one for each label"
            )
        first = not hasattr(self, "classes_")
        X, gold, weights = self._examples(X, y, sample_weight, reset=first)
        if first:
            self._set_model(gold, weights, bool(sp.issparse(y)))
        elif gold.shape[1] != len(self.classes_):
            raise ValueError(f"y has {gold.shape[1]} labels, the model {len(self.classes_)}")
        costs = costs_of_sets(self.loss, self.class_weight, gold, weights)
        return TrainingSet(lambda: self._problem(X, gold, costs), (X, gold), weights)

    def _examples(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[Any, Bools, Floats | None]:
        """Inputs, labels and weights as arrays; raises ValueError that says what is wrong."""
        check_loss(self.loss, LOSSES)
        if y is None:
            raise ValueError("MultilabelSVM requires y to be passed, but the target y is None")
        check_lengths(X, y)
        X = check_rows(self, X, reset=reset)
        gold = as_indicators(y, X.shape[0])
        weights = example_weights(sample_weight, None, X, np.arange(len(gold)))
        return canonical(X), gold, weights

    def _set_model(self, gold: Bools, weights: Floats | None, sparse_output: bool) -> None:
        """Fix labels, edges and the layout of the weights."""
        self.classes_ = np.arange(gold.shape[1])
        self.edges_ = make_graph(gold.shape[1], self._chosen_edges(gold, weights)).edges
        self._has_intercept = bool(self.fit_intercept)
        self._sparse_output = sparse_output

    def _problem(self, X: Any, gold: Bools, costs: Floats | None) -> MultilabelProblem:
        """The problem of these examples."""
        loss: Any = self.loss if isinstance(self.loss, str) else "hamming"
        options: dict[str, Any] = {"loss": loss, "fit_intercept": self._has_intercept}
        return MultilabelProblem(X, gold, self.edges_, costs=costs, **options)

    def predict(self, X: Any) -> Any:
        """The set of labels of the largest score for each example.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.

        Returns
        -------
        array of int, or CSR matrix if y was sparse, of shape (n_examples, n_labels)
            1 where an example has a label, 0 elsewhere.
        """
        found = predict_labels(*self._asked(X), self.n_jobs)
        return sp.csr_matrix(found, dtype=np.int64) if self._sparse_output else found.astype(int)

    def predict_k(self, X: Any, k: int) -> list[list[tuple[Ints, float]]]:
        """The k best sets of labels of each example, with their scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        k : int
            How many to return for each example.

        Returns
        -------
        list of list of (labels, score)
            For each example its k sets of the largest score ``<w, psi(x, y)>``, best first, each
            an array of shape (n_labels,) with 1 for labels that are on and 0 for others. The list
            is shorter where there are fewer.
        """
        return rank_labels(*self._asked(X), checked_k(k))

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted labels, and not others: the features that decided, label by label.

        Parameters
        ----------
        x : array or sparse matrix of shape (n_features,) or (1, n_features)
            One input.
        y_hat : array of shape (n_labels,), optional
            Another set of labels, 1 for those that are on, to be compared with the one predicted.
            By default every label has a rival: the best set in which it is the other way.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions label by label. With ``y_hat`` labels that do not differ are left out.
        """
        n, row = checked_k(n, "n"), one_row(x)
        rows, graph, weights = self._asked(row)
        own = predict_labels(rows, graph, weights)[0]
        states = ["on" if is_on else "off" for is_on in own]

        def evidence(rival: Bools) -> list[Evidence]:
            found, of_labels = [], self._of_labels()
            for k in np.flatnonzero(own != rival).tolist():
                sign = 1.0 if own[k] else -1.0
                found += self._input_evidence(row, sign * of_labels[:, k], k)
            for (a, b), weight in zip(self.edges_.tolist(), self.pair_weights_, strict=True):
                change = float(own[a] and own[b]) - float(rival[a] and rival[b])
                if change:
                    place = a if own[a] != rival[a] else b
                    found.append(Evidence(f"labels {a} and {b}", place, change, float(weight)))
            return found

        places = Places(own.astype(int), states, lambda k: f"label {k}", evidence)
        if y_hat is not None:
            (rival,) = as_indicators(np.atleast_2d(np.asarray(y_hat)), 1)
            if rival.shape != own.shape:
                raise ValueError(f"y_hat has {len(rival)} labels, the model {len(own)}")
            others = ["on" if is_on else "off" for is_on in rival]
            return places.against(rival, rival.astype(int), others, n)
        flipped = flipped_labels(rows, graph, weights, own)
        other_way = ["off" if is_on else "on" for is_on in own]
        return places.one_by_one(zip(other_way, flipped, strict=True), n)

    @_MethodWithoutEdges
    def decision_function(self, X: Any) -> Floats:
        """Scores of the labels, of which those above 0 are predicted; without edges only.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_examples, n_labels)
        """
        return label_scores(*self._asked(X))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Share of the examples whose labels are all right, scikit-learn's subset accuracy.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array or sparse matrix of shape (n_examples, n_labels)
            True labels.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        check_lengths(X, y)
        found = self.predict(X)
        found = found.toarray() if sp.issparse(found) else found
        gold = as_indicators(y, len(found))
        if gold.shape != found.shape:
            raise ValueError(f"y has {gold.shape[1]} labels, the model {found.shape[1]}")
        weights = example_weights(sample_weight, None, X, np.arange(len(gold)))
        return float(np.average((found == gold).all(axis=1), weights=weights))

    @property
    def coef_(self) -> Floats:  # type: ignore[override]  # others have a vector
        """Weights of the features for each label."""
        return self._of_labels()[: self.n_features_in_].T

    @property
    def intercept_(self) -> Floats:
        """Weights of the constant feature; zeros without it."""
        weights = self._of_labels()
        return weights[-1] if self._has_intercept else np.zeros(weights.shape[1])

    @property
    def pair_weights_(self) -> Floats:
        """Weights of the edges."""
        return read_only(self._weights[self._n_weights() - len(self.edges_) :])

    def _of_labels(self) -> Floats:
        """Weights of all inputs, the constant one last, for all labels."""
        weights = self._learned_weights()[: self._n_weights() - len(self.edges_)]
        return read_only(weights.reshape(-1, len(self.classes_)))

    def _chosen_edges(self, gold: Bools, weights: Floats | None) -> Any:
        """Edges as the parameter has it."""
        if self.edges is None:
            return np.empty((0, 2), np.int64)
        if isinstance(self.edges, str):
            if self.edges == "tree":
                return tree_of_labels(gold, weights)
            if self.edges == "pairs":
                return all_pairs(gold.shape[1])
        elif hasattr(self.edges, "__len__") and getattr(self.edges, "ndim", 1) > 0:
            return list(self.edges)
        raise ValueError(
            f"edges must be None, 'tree', 'pairs' or pairs of labels, got {self.edges!r}"
        )

    def _asked(self, X: Any) -> tuple[Rows, LabelGraph, Floats]:
        """What predictions are made of."""
        weights = self._weights
        rows = self._rows(check_rows(self, X, reset=False))
        return rows, make_graph(len(self.classes_), self.edges_), weights

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> MultilabelState:
        """See `Savable`."""
        return MultilabelState(
            len(self.classes_),
            int(self.n_features_in_),
            self._has_intercept,
            self.edges_,
            self._sparse_output,
            getattr(self, "feature_names_in_", None),
        )

    def _set_state(self, state: MultilabelState) -> None:
        """See `Savable`."""
        if state.n_labels > len(self._get_weights()):
            raise ValueError(f"state.n_labels is {state.n_labels}, more than there are weights")
        self.classes_ = np.arange(state.n_labels)
        self._set_inputs(state)
        self.edges_ = make_graph(state.n_labels, state.edges).edges
        self._sparse_output = state.sparse_output

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._n_inputs() * len(self.classes_) + len(self.edges_)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags


class MultilabelState(NamedTuple):
    """What a file keeps of a multilabel classifier."""

    n_labels: Count
    n_features: Count
    intercept: bool
    edges: Ints
    sparse_output: bool
    feature_names: Names | None
