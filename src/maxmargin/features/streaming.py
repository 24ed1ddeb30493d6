"""Window features of files that do not fit into memory: read once, numbered, and packed to a file.

The text is read once, and its strings become numbers, which lie in a file for a while. Two passes
over those count the features and write them. In memory are the distinct strings, the distinct
features with their counts, and one part of the data. The features are those that
`WindowFeatures.fit` finds in all data at once, to the last number.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from ..formats.columns import TokenColumns
from ..formats.opening import PathLike
from ..formats.writing import write_atomically
from ..utils.sklearn_bases import clone
from ..utils.types import Ints, Ints32
from .packing import PackedSequences
from .storing import PackedWriter
from .tokens import as_token_columns
from .window.features import WindowFeatures
from .window.keys import (
    CodedTokens,
    Keys,
    View,
    Windows,
    combined_keys,
    distinct_keys,
    reach_of,
    sizes_of,
)

__all__ = ["pack_stream"]

AT_A_TIME = 2**19  # tokens: bounds the memory of the passes over numbers
#: Times the number of features wanted at which the rarest of those found so far are forgotten.
CROWDED = 2


def pack_stream(
    path: PathLike,
    parts: Iterable[TokenColumns],
    features: WindowFeatures,
    *,
    label_column: int = -1,
    max_features: int | None = None,
) -> WindowFeatures:
    """Find the window features of labelled tokens, and write the tokens packed by them.

    Parameters
    ----------
    path : str or path-like
        File to write, for `PackedSequences.open`.
    parts : iterable of TokenColumns
        Gone through once, such as `maxmargin.formats.read_columns_in_parts`.
    features : WindowFeatures
        Templates, names of the columns without that of the labels, and ``min_count``; not changed.
    label_column : int, default=-1
        Which column has the labels.
    max_features : int, optional
        Keep no more than the most frequent. Where far more turn up, the rarest are forgotten on
        the way, so that a feature that is rare at first may be missed.

    Returns
    -------
    WindowFeatures
        Fitted, for a tagger's ``features``.

    Raises
    ------
    ValueError
        No tokens, columns that do not fit the templates, a single label.
    OSError
        A full disk, no permission, ...; ``filename`` is ``path``.
    """
    if max_features is not None and max_features < 1:
        raise ValueError(f"max_features must be at least 1, got {max_features}")
    folder = Path(os.path.realpath(path)).parent
    fitted: WindowFeatures = clone(features)
    with write_atomically(path) as stream, ExitStack() as files:
        corpus = _Corpus(files, folder, label_column)
        for part in parts:
            corpus.add(as_token_columns(part))
        parsed = fitted._begin(corpus.n_columns - 1)
        labels = corpus.labels
        strings = corpus.strings
        distinct = {name: strings[j] for j, name in enumerate(fitted.columns_)}
        seen = _Seen(corpus, fitted.columns_, fitted._number_strings(parsed, distinct))
        counts = [_Counts(space) for space in fitted._spaces(parsed)]
        sizes = [sizes_of(atoms, fitted._codes) for atoms in parsed]
        for some in seen.parts():
            windows = some.windows(reach_of(parsed))
            for own, atoms, size in zip(counts, parsed, sizes, strict=True):
                own.add(combined_keys(atoms, windows, size))
            if max_features is not None:
                _forget_rare(counts, max_features)
        keys, times = [own.keys for own in counts], [own.counts for own in counts]
        fitted._number_features(parsed, keys, times, max_features)
        del counts, keys, times
        writer = files.enter_context(PackedWriter(stream, folder))
        for some in seen.parts():
            coded = CodedTokens(some.codes(fitted._codes), some.offsets, fitted._tables())
            tokens = fitted.features_of(coded, some.offsets)
            writer.add(PackedSequences(tokens, some.offsets), some.labels)
        writer.finish(labels)
    return fitted


class _Corpus:
    """Tokens as numbers of strings, in files of their own."""

    def __init__(self, files: ExitStack, folder: Path, label_column: int) -> None:
        self._files, self._folder = files, folder
        self._label_column = label_column
        self._columns: list[BinaryIO] = []
        self._numbers: list[dict[str, int]] = []
        self._lengths: list[Ints] = []
        self._labels_at = 0

    @property
    def n_columns(self) -> int:
        """Columns of the tokens, that of the labels included."""
        return len(self._columns)

    @property
    def strings(self) -> list[list[str]]:
        """The distinct strings of each column but that of the labels, by number."""
        chosen = (n for j, n in enumerate(self._numbers) if j != self._labels_at)
        return [list(numbers) for numbers in chosen]

    @property
    def labels(self) -> list[str]:
        """The labels, by number; raises ValueError unless there are some to choose from."""
        if not self._columns:
            raise ValueError("expected at least one sequence, found none")
        labels = list(self._numbers[self._labels_at])
        if len(labels) < 2:
            raise ValueError(f"y has only one label ({labels[0]!r}); at least 2 are needed")
        return labels

    def add(self, data: TokenColumns) -> None:
        """Append sequences."""
        if not self._columns:
            self._begin(len(data.columns))
        if len(data.columns) != self.n_columns:
            raise ValueError(f"expected {self.n_columns} columns, found {len(data.columns)}")
        for column, numbers, stream in zip(data.columns, self._numbers, self._columns, strict=True):
            for string in dict.fromkeys(column):
                numbers.setdefault(string, len(numbers))
            codes = np.fromiter(map(numbers.__getitem__, column), np.int32, len(column))
            stream.write(codes.data)
        self._lengths.append(np.diff(data.offsets))

    def _begin(self, n_columns: int) -> None:
        """Make room for so many columns."""
        at = self._label_column
        if n_columns < 2 or not -n_columns <= at < n_columns:
            raise ValueError(
                f"label_column is {at}, but the data has {n_columns} columns; it needs that one "
                "and at least one more"
            )
        self._labels_at = at % n_columns
        for _ in range(n_columns):
            stream = tempfile.TemporaryFile(dir=self._folder)
            self._columns.append(self._files.enter_context(stream))
            self._numbers.append({})

    def parts(self) -> Iterator[tuple[Ints, list[Ints32], Ints32]]:
        """Offsets of some sequences at a time, numbers of their strings and of their labels."""
        lengths = np.concatenate(self._lengths)
        for stream in self._columns:
            stream.seek(0)
        ends = np.cumsum(lengths)
        first, done = 0, 0
        while first < len(lengths):
            last = max(first + 1, int(np.searchsorted(ends, done + AT_A_TIME, side="right")))
            offsets = np.concatenate([[0], ends[first:last] - done])
            n_bytes = 4 * int(offsets[-1])
            codes = [np.frombuffer(stream.read(n_bytes), np.int32) for stream in self._columns]
            labels = codes.pop(self._labels_at)
            yield offsets, codes, labels
            first, done = last, int(ends[last - 1])


class _Part(NamedTuple):
    """Some sequences: what templates see of their tokens, and numbers of their labels."""

    offsets: Ints
    seen: dict[View, Ints32]
    labels: Ints32

    def windows(self, reach: int) -> Windows:
        """The same with neighbours side by side."""
        windows = Windows(self.offsets, reach)
        for view, codes in self.seen.items():
            windows.add(view, codes)
        return windows

    def codes(self, views: Iterable[View]) -> Ints32:
        """The same in one table, views in columns."""
        return np.stack([self.seen[view] for view in views], axis=1)


class _Seen(NamedTuple):
    """What templates see of a corpus."""

    corpus: _Corpus
    columns: list[str]
    tables: dict[View, Ints32]

    def parts(self) -> Iterator[_Part]:
        """Some sequences at a time."""
        for offsets, codes, labels in self.corpus.parts():
            of_column = dict(zip(self.columns, codes, strict=True))
            seen = {view: table[of_column[view[0]]] for view, table in self.tables.items()}
            yield _Part(offsets, seen, labels)


class _Counts:
    """How often the keys of a template have been seen, those that are remembered."""

    def __init__(self, space: int) -> None:
        self._space = space
        self.keys: Keys = np.empty(0, np.int64)
        self.counts: Ints = np.empty(0, np.int64)

    def add(self, keys: Keys | Ints32) -> None:
        """Count the keys of more tokens."""
        new, counts, _ = distinct_keys(keys, self._space)
        self.keys, where = np.unique(np.concatenate([self.keys, new]), return_inverse=True)
        both = np.concatenate([self.counts, counts])
        self.counts = np.bincount(where, both, len(self.keys)).astype(np.int64)

    def keep(self, at_least: int) -> None:
        """Forget keys that were seen fewer times."""
        kept = self.counts >= at_least
        self.keys, self.counts = self.keys[kept], self.counts[kept]


def _forget_rare(counts: Sequence[_Counts], most: int) -> None:
    """Forget the rarest keys of all templates, if there are far too many."""
    if sum(len(own.keys) for own in counts) <= CROWDED * most:
        return
    together = np.concatenate([own.counts for own in counts])
    least = int(np.partition(together, len(together) - most)[len(together) - most])
    for own in counts:  # where ties would leave too many they go too
        own.keep(least if np.count_nonzero(together >= least) <= CROWDED * most else least + 1)
