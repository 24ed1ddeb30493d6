"""Parts at positions of an image: templates for their looks, quadratic deformation along a tree.

Each node of the tree is a part whose label is a pixel of the image. Joint features, in this order:
for each part the patch around its position (``w[((v * channels + c) * patch + dy) * patch + dx]``),
then for each part but the root four features of its offset d from its parent,

    u_y, u_y^2, u_x, u_x^2,    u = (d - anchor) / spread,

rows before columns. Anchors and spreads only scale the features; the weights decide where a part is
expected and how firmly. The loss is the mean distance between true and found positions, in per cent
of the size of the example (Franc 2014, LANDMARK), or counts wrong positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.cutting_planes import Planes, empty_planes
from ...engine.packed_problem import chunks_of
from ...engine.parallel.threads import each_range
from ...search.limits import as_weights
from ...search.modes import SearchMode
from ...utils.types import Bools, Floats, Ints
from ...utils.validation import check_choice
from .grid_parts_kernels import (
    add_part_losses,
    decode_parts,
    part_scores,
    parts_oracle,
    write_block_rows,
)
from .kernels import LabellingScratch, TreeShape, rank_labellings
from .labels import check_tree
from .problem import TreeProblem, make_work

__all__ = [
    "Choices",
    "GridLayout",
    "GridPartsProblem",
    "Maps",
    "find_parts",
    "pack_maps",
    "rank_parts",
]

#: For each example and part the pixels it may be at, shape (n, 2), or None for all.
Choices = Sequence[Sequence[Ints | None]]
GridLoss = Literal["deviation", "hamming", "normalized_hamming", "zero_one"]
LOSSES = ("deviation", "hamming", "normalized_hamming", "zero_one")


class Maps(NamedTuple):
    """Images of any sizes, padded so that every pixel has a patch, channel by channel, flat."""

    values: Floats
    offsets: Ints
    grids: Ints
    patch: int
    channels: int


def pack_maps(images: Sequence[NDArray[Any]], patch: int) -> Maps:
    """Pack images of shape (height, width, channels); their margins are repeated outwards."""
    grids = np.array([image.shape[:2] for image in images], np.int64).reshape(-1, 2)
    n_channels = images[0].shape[2] if len(images) else 1
    sizes = (grids + patch - 1).prod(axis=1) * n_channels
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = np.empty(offsets[-1])
    for image, start, end in zip(images, offsets[:-1], offsets[1:], strict=True):
        values[start:end] = _with_margins(image, patch).transpose(2, 0, 1).ravel()
    return Maps(values, offsets, grids, patch, n_channels)


def _with_margins(image: NDArray[Any], patch: int) -> NDArray[Any]:
    """An image with its margins repeated outwards; `np.pad` takes several times as long."""
    before, after = patch // 2, patch - 1 - patch // 2
    rows, columns = (np.arange(-before, n + after).clip(0, n - 1) for n in image.shape[:2])
    return image[rows[:, None], columns]


class GridLayout(NamedTuple):
    """The tree of parts, the size of their templates, and the scale of their offsets."""

    parent: Ints
    order: Ints
    patch: int
    channels: int
    anchors: Floats
    spreads: Floats

    def check(self) -> None:
        """Raise ValueError for what is no tree of parts with offsets."""
        check_tree(self.parent, self.order)
        if self.patch < 1 or self.channels < 1:
            raise ValueError(f"templates of {self.patch} pixels and {self.channels} channels")
        for offsets in (self.anchors, self.spreads):
            if offsets.shape != (len(self.parent), 2) or not np.isfinite(offsets).all():
                raise ValueError(f"scales of offsets of shape {offsets.shape}")
        if not (self.spreads > 0.0).all():
            raise ValueError("spreads that are not positive")

    @property
    def template_size(self) -> int:
        """Weights of a part's template."""
        return self.channels * self.patch * self.patch

    @property
    def size(self) -> int:
        """Number of weights."""
        V = len(self.parent)
        return V * self.template_size + 4 * (V - 1)

    @property
    def shape(self) -> TreeShape:
        """The tree, for the kernels."""
        return TreeShape(self.parent, self.order, np.zeros(len(self.parent), np.int64), True)

    def templates(self, w: Floats) -> Floats:
        """View of the templates, shape (n_parts, channels, patch, patch)."""
        V = len(self.parent)
        shape = (V, self.channels, self.patch, self.patch)
        return w[: V * self.template_size].reshape(shape)

    def deformations(self, w: Floats) -> Floats:
        """(a_y, b_y, a_x, b_x, constant) of each part: a quadratic function of its offset."""
        found = np.zeros((len(self.parent), 5))
        weights = w[len(self.parent) * self.template_size :].reshape(-1, 2, 2)
        inner = self.parent >= 0
        linear, square = weights[:, :, 0], weights[:, :, 1]
        anchors, spreads = self.anchors[inner], self.spreads[inner]
        a = square / spreads**2
        found[inner, 0:4:2] = a
        found[inner, 1:4:2] = linear / spreads - 2.0 * a * anchors
        found[inner, 4] = (a * anchors**2 - linear * anchors / spreads).sum(axis=1)
        return found

    def work(self, grids: Ints, w: Floats, n_error_counts: int = 0) -> LabellingScratch:
        """Work arrays for grids of these sizes, with the deformations at ``w``."""
        V = len(self.parent)
        most = int(grids.prod(axis=1).max(initial=1))
        side = int(grids.max(initial=1))
        work = make_work(np.zeros(V, np.int64), most, 0, side, n_error_counts)
        work.deformation[:] = self.deformations(w)
        return work


class TrueParts(NamedTuple):
    """True pixels of the parts, and what other pixels cost.

    ``shares[i]`` is the loss of a distance of 1 (``deviation``) or of a wrong position; all losses
    count as 1 if ``zero_one``. Anchors and spreads are those of the layout.
    """

    labels: Ints
    shares: Floats
    anchors: Floats
    spreads: Floats
    deviation: bool
    zero_one: bool
    known: Bools  # of those that are not, every pixel is right


class Positions(NamedTuple):
    """Rows and columns of the parts, and what an error, or a distance of 1, costs in the image."""

    pixels: Ints
    share: float = 0.0


class PartScores:
    """Potentials of the parts in images; see `TreeScores`."""

    def __init__(self, maps: Maps, layout: GridLayout, examples: Ints, w: Floats) -> None:
        self.maps, self.w = maps, w
        self.work = layout.work(maps.grids[examples], w)
        self.strip = _strip(maps, examples)

    def fill(self, i: int) -> LabellingScratch:
        """See `TreeScores`."""
        part_scores(self.maps, i, self.w, self.strip, self.work)
        return self.work


class GridPartsProblem(TreeProblem):
    """Positions of parts in images, with exact oracles for every rescaling.

    Slack rescaling and square-root losses need the best positions for each value of the loss. There
    are few values where wrong positions are counted; for the mean deviation the search is that of
    `bounded_search`, some tens of ordinary searches for each image.

    Parameters
    ----------
    maps : Maps
        The images.
    positions : array of int, shape (n_examples, n_parts, 2)
        True rows and columns.
    layout : GridLayout
        The tree and the templates.
    sizes : array of shape (n_examples,), optional
        What 100 per cent of deviation are, in pixels; by default the longer side of the image.
    loss : {"deviation", "hamming", "normalized_hamming", "zero_one"}
        Mean distance in per cent of the size, number of wrong positions, their share, or 1 if any
        is wrong.
    known : array of bool, shape (n_examples, n_parts), optional
        Parts whose position is known, by default all; of others every one is right.
    """

    loss_name: GridLoss

    def __init__(
        self,
        maps: Maps,
        positions: ArrayLike,
        layout: GridLayout,
        *,
        sizes: ArrayLike | None = None,
        loss: GridLoss = "deviation",
        known: Bools | None = None,
    ) -> None:
        check_choice(loss, LOSSES, "loss")
        n, V = len(maps.grids), len(layout.parent)
        found = np.asarray(positions, dtype=np.int64)
        if found.shape != (n, V, 2):
            raise ValueError(f"positions has shape {found.shape}; expected {(n, V, 2)}")
        outside = ((found < 0) | (found >= maps.grids[:, None, :])).any(axis=2)
        if outside.any():
            i, v = (int(k) for k in np.argwhere(outside)[0])
            raise ValueError(
                f"part {v} of example {i} is at {tuple(found[i, v].tolist())}, outside the image "
                f"of {maps.grids[i, 0]} x {maps.grids[i, 1]} pixels"
            )
        given = maps.grids.max(axis=1, initial=1) if sizes is None else sizes
        self.sizes = np.array(np.broadcast_to(np.asarray(given, np.float64), (n,)))
        bad = np.flatnonzero(~(self.sizes > 0) | ~np.isfinite(self.sizes))
        if len(bad):
            raise ValueError(f"the size of example {bad[0]} is {self.sizes[bad[0]]}; expected > 0")
        self.maps, self.layout, self.loss_name = maps, layout, loss
        self.labels = found[:, :, 0] * maps.grids[:, 1:] + found[:, :, 1]
        self.n_features = layout.size
        self.shape = layout.shape
        self.counts_errors = loss != "deviation"
        unit = 1.0 / V if loss == "normalized_hamming" else 1.0
        self.true_parts = TrueParts(
            self.labels,
            100.0 / (V * self.sizes) if loss == "deviation" else np.full(n, unit),
            layout.anchors,
            layout.spreads,
            loss == "deviation",
            loss == "zero_one",
            np.ones((n, V), bool) if known is None else np.ascontiguousarray(known, bool),
        )
        if known is not None:  # errors of other parts are not counted
            self.has_free_labels, self.counts_errors = True, False

    def subset(self, indices: Ints) -> GridPartsProblem:
        """See `Problem.subset`."""
        values, offsets = chunks_of(self.maps.offsets, indices)
        grids, labels = self.maps.grids[indices], self.labels[indices]
        maps = self.maps._replace(values=self.maps.values[values], offsets=offsets, grids=grids)
        positions = as_pixels(labels, grids)
        known = self.true_parts.known[indices] if self.has_free_labels else None
        return GridPartsProblem(
            maps,
            positions,
            self.layout,
            sizes=self.sizes[indices],
            loss=self.loss_name,
            known=known,
        )

    def input_of(self, i: int) -> Maps:
        """Image i alone."""
        own = slice(self.maps.offsets[i], self.maps.offsets[i + 1])
        return self.maps._replace(
            values=self.maps.values[own],
            offsets=np.array([0, own.stop - own.start]),
            grids=self.maps.grids[i : i + 1],
        )

    def output_of(self, i: int) -> Positions:
        """Gold positions of the parts in image i, and what an error costs there."""
        width = self.maps.grids[i, 1]
        pixels = np.stack([self.labels[i] // width, self.labels[i] % width], axis=1)
        return Positions(pixels, float(self.true_parts.shares[i]))

    def joint_feature(self, x: Any, y: Any) -> Floats:
        """See `Problem.joint_feature`, and the module for the order of the features."""
        patch, layout = x.patch, self.layout
        height, width = x.grids[0]
        image = x.values.reshape(x.channels, height + patch - 1, width + patch - 1)
        templates = [image[:, r : r + patch, c : c + patch].ravel() for r, c in y.pixels]
        inner = layout.parent >= 0
        offsets = y.pixels[inner] - y.pixels[layout.parent[inner]]
        u = (offsets - layout.anchors[inner]) / layout.spreads[inner]
        return np.concatenate([*templates, np.stack([u, u * u], axis=2).ravel()])

    def loss(self, y: Any, y_hat: Any) -> float:
        """Mean distance, wrong positions, their share, or whether there are any."""
        if self.has_free_labels:
            raise ValueError("which positions count depends on the example, not on true ones")
        far = np.hypot(*(y.pixels - y_hat.pixels).T)
        errors = far if self.true_parts.deviation else (far > 0).astype(np.float64)
        return float((far > 0).any() if self.true_parts.zero_one else y.share * errors.sum())

    def predict(self, x: Any, w: Floats) -> Positions:
        """Best positions of the parts; see `Problem.predict`."""
        return Positions(find_parts(x, self.layout, w)[0])

    def scores(self, examples: Ints, w: Floats) -> PartScores:
        """See `TreeProblem`."""
        return PartScores(self.maps, self.layout, examples, w)

    def node_losses(self, i: int) -> Floats:
        """See `TreeProblem`."""
        grid, gold = self.maps.grids[i], self.true_parts
        losses = np.zeros((len(self.layout.parent), grid.prod()))
        known, share = gold.known[i], gold.shares[i]
        add_part_losses(self.labels[i], known, grid, share, gold.deviation, losses)
        return losses

    def search(self, examples: Ints, w: Floats, mode: SearchMode, n_error_counts: int) -> Planes:
        """See `TreeProblem`."""
        out = self.allocate(examples)
        parts_oracle(
            self.shape,
            self.maps,
            self.true_parts,
            examples,
            w,
            mode,
            _strip(self.maps, examples),
            self.layout.work(self.maps.grids[examples], w, n_error_counts),
            np.empty((len(examples), len(self.layout.parent)), np.int64),
            out,
        )
        return out

    def write(self, examples: Ints, found: Ints) -> Planes:
        """See `TreeProblem`."""
        out = self.allocate(examples)
        write_block_rows(self.shape, self.maps, self.true_parts, examples, found, out)
        return out

    def allocate(self, examples: Ints) -> Planes:
        """Arrays for a row of each of these examples."""
        return empty_planes(len(examples), len(examples) * self.layout.size)


def find_parts(
    maps: Maps,
    layout: GridLayout,
    w: Floats,
    choices: Choices | None = None,
    n_jobs: int | None = None,
) -> Ints:
    """Best positions in every image, shape (n_examples, n_parts, 2)."""
    if choices is not None:
        return np.array([best[0] for best, _ in rank_parts(maps, layout, w, 1, choices)])
    w = as_weights(w, layout.size)
    n, V = len(maps.grids), len(layout.parent)
    labels = np.empty((n, V), np.int64)

    def decode(first: int, end: int) -> None:
        grids = maps.grids[first:end]
        own = maps._replace(offsets=maps.offsets[first : end + 1], grids=grids)
        strip = _strip(maps, np.arange(first, end))
        decode_parts(layout.shape, own, w, strip, layout.work(grids, w), labels[first:end])

    each_range(n_jobs, maps.offsets, float(V * maps.patch**2), decode)
    return as_pixels(labels, maps.grids)


def as_pixels(labels: Ints, grids: Ints) -> Ints:
    """Rows and columns of pixel numbers (n_examples, n_parts), shape (n_examples, n_parts, 2)."""
    widths = grids[:, 1:]
    return np.stack([labels // widths, labels % widths], axis=2)


def rank_parts(
    maps: Maps, layout: GridLayout, w: Floats, k: int, choices: Choices | None = None
) -> list[tuple[Ints, Floats]]:
    """The k best sets of positions in every image, (at most k, n_parts, 2), and their scores."""
    w = as_weights(w, layout.size)
    scores = PartScores(maps, layout, np.arange(len(maps.grids)), w)
    answers = []
    for i, width in enumerate(maps.grids[:, 1].tolist()):
        work = scores.fill(i)
        for v, pixels in enumerate(choices[i] if choices is not None else ()):
            if pixels is not None:
                own = work.unary[v]
                places = pixels[:, 0] * width + pixels[:, 1]
                kept = own[places]
                own[:] = -np.inf
                own[places] = kept
        labels, values = rank_labellings(layout.shape, work, k)
        answers.append((np.stack([labels // width, labels % width], axis=2), values))
    return answers


def _strip(maps: Maps, examples: Ints) -> Floats:
    """Work array for the scores of the largest of these images, with their padding."""
    grids = maps.grids[examples]
    return np.empty(int((grids[:, 0] * (grids[:, 1] + maps.patch - 1)).max(initial=1)))
