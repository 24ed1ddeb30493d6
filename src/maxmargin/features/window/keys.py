"""Keys of window features: codes of strings, combined by templates, and tables of those seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...utils.types import Ints, Ints32
from ..packing import offsets_of
from .kernels import (
    FOUND_BY_BYTES,
    NOTHING,
    ColumnTables,
    WindowTables,
    find_strings,
    make_column_tables,
    pack_features,
)
from .templates import Atom, transform_function

__all__ = [
    "CodedTokens",
    "ColumnCoder",
    "Keys",
    "View",
    "WindowTemplate",
    "Windows",
    "are_keys",
    "code_strings",
    "coded_under",
    "combined_keys",
    "distinct_keys",
    "make_tables",
    "matrix_of_ones",
    "numbered",
    "rank_by_count",
    "reach_of",
    "sizes_of",
    "views_by_column",
]

# Up to this many possible keys a table indexed by key beats sorting,
LARGEST_TABLE = 2**20
# and up to so many for each key that there is, or so many in all, it beats searching.
TABLE_PER_KEY, SMALL_TABLE = 4, 2**12

View = tuple[str, str, int]
Keys = Ints


class WindowTemplate(NamedTuple):
    """What was learned for one template: its keys, sorted, and their feature numbers.

    ``sizes`` has the number of codes of each atom, the padding's included.
    """

    atoms: tuple[Atom, ...]
    sizes: tuple[int, ...]
    keys: Keys
    ids: Ints32


class CodedTokens(NamedTuple):
    """Tokens with numbers for their strings: codes (n_tokens, n_views), offsets, and tables."""

    codes: Ints32
    offsets: Ints
    tables: WindowTables


class Windows:
    """Codes of each view of the tokens, laid out so that neighbours can be looked up."""

    def __init__(self, offsets: Ints, reach: int) -> None:
        lengths = np.diff(offsets)
        # Before, between and after the sequences lie `reach` places of code 0.
        gaps = reach * np.arange(1, len(lengths) + 1)
        self._places = np.arange(offsets[-1]) + np.repeat(gaps, lengths)
        self._n_places = int(offsets[-1]) + reach * (len(lengths) + 1)
        self._offsets = offsets
        self._codes: dict[View, Ints32] = {}

    def add(self, view: View, codes: Ints32) -> None:
        """Add the codes of all tokens under a view."""
        padded = np.zeros(self._n_places, dtype=np.int32)
        padded[self._places] = codes
        self._codes[view] = padded

    @cached_property
    def _tokens_beside(self) -> tuple[Ints, Ints]:
        """How many tokens of its sequence are before and behind each token."""
        lengths = np.diff(self._offsets)
        before = np.arange(self._offsets[-1]) - np.repeat(self._offsets[:-1], lengths)
        return before, np.repeat(lengths, lengths) - 1 - before

    def at(self, atom: Atom, size: int) -> Ints32:
        """Give, for each token, the code that the atom sees, of so many."""
        codes = self._codes[atom.view][self._places + atom.offset]
        if atom.edges and atom.offset:
            beyond = abs(atom.offset) - self._tokens_beside[0 if atom.offset < 0 else 1]
            inside = size - abs(atom.offset)
            codes = np.where(beyond > 0, inside - 1 + beyond, codes).astype(np.int32)
        return codes


def reach_of(templates: Iterable[tuple[Atom, ...]]) -> int:
    """Farthest position that any atom looks at."""
    return max(abs(atom.offset) for atoms in templates for atom in atoms)


def views_by_column(templates: Iterable[tuple[Atom, ...]]) -> dict[str, list[View]]:
    """Views in use, in the order of first use, under the column they are made of."""
    views: dict[str, list[View]] = {}
    for atom in dict.fromkeys(atom for atoms in templates for atom in atoms):
        of_column = views.setdefault(atom.column, [])
        if atom.view not in of_column:
            of_column.append(atom.view)
    return views


def numbered(strings: Iterable[str]) -> dict[str, int]:
    """Number distinct strings from 1 in order of appearance; 0 is left for the padding."""
    return {string: code for code, string in enumerate(dict.fromkeys(strings), 1)}


def coded_under(view: View, strings: list[str], numbers: Mapping[str, int]) -> Ints32:
    """Codes of strings under a view, -1 for those that are not known."""
    seen = map(transform_function(*view[1:]), strings)
    return np.fromiter(map(numbers.get, seen, repeat(-1)), np.int32, len(strings))


def code_strings(column: Sequence[str]) -> tuple[list[str], Ints32]:
    """Distinct strings of a column, and which of them each token has."""
    index = {string: k for k, string in enumerate(dict.fromkeys(column))}
    return list(index), np.fromiter(map(index.__getitem__, column), np.int32, len(column))


def sizes_of(atoms: tuple[Atom, ...], codes: Mapping[View, Mapping[str, int]]) -> tuple[int, ...]:
    """Number of codes of each atom; their product is the number of possible keys.

    That of the padding is one; with edges, there is one more for each position outside.
    """
    return tuple(
        len(codes[atom.view]) + 1 + (abs(atom.offset) if atom.edges else 0) for atom in atoms
    )


def combined_keys(
    atoms: tuple[Atom, ...], windows: Windows, sizes: tuple[int, ...]
) -> Keys | Ints32:
    """Key of each token under a template; -1 where an atom sees an unknown string."""
    keys: Keys | Ints32 = windows.at(atoms[0], sizes[0])
    if len(atoms) == 1:
        return keys
    unknown = keys < 0
    for atom, size in zip(atoms[1:], sizes[1:], strict=True):
        codes = windows.at(atom, size)
        unknown |= codes < 0
        keys = keys.astype(np.int64) * size + codes
    keys[unknown] = -1
    return keys


def distinct_keys(keys: Keys | Ints32, space: int) -> tuple[Keys, Ints, NDArray[Any]]:
    """Sorted distinct keys, their counts, and which of them each token has."""
    if space > LARGEST_TABLE:
        distinct, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return distinct.astype(np.int64), counts, which
    per_key = np.bincount(keys, minlength=space)
    distinct = np.flatnonzero(per_key)
    position = np.empty(space, dtype=np.int32)
    position[distinct] = np.arange(len(distinct))
    return distinct, per_key[distinct], position[keys]


def rank_by_count(counts: Ints, min_count: int) -> Ints32:
    """Number features by decreasing count (ties in the order given); -1 for the rare ones."""
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= min_count]
    rank = np.full(len(counts), -1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank


def are_keys(template: WindowTemplate) -> bool:
    """Whether the keys are sorted, as lookups need them, and there can be such."""
    keys = template.keys
    if len(keys) == 0:
        return True
    is_sorted = bool((keys[1:] > keys[:-1]).all())
    return is_sorted and 0 <= int(keys[0]) and int(keys[-1]) < math.prod(template.sizes)


def make_tables(templates: list[WindowTemplate], views: Iterable[View]) -> WindowTables:
    """What the kernel needs of templates, with the views in order."""
    numbers = {view: number for number, view in enumerate(views)}
    atoms = [
        (numbers[atom.view], atom.offset, size, int(atom.edges))
        for template in templates
        for atom, size in zip(template.atoms, template.sizes, strict=True)
    ]
    searched = [_is_searched(template) for template in templates]
    starts, passed = [], 0
    for template, in_order in zip(templates, searched, strict=True):
        if in_order:
            firsts = template.keys // math.prod(template.sizes[1:])
            starts.append(passed + np.searchsorted(firsts, np.arange(template.sizes[0] + 1)))
        else:
            table = np.full(math.prod(template.sizes), NOTHING)
            table[template.keys] = template.ids
            starts.append(table)
        passed += len(template.keys)
    return WindowTables(
        np.array(atoms, np.int64),
        offsets_of([len(template.atoms) for template in templates]),
        np.array(searched, np.int64),
        np.concatenate(starts).astype(np.int32),
        offsets_of([len(table) for table in starts]),
        np.concatenate([template.keys for template in templates]).astype(np.int64),
        np.concatenate([template.ids for template in templates]),
    )


def _is_searched(template: WindowTemplate) -> bool:
    """Whether there are too many possible keys for a table of all."""
    return math.prod(template.sizes) > TABLE_PER_KEY * len(template.keys) + SMALL_TABLE


def matrix_of_ones(ids: Ints32, n_features: int) -> Any:
    """Matrix of ones at the feature numbers of each row, -1 left out."""
    ids.sort(axis=1)
    indices, indptr = np.empty(ids.size + 1, np.int32), np.zeros(len(ids) + 1, np.int64)
    n = pack_features(ids, indices, indptr)
    index_type = np.int32 if n < 2**31 else np.int64
    matrix = sparse.csr_array(
        (np.ones(n), indices[:n].astype(index_type, copy=False), indptr.astype(index_type)),
        shape=(len(ids), n_features),
    )
    matrix.has_canonical_format = True
    return matrix


_PLAIN = ("", 0)  # the view of strings as they are


class ColumnCoder:
    """Codes columns with the numbers that strings have under each view, and caches tables of them.

    Parameters
    ----------
    numbers : mapping
        For each view the numbers of its strings, from 1.
    """

    def __init__(self, numbers: Mapping[View, Mapping[str, int]]) -> None:
        self.numbers = numbers
        self._tables: dict[View, ColumnTables] = {}
        self._under: dict[View, Ints32] = {}

    def code(
        self, column: list[str], views: list[View], places: Mapping[View, int], codes: Ints32
    ) -> None:
        """Write the codes of all tokens under the views of a column, each to its place."""
        plain = next((view for view in views if view[1:] == _PLAIN), None)
        if plain is not None and self._code_by_bytes(column, plain, views, places, codes):
            return
        for view, found in self._codes_of(column, plain, views):
            codes[:, places[view]] = found

    def _code_by_bytes(
        self,
        column: list[str],
        plain: View,
        views: list[View],
        places: Mapping[View, int],
        codes: Ints32,
    ) -> bool:
        """The same where strings can be found by their bytes; says whether they can."""
        if not find_strings(self._column_tables(plain, views, places), column, codes):
            return False
        others = [view for view in views if view[1] not in FOUND_BY_BYTES]
        new = np.flatnonzero(codes[:, places[plain]] < 0)
        if others and len(new):
            distinct, which = code_strings([column[t] for t in new.tolist()])
            for view in others:
                codes[new, places[view]] = coded_under(view, distinct, self.numbers[view])[which]
        return True

    def _column_tables(
        self, plain: View, views: list[View], places: Mapping[View, int]
    ) -> ColumnTables:
        """What `find_strings` needs of a column."""
        if plain not in self._tables:
            ordered = [plain, *(view for view in views if view != plain)]
            self._tables[plain] = make_column_tables(
                ordered,
                [self.numbers[view] for view in ordered],
                [places[view] for view in ordered],
                [self._codes_under(view, plain) for view in ordered],
            )
        return self._tables[plain]

    def _codes_of(
        self, column: list[str], plain: View | None, views: list[View]
    ) -> Iterator[tuple[View, Ints32]]:
        """The same in Python, for all that a column may hold.

        Where the strings themselves are one of the views, most are known, and what they are under
        the others is cached: only new ones are transformed.
        """
        own: Mapping[str, int] = {} if plain is None else self.numbers[plain]
        codes = np.fromiter(map(own.get, column, repeat(-1)), np.int32, len(column))
        new = np.flatnonzero(codes < 0)
        distinct, which = code_strings([column[t] for t in new.tolist()])
        for view in views:
            if view == plain:
                yield view, codes
                continue
            found = codes if plain is None else self._codes_under(view, plain)[codes]
            found[new] = coded_under(view, distinct, self.numbers[view])[which]
            yield view, found

    def _codes_under(self, view: View, plain: View) -> Ints32:
        """Codes under a view of the strings with each number, of which 0 is none."""
        if view not in self._under:
            of_strings = coded_under(view, list(self.numbers[plain]), self.numbers[view])
            self._under[view] = np.concatenate([[np.int32(-1)], of_strings])
        return self._under[view]
