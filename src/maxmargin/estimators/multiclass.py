"""Multiclass classification with any cost matrix, and with classes that are described."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from ..formulation import Rescaling, Slack
from ..problem import Problem
from ..problems.classes.class_features import ClassFeatureProblem, described_class_scores
from ..problems.classes.multiclass import MulticlassProblem, class_scores
from ..problems.rows import make_rows
from ..result import Callback
from ..solvers import Solver
from .base import MaxMarginEstimator, OnlineMethod, checked_k, with_shared_parameters
from .class_descriptions import as_taxonomy, describe_classes
from .merging import merge_examples

__all__ = ["MulticlassSVM"]

FLOATS = (np.float64, np.float32)


@with_shared_parameters
class MulticlassSVM(ClassifierMixin, MaxMarginEstimator):
    """Linear multiclass SVM (Crammer and Singer's, with any costs), certified by a duality gap.

    Parameters
    ----------
    loss : "zero-one", "taxonomy" or array of shape (n_classes, n_classes), default="zero-one"
        What a wrong class costs. ``loss[j, k]`` is the cost of predicting ``classes_[k]`` where
        ``classes_[j]`` is right: zero on the diagonal, positive elsewhere. "taxonomy": the height
        of the first common ancestor.
    fit_intercept : bool, default=True
        Append a constant feature, regularised like the rest.
    taxonomy : Taxonomy or mapping of node to parent, optional
        Where the classes are in a tree, or in a graph without cycles. Every node gets weights,
        which the classes below it share; see `Taxonomy` for how much each node counts. Inputs
        should be centred, and with few examples of all classes ``fit_intercept=False`` is best.
    class_features : ClassFeatures, mapping of class to vector, or matrix, optional
        Features of the classes: attributes, descriptions, or a similarity
        (``ClassFeatures.from_similarity``). A matrix has a row for each class of ``y``, in sorted
        order. Weights belong to pairs of an input and a class feature. With a taxonomy too, classes
        have the features of both.
    {shared parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted; with a taxonomy or named class features, all that are described.
    seen_classes_ : ndarray
        Those that occur in the training data.
    coef_ : ndarray of shape (n_inputs * n_classes,)
        All weights, flat: those of feature f for all classes, then those of feature f + 1, the
        constant feature last. `class_weights_` and `intercept_` give them as tables. With a
        taxonomy or class features, their number stands in the place of the number of classes.
    result_ : Result
        Certificate and history of the training.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Identical examples are trained on as one of larger weight, which changes nothing but the time,
    so ``result_`` counts them once.

    A class that is described by a taxonomy or by class features can be predicted without a single
    example of it in training (*zero-shot*); ``predict(X, classes=...)`` says which ones come into
    question. In training the classes of ``y`` compete with each other only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticlassSVM(random_state=0).fit(X, y)
    >>> model.result_.relative_gap <= 1e-3
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: Literal["zero-one", "taxonomy"] | ArrayLike = "zero-one",
        fit_intercept: bool = True,
        taxonomy: Any = None,
        class_features: Any = None,
        rescaling: Rescaling = "margin",
        slack: Slack = "l1",
        sqrt_loss: bool | None = None,
        solver: str | Solver = "auto",
        tol: float | None = 1e-3,
        epsilon: float | None = None,
        max_passes: float | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Iterable[Callback] = (),
    ) -> None:
        super().__init__(
            C=C,
            rescaling=rescaling,
            slack=slack,
            sqrt_loss=sqrt_loss,
            solver=solver,
            tol=tol,
            epsilon=epsilon,
            max_passes=max_passes,
            max_time=max_time,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            callbacks=callbacks,
        )
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.taxonomy = taxonomy
        self.class_features = class_features

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> MulticlassSVM:
        """Train on examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array of shape (n_examples,)
            Classes of any type that can be sorted.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        X, y = self._checked(X, y, reset=True)
        self.seen_classes_, codes = np.unique(y, return_inverse=True)
        if len(self.seen_classes_) < 2:
            raise ValueError(
                f"y has only one class ({self.seen_classes_.tolist()[0]!r}); "
                "at least 2 classes are needed"
            )
        taxonomy = self._describe_classes()
        codes = np.searchsorted(self.classes_, self.seen_classes_)[codes]
        weights = _checked_weights(sample_weight, X)
        costs = self._costs(taxonomy)
        X, codes, weights = merge_examples(_canonical(X), codes.astype(np.int64), weights)
        self._has_intercept = bool(self.fit_intercept)
        data = (X, codes, len(self.classes_), costs, self._has_intercept, self._output_features)
        self._train(lambda: self._problem(X, codes, costs), data, weights)
        return self

    @OnlineMethod
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> MulticlassSVM:
        """Make one pass over more examples, with an online solver.

        As many calls with the same data as `fit` makes passes give what `fit` gives. After `fit`,
        or with a model that was loaded, training goes on from the weights there are.

        C multiplies the sum of the slacks of all examples seen so far: `sgd` and `pegasos`
        minimise the objective that `fit` would have on the examples of all calls together.
        Examples of a call that is repeated count once. Of a model that was fitted or loaded, the
        examples of its last training count, with weight 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array of shape (n_examples,)
            Classes.
        classes : array, optional
            All classes there will ever be; by default those of the first call. Later calls
            may leave it out.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        self
        """
        first = not hasattr(self, "classes_")
        X, y = self._checked(X, y, reset=first)
        if first:
            known = np.unique(y if classes is None else np.asarray(classes))
            if len(known) < 2:
                raise ValueError(f"at least 2 classes are needed, got {known.tolist()}")
            self.seen_classes_ = known
            self._describe_classes()
            self._has_intercept = bool(self.fit_intercept)
        elif classes is not None and not np.array_equal(np.unique(classes), self.seen_classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.seen_classes_.tolist()}, "
                f"got {np.unique(classes).tolist()}"
            )
        unknown = np.flatnonzero(~np.isin(y, self.seen_classes_))
        if len(unknown):
            raise ValueError(
                f"y[{unknown[0]}] is {y[unknown[0]]!r}, which is not among the classes of the "
                f"first call, {self.seen_classes_.tolist()}"
            )
        codes = np.searchsorted(self.classes_, y)
        weights = _checked_weights(sample_weight, X)
        X, codes, weights = merge_examples(_canonical(X), codes.astype(np.int64), weights)
        problem = self._problem(X, codes, self._costs(as_taxonomy(self.taxonomy)))
        self._train_online(problem, (X, codes), weights)
        return self

    def _checked(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        """Examples as arrays; raises ValueError that says what is wrong with them."""
        _check_lengths(X, y)
        X, y = validate_data(
            self, X, y, reset=reset, accept_sparse="csr", dtype=FLOATS, ensure_all_finite=False
        )
        _check_finite(X)
        check_classification_targets(y)
        return X, y

    def _describe_classes(self) -> Any:
        """Set ``classes_`` and their features from the classes seen; returns the taxonomy."""
        taxonomy = as_taxonomy(self.taxonomy)
        self.classes_, self._output_features = self.seen_classes_, None
        if taxonomy is not None or self.class_features is not None:
            described = describe_classes(taxonomy, self.class_features, self.seen_classes_)
            self.classes_, self._output_features = described
        return taxonomy

    def _problem(
        self, X: Any, codes: NDArray[np.int64], costs: NDArray[np.float64] | None
    ) -> Problem:
        """The problem of these examples."""
        options: dict[str, Any] = {"costs": costs, "fit_intercept": self._has_intercept}
        if self._output_features is None:
            return MulticlassProblem(X, codes, len(self.classes_), **options)
        seen = np.isin(self.classes_, self.seen_classes_)
        return ClassFeatureProblem(X, codes, self._output_features, allowed=seen, **options)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_examples, n_classes), or (n_examples,) for two classes
            For two classes, the score of the second minus that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any, classes: ArrayLike | None = None) -> NDArray[Any]:
        """Class of the largest score for each example.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        classes : array, optional
            Classes that come into question, by default all of ``classes_``.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        scores = self._scores(X)
        labels = self.classes_
        if classes is not None:
            chosen = self._chosen(classes)
            labels, scores = labels[chosen], scores[:, chosen]
        return labels[np.argmax(scores, axis=1)]

    def predict_k(
        self, X: Any, k: int, classes: ArrayLike | None = None
    ) -> list[list[tuple[Any, float]]]:
        """The k best classes of each example, with their scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        k : int
            How many to return for each example.
        classes : array, optional
            Classes that come into question, by default all of ``classes_``.

        Returns
        -------
        list of list of (class, score)
            For each example its k classes of the largest score ``<w, psi(x, y)>``, best first; all
            of them where there are not so many.
        """
        k = checked_k(k)
        scores = self._scores(X)
        chosen = np.arange(len(self.classes_)) if classes is None else self._chosen(classes)
        scores = scores[:, chosen]
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        labels = self.classes_[chosen][order].tolist()
        ranked = np.take_along_axis(scores, order, axis=1).astype(np.float64).tolist()
        return [list(zip(*answer, strict=True)) for answer in zip(labels, ranked, strict=True)]

    def _chosen(self, classes: ArrayLike) -> NDArray[np.int64]:
        """Numbers of the classes that come into question."""
        number = {label: c for c, label in enumerate(self.classes_.tolist())}
        chosen = np.unique(np.asarray(classes)).tolist()
        unknown = [label for label in chosen if label not in number]
        if unknown or not chosen:
            raise ValueError(
                f"classes has {unknown[0]!r}, which the model does not know"
                if unknown
                else "classes is empty; at least one class must come into question"
            )
        return np.array([number[label] for label in chosen])

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy; an example of a class unknown to the model counts as wrong, with a warning.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array of shape (n_examples,)
            True classes.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        self._check_fitted()
        unknown = np.flatnonzero(~np.isin(np.asarray(y), self.classes_))
        if len(unknown):
            warnings.warn(
                f"{len(unknown)} examples are of classes unknown to the model and count as wrong; "
                f"the first is y[{unknown[0]}] = {np.asarray(y)[unknown[0]]}",
                UserWarning,
                stacklevel=2,
            )
        return float(super().score(X, y, sample_weight))

    @property
    def class_weights_(self) -> NDArray[np.float64]:
        """Weights as a table of shape (n_classes, n_features), without the constant feature."""
        return self._per_class()[: self.n_features_in_].T

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Weight of the constant feature for each class; zeros without it."""
        return self._per_class()[-1].copy() if self._has_intercept else np.zeros(len(self.classes_))

    def _per_class(self) -> NDArray[np.float64]:
        """Weights of all inputs, the constant one last, for all classes."""
        if self._output_features is None:
            return self.coef_.reshape(-1, len(self.classes_))
        weights = self.coef_.reshape(-1, self._output_features.shape[1])
        return np.asarray(self._output_features.dot(weights.T).T)

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """Scores of all classes."""
        self._check_fitted()
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=FLOATS, ensure_all_finite=False
        )
        _check_finite(X)
        rows = make_rows(X, fit_intercept=self._has_intercept)
        if self._output_features is not None:
            return described_class_scores(rows, self.coef_, self._output_features)
        return class_scores(rows, self.coef_, len(self.classes_))

    def _costs(self, taxonomy: Any) -> NDArray[np.float64] | None:
        """The cost matrix; None for zero-one loss."""
        if isinstance(self.loss, str):
            if self.loss == "taxonomy":
                if taxonomy is None:
                    raise ValueError("loss='taxonomy' needs a taxonomy")
                return taxonomy.losses(self.classes_.tolist())
            if self.loss != "zero-one":
                raise ValueError(
                    f"loss must be 'zero-one', 'taxonomy' or a cost matrix, got {self.loss!r}"
                )
            return None
        costs = np.array(self.loss, dtype=np.float64)
        K = len(self.classes_)
        if costs.shape != (K, K):
            raise ValueError(
                f"loss has shape {costs.shape}, but y has {K} classes: expected {(K, K)}"
                if self._output_features is None
                else f"loss has shape {costs.shape}, but {K} classes are described: expected "
                f"{(K, K)}"
            )
        return costs

    def _get_state(self) -> dict[str, Any]:
        """See `MaxMarginEstimator`."""
        features = self._output_features
        return {
            "classes": self.classes_,
            "seen_classes": self.seen_classes_,
            "output_features": None
            if features is None
            else [features.data, features.indices, features.indptr, list(features.shape)],
            "n_features": int(self.n_features_in_),
            "intercept": self._has_intercept,
            "feature_names": getattr(self, "feature_names_in_", None),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        """See `MaxMarginEstimator`."""
        self.classes_ = state["classes"]
        self.n_features_in_ = int(state["n_features"])
        self._has_intercept = bool(state["intercept"])
        if state["feature_names"] is not None:
            self.feature_names_in_ = state["feature_names"]
        self.seen_classes_ = state.get("seen_classes", self.classes_)
        features = state.get("output_features")
        self._output_features = None
        if features is not None:
            self._output_features = sp.csr_matrix(tuple(features[:3]), shape=tuple(features[3]))
        n_columns = len(self.classes_) if features is None else int(features[3][1])
        expected = (self.n_features_in_ + self._has_intercept) * n_columns
        if len(self.coef_) != expected:
            raise ValueError(f"expected {expected} weights, found {len(self.coef_)}")

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _check_lengths(X: Any, y: Any) -> None:
    """Refuse X and y of different lengths; what has no length is left to scikit-learn."""
    try:
        n_inputs, n_outputs = _num_samples(X), _num_samples(y)
    except TypeError:
        return
    if n_inputs != n_outputs:
        raise ValueError(
            f"X has {n_inputs} examples but y has {n_outputs}; first without a partner: "
            f"{min(n_inputs, n_outputs)}"
        )


def _canonical(X: Any) -> Any:
    """A sparse matrix with sorted indices without repetition, not changing the user's."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _check_finite(X: Any) -> None:
    """Refuse NaN and infinite features, naming the first."""
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):  # needs no temporary array
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(X):
        entry = int(np.argmax(bad))
        row = int(np.searchsorted(X.indptr, entry, side="right")) - 1
        column, value = int(X.indices[entry]), values[entry]
    else:
        row, column = (int(k) for k in np.argwhere(bad)[0])
        value = values[row, column]
    name = "NaN" if np.isnan(value) else "inf"
    raise ValueError(f"X contains {name} at row {row}, feature {column}; features must be finite")


def _checked_weights(sample_weight: ArrayLike | None, X: Any) -> NDArray[np.float64] | None:
    """Sample weights as floats; None stays None."""
    if sample_weight is None:
        return None
    weights: NDArray[np.float64] = _check_sample_weight(sample_weight, X, dtype=np.float64)
    negative = np.flatnonzero(weights < 0)
    if len(negative):
        raise ValueError(
            f"sample_weight[{negative[0]}] is {weights[negative[0]]}; weights must be >= 0"
        )
    return weights
