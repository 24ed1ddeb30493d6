"""Parts on a grid of pixels: scores of their templates, losses, and positions as sparse rows."""

from __future__ import annotations

import numpy as np

from ...jit.decorator import kernel
from ...search.modes import ADDITIVE
from .kernels import best_labelling, search_tree


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
def add_part_losses(gold, known, grid, share, deviation, out):
    """Add to out[v, k] the loss of part v at pixel k, for parts whose place is ``known``.

    It is ``share`` times the distance from the true pixel (``deviation``), or for all but that one.
    """
    for v in range(len(gold)):
        if not known[v]:
            continue
        y_true, x_true = gold[v] // grid[1], gold[v] % grid[1]
        for y in range(grid[0]):
            row = out[v, y * grid[1] : (y + 1) * grid[1]]
            dy = float(y - y_true)
            for x in range(grid[1]):
                dx = float(x - x_true)
                square = dy * dy + dx * dx
                row[x] += share * (np.sqrt(square) if deviation else min(square, 1.0))


@kernel
def parts_oracle(shape, maps, parts, examples, w, mode, strip, work, found, out):
    """Most violated positions of the parts in each image: pixels in ``found``, rows in ``out``.

    With the mode ADDITIVE it maximises ``Delta - <dpsi, w>``; `search_tree` has the others. Gold
    is found where nothing beats it. In: ``parts`` (`grid_parts.TrueParts`).
    """
    for r in range(len(examples)):
        i = examples[r]
        gold, share = parts.labels[i], parts.shares[i]
        part_scores(maps, i, w, strip, work)
        if mode.kind == ADDITIVE:
            grid = maps.grids[i]
            add_part_losses(gold, parts.known[i], grid, share, parts.deviation, work.unary)
        if search_tree(shape, work, gold, mode, share):
            found[r] = work.path
        else:
            found[r] = gold
    write_block_rows(shape, maps, parts, examples, found, out)


@kernel
def write_block_rows(shape, maps, parts, examples, found, out):
    """psi(x, gold) - psi(x, found) of each image as rows of ``out``, with the losses."""
    filled = 0
    out.indptr[0] = 0
    for r in range(len(examples)):
        i = examples[r]
        gold, width = parts.labels[i], maps.grids[i, 1]
        filled = _write_difference(
            shape, maps, i, width, parts.anchors, parts.spreads, gold, found[r], out, filled
        )
        out.indptr[r + 1] = filled
        loss = 0.0
        for v in range(len(gold)):
            if found[r, v] != gold[v] and parts.known[i, v]:
                dy = found[r, v] // width - gold[v] // width
                dx = found[r, v] % width - gold[v] % width
                far = np.sqrt(float(dy * dy + dx * dx)) if parts.deviation else 1.0
                loss += parts.shares[i] * far
        out.losses[r] = min(loss, 1.0) if parts.zero_one else loss


@kernel
def _write_difference(shape, maps, i, width, anchors, spreads, gold, path, out, filled):
    """Append psi(x, gold) - psi(x, path) at position ``filled``; returns the new position."""
    patch, channels = maps.patch, maps.channels
    stride = width + patch - 1
    plane = (maps.grids[i, 0] + patch - 1) * stride
    V = len(gold)
    for v in range(V):
        if path[v] == gold[v]:
            continue
        good = gold[v] // width * stride + gold[v] % width
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
        if path[v] != gold[v] or path[p] != gold[p]:
            for axis in range(2):
                scale, shift = spreads[v, axis], anchors[v, axis]
                if axis == 0:
                    good = gold[v] // width - gold[p] // width
                    bad = path[v] // width - path[p] // width
                else:
                    good = gold[v] % width - gold[p] % width
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
