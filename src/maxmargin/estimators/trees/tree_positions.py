"""Trees whose nodes are parts of images: their training, and where they are found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.problem import Problem
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
from ...utils.sparse_format import check_sparse
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import as_floats, as_real_numbers, first_unusable, is_at_least, unusable
from ..abilities.partial_labels import allowed_pixels, flatten_fixed
from ..inputs.labels import Wording
from .tree_labels import Prepared, given_edges

__all__ = ["PARTS", "PartPositions", "prepare_positions"]

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
