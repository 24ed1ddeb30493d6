"""Grades by a linear score and thresholds: ordinal regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ...engine.rows import make_rows, row_scores
from ...problems.ranking.problem import RankingProblem
from ...problems.ranking.thresholds import ThresholdProblem, best_thresholds
from ...utils.schema import Count, Labels, Names
from ...utils.sklearn_bases import Classifier
from ...utils.types import Floats, Ints
from ...utils.validation import check_choice
from ...utils.warn import warn_user
from ..abilities.explanation import Evidence, Explanation, explain_whole, one_row
from ..base import checked_k
from ..costs import example_weights
from ..examples import FlatLabels, LabelEncoder
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .base import (
    TabularEstimator,
    are_classes,
    canonical,
    check_lengths,
    check_rows,
    one_column,
    ranked_classes,
    read_only,
)

__all__ = ["OrdinalSVM"]

OrdinalLoss = Literal["absolute", "pairs"]
LOSSES = get_args(OrdinalLoss)


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class OrdinalSVM(Classifier, TabularEstimator):
    """Grades, that is classes in an order: by thresholds on a linear score.

    Parameters
    ----------
    loss : {"absolute", "pairs"}, default="absolute"
        What training minimises:

        * "absolute": the distance of the predicted grade, counted in grades. Thresholds are weights
          like the others, and an example's slack is the sum of its hinge losses at all thresholds
          (support vector ordinal regression with implicit constraints, Chu and Keerthi 2007; the
          all-threshold loss of Rennie and Srebro 2005);
        * "pairs": the share of the pairs of examples of different grades that the score puts in the
          wrong order (the ordinal regression SVM of Joachims 2006; all examples are one).
          Afterwards thresholds are set where the mean absolute error of the training examples is
          least.
    grades : sequence, optional
        The grades from the lowest to the highest; those that no example has may be among them. By
        default the values of y, sorted, or in the order of an ordered categorical of pandas. Words
        are sorted by the alphabet, so give their order here.
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    classes_ : ndarray of shape (n_grades,)
        The grades from the lowest to the highest.
    coef_ : ndarray of shape (n_features,)
        Weights of the features, read-only.
    thresholds_ : ndarray of shape (n_grades - 1,)
        Where the grade changes, in rising order: that of x is the number of thresholds below
        ``x @ coef_``.
    result_ : Result
        Certificate and history of the training.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    With "absolute" the thresholds are regularised, like the constant feature of other estimators;
    features near 0 (a `StandardScaler`) leave them least to do. C multiplies the sum of the
    examples' slacks. Any rescaling is searched exactly.

    With "pairs" C multiplies one slack, the mean hinge loss of all pairs: it is the C of Joachims.
    An oracle call takes O(n log n) for n examples. ``sample_weight`` lets a pair count the product
    of its examples' weights, and needs ``rescaling="margin"`` with the plain loss.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(9.0)[:, None]
    >>> y = ["low"] * 3 + ["medium"] * 2 + ["high"] * 4
    >>> model = OrdinalSVM(C=100.0, grades=["low", "medium", "high"], random_state=0).fit(X, y)
    >>> model.predict([[0.0], [3.4], [20.0]]).tolist()
    ['low', 'medium', 'high']
    """

    loss: OrdinalLoss = "absolute"
    grades: Sequence[Any] | None = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> OrdinalSVM:
        """Train on examples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array of shape (n_examples,)
            Grades.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack; with ``loss="pairs"`` a pair counts the product of its
            examples' weights, of which only ratios matter.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        check_choice(self.loss, LOSSES, "loss")
        check_lengths(X, y)
        order = self._given_order(y)
        X, y = check_rows(self, X, y)
        self.classes_ = self._found_grades(y) if order is None else order
        grades = self._encoded(y)
        weights = example_weights(sample_weight, None, X, grades)
        X = canonical(X)
        data = (X, grades, len(self.classes_), self.loss)
        if self.loss == "absolute":
            self._thresholds: Floats | None = None  # among the weights
            return TrainingSet(lambda: ThresholdProblem(*data[:3]), data, weights)
        if weights is not None and np.ptp(weights) == 0.0:
            weights = None
        X = X if sp.issparse(X) else np.ascontiguousarray(X)  # copied once, if at all
        n_grades, rows = len(self.classes_), make_rows(X)

        def thresholds(problem: Any, solutions: list[Floats]) -> list[dict[str, Any]]:
            scores = (row_scores(rows, w) for w in solutions)
            found = [best_thresholds(own, grades, n_grades, weights) for own in scores]
            return [{"_thresholds": own} for own in found]

        return TrainingSet(
            lambda: _pairs(X, grades, weights), (*data, weights), following=thresholds
        )

    def decision_function(self, X: Any) -> Floats:
        """Scores of the grades, of which the largest is predicted, as other classifiers have them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_examples, n_grades), or (n_examples,) for two grades
            Of two grades, how far `linear_score` is above the threshold. Of more, the sum of that
            over the thresholds below a grade; nothing for the lowest.
        """
        scores = self._grade_scores(X)
        return scores[:, 1] if scores.shape[1] == 2 else scores

    def _grade_scores(self, X: Any) -> Floats:
        """Scores of all grades, 0 for the lowest."""
        beyond = self.linear_score(X)[:, None] - self.thresholds_
        return np.cumsum(np.hstack([np.zeros((len(beyond), 1)), beyond]), axis=1)

    def linear_score(self, X: Any) -> Floats:
        """The score ``x @ coef_`` of each example, which `thresholds_` cut into grades.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        return self._linear_scores(X)

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted grade, and not another: the features that decided.

        Parameters
        ----------
        x : array or sparse matrix of shape (n_features,) or (1, n_features)
            One input.
        y_hat : grade, optional
            The grade to compare with; by default the nearest other one.
        n : int, default=5
            How many features the explanation shows; it has all of them.

        Returns
        -------
        Explanation
            One decision, whose margin is the difference of the grades' scores by
            `decision_function`: features count once for each threshold between the two grades.
        """
        row, labels = one_row(x), self.classes_.tolist()
        coef, thresholds = self.coef_, self.thresholds_
        score = float(self.linear_score(row)[0])
        chosen = int(np.searchsorted(thresholds, score))
        if y_hat is None:
            scores = np.cumsum(np.append(0.0, score - thresholds))
            rival = int(np.argmax(np.where(np.arange(len(scores)) == chosen, -np.inf, scores)))
        else:
            rival = int(self._encoded([y_hat])[0])
        sign, crossed = np.sign(chosen - rival), range(min(chosen, rival), max(chosen, rival))
        evidence = [
            Evidence(f"threshold {labels[k]} / {labels[k + 1]}", 0, -1.0, sign * thresholds[k])
            for k in crossed
        ]
        if evidence:
            evidence += self._input_evidence(row, float(chosen - rival) * coef)
        return explain_whole(labels[chosen], labels[rival], evidence, checked_k(n, "n"))

    def predict(self, X: Any) -> NDArray[Any]:
        """Grades.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        found = self._predicted(X)
        return self.classes_[found]

    def predict_k(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """The k best grades of each example, with their scores.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        k : int
            How many to return for each example.

        Returns
        -------
        list of list of (grade, score)
            For each example its k grades of the largest score, best first, all of them where there
            are fewer. Scores are the columns of `decision_function`, also where there are two
            grades: 0 for the lowest.
        """
        k, scores = checked_k(k), self._grade_scores(X)
        return ranked_classes(self.classes_, scores, k)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the fraction of examples with the right grade.

        `maxmargin.metrics.grade_scores` has the mean absolute error and others.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_examples, n_features)
            Inputs.
        y : array of shape (n_examples,)
            True grades.
        sample_weight : array of shape (n_examples,), optional
            Weights of the examples.

        Returns
        -------
        float
        """
        check_lengths(X, y)
        found = self._predicted(X)
        weights = example_weights(sample_weight, None, X, found)
        return float(np.average(found == self._encoded(y), weights=weights))

    @property
    def coef_(self) -> Floats:  # type: ignore[override]  # others have a vector that can be set
        """Weights of the features."""
        return read_only(self._learned_weights()[: self.n_features_in_])

    @property
    def thresholds_(self) -> Floats:
        """Where the grade changes, in rising order."""
        weights = self._learned_weights()
        if self._thresholds is not None:
            return read_only(self._thresholds)
        return np.sort(weights[self.n_features_in_ :])  # before the optimum they may be in disorder

    def _predicted(self, X: Any) -> Ints:
        """Grades as numbers from 0."""
        scores = self.linear_score(X)
        return np.searchsorted(self.thresholds_, scores).astype(np.int64)

    # ----- grades -------------------------------------------------------------------------------

    def _given_order(self, y: Any) -> NDArray[Any] | None:
        """The grades that are given, from the lowest on."""
        if self.grades is None:
            categories = getattr(getattr(y, "dtype", None), "categories", None)
            if categories is None or not y.dtype.ordered:
                return None
            if len(categories) < 2:
                raise ValueError(
                    f"y has the category {list(categories)} alone; expected 2 grades or more"
                )
            return np.asarray(categories)
        if isinstance(self.grades, (str, bytes)):
            raise ValueError(f"grades must be a list of them, got {self.grades!r}")
        grades = np.asarray(self.grades)
        values = grades.tolist() if grades.ndim == 1 else []
        missing = any(value is None or value != value for value in values)
        if len(set(values)) != len(values) or len(values) < 2 or missing:
            raise ValueError(f"grades must be 2 different values or more, got {self.grades!r:.60}")
        return grades

    def _found_grades(self, y: NDArray[Any]) -> NDArray[Any]:
        """The values of y, sorted."""
        for i, value in enumerate(y if y.dtype == object else ()):
            if not isinstance(value, type(y[0])) or value is None:
                raise ValueError(
                    f"y[{i}] is {value!r:.40}, which has no order beside y[0], {y[0]!r:.40}; give "
                    "the grades from the lowest to the highest as grades=[...]"
                )
        if not are_classes(y) and _is_continuous(y):
            raise ValueError(
                f"Unknown label type: y has {len(np.unique(y))} different real values; if these "
                "are grades, give them as grades=numpy.unique(y)"
            )
        found = np.unique(y)
        if len(found) < 2:
            raise ValueError(f"y has one class, {found.tolist()[0]!r}; expected 2 grades or more")
        if len(found) > 2 and isinstance(found.tolist()[0], str):
            warn_user(
                "words have no order but the alphabet's, so the grades are "
                f"{found.tolist()!r:.200} from the lowest to the highest; "
                "give another order as grades=[...]"
            )
        return found

    def _encoded(self, y: Any) -> Ints:
        """Numbers of grades, from 0; ValueError for one that the model does not know."""
        values = one_column(y).tolist()
        labels = FlatLabels(values, np.array([0, len(values)]))
        codes = LabelEncoder(self.classes_).encode(labels).astype(np.int64)
        if codes.min(initial=0) < 0:
            i = int(np.argmin(codes))
            raise ValueError(
                f"y[{i}] is {values[i]!r:.40}, which is not one of the grades "
                f"{self.classes_.tolist()}"
            )
        return codes

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> OrdinalState:
        """See `Savable`."""
        names = getattr(self, "feature_names_in_", None)
        return OrdinalState(self.classes_, int(self.n_features_in_), self._thresholds, names)

    def _set_state(self, state: OrdinalState) -> None:
        """See `Savable`."""
        self.classes_ = state.classes
        self._set_inputs(state)
        self._thresholds = state.thresholds
        if state.thresholds is not None and (
            len(state.thresholds) != len(state.classes) - 1 or np.any(np.diff(state.thresholds) < 0)
        ):
            raise ValueError(
                f"thresholds must be {len(state.classes) - 1} numbers in rising order, got "
                f"{state.thresholds.tolist()}"
            )

    def _n_weights(self) -> int:
        """See `Savable`."""
        learned = len(self.classes_) - 1 if self._thresholds is None else 0
        return int(self.n_features_in_ + learned)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn should know of the estimator."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # where classes have no order
        return tags


class OrdinalState(NamedTuple):
    """What a file keeps; thresholds are None where they are among the weights."""

    classes: Labels
    n_features: Count
    thresholds: Floats | None
    feature_names: Names | None


def _pairs(X: Any, grades: Ints, weights: Floats | None) -> RankingProblem:
    """All examples as the documents of one query."""
    offsets = [0, len(grades)]
    return RankingProblem(X, grades, offsets, "normalized_swaps", document_weights=weights)


def _is_continuous(y: NDArray[Any]) -> bool:
    """Whether scikit-learn takes outputs for real numbers."""
    from sklearn.utils.multiclass import type_of_target

    return bool(type_of_target(y, input_name="y") == "continuous")
