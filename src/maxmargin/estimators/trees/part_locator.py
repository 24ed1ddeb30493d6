"""Positions of the parts of an object in images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...features.containers import as_list
from ...problems.tree.grid_parts import GridLayout
from ...solvers.base import checked_weights
from ...utils.types import Floats, Ints
from ...utils.validation import as_sample_weights
from ..abilities.partial_labels import PartialLabels, check_something_known
from ..base import MaxMarginEstimator, checked_k
from ..inputs.costs import score_weights
from ..inputs.examples import materialize
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .tree_labels import edges_of
from .tree_positions import PARTS, PartPositions, prepare_positions

__all__ = ["PartLocator"]


@with_inherited_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class PartLocator(PartialLabels, MaxMarginEstimator):
    """Positions of parts in images, certified by a duality gap; the search is exact.

    Every part has a template for the patch around it and a quadratic cost of its displacement from
    where its parent in a tree expects it. The best positions are found in time linear in the
    pixels.

    Parameters
    ----------
    tree : sequence of pairs of parts, optional
        Edges of the tree. By default it is learned: the one whose offsets vary least.
    loss : {"deviation", "hamming", "normalized_hamming", "zero_one"}, default="deviation"
        The mean distance from the true positions in per cent of the size, the number of wrong
        parts, their fraction, or 1 if any is wrong. All go with every rescaling; for "deviation"
        slack rescaling and square roots take some tens of searches for each image.
    patch : int, default=9
        Rows and columns of a part's template.
    size : float or pair of parts, optional
        What 100 per cent of deviation are, in pixels, or two parts whose true distance it is. By
        default the longer side of the image.
    {parameters of PartialLabels}
    {parameters of MaxMarginEstimator}

    Attributes
    ----------
    tree_ : list of pairs of int
        Edges, the parent first; part 0 is the root.
    templates_ : ndarray of shape (n_parts, channels, patch, patch)
        The templates of the parts.
    coef_ : ndarray
        All weights; see `maxmargin.problems.tree.grid_parts`.
    result_ : Result
        Certificate and history of the training.
    rounds_ : list of Round
        Objectives and gaps of the rounds, if some positions were not known.

    Examples
    --------
    >>> from maxmargin.datasets import make_faces
    >>> faces = make_faces(n_train=20, n_test=5, size=20)
    >>> locator = PartLocator(patch=5, C=0.01, tol=0.05, random_state=0)
    >>> locator.fit(faces.X_train, faces.y_train).predict(faces.X_test).shape
    (5, 8, 2)
    """

    tree: Sequence[tuple[int, int]] | None = None
    loss: Literal["deviation", "hamming", "normalized_hamming", "zero_one"] = "deviation"
    patch: int = 9
    size: float | tuple[int, int] | None = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> PartLocator:
        """Train on images with the positions of their parts.

        Parameters
        ----------
        X : array or list
            Images of shape (height, width) or (height, width, channels).
        y : array of shape (n_examples, n_parts, 2)
            Row and column of every part, rounded to whole pixels. In a list of lists, None instead
            of a position says that it is not known; see ``partial_labels``.
        sample_weight : array of shape (n_examples,), optional
            Multiplies each example's slack.

        Returns
        -------
        self
        """
        return Trainer(self).fit(X, y, sample_weight=sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: Any = None) -> TrainingSet:
        """See `MaxMarginEstimator`."""
        self._check_partial()
        weights = as_sample_weights(sample_weight)
        self._model, made = prepare_positions(self, materialize(X), materialize(y))
        if made.make_partial is None:
            return TrainingSet(made.make_problem, made.data, weights)
        partial = made.make_partial()
        check_something_known(partial.says_something, PARTS)
        weights = checked_weights(weights, partial.n_examples) * partial.says_something
        return TrainingSet(lambda: partial, sample_weight=weights, is_partial=True)

    def predict(self, X: Any, fixed: Any = None) -> Ints:
        """Best positions of all parts.

        Parameters
        ----------
        X : array or list
            Images, as for `fit`.
        fixed : list, optional
            What is known already: for each part of each image None (nothing), its position (row,
            column), or a set of those it may have. None instead of an image says that nothing is
            known of it. What is found is the best of all that agrees with it.

        Returns
        -------
        ndarray of shape (n_examples, n_parts, 2)
        """
        weights = self._weights
        return self._model.predict(X, weights, fixed, self.n_jobs)

    def predict_k(self, X: Any, k: int, fixed: Any = None) -> list[list[tuple[Ints, float]]]:
        """The k best sets of positions of each image, with their scores.

        Parameters
        ----------
        X : array or list
            Images, as for `fit`.
        k : int
            How many to return for each image.
        fixed : list, optional
            What is known already, as for `predict`.

        Returns
        -------
        list of list of (positions, score)
            For each image its k sets of positions of the largest score ``<w, psi(x, y)>``, best
            first, as arrays of shape (n_parts, 2). The list is shorter where there are fewer.
        """
        k, weights = checked_k(k), self._weights
        ranked = self._model.rank(X, weights, k, fixed)
        return [list(zip(outputs, scores.tolist(), strict=True)) for outputs, scores in ranked]

    def losses(self, X: Any, y: Any) -> Floats:
        """Mean deviation of each prediction, in per cent of the size.

        Parameters
        ----------
        X : array or list
            Images, as for `fit`.
        y : array of shape (n_examples, n_parts, 2)
            True positions.

        Returns
        -------
        ndarray of shape (n_examples,)
        """
        X = as_list(X)
        return self._model.losses(self.predict(X), X, y, self.size)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Minus the mean deviation, in per cent of the size: 0 is the best.

        Parameters
        ----------
        X : array or list
            Images, as for `fit`.
        y : array of shape (n_examples, n_parts, 2)
            True positions.
        sample_weight : array of shape (n_examples,), optional
            Weights of the images.

        Returns
        -------
        float
        """
        losses = self.losses(X, y)
        return -float(np.average(losses, weights=score_weights(sample_weight, len(losses))))

    @property
    def tree_(self) -> list[tuple[int, int]]:
        """Edges of the tree, the parent first."""
        return edges_of(self._model.layout.parent)

    @property
    def templates_(self) -> Floats:
        """Templates of the parts."""
        return self._model.layout.templates(self._weights).copy()

    # ----- persistence --------------------------------------------------------------------------

    def _get_state(self) -> LocatorState:
        """See `Savable`."""
        return LocatorState(self._model.layout)

    def _set_state(self, state: LocatorState) -> None:
        """See `Savable`."""
        state.layout.check()
        self._model = PartPositions(state.layout)

    def _n_weights(self) -> int:
        """See `Savable`."""
        return self._model.layout.size


class LocatorState(NamedTuple):
    """What a file keeps of a model."""

    layout: GridLayout
