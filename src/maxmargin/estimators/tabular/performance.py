"""Two classes, trained for a measure of all predictions together."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...problems.measures.measure import Measure, MeasureName
from ...problems.measures.problem import MeasureProblem
from ...utils.defaults import MEASURE_TOL
from ...utils.schema import Count, Labels, Names
from ...utils.sklearn_bases import Classifier
from ...utils.types import Bools, Floats, Ints
from ...utils.warn import warn_user
from ..abilities.explanation import Explanation, explain_whole, one_row
from ..abilities.kernels import FittedKernel, KernelModel, KernelParameters, check_no_kernel
from ..base import checked_k
from ..costs import example_weights, used_class_weight
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .base import (
    TabularEstimator,
    canonical,
    check_classes,
    check_examples,
    check_lengths,
    read_only,
)

__all__ = ["PerformanceSVM", "measure_of_scores"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class PerformanceSVM(KernelParameters, Classifier, TabularEstimator):
    """SVM for two classes that is trained for a measure of the whole sample.

    The multivariate SVM of Joachims (2005), as in SVM-perf. The classes are the two values of
    ``y``, and the larger one is *positive*. Losses are what the measure lacks of the best there
    is, which is 1, or what k rows reach at best.

    Parameters
    ----------
    measure : str, default="error"
        What training is for:

        * "error": the share of right labels. The SVM of scikit-learn's ``LinearSVC(loss="hinge")``;
        * "f1", "fbeta": F1, or F-beta with ``beta``;
        * "prbep": precision at the break-even point, where as many rows are chosen as there are
          positive ones;
        * "precision_at_k", "recall_at_k": precision or recall of the ``k`` rows of the largest
          scores;
        * "recall_at_precision", "precision_at_recall": the one where the other is at least
          ``floor``;
        * "roc_auc": the area under the ROC curve, which is the share of pairs of a positive and a
          negative row that are ranked right;
        * "average_precision": the mean precision down to each positive row (Yue et al. 2007).
    beta : float, default=1.0
        Of "fbeta": recall counts beta times as much as precision.
    k : int, optional
        Of "precision_at_k" and "recall_at_k".
    floor : float, optional
        Of "recall_at_precision" and "precision_at_recall", above 0 and at most 1.
    class_weight : mapping of class to weight, or "balanced", optional
        What rows of a class count, with "error" alone, together with ``sample_weight``; 1 for a
        class that is not listed. "balanced": ``n_rows / (2 * n_rows of the class)``, so that
        training is for balanced accuracy. Other measures ignore it, with a warning.
    fit_intercept : bool, default=True
        Append a constant feature, regularised like the rest, for "error", F-beta, "precision_at_k"
        and "recall_at_k". The other measures are of rankings, and have no use for it.
    tol : float or None, default=1e-3
        Stop at this relative duality gap, ``(P - D) / P <= tol``. Finer than that of the other
        estimators: where positive rows are rare the slack of F1 is near 1 even for good weights,
        and 1 % of it may be all that there is to gain. With every 20th positive row of Reuters
        acquisitions and C = 0.1 the F1 of test rows is 0 at 1e-2 and 0.89 at 1e-3. Where positive
        rows are frequent 1e-2 does as well.
    {parameters of KernelParameters}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes, sorted; the second one is positive.
    coef_ : ndarray of shape (1, n_features)
        Weights of the features, read-only; with kernel "linear" only.
    dual_coef_ : ndarray of shape (1, n_support)
        With other kernels: coefficients of the support vectors, in place of ``coef_``.
    support_ : ndarray of shape (n_support,)
        With other kernels: which rows these are.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        And what they are; None with a precomputed kernel.
    kernel_report_ : KernelReport
        With other kernels: rank of the kernel matrix that was trained with, what it lacks of the
        trace (absolute and share), and memory in bytes, in training and of the model.
    intercept_ : ndarray of shape (1,)
        Weight of the constant feature; zero without it.
    result_ : Result
        Certificate and history of the training.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    All rows together are *one* example, which counts as many times as it has rows: training
    minimises ``1/2 |w|^2 + C n_rows xi``, with losses from 0 to 1. So the loss is counted in rows,
    and C is that of a sum over rows: with "error" it is the C of scikit-learn's
    ``LinearSVC(loss="hinge")``. (With row weights, ``n_rows`` is their sum.) SVM-perf minimises
    ``1/2 |w|^2 + c xi`` with losses and features in per cent: its ``-c c`` is
    ``C = 100 c / n_rows``.

    Where positive rows are rare and overlap with the others, w = 0 may be the optimum of F-beta,
    "prbep", "precision_at_k" and "recall_at_k" for every C, for slacks bound these losses coarsely.
    `fit` then warns. A kernel, or "error" with ``class_weight="balanced"``, may help: of eights
    among digits of 4 x 4 pixels, where w = 0 is the optimum of F1 for C from 0.1 to 100, these
    reach a test F1 of 0.78 and 0.39. "roc_auc" and "average_precision" have no such optimum: train
    for one of them, and choose a threshold of `decision_function`.

    There is no ``predict_k``: the one output is the labels of a whole sample, and its k best differ
    in few rows.

    Labels of all rows have the mean of ``y_i x_i / 2`` as joint features, rankings the mean over
    all pairs of a positive and a negative row of ``(x_i - x_j) / 2``. For labels every rescaling
    and root of the loss is searched exactly, and so it is for "precision_at_recall", a measure of
    rankings. The other two, "roc_auc" and "average_precision", have an exact search for
    ``rescaling="margin"`` with the plain loss and for "none" only.

    "precision_at_k" and "recall_at_k" are trained for as in SVM-perf: with k at most the number of
    positive rows for the precision of labels with at least k positive ones, with a larger k for the
    recall of labels with at most k. The gold labels are among those.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PerformanceSVM(measure="f1").fit(X / X.max(axis=0), y)
    >>> model.result_.relative_gap <= 1e-2
    True
    """

    measure: MeasureName = "error"
    beta: float = 1.0
    k: int | None = None
    floor: float | None = None
    class_weight: Any = None
    fit_intercept: bool = True
    tol: float | None = MEASURE_TOL

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> PerformanceSVM:
        """Train on a sample.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Inputs.
        y : array of shape (n_rows,)
            Classes: two different values of any type that can be sorted. The larger one is
            positive; ``y == "fraud"`` makes "fraud" positive of "fraud" and "ok". Where the
            positive class is a word and the more frequent one, `fit` warns.
        sample_weight : array of shape (n_rows,), optional
            What rows count, with "error" (weighted errors) and "roc_auc" (pairs count the product
            of their rows' weights). Other measures count rows, and refuse weights that are not all
            the same. A whole number is as good as that many copies of the row.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        measure = self._measure()
        X, y = check_examples(self, X, y)
        check_classes(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            listed = ", ".join(repr(label) for label in self.classes_.tolist()[:5])
            from sklearn.utils.multiclass import type_of_target

            kind = type_of_target(y)
            only = f"Only binary classification is supported. The type of the target is {kind}. "
            raise ValueError(
                f"{only if len(self.classes_) > 2 else ''}y has {len(self.classes_)} classes "
                f"({listed}); {type(self).__name__} needs 2 classes (for more there are "
                "MulticlassSVM and scikit-learn's OneVsRestClassifier)"
            )
        class_weight = used_class_weight(
            self.class_weight,
            self.measure == "error",
            f"it is for measure='error', and {self.measure!r} does not add up over rows",
        )
        weights = example_weights(sample_weight, class_weight, X, np.asarray(y))
        if weights is not None:
            for label in self.classes_.tolist():
                if not np.any(weights[y == label]):
                    raise ValueError(f"the weights of all rows of class {label!r} are 0")
        self._has_intercept = bool(self.fit_intercept and measure.has_intercept)
        X, self._kernel = FittedKernel.fit(self, canonical(X), y)
        labels = np.where(y == self.classes_[1], 1, -1)
        self._warn_if_common(labels)
        data = (X, labels, measure, weights, self._has_intercept)

        def problem() -> MeasureProblem:
            options: dict[str, Any] = {"fit_intercept": self._has_intercept}
            return MeasureProblem(X, labels, measure, sample_weight=weights, **options)

        with np.errstate(over="ignore"):  # the solver refuses what is too large
            total = float(len(labels) if weights is None else weights.sum())
        return TrainingSet(
            problem,
            data,
            np.array([total]),
            finish=lambda problem: self._warn_if_degenerate(problem, measure),
        )

    def _warn_if_common(self, labels: Ints) -> None:
        """Warn where the order of words, not a choice, has made the common class positive."""
        rare, positive = self.classes_.tolist()
        share = float(np.mean(labels > 0))
        if isinstance(positive, str) and share > 0.5 and self.measure not in ("error", "roc_auc"):
            warn_user(
                f"measure={self.measure!r} is of the positive class, here {positive!r:.40} with "
                f"{share:.0%} of the rows: the larger of the two values of y. If {rare!r:.40} is "
                f"meant, train with y == {rare!r:.40}, which makes it positive"
            )

    def _warn_if_degenerate(self, problem: Any, measure: Measure) -> None:
        """Warn where all training rows are predicted alike."""
        model = f"trained for measure={self.measure!r} with C={self.C:g}, the model"
        remedy = (
            "train for measure='roc_auc' or 'average_precision', and choose a threshold of "
            "decision_function"
        )
        if not self._weights.any():  # 0 is a subgradient of the slack there, whatever C is
            warn_user(
                f"{model} gives all rows the same score, for all weights are 0: that is "
                "the optimum where the classes overlap and one is rare, and a larger C helps only "
                "where C is tiny. Use better features or kernel='rbf', or measure='error' with "
                f"class_weight='balanced'; or {remedy}"
            )
        elif measure.has_threshold:
            chosen = problem.scores(self._weights) > 0.0
            if chosen.all() or not chosen.any():
                label = self.classes_.tolist()[int(chosen[0])]
                balanced = " or class_weight='balanced'" if self.measure == "error" else ""
                warn_user(
                    f"{model} predicts the class {label!r:.40} for all training rows. Try a larger "
                    f"C{balanced}, or {remedy}"
                )

    def _measure(self) -> Measure:
        """The measure with its parameters, checked."""
        return Measure(self.measure, self.beta, self.k, self.floor)

    def decision_function(self, X: Any) -> Floats:
        """Scores of the rows: the larger, the rather positive.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._linear_scores(X)

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted class, and not the other one: the features that decided.

        Parameters
        ----------
        x : array or sparse matrix of shape (n_features,) or (1, n_features)
            One row.
        y_hat : class, optional
            The class to compare with; by default the other one.
        n : int, default=5
            How many features the explanation shows; it has all of them.

        Returns
        -------
        Explanation
            One decision, whose margin is how far `decision_function` is from 0. Not with a kernel.
        """
        self._check_fitted()
        check_no_kernel(self, "explain")
        row, labels = one_row(x), self.classes_.tolist()
        chosen = int(self.decision_function(row)[0] > 0.0)
        if y_hat is not None and y_hat not in labels:
            raise ValueError(f"y_hat is {y_hat!r:.40}, which is not one of the classes {labels}")
        rival = 1 - chosen if y_hat is None else labels.index(y_hat)
        weights = (rival != chosen) * (1.0 if chosen else -1.0) * self._decision_weights()[0]
        evidence = self._input_evidence(row, weights)
        evidence = evidence if weights.any() else []
        return explain_whole(labels[chosen], labels[rival], evidence, checked_k(n, "n"))

    def predict(self, X: Any) -> NDArray[Any]:
        """Class of each row: the positive one where the score is above 0.

        Measures of rankings, and of a given number of rows, say nothing about the scores' sign:
        with those, choose by `decision_function`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(np.int64)]

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """The measure that training was for, from 0 to 1, larger is better.

        Accuracy and F-beta are those of `predict`. The others are those of the ranking by
        `decision_function`: with a floor, the best over all thresholds that keep to it; of the k
        best rows, with equal scores counted in part.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Inputs.
        y : array of shape (n_rows,)
            True classes.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows: one of weight 2 counts as two rows, also among the k best.

        Returns
        -------
        float
        """
        scores = self.decision_function(X)
        check_lengths(scores, y)
        y = np.asarray(y)
        unknown = np.flatnonzero(~np.isin(y, self.classes_))
        if len(unknown):
            raise ValueError(
                f"y[{unknown[0]}] is {y.tolist()[unknown[0]]!r}, which is not one of the classes "
                f"{self.classes_.tolist()}"
            )
        positive: Bools = y == self.classes_[1]
        weights = example_weights(sample_weight, None, scores, y)
        return measure_of_scores(self._measure(), positive, scores, weights)

    @property
    def coef_(self) -> Floats:  # type: ignore[override]  # others have a vector
        """Weights of the features."""
        self._kernel.check_linear("coef_")
        return self._decision_weights()[:, : self.n_features_in_]

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the support vectors."""
        return self._decision_weights()[:, : len(self._kernel.basis_for("dual_coef_"))]

    @property
    def intercept_(self) -> Floats:
        """Weight of the constant feature; zero without it."""
        weights = self._decision_weights()
        return weights[:, -1] if self._has_intercept else np.zeros(1)

    def _decision_weights(self) -> Floats:
        """All weights as one row."""
        return read_only(self._learned_weights().reshape(1, -1))

    def _get_state(self) -> PerformanceState:
        """See `Savable`."""
        return PerformanceState(
            self.classes_,
            int(self.n_features_in_),
            self._has_intercept,
            getattr(self, "feature_names_in_", None),
            self._kernel.to_state(),
        )

    def _set_state(self, state: PerformanceState) -> None:
        """See `Savable`."""
        if len(state.classes) != 2:
            raise ValueError(f"{len(state.classes)} classes, expected 2")
        self.classes_ = state.classes
        self._set_inputs(state)
        self._kernel = FittedKernel.of_state(state.kernel, state.n_features)

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._n_inputs()

    def _weights_per_input(self) -> int:
        """See `KernelParameters`."""
        return 1

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class PerformanceState(NamedTuple):
    """What a file keeps of a classifier."""

    classes: Labels
    n_features: Count
    intercept: bool
    feature_names: Names | None
    kernel: KernelModel | None = None


def measure_of_scores(
    measure: Measure, positive: Bools, scores: Floats, row_weights: Floats | None = None
) -> float:
    """The measure in [0, 1], larger is better; see `PerformanceSVM.score`."""
    name = measure.name
    if name == "error":
        return float(np.average(positive == (scores > 0.0), weights=row_weights))
    if name == "roc_auc":
        right, wrong = _counts(positive, scores, row_weights)
        if not right[-1] or not wrong[-1]:
            return _undefined("roc_auc_score", positive, scores, row_weights)
        both = np.trapezoid(np.append(0.0, right), np.append(0.0, wrong))
        return float(both / (right[-1] * wrong[-1]))
    if name == "average_precision":
        right, wrong = _counts(positive, scores, row_weights)
        if not right[-1]:
            return _undefined("average_precision_score", positive, scores, row_weights)
        return float(np.diff(right, prepend=0.0) @ _share(right, right + wrong) / right[-1])
    if name in ("f1", "fbeta"):
        square = 1.0 if name == "f1" else measure.beta**2
        weights = np.ones(len(scores)) if row_weights is None else row_weights
        found, true = float(weights @ (scores > 0.0)), float(weights @ positive)
        both = float(weights @ (positive & (scores > 0.0)))
        return (1.0 + square) * both / (found + square * true) if both else 0.0
    if not (positive if row_weights is None else row_weights[positive] > 0.0).any():
        raise ValueError(f"y has no positive row, so measure={name!r} is not defined")
    if measure.needs_floor:
        right, wrong = _counts(positive, scores, row_weights)
        precision, recall = _share(right, right + wrong), _share(right, right[-1:])
        value, other = (recall, precision) if name == "recall_at_precision" else (precision, recall)
        return float(value[other >= (measure.floor or 0.0)].max(initial=0.0))
    right, wrong = _counts(positive, scores, row_weights)
    total, n_positive = float(right[-1] + wrong[-1]), float(right[-1])
    count = n_positive if name == "prbep" else float(measure.k or 0)
    if count > total:
        raise ValueError(f"X has {total:g} rows, fewer than k={count:g}")
    # Of rows with equal scores a random choice, on average.
    found = np.interp(count, np.append(0.0, right + wrong), np.append(0.0, right))
    return float(found / (n_positive if name == "recall_at_k" else count))


def _counts(positive: Bools, scores: Floats, row_weights: Floats | None) -> tuple[Floats, Floats]:
    """Positive and negative rows above each threshold that matters, the highest first."""
    weights = np.ones(len(scores)) if row_weights is None else row_weights
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.diff(scores[order], append=-np.inf))
    right = np.cumsum((weights * positive)[order])[last]
    wrong = np.cumsum((weights * ~positive)[order])[last]
    return right, wrong


def _share(part: Floats, whole: Floats) -> Floats:
    """Shares; 0 of nothing."""
    return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0.0)


def _undefined(name: str, positive: Bools, scores: Floats, row_weights: Floats | None) -> float:
    """What scikit-learn makes of a measure that is not defined, with its warning."""
    measure = getattr(importlib.import_module("sklearn.metrics"), name)
    return float(measure(positive, scores, sample_weight=row_weights))
