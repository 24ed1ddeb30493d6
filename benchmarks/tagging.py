"""Column files of tagged sentences as arrays, and tags of other sentences by weights."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from maxmargin.features import PackedSequences, WindowFeatures
from maxmargin.formats import TokenColumns, read_columns

from .case import Floats, Tags
from .data import chain_problem, data_path, first_sequences


def read(name: str, limit: int | None = None) -> TokenColumns:
    """Words, POS and tags of the first sentences of a data file, or of all."""
    return first(read_columns(data_path(name)), limit)


def first(data: TokenColumns, limit: int | None) -> TokenColumns:
    """The first sentences, or all."""
    offsets = first_sequences(data.offsets, limit)
    return TokenColumns([column[: offsets[-1]] for column in data.columns], offsets)


class Tagging:
    """Training data as a problem, and what its weights say of the test part."""

    def __init__(self, train: TokenColumns, test: TokenColumns, templates: Sequence[str]) -> None:
        self.test = test
        features = WindowFeatures(list(templates))
        self.packed: PackedSequences = features.fit_transform(train.select([0, 1]))
        self.packed_test: PackedSequences = features.transform(test.select([0, 1]))
        self.labels, codes = np.unique(train.columns[2], return_inverse=True)
        self.codes = codes.astype(np.int32)
        self.problem = partial(
            chain_problem, self.packed.tokens, self.packed.offsets, self.codes, len(self.labels)
        )
        self.truth: Tags = test.split(2)

    def decode(self, w: Floats) -> Tags:
        """Tags of the test part."""
        offsets = self.packed_test.offsets
        decoder = self.problem(1).decoder
        codes = decoder.decode(decoder.inputs(self.packed_test.tokens), offsets, w)
        return np.split(self.labels[codes], offsets[1:-1])
