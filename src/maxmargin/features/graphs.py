"""Graphs as `GraphLabeler` takes them, made of images, of segments of images and of points."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from ..utils.types import Ints
from ..utils.validation import as_floats

__all__ = ["Graph", "make_grid", "make_knn_graph", "make_superpixel_graph"]


class Graph(NamedTuple):
    """A graph whose nodes are to be labelled; a plain tuple of the same items serves as well.

    Attributes
    ----------
    node_features : array or sparse matrix of shape (n_nodes, n_features)
        Features of the nodes.
    edges : array of int, shape (n_edges, 2)
        The two nodes of each edge, from 0.
    edge_features : array or sparse matrix of shape (n_edges, n_edge_features), optional
        Features of the edges.
    """

    node_features: Any
    edges: Any
    edge_features: Any = None


def make_grid(image: Any, connectivity: Literal[4, 8] = 4, directional: bool = True) -> Graph:
    """The pixels of an image as a graph, row by row.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, n_features)
        Features of the pixels.
    connectivity : {4, 8}, default=4
        Whether pixels are joined along rows and columns only, or also along diagonals.
    directional : bool, default=True
        Give edges one feature for each direction: to the right and down, and with 8 neighbours down
        to the right and down to the left. Without it edges have no features.

    Returns
    -------
    Graph
        Edges lead from the pixel that comes first.

    Examples
    --------
    >>> graph = make_grid([[0.0, 1.0], [2.0, 3.0]])
    >>> graph.edges.tolist()
    [[0, 1], [2, 3], [0, 2], [1, 3]]
    """
    pixels = as_floats(image, "image")
    if pixels.ndim not in (2, 3):
        raise ValueError(
            f"image has shape {pixels.shape}; expected (height, width) or (height, width, "
            "n_features)"
        )
    if connectivity not in (4, 8):
        raise ValueError(f"connectivity must be 4 or 8, got {connectivity!r}")
    height, width = pixels.shape[:2]
    nodes = np.arange(height * width).reshape(height, width)
    pairs = [(nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])]
    if connectivity == 8:
        pairs += [(nodes[:-1, :-1], nodes[1:, 1:]), (nodes[:-1, 1:], nodes[1:, :-1])]
    ends = [np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]
    features = None
    if directional:
        features = np.repeat(np.eye(len(ends)), list(map(len, ends)), axis=0)
    return Graph(pixels.reshape(height * width, -1), np.concatenate(ends), features)


def make_superpixel_graph(image: Any, segments: Any) -> Graph:
    """The segments of an image as a graph, joined where they touch.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, n_channels)
        The image.
    segments : array of int, shape (height, width)
        Number of each pixel's segment; node s is the segment with the s-th smallest number.

    Returns
    -------
    Graph
        Nodes have the mean of each channel. Edges have the distance of the means of the two
        segments, and their common border, as a fraction of the shorter one of their borders with
        other segments.
    """
    pixels = as_floats(image, "image")
    given = np.asarray(segments)
    if pixels.ndim not in (2, 3) or given.shape != pixels.shape[:2] or given.dtype.kind not in "iu":
        raise ValueError(
            f"segments have shape {given.shape} and type {given.dtype}; expected whole numbers for "
            f"an image of shape {pixels.shape}"
        )
    numbers = np.unique(given, return_inverse=True)[1].reshape(given.shape).astype(np.int64)
    n = int(numbers.max(initial=-1)) + 1
    flat = pixels.reshape(numbers.size, -1)
    sums = np.zeros((n, flat.shape[1]))
    np.add.at(sums, numbers.ravel(), flat)
    means = sums / np.bincount(numbers.ravel(), minlength=n)[:, None]
    sides = ((numbers[:, :-1], numbers[:, 1:]), (numbers[:-1], numbers[1:]))
    touching = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in sides])
    touching = np.sort(touching[touching[:, 0] != touching[:, 1]], axis=1)
    edges, lengths = np.unique(touching, axis=0, return_counts=True)
    borders = np.bincount(touching.ravel(), minlength=n)
    contrast = np.linalg.norm(means[edges[:, 0]] - means[edges[:, 1]], axis=1)
    return Graph(means, edges, np.stack([contrast, lengths / borders[edges].min(axis=1)], axis=1))


def make_knn_graph(points: Any, n_neighbors: int = 5) -> Graph:
    """Points, each joined with its nearest ones.

    Parameters
    ----------
    points : array of shape (n_points, n_dimensions)
        The points; their coordinates are the features of the nodes.
    n_neighbors : int, default=5
        How many others each point is joined with; edges have no direction.

    Returns
    -------
    Graph
        Edges have the distance of their points as a feature, and lead to the larger number.
    """
    places = as_floats(points, "points")
    if places.ndim != 2:
        raise ValueError(
            f"points have shape {places.shape}; expected one of (n_points, n_dimensions)"
        )
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, got {n_neighbors}")
    n = len(places)
    k = min(n_neighbors, n - 1)
    edges: Ints = np.empty((0, 2), np.int64)
    if k > 0:
        found = cKDTree(places).query(places, k + 1)[1]
        pairs = np.stack([np.repeat(np.arange(n), k + 1), found.ravel()], axis=1)
        edges = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    lengths = np.linalg.norm(places[edges[:, 0]] - places[edges[:, 1]], axis=1)
    return Graph(places, edges, lengths[:, None])
