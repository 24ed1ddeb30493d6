"""Numbers of the strings of a column under all of its views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat

import numpy as np

from ...utils.types import Ints32
from .keys import View, code_strings, coded_under
from .string_tables import FOUND_BY_BYTES, ColumnTables, find_strings, make_column_tables

__all__ = ["ColumnCoder"]

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
