"""Kernels of window features: from strings to codes, by their bytes, and from codes to features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...jit.decorator import kernel
from ...utils.types import Ints, Ints32
from ..packing import offsets_of

__all__ = [
    "FOUND_BY_BYTES",
    "NOTHING",
    "ColumnTables",
    "WindowTables",
    "find_features",
    "find_strings",
    "make_column_tables",
    "pack_features",
]

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


_PLAIN, _PREFIX, _SUFFIX, _OTHER = 0, 1, 2, 3  # what a view shows of a string
#: Transforms that need no more than the bytes of a string, and how kernels know them.
FOUND_BY_BYTES = {"": _PLAIN, "prefix": _PREFIX, "suffix": _SUFFIX}
_SEPARATOR = "\n"
_ENDS = np.uint8(ord(_SEPARATOR))
_OFFSET, _PRIME, _HALF = np.uint64(14695981039346656037), np.uint64(1099511628211), np.uint64(32)


class ColumnTables(NamedTuple):
    """The strings known under the views of a column, the first of which shows them as they are.

    View v has kind and length ``shown[v]``, and goes to column ``shown[v, 2]`` of the codes. Its
    string of number n is ``text[starts[n - 1]:starts[n]]``, with its own part of ``starts``, from
    ``start_bounds[v]`` on; so is the hash table that has the numbers, 0 where there is none, in
    ``slots``. ``under[n, v]`` is the number under view v of string n of the first.
    """

    shown: Ints
    text: NDArray[np.uint8]
    starts: Ints
    start_bounds: Ints
    slots: Ints32
    slot_bounds: Ints
    under: Ints32


def make_column_tables(
    views: Sequence[tuple[str, str, int]],
    numbers: Sequence[Mapping[str, int]],
    places: Sequence[int],
    under: Sequence[Ints32],
) -> ColumnTables:
    """Tables of views, the first of which is plain, with the numbers of their strings from 1 on."""
    shown = [
        (FOUND_BY_BYTES.get(transform, _OTHER), length, place)
        for (_, transform, length), place in zip(views, places, strict=True)
    ]
    texts, starts, slots, passed = [], [], [], 0
    for own in numbers:
        encoded = [_encoded(string) for string in own]
        bounds = passed + offsets_of([len(string) for string in encoded])
        texts.append(b"".join(encoded))
        starts.append(bounds)
        slots.append(np.zeros(1 << (2 * len(encoded) + 1).bit_length(), np.int32))
        passed = int(bounds[-1])
    tables = ColumnTables(
        np.array(shown, np.int64),
        np.frombuffer(b"".join(texts) + b"\0", np.uint8),
        np.concatenate(starts),
        offsets_of([len(bounds) for bounds in starts]),
        np.concatenate(slots),
        offsets_of([len(own) for own in slots]),
        np.stack(under, axis=1),
    )
    for v in range(len(shown)):
        _fill_slots(tables, v)
    return tables


def find_strings(tables: ColumnTables, column: list[str], codes: Ints32) -> bool:
    """Numbers of a column's strings under its views, into ``codes`` (n_tokens, all views).

    -1 stands for strings that are not known; views that show other things than affixes have it
    for all strings that are not known themselves. Returns whether all is done: not where there is
    something else than strings, or a string holds what strings are joined by.
    """
    try:
        joined = _encoded(_SEPARATOR.join(column))
    except TypeError:
        return False
    return bool(_find_strings(tables, np.frombuffer(joined + b"\0", np.uint8), codes))


def _encoded(string: str) -> bytes:
    """Bytes of a string, also of half a surrogate pair."""
    return string.encode("utf-8", "surrogatepass")


@kernel(allocates=False)
def _fill_slots(tables, v):
    """Enter the strings of a view into its empty hash table."""
    first = tables.start_bounds[v]
    for k in range(tables.start_bounds[v + 1] - first - 1):
        begin, end = tables.starts[first + k], tables.starts[first + k + 1]
        tables.slots[_slot_of(tables, v, tables.text, begin, end)] = k + 1


@kernel(allocates=False)
def _find_strings(tables, joined, codes):
    """See `find_strings`; one byte more than there are ends the text."""
    n_views, last = tables.shown.shape[0], len(joined) - 1
    token, begin = 0, 0
    for place in range(len(joined)):
        if place < last and joined[place] != _ENDS:
            continue
        if token == codes.shape[0]:
            return False
        plain = tables.slots[_slot_of(tables, 0, joined, begin, place)]
        for v in range(n_views):
            code = np.int64(-1)
            if plain > 0:
                code = np.int64(tables.under[plain, v])
            elif tables.shown[v, 0] == _PREFIX or tables.shown[v, 0] == _SUFFIX:
                a, b = _affix(tables.shown[v], joined, begin, place)
                number = tables.slots[_slot_of(tables, v, joined, a, b)]
                if number > 0:
                    code = np.int64(number)
            codes[token, tables.shown[v, 2]] = code
        token += 1
        begin = place + 1
    return token == codes.shape[0]


@kernel(allocates=False)
def _affix(shown, text, begin, end):
    """Where the first or last characters of text[begin:end] are, or all if there are fewer."""
    left = shown[1]
    if shown[0] == _PREFIX:
        for place in range(begin, end):
            if text[place] & 0xC0 != 0x80:  # a character begins
                if left == 0:
                    return begin, place
                left -= 1
        return begin, end
    for place in range(end - 1, begin - 1, -1):
        if text[place] & 0xC0 != 0x80:
            left -= 1
            if left == 0:
                return place, end
    return begin, end


@kernel(allocates=False)
def _slot_of(tables, v, text, begin, end):
    """The slot with the number of text[begin:end] under view v, or the one that it would have."""
    mixed = _OFFSET
    for place in range(begin, end):
        mixed = (mixed ^ np.uint64(text[place])) * _PRIME
    first, n_slots = tables.slot_bounds[v], tables.slot_bounds[v + 1] - tables.slot_bounds[v]
    at = np.int64((mixed ^ (mixed >> _HALF)) & np.uint64(n_slots - 1))
    while True:
        number = tables.slots[first + at]
        if number == 0:
            return first + at
        start = tables.starts[tables.start_bounds[v] + number - 1]
        if tables.starts[tables.start_bounds[v] + number] - start == end - begin:
            same = True
            for k in range(end - begin):
                if tables.text[start + k] != text[begin + k]:
                    same = False
                    break
            if same:
                return first + at
        at = (at + 1) & (n_slots - 1)
