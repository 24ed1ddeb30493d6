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

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._jit import kernel
from ..formulation import Rescaling
from ..problem import Planes, Problem
from .tree import levels_of, make_work, search_mode
from .tree_kernels import ADDITIVE, TreeShape, TreeWork, best_labelling, search_tree

__all__ = ["GridLayout", "GridPartsProblem", "Maps", "find_parts", "pack_maps"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GridLoss = Literal["deviation", "hamming", "normalized-hamming", "zero-one"]
LOSSES = ("deviation", "hamming", "normalized-hamming", "zero-one")


class Maps(NamedTuple):
    """Images of any sizes, padded so that every pixel has a patch, channel by channel, flat."""

    values: Floats
    offsets: Ints
    grids: Ints
    patch: int
    channels: int


def pack_maps(images: list[NDArray[np.float64]], patch: int) -> Maps:
    """Pack images of shape (height, width, channels); their margins are repeated outwards."""
    before, after = patch // 2, patch - 1 - patch // 2
    around = ((before, after), (before, after), (0, 0))
    padded = [
        np.ascontiguousarray(np.pad(image, around, mode="edge").transpose(2, 0, 1), np.float64)
        for image in images
    ]
    offsets = np.concatenate([[0], np.cumsum([image.size for image in padded])]).astype(np.int64)
    grids = np.array([image.shape[:2] for image in images], np.int64).reshape(-1, 2)
    values = np.concatenate([image.ravel() for image in padded]) if padded else np.empty(0)
    return Maps(values, offsets, grids, patch, padded[0].shape[0] if padded else 1)


class GridLayout(NamedTuple):
    """The tree of parts, the size of their templates, and the scale of their offsets."""

    parent: Ints
    order: Ints
    patch: int
    channels: int
    anchors: Floats
    spreads: Floats

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

    def work(self, grids: Ints, w: Floats, n_levels: int = 0) -> TreeWork:
        """Work arrays for grids of these sizes, with the deformations at ``w``."""
        V = len(self.parent)
        most = int(grids.prod(axis=1).max(initial=1))
        side = int(grids.max(initial=1))
        work = make_work(np.zeros(V, np.int64), most, 0, side, n_levels)
        work.deformation[:] = self.deformations(w)
        return work


class GridPartsProblem(Problem):
    """Positions of parts in images.

    Margin rescaling is exact for every loss. Slack rescaling and square-root losses need the best
    positions for each value of the loss: they are exact for the losses that count wrong positions,
    and refused for the mean deviation.

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
    loss : {"deviation", "hamming", "normalized-hamming", "zero-one"}
        Mean distance in per cent of the size, number of wrong positions, their share, or 1 if any
        is wrong.
    """

    trusted = True

    def __init__(
        self,
        maps: Maps,
        positions: ArrayLike,
        layout: GridLayout,
        *,
        sizes: ArrayLike | None = None,
        loss: GridLoss = "deviation",
    ) -> None:
        if loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, LOSSES))}, got {loss!r}")
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
        self.unit = 1.0 / V if loss == "normalized-hamming" else 1.0

    @property
    def n_examples(self) -> int:
        """Number of images."""
        return len(self.labels)

    def oracle(
        self,
        indices: Ints,
        w: Floats,
        rescaling: Rescaling = "margin",
        sqrt_loss: bool = False,
    ) -> Planes:
        """Most violated positions in each listed image; see `Problem.oracle`."""
        if self.loss_name == "deviation" and (
            rescaling == "slack" or (rescaling == "margin" and sqrt_loss)
        ):
            raise ValueError(
                "the oracle for the mean deviation is exact with margin rescaling of the plain "
                "loss, or without rescaling; for slack rescaling or the square root of the loss "
                "(the default of slack='l2'; sqrt_loss=False turns it off) use loss='hamming', "
                "'normalized-hamming' or 'zero-one'"
            )
        examples = np.ascontiguousarray(indices, dtype=np.int64)
        mode = search_mode(self.loss_name, rescaling, sqrt_loss)
        V = len(self.layout.parent)
        work = self.layout.work(self.maps.grids[examples], w, levels_of(mode, V))
        capacity = len(examples) * (V * self.layout.template_size + 4 * (V - 1))
        out = Planes(
            np.empty(len(examples) + 1, np.int64),
            np.empty(capacity, np.int32),
            np.empty(capacity),
            np.empty(len(examples)),
        )
        parts_oracle(
            self.layout.shape,
            self.maps,
            self.labels,
            self.sizes,
            self.layout.anchors,
            self.layout.spreads,
            examples,
            w,
            mode,
            self.unit,
            self.loss_name == "deviation",
            rescaling == "slack",
            sqrt_loss,
            self.loss_name == "zero-one",
            _strip(self.maps, examples),
            work,
            out,
        )
        filled = out.indptr[-1]
        return Planes(out.indptr, out.indices[:filled], out.values[:filled], out.losses)


def find_parts(maps: Maps, layout: GridLayout, w: Floats) -> Ints:
    """Best positions in every image, shape (n_examples, n_parts, 2)."""
    n, V = len(maps.grids), len(layout.parent)
    labels = np.empty((n, V), np.int64)
    work = layout.work(maps.grids, w)
    decode_parts(layout.shape, maps, w, _strip(maps, np.arange(n)), work, labels)
    widths = maps.grids[:, 1:]
    return np.stack([labels // widths, labels % widths], axis=2)


def _strip(maps: Maps, examples: Ints) -> Floats:
    """Work array for the scores of the largest of these images, with their padding."""
    grids = maps.grids[examples]
    return np.empty(int((grids[:, 0] * (grids[:, 1] + maps.patch - 1)).max(initial=1)))


@kernel
def part_scores(maps, i, w, strip, work):
    """Fill ``unary`` with the scores of the templates at all pixels of image i, and the sizes.

    A template's weight adds its multiple of the shifted image to all scores: one long loop, which
    runs over the padding on the right of each row and drops it at the end.
    """
    height, width = maps.grids[i, 0], maps.grids[i, 1]
    patch, channels = maps.patch, maps.channels
    stride = width + patch - 1
    plane = (height + patch - 1) * stride
    length = height * stride - (patch - 1)
    work.grid[0], work.grid[1] = height, width
    for v in range(len(work.n_labels)):
        work.n_labels[v] = height * width
        strip[:length] = 0.0
        for c in range(channels):
            for dy in range(patch):
                start = maps.offsets[i] + c * plane + dy * stride
                base = ((v * channels + c) * patch + dy) * patch
                _add_template_row(maps.values[start:], w[base : base + patch], length, strip)
        for y in range(height):
            for x in range(width):
                work.unary[v, y * width + x] = strip[y * stride + x]


@kernel
def _add_template_row(values, weights, length, strip):
    """strip[t] += sum_dx weights[dx] values[t + dx]; three weights a round, for fewer stores."""
    n = len(weights)
    dx = 0
    while dx + 2 < n:
        w0, w1, w2 = weights[dx], weights[dx + 1], weights[dx + 2]
        first, second, third = values[dx:], values[dx + 1 :], values[dx + 2 :]
        for t in range(length):
            strip[t] += w0 * first[t] + w1 * second[t] + w2 * third[t]
        dx += 3
    while dx < n:
        w0, first = weights[dx], values[dx:]
        for t in range(length):
            strip[t] += w0 * first[t]
        dx += 1


@kernel
def parts_oracle(
    shape,
    maps,
    labels,
    sizes,
    anchors,
    spreads,
    examples,
    w,
    mode,
    unit,
    deviation,
    slack,
    sqrt_loss,
    zero_one,
    strip,
    work,
    out,
):
    """Most violated positions of the parts in each image as a sparse row of dpsi.

    With ``mode`` ADDITIVE it maximises ``Delta - <dpsi, w>``, Delta the mean deviation in per cent
    of the size (``deviation``) or ``unit`` times the wrong positions; see `search_tree` for the
    other modes. Out: rows and losses in ``out``; a row is empty, with loss 0, where nothing beats
    the truth.
    """
    V = len(shape.order)
    path = work.path
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        truth = labels[i]
        part_scores(maps, i, w, strip, work)
        height, width = maps.grids[i, 0], maps.grids[i, 1]
        share = 100.0 / (V * sizes[i])
        if mode == ADDITIVE:
            for v in range(V):
                y_true, x_true = truth[v] // width, truth[v] % width
                for y in range(height):
                    for x in range(width):
                        square = float((y - y_true) ** 2 + (x - x_true) ** 2)
                        if deviation:
                            work.unary[v, y * width + x] += share * np.sqrt(square)
                        elif square > 0.0:
                            work.unary[v, y * width + x] += unit
        loss = 0.0
        if search_tree(shape, work, truth, mode, unit, slack, sqrt_loss):
            for v in range(V):
                if path[v] != truth[v]:
                    dy = path[v] // width - truth[v] // width
                    dx = path[v] % width - truth[v] % width
                    loss += share * np.sqrt(float(dy * dy + dx * dx)) if deviation else unit
        if loss > 0.0:
            if zero_one:
                loss = 1.0
            filled = _write_difference(
                shape, maps, i, width, anchors, spreads, truth, path, out, filled
            )
        out.losses[r] = loss
        out.indptr[r + 1] = filled


@kernel
def _write_difference(shape, maps, i, width, anchors, spreads, truth, path, out, filled):
    """Append psi(x, truth) - psi(x, path) at position ``filled``; returns the new position."""
    patch, channels = maps.patch, maps.channels
    stride = width + patch - 1
    plane = (maps.grids[i, 0] + patch - 1) * stride
    V = len(truth)
    for v in range(V):
        if path[v] == truth[v]:
            continue
        good = truth[v] // width * stride + truth[v] % width
        bad = path[v] // width * stride + path[v] % width
        for c in range(channels):
            for dy in range(patch):
                start = maps.offsets[i] + c * plane + dy * stride
                base = ((v * channels + c) * patch + dy) * patch
                for dx in range(patch):
                    value = maps.values[start + good + dx] - maps.values[start + bad + dx]
                    if value != 0.0:
                        out.indices[filled] = base + dx
                        out.values[filled] = value
                        filled += 1
    index = V * channels * patch * patch
    for v in range(V):
        p = shape.parent[v]
        if p < 0:
            continue
        if path[v] != truth[v] or path[p] != truth[p]:
            for axis in range(2):
                scale, shift = spreads[v, axis], anchors[v, axis]
                if axis == 0:
                    good = truth[v] // width - truth[p] // width
                    bad = path[v] // width - path[p] // width
                else:
                    good = truth[v] % width - truth[p] % width
                    bad = path[v] % width - path[p] % width
                u, z = (good - shift) / scale, (bad - shift) / scale
                if good != bad:
                    out.indices[filled] = index + 2 * axis
                    out.values[filled] = u - z
                    out.indices[filled + 1] = index + 2 * axis + 1
                    out.values[filled + 1] = u * u - z * z
                    filled += 2
        index += 4
    return filled


@kernel
def decode_parts(shape, maps, w, strip, work, labels):
    """Best positions of the parts in every image, as pixel numbers, into ``labels``."""
    for i in range(len(labels)):
        part_scores(maps, i, w, strip, work)
        best_labelling(shape, work)
        labels[i] = work.path
