"""Brute-force twins of trees of labels and of parts in images, by the documented layouts."""

import itertools

import numpy as np

from brute import Twin


class _TreeTwin(Twin):
    def truth(self, i):
        return tuple(int(k) for k in self.Y[i])

    def loss(self, i, y):
        wrong = sum(a != b for a, b in zip(self.truth(i), y, strict=True))
        if self.loss_name == "deviation":
            width = self.images[i].shape[1]
            ends = zip(self.truth(i), y, strict=True)
            far = [np.hypot(a // width - b // width, a % width - b % width) for a, b in ends]
            return 100.0 * float(np.mean(far)) / self.sizes[i]
        if self.loss_name == "zero-one":
            return float(wrong > 0)
        return wrong / len(y) if self.loss_name == "normalized-hamming" else float(wrong)


class LabelTreeTwin(_TreeTwin):
    """``nodes[v]`` (n, F_v), ``edges[v]`` (n, F_e) for v with a parent; labels 0..K_v - 1."""

    def __init__(self, nodes, edges, Y, parent, n_labels, loss):
        self.nodes, self.edges, self.Y = nodes, edges, Y
        self.parent, self.n_labels, self.loss_name = parent, n_labels, loss
        self.n_examples = len(Y)
        self.n_features = len(self.psi(0, self.truth(0)))

    def outputs(self, i):
        return list(itertools.product(*(range(K) for K in self.n_labels)))

    def psi(self, i, y):
        blocks = []
        for v, K in enumerate(self.n_labels):
            table = np.zeros((self.nodes[v].shape[1], K))
            table[:, y[v]] = self.nodes[v][i]
            blocks.append(table.ravel())
        for v, p in enumerate(self.parent):
            if p >= 0:
                table = np.zeros((self.edges[v].shape[1], self.n_labels[p], self.n_labels[v]))
                table[:, y[p], y[v]] = self.edges[v][i]
                blocks.append(table.ravel())
        return np.concatenate(blocks)


class GridPartsTwin(_TreeTwin):
    """Images (height, width, channels); positions are pixel numbers, row by row."""

    def __init__(self, images, Y, parent, patch, anchors, spreads, sizes, loss):
        self.images, self.Y, self.parent, self.patch = images, Y, parent, patch
        self.anchors, self.spreads, self.sizes, self.loss_name = anchors, spreads, sizes, loss
        self.n_examples = len(Y)
        self.n_features = len(self.psi(0, self.truth(0)))

    def outputs(self, i):
        height, width, _ = self.images[i].shape
        return list(itertools.product(range(height * width), repeat=len(self.parent)))

    def psi(self, i, y):
        image, patch = self.images[i], self.patch
        height, width, channels = image.shape
        blocks = []
        for label in y:
            template = np.zeros((channels, patch, patch))
            for dy in range(patch):
                for dx in range(patch):
                    row = np.clip(label // width + dy - patch // 2, 0, height - 1)
                    column = np.clip(label % width + dx - patch // 2, 0, width - 1)
                    template[:, dy, dx] = image[row, column]
            blocks.append(template.ravel())
        for v, p in enumerate(self.parent):
            if p >= 0:
                offset = np.array([y[v] // width - y[p] // width, y[v] % width - y[p] % width])
                u = (offset - self.anchors[v]) / self.spreads[v]
                blocks.append(np.array([u[0], u[0] ** 2, u[1], u[1] ** 2]))
        return np.concatenate(blocks)
