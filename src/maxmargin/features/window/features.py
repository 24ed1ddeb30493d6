"""Window features of words and other columns, extracted with array operations.

Each distinct string of a column gets a code (0 stands for a position outside the sequence; where
templates tell how far outside, codes behind those of the strings do). A
template of several atoms combines their codes into one integer key, in the mixed radix of the
vocabulary sizes. What is learned is, for each template, the sorted keys seen and their feature
numbers; no feature is ever a string until its name is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...formats.columns import TokenColumns
from ...formats.opening import PathLike
from ...utils.schema import from_values
from ...utils.sklearn_bases import Estimator
from ...utils.types import Ints, Ints32
from ...utils.validation import check_choice
from ..packing import PackedSequences
from ..tokens import as_token_columns
from .kernels import WindowTables, find_features
from .keys import (
    CodedTokens,
    ColumnCoder,
    Keys,
    View,
    Windows,
    WindowTemplate,
    are_keys,
    code_strings,
    combined_keys,
    distinct_keys,
    make_tables,
    matrix_of_ones,
    numbered,
    rank_by_count,
    reach_of,
    sizes_of,
    views_by_column,
)
from .templates import (
    Atom,
    choose_templates,
    name_joiner,
    parse_any,
    read_templates,
    shown_code,
    transform_function,
)

__all__ = ["WindowFeatures"]

_OUTSIDE = "<pad>"


class _State(NamedTuple):
    """What a file keeps of the features."""

    min_count: int
    templates: list[str]
    columns: list[str]
    vocabularies: list[list[str]]
    keys: Keys
    ids: Ints32
    bounds: Ints


class WindowFeatures(Estimator):
    """Features of each token from the words, tags and other columns around it.

    Parameters
    ----------
    templates : list of str, optional
        What makes a feature, for example ``["w[0]", "p[-1]|p[0]", "suffix3(w[0])"]``; see
        `maxmargin.features.window.templates`. Templates of CRF++, ``"U05:%x[-1,0]/%x[0,0]"``, are
        read too; see `from_templates`. By default `words_templates` for data of one column and
        `chunking_templates` for data of more.
    columns : list of str, optional
        Names of the columns in order; by default w, p, c2, c3, ...
    min_count : int, default=1
        Features found fewer times are left out.

    Attributes
    ----------
    n_features_out_ : int
        Number of features. The most frequent come first, so that the weights most often used lie
        together in memory; ties in the order of templates, then of first appearance.
    templates_ : list of str
        Templates in use.
    columns_ : list of str
        Names of the columns of the data.

    Notes
    -----
    A position outside the sequence is a value like any other (one padding value for both sides;
    for templates of CRF++ one for each distance, ``_B-1``, ``_B+1``, ``_B+2``, ...),
    and a word shorter than an affix is its own affix: on training data each template gives each
    token exactly one feature. Features not seen by ``fit`` are dropped by ``transform``.

    Examples
    --------
    >>> window = WindowFeatures(["w[0]", "w[-1]|w[0]"])
    >>> window.fit_transform([["the", "cat"], ["the", "dog"]]).tokens.toarray().tolist()
    [[1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 1.0, 0.0], \
[1.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0, 1.0]]
    >>> window.get_feature_names_out()[4]
    'w[-1]=the|w[0]=cat'
    """

    def __init__(
        self,
        templates: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        min_count: int = 1,
    ) -> None:
        self.templates = templates
        self.columns = columns
        self.min_count = min_count

    @classmethod
    def from_templates(
        cls,
        source: PathLike,
        *,
        kind: Literal["unigram", "bigram"] = "unigram",
        min_count: int = 1,
    ) -> WindowFeatures:
        r"""Make features of a template file of CRF++ or Wapiti.

        Parameters
        ----------
        source : str or path-like
            A file, or its text; see `maxmargin.features.read_templates`.
        kind : {"unigram", "bigram"}, default="unigram"
            Templates of labels (U), the features of a `SequenceTagger`, or those of pairs of labels
            (B with observations), its ``transition_features``.
        min_count : int, default=1
            Features found fewer times are left out, like ``-f`` of crf_learn.

        Returns
        -------
        WindowFeatures

        Examples
        --------
        >>> window = WindowFeatures.from_templates("U00:%x[-1,0]\nU01:%x[-1,0]/%x[0,0]\nB")
        >>> window.fit([["the", "cat"]]).get_feature_names_out().tolist()
        ['U00:the', 'U00:_B-1', 'U01:the/cat', 'U01:_B-1/the']
        """
        found = read_templates(source)
        check_choice(kind, ("unigram", "bigram"), "kind")
        chosen = found.unigram if kind == "unigram" else found.bigram
        if not chosen:
            raise ValueError("no templates of pairs of labels with observations found")
        return cls(chosen, min_count=min_count)

    def fit(self, X: Any, y: Any = None) -> WindowFeatures:
        """Collect the features of X.

        Parameters
        ----------
        X : TokenColumns, or list of sequences
            A sequence is a list of tokens, a token a string or a tuple of strings.
        y : ignored

        Returns
        -------
        self
        """
        self._fit(as_token_columns(X))
        return self

    def transform(self, X: Any) -> PackedSequences:
        """Give the features of each token.

        Parameters
        ----------
        X : TokenColumns, or list of sequences
            With the columns of the data given to ``fit``.

        Returns
        -------
        PackedSequences
            CSR matrix of ones, and offsets.
        """
        coded = self.code(X)
        return PackedSequences(self.features_of(coded, coded.offsets), coded.offsets)

    def code(self, X: Any) -> CodedTokens:
        """Number the strings of all tokens: what takes Python's own time of `transform`.

        Parameters
        ----------
        X : TokenColumns, or list of sequences
            As for `transform`.

        Returns
        -------
        CodedTokens
        """
        if not hasattr(self, "templates_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError("this WindowFeatures is not fitted yet: call fit first")
        data = as_token_columns(X)
        if len(data.columns) != len(self.columns_):
            raise ValueError(
                f"expected {len(self.columns_)} columns ({', '.join(self.columns_)}) as in the "
                f"training data, found {len(data.columns)}"
            )
        numbers = {view: number for number, view in enumerate(self._codes)}
        codes = np.empty((data.n_tokens, len(numbers)), np.int32)
        for name, views in views_by_column(t.atoms for t in self._templates).items():
            column = data.columns[self.columns_.index(name)]
            self._coder().code(column, views, numbers, codes)
        return CodedTokens(codes, data.offsets, self._tables())

    def features_of(self, coded: CodedTokens, offsets: Ints) -> Any:
        """Features of some sequences, the rest of `transform`, without the GIL.

        Parameters
        ----------
        coded : CodedTokens
            As `code` gives them.
        offsets : ndarray of int
            Those of ``coded``, or some in a row.

        Returns
        -------
        CSR array
            A row for each token of these sequences.
        """
        own = slice(int(offsets[0]), int(offsets[-1]))
        ids = np.empty((own.stop - own.start, len(self._templates)), np.int32)
        find_features(coded.tables, coded.codes[own], offsets - own.start, ids)
        return matrix_of_ones(ids, self.n_features_out_)

    def _coder(self) -> ColumnCoder:
        """What numbers the strings of columns; cached."""
        cached = getattr(self, "_cached_coder", None)
        if cached is None or cached.numbers is not self._codes:
            cached = self._cached_coder = ColumnCoder(self._codes)
        return cached

    def _tables(self) -> WindowTables:
        """What the kernel needs of the templates; cached."""
        cached = getattr(self, "_cached_tables", None)
        if cached is None or cached[0] is not self._templates:
            cached = self._cached_tables = (
                self._templates,
                make_tables(self._templates, self._codes),
            )
        return cached[1]

    def fit_transform(self, X: Any, y: Any = None) -> PackedSequences:
        """Fit, and transform the same data; faster than one after the other.

        Parameters
        ----------
        X : TokenColumns, or list of sequences
            A sequence is a list of tokens, a token a string or a tuple of strings.
        y : ignored

        Returns
        -------
        PackedSequences
            CSR matrix of ones, and offsets.
        """
        data = as_token_columns(X)
        ids = self._fit(data)
        return PackedSequences(matrix_of_ones(ids, self.n_features_out_), data.offsets)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features, such as "w[-1]=the|w[0]=cat", in the order of the columns.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str objects
        """
        names = np.empty(self.n_features_out_, dtype=object)
        strings = {view: [_OUTSIDE, *numbers] for view, numbers in self._codes.items()}
        for template, own in zip(self.templates_, self._templates, strict=True):
            atoms, sizes, keys, ids = own
            parts = []
            rest = keys
            # The last atom is the lowest digit of the key.
            for atom, size in zip(reversed(atoms), reversed(sizes), strict=True):
                rest, digits = np.divmod(rest, size)
                parts.append([shown_code(atom, strings[atom.view], d) for d in digits.tolist()])
            join = name_joiner(template, atoms, self.columns_)
            names[ids] = [join(part) for part in zip(*reversed(parts), strict=True)]
        return names

    def names_of(self, numbers: Ints) -> list[str]:
        """Names of the features with these numbers: for few of them, without making all.

        Parameters
        ----------
        numbers : array of int
            Columns of the features.

        Returns
        -------
        list of str
        """
        strings, template_of, place_of = self._places()
        names = []
        for f in np.asarray(numbers).tolist():
            t = int(template_of[f])
            atoms, sizes, keys, _ = self._templates[t]
            rest, part = int(keys[place_of[f]]), []
            for atom, size in zip(reversed(atoms), reversed(sizes), strict=True):
                rest, digit = divmod(rest, int(size))
                part.append(shown_code(atom, strings[atom.view], digit))
            names.append(name_joiner(self.templates_[t], atoms, self.columns_)(part[::-1]))
        return names

    def _places(self) -> tuple[dict[View, list[str]], Ints32, Ints32]:
        """Strings of all views, and the template of each feature and its place there; cached."""
        cached = getattr(self, "_cached_places", None)
        if cached is None or cached[0] is not self._templates:
            template_of = np.zeros(self.n_features_out_, np.int32)
            place_of = np.zeros(self.n_features_out_, np.int32)
            for t, template in enumerate(self._templates):
                template_of[template.ids] = t
                place_of[template.ids] = np.arange(len(template.ids))
            strings = {view: [_OUTSIDE, *numbers] for view, numbers in self._codes.items()}
            cached = self._cached_places = self._templates, (strings, template_of, place_of)
        return cached[1]

    def columns_of(self, template: str) -> Ints:
        """Numbers of the features that a template has made.

        Parameters
        ----------
        template : str
            One of ``templates_``.

        Returns
        -------
        ndarray of int
        """
        return np.sort(self._templates[self.templates_.index(template)].ids).astype(np.int64)

    def to_state(self) -> dict[str, Any]:
        """Give what was learned as JSON-able values and arrays, to be saved without pickle.

        Returns
        -------
        dict
        """
        bounds = np.cumsum([0, *(len(t.keys) for t in self._templates)])
        return {
            "min_count": int(self.min_count),
            "templates": list(self.templates_),
            "columns": list(self.columns_),
            "vocabularies": [list(numbers) for numbers in self._codes.values()],
            "keys": np.concatenate([t.keys for t in self._templates]),
            "ids": np.concatenate([t.ids for t in self._templates]),
            "bounds": bounds.astype(np.int64),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> WindowFeatures:
        """Rebuild fitted features from `to_state`.

        Parameters
        ----------
        state : dict

        Returns
        -------
        WindowFeatures
        """
        known = from_values(_State, dict(state), "features")
        templates, columns, vocabularies = known.templates, known.columns, known.vocabularies
        features = cls(templates, columns, known.min_count)
        atoms = [parse_any(template, columns) for template in templates]
        keys, ids, bounds = known.keys, known.ids, known.bounds.tolist()
        views = [view for group in views_by_column(atoms).values() for view in group]
        fits = (
            len(vocabularies) == len(views)
            and {view[0] for view in views} <= set(columns)
            and len(bounds) == len(atoms) + 1
            and bounds == sorted(bounds)
            and bounds[0] == 0
            and keys.shape == ids.shape == (bounds[-1],)
            and np.array_equal(np.sort(ids), np.arange(len(ids)))
        )
        if not fits:
            raise ValueError("saved window features are inconsistent: templates do not fit arrays")
        features.templates_, features.columns_ = templates, columns
        features.n_features_out_ = len(ids)
        features._codes = {
            view: numbered(strings) for view, strings in zip(views, vocabularies, strict=True)
        }
        features._templates = [
            WindowTemplate(parts, sizes_of(parts, features._codes), keys[a:b], ids[a:b])
            for parts, (a, b) in zip(atoms, pairwise(bounds), strict=True)
        ]
        if not all(are_keys(template) for template in features._templates):
            raise ValueError("saved window features are inconsistent: keys of no features")
        return features

    def _fit(self, data: TokenColumns) -> Ints32:
        """Learn the features of the data and give its feature numbers, tokens in rows."""
        parsed = self._begin(len(data.columns))
        coded = {
            name: code_strings(data.columns[self.columns_.index(name)])
            for name in views_by_column(parsed)
        }
        tables = self._number_strings(
            parsed, {name: distinct for name, (distinct, _) in coded.items()}
        )
        windows = Windows(data.offsets, reach_of(parsed))
        for view, table in tables.items():
            windows.add(view, table[coded[view[0]][1]])
        spaces = self._spaces(parsed)
        found = []
        for atoms, space in zip(parsed, spaces, strict=True):
            keys = combined_keys(atoms, windows, sizes_of(atoms, self._codes))
            found.append(distinct_keys(keys, space))
        numbers = self._number_features(
            parsed, [keys for keys, _, _ in found], [counts for _, counts, _ in found]
        )
        ids = np.empty((data.n_tokens, len(parsed)), dtype=np.int32)
        for t, (_, _, which) in enumerate(found):
            ids[:, t] = numbers[t][which]
        return ids

    def _begin(self, n_columns: int) -> list[tuple[Atom, ...]]:
        """Note columns and templates of data with that many columns; returns parsed templates."""
        self.columns_, self.templates_, parsed = choose_templates(
            self.templates, self.columns, n_columns
        )
        return parsed

    def _number_strings(
        self, parsed: list[tuple[Atom, ...]], distinct: Mapping[str, list[str]]
    ) -> dict[View, Ints32]:
        """Number what is seen of each column's strings; for each view the numbers of these."""
        self._codes: dict[View, dict[str, int]] = {}
        tables = {}
        for name, views in views_by_column(parsed).items():
            for view in views:
                seen = list(map(transform_function(*view[1:]), distinct[name]))
                numbers = self._codes[view] = numbered(seen)
                tables[view] = np.fromiter(map(numbers.__getitem__, seen), np.int32, len(seen))
        return tables

    def _spaces(self, parsed: list[tuple[Atom, ...]]) -> list[int]:
        """How many keys each template may have."""
        spaces = [math.prod(sizes_of(atoms, self._codes)) for atoms in parsed]
        for template, space in zip(self.templates_, spaces, strict=True):
            if space >= 2**63:
                raise ValueError(f"template {template!r} has too many combinations to number")
        return spaces

    def _number_features(
        self,
        parsed: list[tuple[Atom, ...]],
        keys: Sequence[Keys],
        counts: Sequence[Ints],
        most: int | None = None,
    ) -> list[Ints32]:
        """Learn the keys that are frequent enough, ``most`` of them; returns the numbers of all."""
        starts = np.cumsum([0, *map(len, keys)])
        rank = rank_by_count(np.concatenate(counts), self.min_count)
        if most is not None:
            rank[rank >= most] = -1
        self.n_features_out_ = int(rank.max(initial=-1)) + 1
        if self.n_features_out_ == 0:
            raise ValueError(f"no feature is found min_count = {self.min_count} times")
        numbers = [rank[a:b] for a, b in pairwise(starts)]
        self._templates = []
        for atoms, own, ids in zip(parsed, keys, numbers, strict=True):
            kept = ids >= 0
            sizes = sizes_of(atoms, self._codes)
            self._templates.append(WindowTemplate(atoms, sizes, own[kept], ids[kept]))
        return numbers
