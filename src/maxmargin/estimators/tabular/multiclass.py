"""Multiclass classification with any cost matrix, and with classes that are described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...engine.rows import Rows
from ...problems.classes.class_features import described_class_scores
from ...problems.classes.multiclass import ClassDistribution, class_scores
from ...utils.schema import as_sparse, sparse_blocks
from ...utils.sklearn_bases import Classifier
from ...utils.sparse_format import check_sparse
from ...utils.types import Floats, Ints
from ..abilities.confidence import Confidences, fit_calibration
from ..abilities.explanation import Explanation, explain_whole, one_row, strongest_by_label
from ..abilities.kernels import FittedKernel, KernelParameters, check_no_kernel
from ..base import OnlineMethod, checked_k
from ..costs import CostTable, example_weights, score_weights
from ..examples import n_examples_of
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from ..warm_start import prior_mean
from .base import (
    TabularEstimator,
    canonical,
    check_classes,
    check_examples,
    check_lengths,
    one_column,
    ranked_classes,
    read_only,
)
from .class_data import (
    MulticlassState,
    as_taxonomy,
    check_options,
    check_seen,
    class_problem,
    describe,
    different_examples,
    numbers_of,
    set_classes,
    warn_of_unknown_classes,
    weights_of_prior,
)

__all__ = ["MulticlassSVM"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class MulticlassSVM(Confidences, KernelParameters, Classifier, TabularEstimator):
    """Multiclass SVM (Crammer and Singer's, with any costs), certified by a duality gap.

    Parameters
    ----------
    loss : "zero_one", "taxonomy" or table of costs, default="zero_one"
        What a wrong class costs. In an array of shape (n_classes, n_classes) ``loss[j, k]`` is the
        cost of predicting ``classes_[k]`` where ``classes_[j]`` is right: zero on the diagonal,
        positive elsewhere. A mapping ``{(right, predicted): cost}`` or ``{right: {predicted:
        cost}}`` may leave out costs of 1. "taxonomy": the height of the first common ancestor.
        Costs of single examples are given to `fit`.
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
    class_weight : mapping of class to weight, or "balanced", optional
        Multiplies the slacks of the examples of a class, together with ``sample_weight``; 1 for
        classes that are not listed. "balanced": as much for each class in all, ``n_examples /
        (n_classes * n_examples of the class)``, counted by ``sample_weight`` if there is one.
    {parameters of Confidences}
    {parameters of KernelParameters}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted; with a taxonomy or named class features, all that are described.
    seen_classes_ : ndarray
        Those that occur in the training data.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the features for each class, read-only; for two classes, those of the second
        minus those of the first. ``X @ coef_.T + intercept_`` is the decision function. With a
        taxonomy or class features, these are the weights of the classes all the same: sums of what
        was learned for their features. With kernel "linear" only.
    dual_coef_ : ndarray of shape (n_classes, n_support), or (1, n_support) for two classes
        With other kernels: coefficients of the support vectors, in place of ``coef_``.
    support_ : ndarray of shape (n_support,)
        With other kernels: which examples these are.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        And what they are; None with a precomputed kernel.
    kernel_report_ : KernelReport
        With other kernels: rank of the kernel matrix that was trained with, what it lacks of the
        trace (absolute and share), and memory in bytes, in training and of the model.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Weights of the constant feature; zeros without it.
    result_ : Result
        Certificate and history of the training. ``result_.w`` has the weights as they were learned,
        flat: those of feature f for all classes (or class features), then those of feature f + 1,
        ..., the constant feature last. With a kernel, support vectors stand in place of features.
    n_features_in_ : int
        Number of features.
    calibration_ : Calibration
        After `calibrate`, or with ``probability``: the temperature of the probabilities.

    Notes
    -----
    Identical examples are trained on as one of larger weight, which changes nothing but the time,
    so ``result_`` counts them once (with a kernel other than "linear", they are not).

    A class that is described by a taxonomy or by class features can be predicted without a single
    example of it in training (*zero-shot*); ``predict(X, classes=...)`` says which ones come into
    question. In training the classes of ``y`` compete with each other only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MulticlassSVM(random_state=0).fit(X, y)
    >>> model.result_.relative_gap <= 1e-2
    True
    """

    loss: Literal["zero_one", "taxonomy"] | ArrayLike | CostTable = "zero_one"
    fit_intercept: bool = True
    taxonomy: Any = None
    class_features: Any = None
    class_weight: Any = None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        prior: MulticlassSVM | None = None,
    ) -> MulticlassSVM:
        """Train on examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array of shape (n_examples,)
            Classes of any type that can be sorted.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.
        costs : array of shape (n_examples, n_classes), optional
            What each class costs if it is predicted for the example, in the order of ``classes_``:
            0 for its own class, and not negative for others. They take the place of ``loss``.
        prior : MulticlassSVM, optional
            A model of the same features, fitted to much other data, say. In place of small weights
            those near to its own are learned, ``1/2 |w - w_prior|^2``; classes that it knows are
            known here too. For kernel "linear", without a taxonomy or class features.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight, costs=costs, prior=prior)

    def _training_set(
        self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None, prior: Any = None
    ) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        X, y = check_examples(self, X, y)
        check_classes(y)
        check_options(self, prior)
        self.seen_classes_, groups = np.unique(y, return_inverse=True)
        if len(self.seen_classes_) < 2:
            raise ValueError(
                f"y has only one class ({self.seen_classes_.tolist()[0]!r}); "
                "at least 2 classes are needed"
            )
        taxonomy = describe(self, prior)
        codes = np.searchsorted(self.classes_, self.seen_classes_)[groups]
        weights = example_weights(sample_weight, self.class_weight, X, y)
        inputs, self._kernel = FittedKernel.fit(self, canonical(X), codes)
        rows, codes, weights, table = different_examples(
            self, inputs, codes, weights, costs, taxonomy
        )
        self._has_intercept = bool(self.fit_intercept)
        data = (rows, codes, len(self.classes_), table, self._has_intercept, self._output_features)
        constraints = None if prior is None else prior_mean(weights_of_prior(prior, self.classes_))
        shared = {} if prior is None else {"prior": prior}
        more = {"groups": groups, "sample_weight": sample_weight, "costs": costs}
        return TrainingSet(
            lambda: class_problem(self, rows, codes, table, costs is not None),
            data,
            weights,
            constraints=constraints,
            calibrate=lambda: fit_calibration(self, X, y, shared, **more),
        )

    @OnlineMethod
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> MulticlassSVM:
        """Make one pass over more examples, with an online solver.

        {passes}

        {C of all examples}

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
        costs : array of shape (n_examples, n_classes), optional
            Costs of the classes for each example, as for `fit`.

        Returns
        -------
        self
        """
        return Trainer(self).partial_fit(
            X, y, classes=classes, sample_weight=sample_weight, costs=costs
        )

    def _training_batch(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, costs: Any
    ) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        check_no_kernel(self, "partial_fit")
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all examples at once, so partial_fit "
                "takes a mapping of class to weight, or sample_weight"
            )
        first = not hasattr(self, "classes_")
        X, y = check_examples(self, X, y, reset=first)
        check_classes(y)
        if first:
            set_classes(self, y, classes)
            self._has_intercept = bool(self.fit_intercept)
        check_seen(self, y, None if first else classes)
        codes = np.searchsorted(self.classes_, y)
        weights = example_weights(sample_weight, self.class_weight, X, y)
        taxonomy = as_taxonomy(self.taxonomy)
        X, codes, weights, table = different_examples(self, X, codes, weights, costs, taxonomy)
        problem = class_problem(self, X, codes, table, costs is not None)
        return TrainingSet(lambda: problem, (X, codes, table), weights)

    def decision_function(self, X: Any) -> Floats:
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
        labels, scores = self._among(X, classes)
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
        return ranked_classes(*self._among(X, classes), k)

    def _among(self, X: Any, classes: ArrayLike | None) -> tuple[NDArray[Any], Floats]:
        """Classes that come into question, and their scores."""
        scores = self._scores(X)
        if classes is None:
            return self.classes_, scores
        chosen = numbers_of(self.classes_, classes)
        return self.classes_[chosen], scores[:, chosen]

    def _distribution(self, X: Any) -> ClassDistribution:
        """See `Confidences`."""
        return ClassDistribution(self._scores(X))

    def _with_gold(self, X: Any, y: Any) -> tuple[ClassDistribution, Ints]:
        """See `Confidences`."""
        check_lengths(X, y)
        number = {label: c for c, label in enumerate(self.classes_.tolist())}
        gold = np.array([number.get(label, -1) for label in np.asarray(y).tolist()], np.int64)
        return self._distribution(X), gold

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
        check_sparse(y, "y")
        warn_of_unknown_classes(one_column(y), self.classes_)
        if sample_weight is not None:
            sample_weight = score_weights(sample_weight, n_examples_of(X))
        return float(super().score(X, y, sample_weight))

    @property
    def coef_(self) -> Floats:  # type: ignore[override]  # others have a vector
        """Weights of the features for each class, or of the second against the first of two."""
        self._kernel.check_linear("coef_")
        return self._decision_weights()[: self.n_features_in_].T

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the support vectors, as those of the features in ``coef_``."""
        return self._decision_weights()[: len(self._kernel.basis_for("dual_coef_"))].T

    @property
    def intercept_(self) -> Floats:
        """Weights of the constant feature, as in ``coef_``; zeros without it."""
        weights = self._decision_weights()
        return weights[-1] if self._has_intercept else np.zeros(weights.shape[1])

    def _decision_weights(self) -> Floats:
        """Weights of the decision function: inputs, the constant one last, times its columns."""
        self._learned_weights()
        weights = self._per_class()
        return read_only(weights[:, 1:] - weights[:, :1] if len(self.classes_) == 2 else weights)

    def top_features(
        self, n: int = 10, *, against: bool = False
    ) -> dict[Any, list[tuple[str, float]]]:
        """Features that speak most for each class, or against it.

        Parameters
        ----------
        n : int, default=10
            How many to list for a class, at most.
        against : bool, default=False
            List features of negative weights, not of positive ones.

        Returns
        -------
        dict of class to list of (name, weight)
            Strongest first, by weight alone: features of larger values have smaller weights. Names
            are those of ``feature_names_in_``, or x0, x1, ...; the constant feature is called
            "intercept".
        """
        self._check_fitted()
        check_no_kernel(self, "top_features")
        labels = self.classes_.tolist()
        return strongest_by_label(self._per_class(), labels, n, against, self._feature_names)

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted class, and not another: the features that decided.

        Parameters
        ----------
        x : array or sparse matrix of shape (n_features,) or (1, n_features)
            One input.
        y_hat : class, optional
            The class to compare with; by default the best other one.
        n : int, default=5
            How many features the explanation shows; it has all of them.

        Returns
        -------
        Explanation
            One decision, whose margin is the difference of the scores; it prints as a table, and
            shows as one in notebooks.
        """
        self._check_fitted()
        check_no_kernel(self, "explain")
        row = one_row(x)
        scores, labels = self._scores(row)[0], self.classes_.tolist()
        chosen = int(np.argmax(scores))
        if y_hat is None:
            rival = int(np.argmax(np.where(np.arange(len(scores)) == chosen, -np.inf, scores)))
        else:
            rival = int(numbers_of(self.classes_, [y_hat])[0])
        evidence = []
        if rival != chosen:
            weights = self._per_class()[:, chosen] - self._per_class()[:, rival]
            evidence = self._input_evidence(row, weights)
        return explain_whole(labels[chosen], labels[rival], evidence, checked_k(n, "n"))

    def _per_class(self) -> Floats:
        """Weights of all inputs, the constant one last, for all classes."""
        if self._output_features is None:
            return self._weights.reshape(-1, len(self.classes_))
        weights = self._weights.reshape(-1, self._output_features.shape[1])
        return np.asarray(self._output_features.dot(weights.T).T)

    def _scores(self, X: Any) -> Floats:
        """Scores of all classes."""
        weights = self._weights

        def scores(rows: Rows) -> Floats:
            if self._output_features is not None:
                return described_class_scores(rows, weights, self._output_features, self.n_jobs)
            return class_scores(rows, weights, len(self.classes_), self.n_jobs)

        return self._scores_by(scores, X)

    def _weights_per_input(self) -> int:
        """See `KernelParameters`."""
        features = self._output_features
        return len(self.classes_) if features is None else int(features.shape[1])

    def _get_state(self) -> MulticlassState:
        """See `Savable`."""
        features = self._output_features
        return MulticlassState(
            self.classes_,
            int(self.n_features_in_),
            self._has_intercept,
            getattr(self, "feature_names_in_", None),
            self.seen_classes_,
            None if features is None else sparse_blocks(features),
            self._kernel.to_state(),
        )

    def _set_state(self, state: MulticlassState) -> None:
        """See `Savable`."""
        self.classes_ = state.classes
        self._set_inputs(state)
        self._kernel = FittedKernel.of_state(state.kernel, state.n_features)
        self.seen_classes_ = state.classes if state.seen_classes is None else state.seen_classes
        self._output_features = None
        if state.output_features is not None:
            self._output_features = as_sparse(*state.output_features)
            if self._output_features.shape[0] != len(self.classes_):
                raise ValueError(
                    f"features of {self._output_features.shape[0]} classes, expected "
                    f"{len(self.classes_)}"
                )

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._n_inputs() * self._weights_per_input()
