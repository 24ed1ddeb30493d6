"""Kernels of window features: from codes of strings to numbers of features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...jit.decorator import kernel
from ...utils.types import Ints, Ints32

__all__ = ["NOTHING", "WindowTables", "find_features", "pack_features"]

NOTHING = -1  # in place of the code of an unknown string, or of the number of a feature


class WindowTables(NamedTuple):
    """What was learned for all templates, for the kernel.

    Template t has the rows ``atom_bounds[t]`` to ``atom_bounds[t + 1] - 1`` of ``atoms``, which are
    view, offset, number of codes, and whether positions outside have codes of their own.

    Where there are not many more possible keys than keys, ``starts[start_bounds[t] + key]`` is the
    number of the feature, `NOTHING` if there is none. Otherwise (``searched[t]``) it tells where
    in ``keys`` those begin whose first atom has code c, and ``ids`` has the numbers.
    """

    atoms: Ints
    atom_bounds: Ints
    searched: Ints
    starts: Ints32
    start_bounds: Ints
    keys: Ints
    ids: Ints32


@kernel(allocates=False)
def find_features(tables, codes, offsets, found):
    """Numbers of the tokens' features under the templates, ``found[token, template]``.

    ``codes`` (n_tokens, n_views) are those of the strings, `NOTHING` where a string is not known;
    a position outside the sequence has code 0, or one behind the strings', as the template tells.
    Keys are searched among those with the same first code.
    """
    for m in range(len(tables.atom_bounds) - 1):
        first_atom, last_atom = tables.atom_bounds[m], tables.atom_bounds[m + 1]
        start = tables.start_bounds[m]
        searched = tables.searched[m]
        for i in range(len(offsets) - 1):
            first, end = offsets[i], offsets[i + 1]
            for t in range(first, end):
                key = np.int64(0)
                leading = np.int64(0)
                for a in range(first_atom, last_atom):
                    code = _code_at(tables.atoms, a, codes, first, end, t)
                    if code < 0:
                        key = NOTHING
                        break
                    if a == first_atom:
                        leading = code
                    key = key * tables.atoms[a, 2] + code
                if key < 0:
                    found[t, m] = NOTHING
                elif searched:
                    low, high = tables.starts[start + leading], tables.starts[start + leading + 1]
                    found[t, m] = _search(tables.keys, tables.ids, low, high, key)
                else:
                    found[t, m] = tables.starts[start + key]


@kernel(inline=True)
def _code_at(atoms, a, codes, first, end, t):
    """Code that an atom sees at token t of the sequence from ``first`` to ``end - 1``."""
    at = t + atoms[a, 1]
    if first <= at < end:
        return np.int64(codes[at, atoms[a, 0]])
    if atoms[a, 3] == 0:
        return np.int64(0)
    beyond = first - at if at < first else at - end + 1
    return atoms[a, 2] - abs(atoms[a, 1]) - 1 + beyond


@kernel(inline=True)
def _search(keys, ids, low, high, key):
    """The entry of ``ids`` for a key among keys[low:high], which are sorted."""
    while high - low > 1:
        middle = (low + high) // 2
        if keys[middle] <= key:
            low = middle
        else:
            high = middle
    if low < high and keys[low] == key:
        return ids[low]
    return np.int32(NOTHING)


@kernel(allocates=False)
def pack_features(found, indices, indptr):
    """Sorted rows without `NOTHING`, one after the other; returns how many entries there are."""
    filled = 0
    for t in range(found.shape[0]):
        for m in range(found.shape[1]):
            indices[filled] = found[t, m]
            filled += found[t, m] >= 0
        indptr[t + 1] = filled
    return filled
