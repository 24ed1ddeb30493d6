"""Images of digits, made easier to compare: smoothed, or upright."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from scipy.ndimage import affine_transform, gaussian_filter

BLUR = 0.75  # pixels


def smoothed(images: Any, white: float) -> Any:
    """The images all white beyond their margins, smoothed by a Gaussian.

    USPS digits then are those of LIBSVM's file "usps": the first 112 pixels of its test part are
    the same within 3e-6.
    """
    width = (0.0, BLUR, BLUR)
    blurred = gaussian_filter(_square(images), width, mode="constant", cval=white, truncate=6.0)
    return blurred.reshape(images.shape)


def upright(images: Any, white: float) -> Any:
    """Digits whose slant is taken out: rows are moved so that they lie above each other."""
    ink = _square(images) - white
    return np.array([_upright(image).ravel() for image in ink]) + np.asarray(white, images.dtype)


def _square(images: Any) -> Any:
    """Rows of pixels, as squares."""
    side = isqrt(images.shape[1])
    return images.reshape(-1, side, side)


def _upright(image: Any) -> Any:
    """One of them, by the covariance of height and width, with its centre in the middle."""
    side = len(image)
    row, column = np.mgrid[:side, :side]
    total = float(image.sum())
    centre = np.array([(row * image).sum(), (column * image).sum()]) / total
    row, column = row - centre[0], column - centre[1]
    slant = float((row * column * image).sum() / (row * row * image).sum())
    shear = np.array([[1.0, 0.0], [slant, 1.0]])
    middle = np.full(2, (side - 1) / 2)
    return affine_transform(image, shear, centre - shear @ middle, order=1)
