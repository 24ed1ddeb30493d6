"""Faces that deform: small images with known positions of eight parts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..types import Floats, Ints

__all__ = ["FACE_PARTS", "FACE_TREE", "Faces", "make_faces"]

#: Names of the parts, and where they are in a face of unit size, (row, column) from its middle.
FACE_PARTS = {
    "nose": (0.06, 0.0),
    "left eye": (-0.16, -0.2),
    "right eye": (-0.16, 0.2),
    "left brow": (-0.31, -0.22),
    "right brow": (-0.31, 0.22),
    "left of mouth": (0.24, -0.15),
    "right of mouth": (0.24, 0.15),
    "chin": (0.42, 0.0),
}
#: Edges of a tree of the parts, by their numbers.
FACE_TREE = ((0, 1), (0, 2), (1, 3), (2, 4), (0, 5), (5, 6), (0, 7))


class Faces(NamedTuple):
    """Images of faces for training and for testing.

    Attributes
    ----------
    X_train, X_test : ndarray of float64, shape (n_faces, size, size)
        Grey images, values around 0.
    y_train, y_test : ndarray of int64, shape (n_faces, 8, 2)
        Row and column of each part, in the order of `FACE_PARTS`.
    """

    X_train: Floats
    y_train: Ints
    X_test: Floats
    y_test: Ints


def make_faces(
    n_train: int = 200,
    n_test: int = 100,
    *,
    size: int = 32,
    noise: float = 0.3,
    deformation: float = 0.03,
    random_state: int | None = 0,
) -> Faces:
    """Draw faces whose parts are displaced from their usual places, over a cluttered ground.

    A face has its own middle, width and height; each part moves with the part it hangs on, and a
    little on its own. Eyes, brows, nose, corners of the mouth and chin are small strokes and dots
    of varying contrast, and strokes of the same kinds lie about as distractors: one part alone is
    hard to tell from them, all parts together are not.

    Parameters
    ----------
    n_train, n_test : int
        Numbers of images.
    size : int, default=32
        Rows and columns of an image.
    noise : float, default=0.3
        Standard deviation of noise added to the pixels.
    deformation : float, default=0.03
        Standard deviation of a part's own displacement, as a share of the size.
    random_state : int, optional
        Seed; the same seed gives the same faces.

    Returns
    -------
    Faces

    Examples
    --------
    >>> faces = make_faces(n_train=3, n_test=1, size=20)
    >>> faces.X_train.shape, faces.y_train.shape
    ((3, 20, 20), (3, 8, 2))
    """
    if n_train < 1 or n_test < 1:
        raise ValueError(f"expected at least one face each, found n_train={n_train}, {n_test=}")
    if size < 16:
        raise ValueError(f"expected size >= 16, found {size}")
    if not (noise >= 0.0 and deformation >= 0.0):
        raise ValueError(f"expected noise and deformation >= 0, found {noise} and {deformation}")
    rng = np.random.default_rng(random_state)
    drawn = [_draw_face(rng, size, noise, deformation) for _ in range(n_train + n_test)]
    X = np.array([image for image, _ in drawn])
    y = np.array([positions for _, positions in drawn])
    return Faces(X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def _draw_face(
    rng: np.random.Generator, size: int, noise: float, deformation: float
) -> tuple[Floats, Ints]:
    """One image and the positions of its parts."""
    usual = np.array(list(FACE_PARTS.values()))
    stretch = rng.normal(1.0, 0.08, 2)
    middle = 0.5 + rng.normal(0.0, 0.04, 2)
    spots = np.empty_like(usual)
    spots[0] = middle + usual[0] * stretch
    for parent, child in FACE_TREE:
        offset = (usual[child] - usual[parent]) * stretch
        spots[child] = spots[parent] + offset + rng.normal(0.0, deformation, 2)
    positions = np.clip(np.rint(spots * size - 0.5), 1, size - 2).astype(np.int64)
    image = np.zeros((size, size))
    scale = size / 32.0
    for part, (row, column) in enumerate(positions):
        _draw_part(image, part, row, column, scale, rng.uniform(0.7, 1.3))
    for _ in range(6):
        row, column = rng.uniform(1, size - 2, 2)
        _draw_part(image, int(rng.integers(8)), row, column, scale, rng.uniform(0.3, 0.8))
    return image + rng.normal(0.0, noise, image.shape), positions


def _draw_part(
    image: Floats, part: int, row: float, column: float, scale: float, contrast: float
) -> None:
    """Add the stroke or dot of one kind of part."""
    rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
    y, x = (rows - row) / scale, (columns - column) / scale
    side = -1.0 if part in (1, 3, 5) else 1.0
    if part == 0:  # nose: an upright stroke with a foot
        mark = _stroke(x, 0.7) * _stroke(y + 1.2, 2.2) + _stroke(y - 1.6, 0.7) * _stroke(x, 1.8)
    elif part in (1, 2):  # eyes: a dark dot in a bright ring
        radius = np.hypot(y, x)
        mark = 1.2 * _stroke(radius - 2.3, 0.7) - 1.4 * _stroke(radius, 1.1)
    elif part in (3, 4):  # brows: strokes that fall outwards
        mark = -1.2 * _stroke(y - 0.35 * side * x, 0.8) * _stroke(x, 2.4)
    elif part in (5, 6):  # corners of the mouth: strokes that rise outwards
        mark = 1.3 * _stroke(y + 0.8 * side * x, 0.8) * _stroke(x + 0.5 * side, 1.8)
    else:  # chin: a wide bow
        mark = -1.0 * _stroke(y - 1.0 + 0.12 * x**2, 0.8) * _stroke(x, 3.2)
    image += contrast * mark


def _stroke(distance: Floats, width: float) -> Floats:
    """A soft line of this width around distance 0."""
    return np.exp(-((distance / width) ** 2))
