"""Trees whose nodes are parts of images: their training, and where they are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.problem import Problem
from ...features.containers import as_list
from ...problems.tree.grid_parts import (
    Choices,
    GridLayout,
    GridPartsProblem,
    Maps,
    find_parts,
    pack_maps,
    rank_parts,
)
from ...problems.tree.labels import root_tree
from ...problems.tree.partial import PartialParts
from ...problems.tree.problem import scale_offsets, tree_of_positions
from ...solvers.base import checked_weights
from ...utils.sparse_format import check_sparse
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import (
    as_floats,
    as_real_numbers,
    as_sample_weights,
    first_unusable,
    is_at_least,
    unusable,
)
from ..abilities.partial_labels import (
    PartialLabels,
    allowed_pixels,
    check_something_known,
    flatten_fixed,
)
from ..base import MaxMarginEstimator, checked_k
from ..costs import score_weights
from ..examples import Wording, materialize
from ..parameters import with_inherited_parameters
from ..training import Trainer, TrainingSet
from .tree_labels import Prepared, edges_of, given_edges

__all__ = ["PARTS", "PartLocator", "PartPositions", "prepare_positions"]


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


LARGEST_PATCH = 2**15  # whose weights can be counted
PARTS = Wording("image", "part", "position")


class PartPositions(NamedTuple):
    """What a model of parts knows but its weights."""

    layout: GridLayout

    def predict(self, X: Any, w: Floats, fixed: Any, n_jobs: int | None) -> Ints:
        """Best positions of all parts."""
        maps = self._maps(X)
        return find_parts(maps, self.layout, w, self._choices(fixed, maps), n_jobs)

    def rank(self, X: Any, w: Floats, k: int, fixed: Any) -> list[tuple[Ints, Floats]]:
        """The k best sets of positions of each image, with their scores."""
        maps = self._maps(X)
        return rank_parts(maps, self.layout, w, k, self._choices(fixed, maps))

    def losses(self, found: Ints, X: Any, y: Any, size: Any) -> Floats:
        """Mean deviation in per cent of the size, of each image."""
        gold = as_positions(y, len(found))
        if gold.shape != found.shape:
            raise ValueError(f"y has shape {gold.shape}; expected {found.shape}")
        grids = np.array([np.shape(image)[:2] for image in X])
        far = np.sqrt(((found - gold) ** 2).sum(axis=2)).mean(axis=1)
        return 100.0 * far / _sizes(size, gold, grids)

    def _maps(self, X: Any) -> Maps:
        """New images, packed."""
        return pack_maps(as_images(X, self.layout.channels), self.layout.patch)

    def _choices(self, fixed: Any, maps: Maps) -> Choices | None:
        """Where parts may be, if anything is known of them."""
        if fixed is None:
            return None
        offsets = len(self.layout.parent) * np.arange(len(maps.grids) + 1)
        return allowed_pixels(flatten_fixed(fixed, offsets, PARTS), maps.grids)


def prepare_positions(estimator: Any, X: Any, y: Any) -> tuple[PartPositions, Prepared]:
    """The model, and what it is trained on."""
    patch = estimator.patch
    is_whole = is_at_least(patch, 1) and int(patch) == patch
    if isinstance(patch, bool) or not is_whole or patch > LARGEST_PATCH:
        raise ValueError(f"patch must be a whole number from 1 to {LARGEST_PATCH}, got {patch!r}")
    images = as_images(X, None)
    positions, known = known_positions(y, len(images))
    tree = estimator.tree
    edges = tree_of_positions(positions, known) if tree is None else given_edges(tree)
    parent, order = root_tree(positions.shape[1], edges)
    scale, channels = scale_offsets(positions, parent, known), images[0].shape[2]
    layout = GridLayout(parent, order, int(patch), channels, *scale)
    maps = pack_maps(images, int(patch))
    sizes = _sizes(estimator.size, positions, maps.grids)
    loss: Any = estimator.loss

    def make_problem() -> Problem:
        return GridPartsProblem(maps, positions, layout, sizes=sizes, loss=loss)

    def make_partial() -> PartialParts:
        inside = np.minimum(positions, maps.grids[:, None, :] - 1)  # of images that differ
        places = np.where(known[:, :, None], positions, inside)
        problem = GridPartsProblem(maps, places, layout, sizes=sizes, loss=loss, known=known)
        return PartialParts(problem)

    data = (maps.values, maps.grids, positions, parent, patch, sizes, loss)
    prepared = Prepared(make_problem, data, None if known.all() else make_partial)
    return PartPositions(layout), prepared


def _sizes(size: Any, positions: Ints, grids: Ints) -> Floats:
    """What 100 per cent of deviation are in each image."""
    if size is None:
        return grids.max(axis=1).astype(np.float64)
    if isinstance(size, (tuple, list)):
        if [is_at_least(node, 0) for node in size] != [True, True]:
            raise ValueError(f"size must be two nodes or a number, got {size!r:.60}")
        a, b = (int(node) for node in size)
        if not (0 <= a < positions.shape[1] and 0 <= b < positions.shape[1]):
            raise ValueError(f"size names nodes {a} and {b} of {positions.shape[1]}")
        return np.sqrt(((positions[:, a] - positions[:, b]) ** 2).sum(axis=1))
    if not is_at_least(size, 0):
        raise ValueError(f"size must be two nodes or a positive number, got {size!r:.60}")
    return np.full(len(positions), float(size))


def as_images(X: Any, channels: int | None) -> list[NDArray[Any]]:
    """Images of shape (height, width, channels), all finite."""
    check_sparse(X, "X")
    images = []
    for i, image in enumerate(X):
        array = as_real_numbers(image, f"image {i}")
        array = array[:, :, None] if array.ndim == 2 else array
        channels = array.shape[-1] if channels is None and array.ndim else channels
        if array.ndim != 3 or 0 in array.shape or array.shape[2] != channels:
            raise ValueError(
                f"image {i} has shape {np.shape(image)}; expected (height, width) or "
                f"(height, width, channels), with {channels} channels"
            )
        bad = first_unusable(array)
        if bad is not None:
            raise ValueError(f"image {i} has {unusable(array.ravel()[bad])}")
        images.append(array)
    if not images:
        raise ValueError("expected at least one image, found none")
    return images


def known_positions(y: Any, n: int) -> tuple[Ints, Bools]:
    """Positions as `as_positions` gives them, and which of them are known: others are None.

    In their place stands the mean of those known of the same part.
    """
    if isinstance(y, np.ndarray) and y.dtype != object:
        positions = as_positions(y, n)
        return positions, np.ones(positions.shape[:2], dtype=bool)
    rows = [list(row) for row in y]
    given = [[place is not None for place in row] for row in rows]
    if all(map(all, given)):
        positions = as_positions(rows, n)
        return positions, np.ones(positions.shape[:2], dtype=bool)
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise ValueError(f"y[{i}] has {len(row)} positions, but y[0] has {len(rows[0])}")
    known = np.array(given, dtype=bool)
    never = np.flatnonzero(~known.any(axis=0))
    if len(never):
        raise ValueError(f"part {never[0]} has no known position: in all images it is None")
    filled = [[(0, 0) if place is None else place for place in row] for row in rows]
    positions = as_positions(filled, n)
    for v in range(known.shape[1]):
        mean = positions[known[:, v], v].mean(axis=0)
        positions[~known[:, v], v] = np.rint(mean).astype(np.int64)
    return positions, known


def as_positions(y: Any, n: int) -> Ints:
    """Whole rows and columns, shape (n_examples, n_nodes, 2)."""
    array = as_floats(y, "positions")
    if array.ndim != 3 or array.shape[0] != n or array.shape[2] != 2 or array.shape[1] == 0:
        raise ValueError(f"y has shape {array.shape}; expected ({n}, n_nodes, 2)")
    if not np.isfinite(array).all():
        raise ValueError(f"y[{int(np.argwhere(~np.isfinite(array))[0][0])}] is not finite")
    return np.rint(array).astype(np.int64)
