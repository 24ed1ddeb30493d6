"""Arrays in forms that compress well, and back, without loss.

plain         as it is
planes        the first bytes of all numbers, then the second bytes, ...: of numbers that are
              small, or have few digits, most planes are zero
differences   planes of the differences of neighbours: for sorted numbers
ranks         for permutations: they are cut into groups within which they grow, and what is
              kept is each entry's group, in planes. Features that are numbered by their counts
              have few groups.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["array_from", "shortest_form"]

SHORT = 4096  # bytes, below which it is not worth the trouble


def shortest_form(array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Name and content of the form that compresses best."""
    if array.ndim != 1 or array.nbytes < SHORT or array.dtype.kind not in "iuf":
        return "plain", array
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    forms = {"plain": array, "planes": _planes(array)}
    if array.dtype.kind in "iu":
        forms["differences"] = _planes(_differences(array))
        if _is_permutation(array):
            forms["ranks"] = _planes(_groups(array))
    name = min(forms, key=lambda name: len(zlib.compress(forms[name].data, 1)))
    return name, forms[name]


def array_from(form: str, dtype: str, content: NDArray[Any]) -> NDArray[Any]:
    """The array of a form, ValueError if there is none."""
    if form == "plain":
        return content
    kind = np.dtype(dtype)
    is_known = form == "planes" or (form in ("differences", "ranks") and kind.kind in "iu")
    if not is_known or kind.kind not in "iuf":
        raise ValueError(f"arrays of type {dtype} have no form {form!r}")
    if content.dtype != np.uint8 or content.ndim != 2 or len(content) != kind.itemsize:
        raise ValueError(
            f"{content.dtype} of shape {content.shape} cannot be read as bytes of {dtype}"
        )
    values = np.ascontiguousarray(content.T).reshape(-1).view(kind.newbyteorder("<"))
    values = values.astype(kind.newbyteorder("="), copy=False)
    if form == "differences":
        return np.cumsum(values, dtype=values.dtype)
    if form == "ranks":
        ranks = np.empty(len(values), values.dtype)
        ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
        return ranks
    return values


def _planes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Bytes of the numbers, in columns."""
    return np.ascontiguousarray(array.view(np.uint8).reshape(len(array), array.itemsize).T)


def _differences(array: NDArray[Any]) -> NDArray[Any]:
    """The first number and the differences of neighbours, which may wrap around."""
    return np.diff(array, prepend=array.dtype.type(0))


def _is_permutation(array: NDArray[Any]) -> bool:
    """Whether these are the numbers from 0 on, in some order."""
    return bool(np.array_equal(np.sort(array), np.arange(len(array))))


def _groups(ranks: NDArray[Any]) -> NDArray[Any]:
    """For each entry of a permutation its group, such that a stable sort by groups inverts it."""
    places = np.argsort(ranks)
    starts = np.diff(places, prepend=0) < 0
    return np.cumsum(starts)[ranks].astype(ranks.dtype)
