"""Matchings of two sets, learned from the features of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..features.containers import as_list
from ..problems.general.assignment import AssignmentProblem
from ..problems.general.slots import NoOutput, SlotLoss
from ..utils.schema import Count
from ..utils.types import Floats, Ints
from ..utils.validation import as_sample_weights, check_same_length
from .abilities.explanation import Evidence, Explanation, Places, column_names
from .base import MaxMarginEstimator, checked_k
from .costs import score_weights
from .examples import Outputs
from .parameters import with_inherited_parameters
from .training import Trainer, TrainingSet

__all__ = ["SetMatcher"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class SetMatcher(MaxMarginEstimator):
    """Match the items of two sets, each with one other at most, certified by a duality gap.

    Parameters
    ----------
    loss : {"hamming", "normalized_hamming", "zero_one"}, default="hamming"
        What a wrong matching costs: the number of left items with a wrong partner, their share, or
        1 if there are any.
    allow_unmatched : bool, default=False
        Whether items may stay alone. Without it there are as many pairs as the smaller set has
        items.
    fit_intercept : bool, default=True
        Add a constant feature of pairs: what a pair is worth against two items that stay alone. It
        has no effect without ``allow_unmatched``.
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_features + 1,)
        Weights of the features of pairs, and that of the constant.
    result_ : Result
        Certificate and history of the training.
    n_features_in_ : int
        Number of features of a pair.

    Notes
    -----
    The best matching is found as a linear assignment, in time cubic in the number of items. For
    slack rescaling, and for square roots of losses, the search is a branch and bound that takes
    tens of assignments. `AssignmentProblem` is the same for `StructuralSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> X = [np.array([[[1.0], [0.0]], [[0.9], [0.2]]]), np.array([[[0.1], [0.7]]])]
    >>> SetMatcher().fit(X, [[0, 1], [1]]).predict(X)
    [array([0, 1]), array([1])]
    """

    loss: SlotLoss = "hamming"
    allow_unmatched: bool = False
    fit_intercept: bool = True

    def fit(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> SetMatcher:
        """Train on matchings.

        Parameters
        ----------
        X : list of arrays of shape (n_left, n_right, n_features)
            Features of every pair of items, for each pair of sets.
        y : list of arrays of int, shape (n_left,)
            The partner of each left item, -1 for those that stay alone.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        X, y = as_list(X), as_list(y, "y")
        if len(X) == 0:
            raise ValueError("expected at least one example, found none")
        self._matcher = AssignmentProblem(
            self.loss,
            allow_unmatched=bool(self.allow_unmatched),
            fit_intercept=bool(self.fit_intercept),
        )
        problem = self._matcher.bind(X, y)
        self.n_features_in_ = int(problem.X[0].shape[2])
        weights = as_sample_weights(sample_weight)
        arrays = (*problem.X, *map(np.asarray, y))
        data = (len(X), self.loss, self.allow_unmatched, self.fit_intercept, *arrays)
        return TrainingSet(lambda: problem, data, weights)

    def predict(self, X: Sequence[Any]) -> list[Ints]:
        """Best matching of each pair of sets.

        Parameters
        ----------
        X : list of arrays of shape (n_left, n_right, n_features)
            Features of every pair of items.

        Returns
        -------
        list of ndarray of int, shape (n_left,)
            The partner of each left item, -1 for those that stay alone.
        """
        weights = self._weights
        return Outputs(self._matcher.predict(x, weights) for x in self._inputs(X))

    def predict_k(self, X: Sequence[Any], k: int) -> list[list[tuple[Ints, float]]]:
        """The k best matchings of each pair of sets, with their scores.

        Parameters
        ----------
        X : list of arrays of shape (n_left, n_right, n_features)
            Features of every pair of items.
        k : int
            How many to return for each pair of sets.

        Returns
        -------
        list of list of (partners, score)
            For each example its k matchings of the largest score ``<w, psi(x, y)>``, best first,
            each as `predict` gives it. The list is shorter where there are fewer. The search is
            exact (Murty's algorithm) and takes up to k * n_left assignments.
        """
        k, weights = checked_k(k), self._weights
        return [self._matcher.predict_k(x, weights, k) for x in self._inputs(X)]

    def _inputs(self, X: Any) -> list[Floats]:
        """Features of pairs; ValueError where they are not those of the training."""
        inputs = [self._matcher.input_of(x, f"example {i}: ") for i, x in enumerate(as_list(X))]
        for i, x in enumerate(inputs):
            if x.shape[2] != self.n_features_in_:
                raise ValueError(
                    f"example {i}: pairs have {x.shape[2]} features, but the model was trained "
                    f"with {self.n_features_in_}"
                )
        return inputs

    def explain(self, x: Any, y_hat: Any = None, *, n: int = 5) -> Explanation:
        """Why the predicted partners, and not others: the features that decided, item by item.

        Parameters
        ----------
        x : array of shape (n_left, n_right, n_features)
            One pair of sets, as in the X of `predict`.
        y_hat : array of int, shape (n_left,), optional
            Another matching, to be compared with the one predicted. By default there is a rival for
            each left item: the best matching in which it has another partner.
        n : int, default=5
            How many features the explanation shows of each decision; it has all of them.

        Returns
        -------
        Explanation
            Decisions item by item; values are differences of the features of the two pairs. With
            ``y_hat`` items with the same partner are left out.
        """
        n, weights = checked_k(n, "n"), self._weights
        (own,), matcher = self.predict([x]), self._matcher
        given = matcher.input_of(x)
        # Of an item alone all features are 0, the constant one too.
        features = np.ones((*given.shape[:2], len(weights)))
        features[:, :, : self.n_features_in_] = given
        features = np.concatenate([features, np.zeros((len(given), 1, len(weights)))], axis=1)
        names = column_names(self, np.arange(len(weights)))

        def evidence(rival: Ints) -> list[Evidence]:
            return [
                Evidence(names[f], item, float(change[f]), float(weights[f]))
                for item in np.flatnonzero(own != rival).tolist()
                for change in [features[item, own[item]] - features[item, rival[item]]]
                for f in np.flatnonzero(change).tolist()
            ]

        places = Places(own, own.tolist(), lambda item: f"item {item}", evidence)
        if y_hat is not None:
            matcher.check_output(given, y_hat, "y_hat: ")
            rival = np.asarray(y_hat, np.int64)
            return places.against(rival, rival, rival.tolist(), n)
        table = matcher.scores_of(given, weights)

        def rival_at(item: int) -> tuple[int, Ints] | None:
            bonus = np.zeros(matcher.shape_of(given))
            bonus[item, own[item]] = -np.inf  # the last one, -1, is to have none
            try:
                rival = matcher.output_of(given, table.best(bonus))
            except NoOutput:
                return None
            return int(rival[item]), rival

        return places.one_by_one(map(rival_at, range(len(own))), n)

    def score(
        self, X: Sequence[Any], y: Sequence[Any], sample_weight: ArrayLike | None = None
    ) -> float:
        """Share of the left items whose partner is right, of all examples together.

        Parameters
        ----------
        X : list of arrays of shape (n_left, n_right, n_features)
            Features of every pair of items.
        y : list of arrays of int, shape (n_left,)
            True partners.
        sample_weight : array of shape (n_examples,), optional
            What the items of each example count.

        Returns
        -------
        float
        """
        X, y = as_list(X), as_list(y, "y")
        check_same_length(len(X), len(y))
        right: list[Floats] = []
        for i, (x, found, true) in enumerate(zip(X, self.predict(X), y, strict=True)):
            self._matcher.check_output(np.asarray(x), true, f"example {i}: ")
            right.append((found == np.asarray(true)).astype(np.float64))
        weights = score_weights(sample_weight, len(right))
        total = float(weights @ np.array([len(items) for items in right]))
        if total == 0.0:
            return 1.0
        return float(weights @ np.array([items.sum() for items in right])) / total

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> MatcherState:
        """See `Savable`."""
        matcher = self._matcher
        return MatcherState(self.n_features_in_, matcher.allow_unmatched, matcher.fit_intercept)

    def _set_state(self, state: MatcherState) -> None:
        """See `Savable`."""
        self.n_features_in_ = state.n_features
        self._matcher = AssignmentProblem(
            self.loss, allow_unmatched=state.partial, fit_intercept=state.fit_intercept
        )

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self.n_features_in_ + int(self._matcher.fit_intercept)


class MatcherState(NamedTuple):
    """What a file keeps of a matcher."""

    n_features: Count
    partial: bool
    fit_intercept: bool
